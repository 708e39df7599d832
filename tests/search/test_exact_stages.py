"""The stages of the exact search, each called alone on one small Einsum: prices, levels, expansion, pruner, sweep."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import numpy as np
import pytest

from einloom.errors import Infeasible
from einloom.machine.levels import ComputeUnit, Machine, Memory
from einloom.mapspace.limits.data import UNLIMITED
from einloom.mapspace.space import Mapspace
from einloom.problem import Budget, Objective
from einloom.questions import problem
from einloom.search.exact import ExactOptions, branch_and_bound
from einloom.search.exact.attempt import Attempt
from einloom.search.exact.branch_and_bound import Run
from einloom.search.exact.einsums.classes import signatures
from einloom.search.exact.einsums.holds import Placement
from einloom.search.exact.einsums.spatial import RankClasses
from einloom.search.exact.einsums.users import Users
from einloom.search.exact.incumbent import Incumbent
from einloom.search.exact.numerics.multiples import ragged_ranges
from einloom.search.exact.pmappings.expand import Expansion
from einloom.search.exact.pmappings.levels import Levels, Room
from einloom.search.exact.pmappings.prune import Pruner, Rules
from einloom.search.exact.pmappings.rows import FAR, PLACED, SPREAD, Rows, promises
from einloom.search.exact.pmappings.sweep import closed, relaxed, sweep
from einloom.search.exact.prices.columns import LinkPrices, columns
from einloom.search.exact.prices.traffic import Prices
from einloom.search.exact.stops import Stops
from einloom.search.method import Watcher
from einloom.workload.build import build_workload
from einloom.workload.notation import parse_einsum

ALL_RULES = Rules()
ALL = frozenset({0, 1, 2})  # Z, A, B: the output first
HELD: Placement = (ALL, ALL)
DRAM, GLB, Z, A, B, M, N, K = 0, 1, 0, 1, 2, 0, 1, 2


def prices() -> Prices:
    """Z[m,n] = A[m,k] * B[k,n] with m = 4, n = 2, k = 3; 10 J to move a bit from DRAM, 1 J into the buffer."""
    einsum = parse_einsum("Z[m,n] = A[m,k] * B[k,n]")
    workload = build_workload("w", [einsum], {"m": 4, "n": 2, "k": 3}, bits={"default": 1})
    levels = (
        Memory("DRAM", read_energy=10.0, write_energy=10.0),
        Memory("GLB", 8, write_energy=1.0),
        ComputeUnit("MAC"),
    )
    machine = Machine("m", levels)
    users = Users(workload, machine)
    (signature,) = signatures(users, UNLIMITED)
    classes = RankClasses(signature)
    (option,) = signature.units
    (spread,) = classes.spreads(option)
    cost = columns(machine, Objective("energy"))
    return Prices(LinkPrices(machine, cost, classes, option.above, option.fanouts, (spread,), option.unit), (1, 1))


def expansion(limit: float = np.inf, rules: Rules = ALL_RULES) -> Expansion:
    levels = Levels(prices(), (HELD,), Room((None, 8), ()), fused=False)
    return Expansion(levels, Pruner(levels, np.array([limit]), rules, {}))


def test_prices() -> None:
    """A [4, 3] below m 4, k 1 and n 1 trips more: 3 x 12 elements if the loop over n moves A's tile, else 12."""
    found = prices()
    tile, spread = np.array([[1, 1, 1], [4, 2, 3]]), np.zeros(2, np.int64)
    dims = [found.classes.of[v] for v in (M, N, K)]
    x = np.ones_like(tile)
    x[:, dims] = tile
    assert found.moved(A, x, spread, GLB).tolist() == [24, 12]  # every loop over n re-reads A unless it stands below
    assert found.tile_bits(A, x, GLB).tolist() == [1, 12]
    price, skipped = found.links.link(A, DRAM, GLB)
    assert (price.tolist(), skipped.tolist()) == ([[11.0]], [[0.0]])
    assert found.least(A, DRAM, GLB).tolist() == [[132.0]]


def test_levels() -> None:
    """All three stores are to come above the leaf: 132 J for A, 66 J for B, and Z is written once, for 80 J."""
    levels = expansion().levels
    assert levels.at(GLB).mine.tolist() == [0b111]
    assert levels.at(GLB).later[0, 0b010].tolist() == [[132.0]]
    assert levels.at(GLB).later[0, 0b111].tolist() == [[132.0 + 66.0 + 80.0]]
    assert levels.above[GLB][0].tolist() == [[278.0]]


def test_expansion_places_a_store_above_loops() -> None:
    stage = expansion()
    leaf = sweep(stage, GLB).bases[GLB]
    assert len(leaf) == 1
    may = np.zeros((1, 3), bool)
    may[0, stage.classes.of[K]] = True
    ((x, index),) = stage.loops(leaf.x, leaf.marks[:, SPREAD], may, GLB)
    assert sorted(x[:, stage.classes.of[K]].tolist()) == [1, 3]
    target = np.full(len(x), A)
    (rows,) = stage.store(leaf, index, target, x, leaf.marks[index, 8:], GLB)
    assert set(rows.marks[:, PLACED].tolist()) == {1 << A}
    assert sorted(rows.occupied[:, 0].tolist()) == [1, 3]
    assert set((rows.cost - leaf.cost[index]).reshape(-1).tolist()) == {11.0 * 24}


