"""Random cascades of the space `ragged` against all of their trees: ``python -m bench.uneven --problems 2000``.

Each problem is solved by `exact` in `ragged` and in `ffm`, and its trees are enumerated. Says how many differ (none
may), and of how many the optimum has uneven tiles. `--json FILE` writes [seed, optimum, whether uneven tiles pay].
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import count, islice
from pathlib import Path

from einloom.errors import Infeasible
from einloom.mapspace.ffm.rules import outside
from einloom.mapspace.space import Mapspace
from einloom.problem import Problem
from einloom.reading import writing
from einloom.search.exact import Exact
from einloom.search.exhaustive import Exhaustive
from einloom.testing.ragged import few, ragged_problem, window_problem

MOST = 600  # trees of a problem: of fewer the optimum is hardly ever uneven
MOST_WINDOWS = 2000
SAME = 1e-9


def value(method: Exact | Exhaustive, problem: Problem) -> float | None:
    """What a method finds; None if there is no mapping."""
    try:
        found = method.search(problem)
    except Infeasible:
        return None
    if outside(problem.workload, problem.machine, problem.mapspace, found.mapping):
        return float("nan")
    return found.value


def small(make: Callable[[int], Problem], first: int, most: int) -> Iterator[int]:
    """The seeds of small problems."""
    return (seed for seed in count(first) if few(make(seed), most))


def differ(one: float | None, other: float | None) -> bool:
    """True if two optima are not the same."""
    if one is None or other is None:
        return one is not other
    return not abs(one - other) <= SAME * abs(other)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--problems", type=int, default=2000)
    parser.add_argument("--first", type=int, default=0, help="first seed")
    parser.add_argument("--windows", action="store_true", help="convolutions, whose windows spatial loops may cut so")
    parser.add_argument("--json", metavar="FILE")
    asked = parser.parse_args(arguments)
    found: list[tuple[int, float | None, bool]] = []
    wrong = 0
    make, most = (window_problem, MOST_WINDOWS) if asked.windows else (ragged_problem, MOST)
    for seed in islice(small(make, asked.first, most), asked.problems):
        problem = make(seed)
        every, exact = value(Exhaustive(), problem), value(Exact(), problem)
        perfect = value(Exact(), replace(problem, mapspace=Mapspace("ffm", problem.mapspace.max_fused_loops)))
        pays = every is not None and (perfect is None or every < perfect * (1 - SAME))
        found.append((seed, every, pays))
        if differ(exact, every):
            wrong += 1
            print(f"seed {seed}: exact says {exact}, all trees say {every}")
        if asked.json:
            writing.write(json.dumps(found) + "\n", Path(asked.json))
    print(f"{len(found)} problems, {wrong} differ, of {sum(pays for *_, pays in found)} the optimum is uneven")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
