"""Random cascades of the space `ragged` against all of their trees: ``python -m bench.uneven --problems 2000``.

Each problem is solved by `exact` in `ragged` and in `ffm`, and its trees are enumerated. Says how many differ (none
may), and of how many the optimum has uneven tiles. `--json FILE` writes [seed, optimum, whether uneven tiles pay].
`--groups` draws problems whose Einsums may run at the same time, leaves out those without an uneven tree in which some
do, and says of how many such a tree alone is the optimum.
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
from einloom.mapping.legality.concurrency import has_concurrent
from einloom.mapspace.ffm.enumerate import enumerate_trees
from einloom.mapspace.ffm.rules import outside
from einloom.problem import Problem
from einloom.reading import writing
from einloom.search.exact import Exact
from einloom.search.exhaustive import Exhaustive
from einloom.testing.ragged import few, grouped_problem, ragged_problem, window_problem

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


def grouped_unevenly(problem: Problem) -> bool:
    """True if some tree of the space has an uneven tile, and Einsums that run at the same time."""
    workload, machine, perfect = problem.workload, problem.machine, replace(problem.mapspace, name="ffm")
    trees = enumerate_trees(workload, machine, problem.mapspace)
    return any(has_concurrent(t.nest) and outside(workload, machine, perfect, t) for t in trees)


def smaller(problem: Problem, groups: bool) -> Iterator[Problem]:
    """The problem with perfect tiles; groups: and without groups."""
    yield replace(problem, mapspace=replace(problem.mapspace, name="ffm"))
    if groups:
        yield replace(problem, mapspace=replace(problem.mapspace, concurrent="none"))


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
    parser.add_argument("--groups", action="store_true", help="Einsums that may run at the same time")
    parser.add_argument("--json", metavar="FILE")
    asked = parser.parse_args(arguments)
    found: list[tuple[int, float | None, bool]] = []
    wrong = 0
    make, most = (window_problem, MOST_WINDOWS) if asked.windows else (ragged_problem, MOST)
    make = grouped_problem if asked.groups else make
    seeds = (seed for seed in small(make, asked.first, most) if not asked.groups or grouped_unevenly(make(seed)))
    for seed in islice(seeds, asked.problems):
        problem = make(seed)
        every, exact = value(Exhaustive(), problem), value(Exact(), problem)
        others = [value(Exact(), other) for other in smaller(problem, asked.groups)]
        pays = every is not None and all(other is None or every < other * (1 - SAME) for other in others)
        found.append((seed, every, pays))
        if differ(exact, every):
            wrong += 1
            print(f"seed {seed}: exact says {exact}, all trees say {every}")
        if asked.json:
            writing.write(json.dumps(found) + "\n", Path(asked.json))
    kind = "uneven in groups" if asked.groups else "uneven"
    print(f"{len(found)} problems, {wrong} differ, of {sum(pays for *_, pays in found)} the optimum is {kind}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
