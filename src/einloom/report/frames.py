"""Results as pandas DataFrames: the one module that imports pandas, and only when a frame is asked for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..errors import MissingExtra, unknown
from ..result import Result

if TYPE_CHECKING:
    import pandas


def frame(records: Sequence[dict[str, Any]], heads: Sequence[str] | None = None) -> pandas.DataFrame:
    """A DataFrame of records; `heads` names the columns where there may be no record. MissingExtra without pandas."""
    try:
        import pandas as found
    except ImportError:
        raise MissingExtra("pandas", "notebook") from None
    return found.DataFrame.from_records(list(records), columns=None if heads is None else list(heads))


def actions(result: Result) -> pandas.DataFrame:
    """A row per Einsum, component, tensor and action: count, bits, bits of the busiest instance, joules."""
    heads = ("einsum", "component", "tensor", "action", "count", "bits", "busiest", "energy")
    return frame([{key: getattr(action, key) for key in heads} for action in result.cost.actions], heads)


def energy(result: Result) -> pandas.DataFrame:
    """Joules: a row per Einsum, a column per component."""
    table = actions(result).pivot_table(index="einsum", columns="component", values="energy", aggfunc="sum", sort=False)
    order = [component.name for component in result.machine.components]
    return table.fillna(0.0)[[name for name in order if name in table.columns]]


def traffic(result: Result) -> pandas.DataFrame:
    """Bits moved: a row per memory and tensor, a column each for reads and writes."""
    moved = actions(result)
    moved = moved[moved["action"].isin(["read", "write"])]
    table = moved.pivot_table(index=["component", "tensor"], columns="action", values="bits", aggfunc="sum", sort=False)
    return table.fillna(0).astype("int64")


def latency(result: Result) -> pandas.DataFrame:
    """Seconds: a row per Einsum and component that it keeps busy."""
    heads = ("einsum", "component", "seconds")
    return frame([dict(zip(heads, row, strict=True)) for row in result.cost.busy], heads)


def occupancy(result: Result) -> pandas.DataFrame:
    """Bits in one instance at the worst moment: a row per memory and tensor alive then, with the memory's size."""
    rows = [
        {"memory": o.memory, "tensor": tensor, "bits": number, "peak": o.bits, "size": o.size}
        for o in result.cost.occupancy
        for tensor, number in o.tensors
    ]
    return frame(rows, ("memory", "tensor", "bits", "peak", "size"))


def trace(result: Result) -> pandas.DataFrame:
    """Best value and proven bound over time: a row per change."""
    heads = ("seconds", "best", "bound")
    return frame([{key: getattr(point, key) for key in heads} for point in result.trace], heads)


def front(result: Result) -> pandas.DataFrame:
    """The Pareto set: a row per mapping, with its tree as text; empty if the result has none."""
    rows = [
        {"energy": p.energy, "latency": p.latency, "edp": p.energy * p.latency, "mapping": str(p.mapping)}
        for p in result.front
    ]
    return frame(rows, ("energy", "latency", "edp", "mapping"))


FRAMES = {
    "actions": actions,
    "energy": energy,
    "traffic": traffic,
    "latency": latency,
    "occupancy": occupancy,
    "trace": trace,
    "front": front,
}


def frame_of(result: Result, what: str) -> pandas.DataFrame:
    """The DataFrame called `what`. Raises SpecError with a suggestion for an unknown name."""
    if what not in FRAMES:
        raise unknown("frame", what, FRAMES)
    return FRAMES[what](result)