def test_expansion_drops_what_does_not_fit() -> None:
    stage = expansion()
    leaf = sweep(stage, GLB).bases[GLB]
    x, before = np.array([stage.prices.whole]), stage.pruner.counts["capacity"]
    zero = np.zeros(1, np.int64)
    assert stage.store(leaf, zero, zero + A, x, leaf.marks[:, 8:], GLB) == []  # A whole has 12 bits, GLB 8
    assert stage.pruner.counts["capacity"] == before + 1


def test_pruner_compares_rows_of_equal_extents() -> None:
    pruner = expansion().pruner
    rows = sweep(expansion(rules=Rules(dominance=False)), GLB).levels[GLB][0].take(np.zeros(3, np.int64))
    costly = Rows(np.array([[5.0], [4.0], [4.0]]), np.array([[1], [2], [1]]), rows.trail)
    assert pruner.front(costly, (), None).cost.tolist() == [[4.0]]
    rows.x[1] = 2
    assert len(pruner.front(costly, (), None)) == 2


def test_pruner_counts_what_is_still_to_come() -> None:
    """What a row has spent and the 278 J still to come: one joule less is too little."""
    spent = float(sweep(expansion(), GLB).bases[GLB].cost[0, 0])
    assert len(sweep(expansion(spent + 278), GLB).bases[GLB]) == 1
    assert len(sweep(expansion(spent + 277), GLB).bases[GLB]) == 0


@pytest.mark.parametrize("rules", [Rules(), Rules(dominance=False), Rules(stationary=False, lowering=False)])
def test_sweep_finds_the_least(rules: Rules) -> None:
    """By hand, with 8 bits: a tile of Z (2 x 2) stays while k runs, so B is read for each half of m; the 24 operations
    write Z into the buffer."""
    rows = relaxed(expansion(rules=rules))
    assert rows.cost.min() == 24 + 132 + 2 * 66 + 80
    assert (rows.occupied <= 8).all()


def test_sweep_stops_where_it_is_told() -> None:
    table = sweep(expansion(), GLB)
    assert set(table.bases) == set(table.levels) == {GLB}
    complete = [rows for rows in table.levels[GLB] if (rows.marks[:, PLACED] == 0b111).any()]
    assert len(complete) == 1
    boundary = closed(expansion(), complete[0], GLB)  # whatever store is on top: those compete now
    assert len({tuple(x) for x in boundary.x.tolist()}) == len({tuple(x) for x in complete[0].x.tolist()})
    assert boundary.cost.min() == complete[0].cost.min()


def test_promises() -> None:
    promise = np.array([[0, 0, 0], [1, 2, 0], [1, 2, 0], [1, 2, FAR], [2, 3, 0]])
    trips = np.array([[3, 1], [2, 1], [1, 1], [2, 1], [3, 1]])
    free, touched, first = promises(promise, trips, np.array([True, False]))
    assert free.tolist() == [True, False, False, False, False]
    assert touched.tolist() == [True, True, False, True, True]
    assert first.tolist()[1:] == [True, False, False, False]


def test_ragged_ranges() -> None:
    repeat, within = ragged_ranges(np.array([2, 0, 3]))
    assert (repeat.tolist(), within.tolist()) == ([0, 0, 2, 2, 2], [0, 1, 0, 1, 2])


def test_alike_einsums_are_explored_within_the_loosest_of_their_limits() -> None:
    """V, K and Q of GPT-3 are alike; what the others leave to each need not be."""
    asked = problem("gpt3-6.7b:tokens=64", "tpu-v4i", "edp")
    attempt = Run(asked, ExactOptions(), Budget(), Watcher(), None).attempt()
    count = len(attempt.signatures)
    limits = [np.array([1.0 + i, 100.0 - i]) for i in range(count)]
    found = attempt._explorers(limits, {})
    assert len(found) < count
    for signature, position in found:
        mine = [limits[i] for i in range(count) if attempt.signatures[i] == signature]
        assert found[signature, position].limits.tolist() == np.max(mine, axis=0).tolist()


def test_a_dive_with_rounded_tiles_proves_what_the_loose_ones_rise_to(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also below a limit that a caller gives."""
    asked = replace(problem("matmuls:n=2,m=7,kn=9", "two-level:glb_bits=400", "energy"), mapspace=Mapspace("ragged"))
    run = Run(asked, ExactOptions(), Budget(), Watcher(), None)
    attempt = run.attempt()
    attempt.lower_bound()
    dived: list[tuple[Attempt, Attempt]] = []

    def heuristic(incumbent: Incumbent, quick: Attempt, relaxed: Attempt, stops: Stops) -> None:
        relaxed.agreed = 2 * relaxed.bound
        dived.append((quick, relaxed))

    monkeypatch.setattr(branch_and_bound, "heuristic", heuristic)
    before = attempt.bound
    run._dive(attempt, attempt.tiled("rounded"))
    assert run.incumbent.bound == 2 * before * attempt.repeats
    with suppress(Infeasible):
        run._at_most(attempt, 10 * before)
    assert [(quick.signatures[0].tiling, relaxed) for quick, relaxed in dived] == [("rounded", attempt)] * 2
