"""Run by the peer's Python, in the folder that holds its YAML: one search, its optimum as one line of JSON.

Usage: python peer_run.py arch.yaml workload.yaml mapper.yaml [--imperfect]
"""

import json
import sys
from importlib.metadata import version
from typing import Any

IMPERFECT = "--imperfect"  # tiles that do not divide their extent, in time and in space


def main() -> None:
    import accelforge  # type: ignore[import-not-found]

    accelforge.set_n_parallel_jobs(1)  # its workers share nothing: one process needs the least CPU time
    files = [word for word in sys.argv[1:] if word != IMPERFECT]
    spec = accelforge.Spec.from_yaml(*files)
    if IMPERFECT in sys.argv:
        spec.mapper.explore_imperfect_temporal_loops = True
        spec.mapper.explore_imperfect_spatial_loops = True
    found = spec.map_workload_to_arch(print_progress=False)
    metrics = str(spec.mapper.metrics)
    points = [(float(e), float(t)) for e, t in zip(column(found.energy()), column(found.latency()), strict=True)]
    print(json.dumps({"version": version("accelforge"), "metrics": metrics, "points": points}))


def column(values: Any) -> list[Any]:
    """One number per returned mapping, whether the peer hands back one number or a column."""
    listed = getattr(values, "tolist", None)
    found = values if listed is None else listed()
    return found if isinstance(found, list) else [found]


if __name__ == "__main__":
    main()
