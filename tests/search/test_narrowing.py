"""Where tiles need not divide, what is explored narrows down what is explored next: planted mistakes are caught."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from bench.ragged_problems import ragged_problem

from einloom.errors import Defect
from einloom.questions import problem
from einloom.search.exact import ExactOptions, feasible
from einloom.search.exact.attempt import Attempt
from einloom.search.exact.bounds import relaxation
from einloom.search.exact.bounds.arc_consistency import Arcs, Consistency
from einloom.search.method import Watcher
from optima import optimum, same

SEEDS: list[tuple[int, float | None, bool]] = json.loads((Path(__file__).parent / "ragged_seeds.json").read_text())
TELLING = (60, 117, 128, 130, 448)
"""Of these at least one notices each mistake."""

SOME = [(seed, value) for seed, value, _ in SEEDS if seed in TELLING]


def counted_twice(patch: pytest.MonkeyPatch) -> None:
    """What an Einsum costs at least is taken from what is left to it, once more than it should."""

    def most(self, blocks):  # type: ignore[no-untyped-def]
        before, after = self._sweep(blocks, 1), self._sweep(blocks, -1)
        own = np.array([self._cost(mine).min(axis=0) for mine in blocks])
        return self.lines.most(np.array([(a + b).min(axis=0) for a, b in zip(before, after, strict=True)]) + own, own)

    patch.setattr(Arcs, "most", most)


def dear_unknowns(patch: pytest.MonkeyPatch) -> None:
    """Einsums that are not explored yet cost what the explored ones do."""
    real = Consistency.filled

    def filled(self, blocks):  # type: ignore[no-untyped-def]
        dear = max((group.cost.max(axis=0) for mine in blocks for group in mine), key=lambda cost: cost[-1])
        rows = real(self, blocks)
        for i, mine in enumerate(rows):
            if i not in self.known:
                mine[0].cost = np.maximum(mine[0].cost, dear)
        return rows

    patch.setattr(Consistency, "filled", filled)


def alone_and_unfused(patch: pytest.MonkeyPatch) -> None:
    """What an Einsum costs alone is taken of rows that leave everything in the outermost memory."""
    real = relaxation.Explorer.blocks

    def blocks(self):  # type: ignore[no-untyped-def]
        found = real(self)
        return found if len(self.setting.columns) > 1 else [group for group in found if not group.structure.backings]

    patch.setattr(feasible, "NEAR", 0)
    patch.setattr(feasible, "AT_ONCE", -0.5)  # finds nothing
    patch.setattr(relaxation.Explorer, "blocks", blocks)


MISTAKES = (counted_twice, dear_unknowns, alone_and_unfused)


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda f: f.__name__)
def test_planted_mistakes_are_caught(mistake, monkeypatch: pytest.MonkeyPatch) -> None:  # type: ignore[no-untyped-def]
    mistake(monkeypatch)
    assert any(not same(found(seed), value) for seed, value in SOME)


def found(seed: int) -> float | None:
    """The optimum; nan where the search notices the mistake itself."""
    try:
        return optimum(ragged_problem(seed))
    except Defect:
        return float("nan")


@pytest.mark.parametrize(
    ("known", "shared"),
    [
        (None, [{"T1"}, {"T1", "T2"}, {"T2", "T3"}, {"T3"}]),
        (frozenset({0, 1}), [{"T1"}, {"T1"}, set(), set()]),
        (frozenset({0, 3}), [set(), set(), set(), set()]),
    ],
)
def test_only_tensors_between_einsums_that_are_explored_tell_what_agrees(
    known: frozenset[int] | None, shared: list[set[str]]
) -> None:
    asked = problem("matmuls:n=4,m=4,kn=4", "two-level", "energy")
    attempt = Attempt(asked, ExactOptions(), Watcher(), {}, lambda: None)
    arcs = Consistency(asked.workload, attempt.least, attempt.cutoff, {}, known)
    assert [set(own) for own in arcs._own] == shared
