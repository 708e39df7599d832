"""Where the seconds of one exact search go: ``python -m bench.profile_exact WORKLOAD MACHINE --objective edp``.

The search runs twice in one process: first as it is, for CPU seconds by stage (the stages that it reports to its
watcher), then under the profiler, for seconds by function. The profiler makes small functions look slower than they
are: only shares mean something in the second table.
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

PACKAGE = Path(einloom.__file__).parent


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
    given = parser.parse_args(words)
    problem = asked(given.workload, given.machine, given.objective, given.max_fused_loops)
    seconds, total, value = by_stage(problem)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"value {value!r}, {total:.2f} CPU s, {memory:.0f} MiB at most\n")
    print(f"{'stage':32s} {'CPU s':>7s} {'share':>6s}")
    for name, spent in sorted(seconds.items(), key=lambda item: -item[1]):
        print(f"{name:32s} {spent:7.2f} {spent / total:6.1%}")
    print(f"\n{'function':60s} {'calls':>8s} {'own':>6s} {'all':>6s}")
    for name, count, alone, whole in by_function(problem, given.functions):
        print(f"{name:60s} {count:8d} {alone:6.1%} {whole:6.1%}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
