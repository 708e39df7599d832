"""Segments of a cascade: where it is cut, what tables of its segments say, and the optimum that they lead to."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from einloom.certify.again import BELOW
from einloom.errors import Defect, Infeasible
from einloom.mapspace.space import Mapspace
from einloom.problem import Budget, Objective, Problem
from einloom.search.exact import Exact, ExactOptions, Rules
from einloom.search.exact.bounds.arc_consistency import keys_of
from einloom.search.exact.branch_and_bound import Run
from einloom.search.exact.fusion.explore import Explorer, PmappingGroup
from einloom.search.exact.segments import chain
from einloom.search.exact.segments.chain import Chain, Costs
from einloom.search.exact.segments.cuts import CutPoint, cuts
from einloom.search.exact.segments.known_rows import Exploration, KnownRows
from einloom.search.exact.segments.segment import Table
from einloom.search.method import Watcher
from einloom.zoo.machine_by_name import load_machine
from einloom.zoo.workload_by_name import load_workload
from optima import best_of_all, optimum, same, searched
from stacked_layers import LAYERS, stacked
from tiny_problems import tiny_problem

SEEDS = json.loads((Path(__file__).parent / "tiny_seeds.json").read_text())
SIZES = {"feed forward": ((2, 100), (3, 200))}  # layers and bits; the others have less to search
WITHOUT = ExactOptions(segments=False)
EVERY_LOOP = ExactOptions(Rules(stationary=False, lowering=False, settled=False), at_once=True)


SHORTEST = {1: "every place", 2: "two Einsums at least"}
EACH_CUT_ONE_WAY = pytest.mark.parametrize(
    ("short", "layer"),
    [
        pytest.param(least, layer, marks=pytest.mark.slow if (i + least) % 2 else (), id=f"{words}-{layer}")
        for least, words in SHORTEST.items()
        for i, layer in enumerate(LAYERS)
    ],
    indirect=["short"],
)
"""All layers, every other one cut at every place and the rest into two Einsums at least; slow: the other way round."""


@pytest.fixture(params=SHORTEST, ids=SHORTEST.values())
def short(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Segments of so few Einsums, and chains of two of them."""
    monkeypatch.setattr(chain, "cuts", lambda workload: cuts(workload, request.param))
    monkeypatch.setattr(chain, "FEWEST", 2)
    monkeypatch.setattr(chain, "SHORT", 1)


@cache
def best_without(problem: Problem) -> float | None:
    """The optimum by a search that has no segments."""
    return optimum(problem, WITHOUT)


def chained(problem: Problem) -> Chain | None:
    """The chain of a problem after all that its tables can tell; None if it has none."""
    run = Run(problem, ExactOptions(), Budget(), Watcher())
    attempt = run.attempt()
    found = Chain.of(attempt) if attempt.lower_bound() > 0 else None
    for _ in found.rising() if found else ():
        pass
    return found


# ---- where ----------------------------------------------------------------------------------------------------------


def test_cuts_are_where_one_intermediate_passes() -> None:
    workload = stacked("feed forward", 3, 100).workload
    assert cuts(workload, 3) == [CutPoint(3, "Y0"), CutPoint(6, "Y1")]
    assert [cut.position for cut in cuts(workload, 1)] == [1, 2, 3, 6]  # inside a later layer its input passes, too
    assert cuts(workload, 4) == []


def test_a_persistent_tensor_is_no_end_of_a_segment() -> None:
    workload = stacked("residual", 3, 100).workload
    kept = tuple(replace(t, persistent=t.name == "Y0") for t in workload.tensors)
    assert "Y0" in {cut.tensor for cut in cuts(workload, 1)}
    assert "Y0" not in {cut.tensor for cut in cuts(replace(workload, tensors=kept), 1)}


def test_layers_of_a_network_are_cut_alike() -> None:
    """Every layer of GPT-2 but the first, which reads an input of the cascade, and the last has the same two tables."""
    workload = load_workload("gpt2-124m")
    found = chained(Problem(workload, load_machine("ffm-edge-vector"), Mapspace("ffm"), Objective("energy")))
    assert found is not None
    assert (len(found.kinds), len(found.different)) == (24, 4)
    assert [found.different.index(kind) for kind in found.kinds] == [0, *[1, 2] * 11, 3]


