"""`exact` keeps every limit of a mapspace: it finds what looking at all trees that keep them finds.

Trees are enumerated once per problem and judged by `ffm.outside` for several sets of limits; `exact` never sees them.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from random import Random

import pytest

from einloom.cost.evaluate import evaluate, legality
from einloom.errors import Infeasible
from einloom.mapping.legality.structure import problems
from einloom.mapping.tree import Mapping
from einloom.mapspace.ffm.enumerate import candidates
from einloom.mapspace.ffm.rules import outside
from einloom.mapspace.limits.data import HoldLimit, Limits, Numbers, TileLimit
from einloom.mapspace.space import Mapspace
from einloom.problem import Objective, Problem
from einloom.search.exact import Exact
from einloom.workload.build import build_workload
from einloom.workload.selectors import selector
from einloom.zoo.machine_by_name import load_machine
from tiny_limits import KINDS, tiny_limits
from tiny_problems import tiny_problem

SEEDS = json.loads((Path(__file__).parent / "quick_seeds.json").read_text())
VARIANTS = 3
CHUNK = 24
# a twelfth of the seeds every time, the others with the slow tests
CHUNKS = [pytest.param(f, marks=() if f % (24 * CHUNK) == 0 else pytest.mark.slow) for f in range(0, len(SEEDS), CHUNK)]


@dataclass(frozen=True)
class Case:
    """One problem with limits. free: its optimum without them; want: the best tree that keeps them; found: exact's."""

    problem: Problem
    free: float | None
    want: float | None
    found: float | None
    dropped: int


def trees_of(problem: Problem) -> list[tuple[float, Mapping]]:
    """Every legal tree with its value, the best first."""
    workload, machine = problem.workload, problem.machine
    priced = [
        (problem.objective.value(evaluate(workload, machine, tree)), tree)
        for tree in candidates(workload, machine)
        if not problems(workload, machine, tree) and not legality(workload, machine, tree)
    ]
    return sorted(priced, key=lambda pair: pair[0])


def best(problem: Problem, space: Mapspace, trees: list[tuple[float, Mapping]]) -> float | None:
    return next((v for v, t in trees if not outside(problem.workload, problem.machine, space, t)), None)


@cache
def cases(first: int) -> tuple[Case, ...]:
    """The cases of some seeds, `VARIANTS` sets of limits each."""
    return tuple(case for seed in SEEDS[first : first + CHUNK] for case in _cases(seed))


def _cases(seed: int) -> Iterator[Case]:
    problem, rng = tiny_problem(seed), Random(seed)
    trees = trees_of(problem)
    free = best(problem, problem.mapspace, trees)
    between = problem.workload.intermediates
    alone = ("loops", "backs")[seed % 2] if between else ("holds", "tiles", "axes")[seed % 3]
    for kinds in (KINDS, ("loops",) if between else KINDS, (alone,)):
        limits = tiny_limits(rng, problem.workload, problem.machine, kinds)
        space = replace(problem.mapspace, limits=limits)
        asked = replace(problem, mapspace=space)
        found, dropped = None, 0
        try:
            result = Exact().search(asked)
            found = result.value
            assert outside(asked.workload, asked.machine, space, result.mapping) == ()
            assert result.certificate is not None
            dropped = result.certificate.counts.get("mapspace limits", 0)
        except Infeasible:
            pass
        yield Case(asked, free, best(problem, space, trees), found, dropped)


@pytest.mark.parametrize("first", CHUNKS)
def test_exact_keeps_limits(first: int) -> None:
    for case in cases(first):
        assert (case.found is None) == (case.want is None), case.problem.mapspace.limits
        if case.want is not None:
            assert case.found == pytest.approx(case.want, rel=1e-9, abs=0), case.problem.mapspace.limits


@pytest.mark.slow
def test_the_limits_are_many_and_bite() -> None:
    """Each kind of limit changes some optimum and leaves nothing of some other; limits of tiles drop rows.

    Limits of loops alone leave the unfused mappings, so they never leave nothing.
    """
    every = [case for first in range(0, len(SEEDS), CHUNK) for case in cases(first)]
    assert len(every) >= 690
    changed: Counter[str] = Counter()
    empty: Counter[str] = Counter()
    for case in every:
        kinds = _kinds(case.problem.mapspace.limits)
        if len(kinds) == 1 and case.free is not None:
            changed[kinds[0]] += case.want is not None and case.want != case.free
            empty[kinds[0]] += case.want is None
    assert min(changed[kind] for kind in KINDS) >= 2
    assert min(empty[kind] for kind in KINDS if kind != "loops") >= 3
    assert sum(case.dropped > 0 for case in every) >= 20


def _kinds(limits: Limits) -> list[str]:
    return [kind for kind in KINDS if getattr(limits, kind)]


@pytest.mark.parametrize(("space", "size"), [("ffm", 8), ("ffm", 3), ("ragged", 8)])
def test_a_tile_that_cannot_be_leaves_its_memory_to_others_at_once(space: str, size: int) -> None:
    """Where the tensor has to be kept there nothing is legal, and the search says so before it makes any choice."""
    machine = load_machine("simple")
    workload = build_workload("mm", ["Z[m,n] = A[m,k] * B[k,n]"], dict.fromkeys("mnk", 4), bits=8)
    tiles = TileLimit("GLB", selector("A"), ("m",), Numbers(values=(size,)))
    keep = HoldLimit("keep", "GLB", selector("A"))
    kept = Problem(workload, machine, Mapspace(space, limits=Limits.of((tiles, keep))), Objective("energy"))
    with pytest.raises(Infeasible, match=f"tiles of A in GLB: m {size} leaves no choice of stores for Z"):
        Exact().search(kept)
    bypassed = replace(kept, mapspace=Mapspace(space, limits=Limits(holds=(replace(keep, rule="bypass"),))))
    free = replace(kept, mapspace=Mapspace(space, limits=Limits(tiles=(tiles,))))
    assert Exact().search(free).value == Exact().search(bypassed).value
