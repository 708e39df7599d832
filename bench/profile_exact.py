"""Where the seconds of one exact search go: ``python -m bench.profile_exact WORKLOAD MACHINE --objective edp``.

The search runs twice in one process: first as it is, for CPU seconds by stage (the stages that it reports to its
watcher), then under the profiler, for seconds by function. The profiler makes small functions look slower than they
are: only shares mean something in the second table. Prints both, and leaves them in `bench/results/profile.csv` for
`docs/profile.md`: of the latest run alone, unless another file is named (`--out`).
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import resource
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import einloom
from einloom.machine.levels import Machine
from einloom.mapspace.space import Mapspace
from einloom.problem import Problem, objective
from einloom.search.exact import Exact
from einloom.search.method import Watcher
from einloom.workload.einsum import Workload

from .measured import Column, Row, markdown
from .rows import append, stamp

PACKAGE = Path(einloom.__file__).parent
RESULTS = Path(__file__).parent / "results" / "profile.csv"


class Stages(Watcher):
    """Adds up the CPU seconds between reports, by the first word or two of the stage that they belong to."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.name = "preparing"
        self.since = time.process_time()

    def stage(self, name: str, done: int = 0, total: int | None = None) -> None:
        now = time.process_time()
        self.seconds[self.name] = self.seconds.get(self.name, 0.0) + now - self.since
        self.name, self.since = " ".join(name.split()[:2]), now

    def close(self) -> dict[str, float]:
        """Seconds by stage, the last one ended now."""
        self.stage("end")
        return self.seconds


def asked(workload: str, machine: str, name: str, max_fused_loops: int | None) -> Problem:
    """The problem of two names of the zoo."""
    what, where = einloom.zoo.load(workload), einloom.zoo.load(machine)
    assert isinstance(what, Workload)
    assert isinstance(where, Machine)
    return Problem(what, where, Mapspace("ffm", max_fused_loops), objective(name, where))


def by_stage(problem: Problem) -> tuple[dict[str, float], float, float]:
    """CPU seconds of every stage, their sum, and the value found."""
    stages = Stages()
    started = time.process_time()
    value = Exact().search(problem, watch=stages).value
    return stages.close(), time.process_time() - started, value


def by_function(problem: Problem, most: int) -> Iterator[tuple[str, int, float, float]]:
    """(function, calls, own share, share with what it calls) of the package's functions, largest own share first.

    Library functions that the package calls count as their callers' own.
    """
    profile = cProfile.Profile(time.process_time)
    profile.runcall(Exact().search, problem)
    stats = pstats.Stats(profile)
    whole = stats.total_tt  # type: ignore[attr-defined]
    own: dict[tuple[str, int, str], float] = {}
    calls: dict[tuple[str, int, str], tuple[int, float]] = {}
    entries = stats.stats  # type: ignore[attr-defined]
    mine = {f for f in entries if f[0].startswith(str(PACKAGE))}
    for f, (_, count, alone, total, callers) in entries.items():
        if f in mine:
            own[f] = own.get(f, 0.0) + alone
            calls[f] = (count, total)
        else:
            for caller, (_, _, _, through) in callers.items():
                if caller in mine:
                    own[caller] = own.get(caller, 0.0) + through
    for f in sorted(own, key=lambda f: -own[f])[:most]:
        count, total = calls[f]
        name = f"{Path(f[0]).relative_to(PACKAGE)}:{f[2]}"
        yield name, count, own[f] / whole, total / whole


def main(words: list[str]) -> int:
    """Print both tables."""
    parser = argparse.ArgumentParser(prog="python -m bench.profile_exact", description=__doc__)
    parser.add_argument("workload")
    parser.add_argument("machine")
    parser.add_argument("--objective", default="energy")
    parser.add_argument("--max-fused-loops", type=int)
    parser.add_argument("--functions", type=int, default=25, help="how many functions to list")
    parser.add_argument("--out", type=Path, default=RESULTS, help="the CSV")
    given = parser.parse_args(words)
    problem = asked(given.workload, given.machine, given.objective, given.max_fused_loops)
    seconds, total, value = by_stage(problem)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    rows = [_row("search", repr(value), total, 1.0, f"{memory:.0f}")]
    rows += [_row("stage", name, spent, spent / total) for name, spent in sorted(seconds.items(), key=lambda x: -x[1])]
    for name, count, alone, whole in by_function(problem, given.functions):
        rows.append({**_row("function", name, None, alone), "calls": str(count), "all": f"{whole:.3f}"})
    given.out.unlink(missing_ok=True)
    for row in rows:
        append(given.out, {**row, **stamp()})
    print(f"{stages_table(rows)}\n\n{functions_table(rows)}")
    return 0


def _row(kind: str, name: str, seconds: float | None, share: float, memory: str = "") -> Row:
    spent = "" if seconds is None else f"{seconds:.2f}"
    named = {"kind": kind, "name": name, "cpu_s": spent, "calls": "", "own": f"{share:.3f}", "all": ""}
    return {**named, "peak_mib": memory}


def stages_table(rows: list[Row]) -> str:
    """What was found in how many CPU seconds, and how many of them each stage took."""
    (whole,) = (row for row in rows if row["kind"] == "search")
    said = f"Value {whole['name']}, {whole['cpu_s']} CPU s, {whole['peak_mib']} MiB at most."
    columns = Column("stage", "name"), Column("CPU s", "cpu_s"), Column("share", lambda row: _share(row["own"]))
    return f"{said}\n\n{markdown(columns, (row for row in rows if row['kind'] == 'stage'))}"


def functions_table(rows: list[Row]) -> str:
    """The functions with the largest shares of their own."""
    columns = (
        Column("function", lambda row: f"`{row['name']}`"),
        Column("calls", lambda row: f"{int(row['calls']):,}"),
        Column("own", lambda row: _share(row["own"])),
        Column("with what it calls", lambda row: _share(row["all"])),
    )
    return markdown(columns, (row for row in rows if row["kind"] == "function"))


def _share(text: str) -> str:
    return f"{float(text):.1%}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