# ---- the same optimum ------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize("objective", ["energy", pytest.param("traffic", marks=pytest.mark.slow)])
@EACH_CUT_ONE_WAY
def test_the_optimum_is_that_without_segments(layer: str, objective: str) -> None:
    ran = 0
    for count, bits in SIZES.get(layer, ((2, 40), (4, 60), (3, 200))):
        asked = stacked(layer, count, bits, objective)
        ran += chained(asked) is not None
        assert same(optimum(asked), best_without(asked)), (count, bits)
    assert ran


def found_at_most(asked: Problem, limit: float) -> float | None:
    """The best of at most this value as `verify` asks for it, by segments where there are some; None if nothing is."""
    try:
        return Exact(replace(EVERY_LOOP, limit=limit)).search(asked).value
    except Infeasible:
        return None


@pytest.mark.usefixtures("short")
@EACH_CUT_ONE_WAY
def test_what_is_better_than_a_value_is_looked_for_by_segments(layer: str, monkeypatch: pytest.MonkeyPatch) -> None:
    risen: list[float] = []
    rising = Chain.rising

    def heard(self: Chain) -> Iterator[float]:
        for bound in rising(self):
            risen.append(bound)
            yield bound

    monkeypatch.setattr(Chain, "rising", heard)
    for count, bits in SIZES.get(layer, ((2, 40), (4, 60), (3, 200))):
        asked = stacked(layer, count, bits)
        best = best_without(asked)
        assert best is not None
        assert same(found_at_most(asked, best), best), (count, bits)
        assert found_at_most(asked, best * BELOW) is None, (count, bits)
        assert same(found_at_most(asked, best * 1.3), best), (count, bits)
    assert risen


ACROSS = [seed for seed in SEEDS if cuts(tiny_problem(seed).workload, 1)][:16]


@pytest.mark.parametrize("seeds", [ACROSS[:8], pytest.param(ACROSS[8:], marks=pytest.mark.slow)], ids=["few", "more"])
def test_the_optimum_is_that_of_all_trees(seeds: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chain, "cuts", lambda workload: cuts(workload, 1))
    monkeypatch.setattr(chain, "FEWEST", 2)
    monkeypatch.setattr(chain, "SHORT", 1)
    ran = 0
    for seed in seeds:
        asked = replace(tiny_problem(seed), objective=Objective("energy"))
        try:
            found = chained(asked)
        except Infeasible:
            found = None
        least = best_of_all(asked)
        if found is not None and least is not None:
            ran += 1
            assert found.bound * asked.workload.repeat <= least * (1 + 1e-9), f"seed {seed}"
        result = searched(asked)
        assert same(None if result is None else result.value, least), f"seed {seed}"
    assert ran >= 2


def test_a_bound_that_a_chain_of_tables_attains() -> None:
    """Four layers in a buffer that holds no layer: the sum of Einsums is far below, that of the segments is met."""
    asked = stacked("feed forward", 4, 60)
    run = Run(asked, ExactOptions(), Budget(), Watcher())
    attempt = run.attempt()
    first = attempt.lower_bound()
    found = Chain(attempt, cuts(asked.workload, 3))
    assert all(kind.begin() > 0 for kind in found.different)
    bounds = list(found.rising())
    assert bounds == sorted(bounds)
    assert first < bounds[-1] <= found.run(found.bound * 1.1).value == optimum(asked, WITHOUT)


# ---- rows that several segments have ---------------------------------------------------------------------------------


def _covered(rows: list[PmappingGroup], given: list[PmappingGroup]) -> bool:
    """True if each row has one among the given with its template and tiles, no more room and no more cost."""
    by_structure = {block.structure: block for block in given}
    for block in rows:
        other = by_structure.get(block.structure)
        if other is None:
            return False
        for tiles, cost, own in zip(block.tiles, block.cost, block.own, strict=True):
            alike = (other.tiles == tiles).all(axis=1) & (other.own <= own).all(axis=(1, 2))
            if not (alike & (other.cost <= cost * (1 + 1e-9)).all(axis=1)).any():
                return False
    return True


