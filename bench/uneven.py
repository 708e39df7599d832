"""Random cascades of the space `ragged` against all of their trees: ``python -m bench.uneven --problems 2000``.

Each problem is solved by `exact` in `ragged` and in `ffm`, and its trees are enumerated. Says how many differ (none
may), and of how many the optimum has uneven tiles. `--json FILE` writes [seed, optimum, whether uneven tiles pay].
`--groups` draws problems whose Einsums may run at the same time, `--readers` those in which a store may serve several
of them. They leave out problems without an uneven tree in which that is so, and say of how many such a tree alone is
the optimum.
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
from einloom.mapspace.ffm.enumerate import enumerate_trees
from einloom.mapspace.ffm.rules import outside
from einloom.problem import Problem
from einloom.reading import writing
from einloom.search.exact import Exact
from einloom.search.exhaustive import Exhaustive

from .ragged_problems import few, grouped_problem, ragged_problem, shared_problem, window_problem

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


def both(problem: Problem) -> bool:
    """True if some tree of the space has an uneven tile and is in no space without groups or shared stores."""
    workload, machine, (perfect, plain) = problem.workload, problem.machine, smaller(problem)
    trees = enumerate_trees(workload, machine, problem.mapspace)
    return any(all(outside(workload, machine, s.mapspace, t) for s in (perfect, plain)) for t in trees)


def smaller(problem: Problem) -> tuple[Problem, Problem]:
    """The problem with perfect tiles, and without groups and shared stores."""
    perfect = replace(problem.mapspace, name="ffm")
    plain = replace(problem.mapspace, concurrent="none", stores="own")
    return replace(problem, mapspace=perfect), replace(problem, mapspace=plain)


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
    parser.add_argument("--readers", action="store_true", help="stores that may serve several Einsums")
    parser.add_argument("--json", metavar="FILE")
    asked = parser.parse_args(arguments)
    found: list[tuple[int, float | None, bool]] = []
    wrong = 0
    make, most = (window_problem, MOST_WINDOWS) if asked.windows else (ragged_problem, MOST)
    make = grouped_problem if asked.groups else shared_problem if asked.readers else make
    further = asked.groups or asked.readers
    seeds = (seed for seed in small(make, asked.first, most) if not further or both(make(seed)))
    for seed in islice(seeds, asked.problems):
        problem = make(seed)
        every, exact = value(Exhaustive(), problem), value(Exact(), problem)
        others = [value(Exact(), other) for other in smaller(problem)[: 1 + further]]
        pays = every is not None and all(other is None or every < other * (1 - SAME) for other in others)
        found.append((seed, every, pays))
        if differ(exact, every):
            wrong += 1
            print(f"seed {seed}: exact says {exact}, all trees say {every}")
        if asked.json:
            writing.write(json.dumps(found) + "\n", Path(asked.json))
    kind = "uneven and no smaller space has it" if further else "uneven"
    print(f"{len(found)} problems, {wrong} differ, of {sum(pays for *_, pays in found)} the optimum is {kind}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