def lost_rows(problems: list[Problem]) -> tuple[int, int]:
    """How often rows came from another segment's search, and how often some were missing among them."""
    reused = lost = 0
    ask = KnownRows.of

    def of(self: KnownRows, asked: Explorer) -> list[PmappingGroup]:
        nonlocal reused, lost
        known, counted = self._known.get(asked.signature), asked.counts.get("isomorphic", 0)
        given = ask(self, asked)
        if known is not None and self._known[asked.signature] is known:
            assert asked.counts["isomorphic"] == counted + 1
            fresh = Explorer(asked.setting, asked.classes, asked.limits, {})
            fresh.allowed, fresh.wanted = asked.allowed, asked.wanted
            reused, lost = reused + 1, lost + (not _covered(fresh.blocks(), given))
        return given

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(KnownRows, "of", of)
        for asked in problems:
            chained(asked)
    return reused, lost


@pytest.mark.usefixtures("short")
def test_rows_of_other_segments_are_all_that_a_search_of_its_own_finds(monkeypatch: pytest.MonkeyPatch) -> None:
    problems = [stacked("feed forward", 4, 60), stacked("norm", 4, 30, size=8)]
    reused, lost = lost_rows(problems)
    assert reused >= 30 and not lost
    monkeypatch.setattr(Exploration, "hold", lambda self, asked: True)
    with pytest.raises(Infeasible):
        lost_rows(problems)


def test_rows_that_fewer_neighbours_or_choices_allow_are_not_all() -> None:
    """An Einsum is explored with part of what is asked for next: tiles of a shared tensor, or spatial choices."""
    attempt = Run(stacked("feed forward", 2, 200), ExactOptions(), Budget(), Watcher()).attempt()
    sig = attempt.signatures[1]
    unit = sig.units[0]

    def asked(allowed: dict[int, Any], wanted: dict[Any, Any]) -> Explorer:
        explorer = Explorer(attempt.setting, attempt.classes[sig], np.full(1, np.inf), {})
        explorer.allowed, explorer.wanted = allowed, wanted
        return explorer

    every = asked({}, {}).blocks()
    shared = next(t for t, tensor in enumerate(sig.tensors) if tensor.fusable)
    tensor = attempt.problem.workload.einsums[1].tensors[shared]
    tiles = keys_of(attempt.problem.workload, 1, tensor, every)
    fewer = dict(list(tiles.items())[:2])
    choices = np.ones((len(unit.held), len(attempt.classes[sig].spreads(unit))), bool)
    none = choices.copy()
    none[len(unit.held) // 2 :] = False
    for first, then in (
        (asked({shared: fewer}, {}), asked({shared: tiles}, {})),
        (asked({shared: fewer}, {}), asked({}, {})),
        (asked({}, {unit.unit: none}), asked({}, {unit.unit: choices})),
        (asked({}, {unit.unit: none}), asked({}, {})),
    ):
        known = KnownRows([sig])
        assert not _covered(every, known.of(first))
        assert _covered(every, known.of(then))


# ---- mistakes --------------------------------------------------------------------------------------------------------


def _sure(table: Table, limit: float, beyond: Costs) -> Costs:
    """What no table tells of costs more than anything."""
    return Costs({here: min(c + beyond.of(t) for (h, t), c in table.items() if h == here) for here, _ in table}, np.inf)


def _dearest(self: Costs) -> float:
    """What is left to a segment, if the tensors at its ends are stored as the others like it least."""
    return max(cost for cost in self.known.values() if np.isfinite(cost))


MISTAKES: dict[str, tuple[Any, str, Any]] = {
    "beyond the limit": (chain, "_further", _sure),
    "ends that cost most": (Costs, "least", property(_dearest)),
}


def wrong(asked: Problem) -> bool:
    """True if the search misses the optimum or contradicts itself, or the bound is above it."""
    best = best_without(asked)
    assert best is not None
    try:
        found = chained(asked)
        missed = not same(optimum(asked), best) or not same(found_at_most(asked, best), best)
        return missed or (found is not None and found.bound > best * (1 + 1e-9))
    except (Defect, Infeasible, StopIteration, KeyError, ValueError):
        return True


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize("name", MISTAKES)
def test_planted_mistakes(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    problems = [stacked(layer, *size) for layer in LAYERS for size in SIZES.get(layer, ((2, 40), (3, 200)))]
    assert not any(wrong(asked) for asked in problems[1::3])
    where, what, mistake = MISTAKES[name]
    monkeypatch.setattr(where, what, mistake)
    assert any(wrong(asked) for asked in problems)
