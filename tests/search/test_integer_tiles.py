"""The bound over any integer tiles is above no tree: random trees, the steps of the argument, planted mistakes."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from random import Random
from types import SimpleNamespace

import numpy as np
import pytest
from bench.integer import SAME, Comparison, compared
from bench.ragged_problems import ragged_problem
from click.testing import CliRunner

import einloom as el
from einloom.certify import verify
from einloom.cli import main
from einloom.cost.formulas import terms
from einloom.errors import SpecError
from einloom.mapspace.ffm.enumerate import enumerate_trees
from einloom.mapspace.ffm.rules import outside
from einloom.report.page.summary import header
from einloom.search.exact.attempt import Attempt
from einloom.search.exact.einsums.classes import EinsumClass
from einloom.search.exact.einsums.spatial import RankClasses
from einloom.search.exact.fusion.templates import FusedLoop, OwnStore
from einloom.search.exact.fusion.tilings import Tilings
from einloom.search.exact.integer import integer_bound
from einloom.search.exact.numerics.multiples import IntegerMultiples, UnevenMultiples
from einloom.search.exact.numerics.uneven import filled, largest_tile, smallest_tiles
from einloom.search.exact.prices.columns import LinkPrices

SEEDS = (0, 5, 6, 7, 10)
SMALL = [seed for seed, *_ in json.loads((Path(__file__).parent / "ragged_seeds.json").read_text())[:6]]


@cache
def comparison(seed: int) -> Comparison:
    found = compared(seed, 20)
    assert found is not None
    return found


@pytest.mark.parametrize("seed", SEEDS)
def test_no_tree_is_below_the_bound(seed: int) -> None:
    found = comparison(seed)
    assert len(found.trees) == 20 and found.holds


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 160))
def test_no_tree_of_many_is_below_the_bound(seed: int) -> None:
    found = compared(seed, 40)
    assert found is None or found.holds


@pytest.mark.parametrize("seed", SMALL)
def test_every_ragged_tree_is_an_integer_tree(seed: int) -> None:
    problem = ragged_problem(seed)
    trees = list(enumerate_trees(problem.workload, problem.machine, problem.mapspace))
    space = replace(problem.mapspace, name="integer")
    assert trees and not any(outside(problem.workload, problem.machine, space, tree) for tree in trees)


# ---- the argument, step by step -----------------------------------------------------------------------------------

Chain = tuple[int, tuple[terms.LoopCut, ...], int]


def chains(number: int) -> list[Chain]:
    """Random extents, loops with any tiles of which spatial ones may count once, and the instances that do."""
    rng, found = Random(7), []
    while len(found) < number:
        extent = left = rng.randint(2, 60)
        cuts, once = [], 1
        for _ in range(rng.randint(1, 4)):
            if left < 2:
                break
            tile = rng.randint(1, left - 1)
            counts = rng.random() < 0.4
            once *= -(-left // tile) if counts else 1
            cuts.append(terms.LoopCut(tile, once=int(counts)))
            left = tile
        found.append((extent, tuple(cuts), once))
    return found


def least_visits(extent: int, tile: int, once: int) -> int:
    """What the relaxation counts."""
    return int(terms.trips_of(terms.trips_of(extent, once), tile))


def above(chain: Chain, count: Callable[[int, int, int], int]) -> bool:
    extent, cuts, once = chain
    return count(extent, cuts[-1].tile, once) > terms.visits(extent, cuts)


def test_counts_are_at_most_those_of_any_chain() -> None:
    assert not any(above(chain, least_visits) for chain in chains(2000))


def test_counts_rounded_up_are_noticed() -> None:
    assert any(above(chain, lambda extent, tile, once: -(-extent // (once * tile)) + 1) for chain in chains(2000))
    assert any(above(chain, lambda extent, tile, once: -(-(extent // once + 1) // tile)) for chain in chains(2000))


def test_tiles_stand_for_all_with_as_many_trips() -> None:
    """A smallest tile has the same counts as every tile that it stands for, and is none larger."""
    for extent in range(1, 80):
        for tile in range(1, extent + 1):
            trips = -(-extent // tile)
            least = -(-extent // trips)
            assert least in smallest_tiles(extent) and least <= tile <= largest_tile(extent, np.array([least]))[0]
            assert all(least_visits(extent, least, n) == least_visits(extent, tile, n) for n in range(1, 12))


def missed(make: Callable[[int], UnevenMultiples]) -> list[tuple[int, int, int]]:
    """(extent, outer tile, inner tile) of which the tiles that stand for them do not follow one another."""
    found = []
    for extent in range(2, 26):
        loops, none = make(extent), np.zeros(1, np.int64)
        for inner in smallest_tiles(extent):
            at = int(loops.at(np.array([inner]), none)[0])
            known = set(loops.flat[loops.offsets[at] : loops.offsets[at] + loops.sizes[at]].tolist())
            found += [
                (extent, outer, inner) for outer in smallest_tiles(extent) if outer > inner and outer not in known
            ]
    return found


def test_any_tile_may_stand_above_another() -> None:
    assert not missed(lambda extent: IntegerMultiples(extent, np.array([extent]), np.array([1]), np.array([0]), 1))


def test_divisibility_that_is_kept_is_noticed() -> None:
    assert missed(lambda extent: UnevenMultiples(extent, np.array([1]), 1, None))


def lanes_missed(low: Callable[[int, int], int]) -> list[tuple[int, int, int]]:
    """(extent, instances, tile) of a spatial loop whose extent the relaxation does not know. low: the least extent
    that it gives to instances and a tile."""
    found = []
    for whole in range(2, 40):
        for extent in range(2, whole + 1):
            for tile in range(1, extent):
                n = -(-extent // tile)
                stands = -(-whole // -(-whole // tile))
                listed = -(-whole // -(-whole // n))
                most = min(whole, listed * int(largest_tile(whole, np.array([stands]))[0]))
                trips = -(-whole // extent)
                if not (low(listed, stands) <= extent and -(-whole // most) <= trips):
                    found.append((whole, n, tile))
    return found


def test_extents_of_spatial_loops_are_known() -> None:
    assert not lanes_missed(lambda n, tile: (n - 1) * tile + 1)


def test_lanes_taken_as_balanced_are_noticed() -> None:
    assert lanes_missed(lambda n, tile: n * tile)


def idle_missed(fewer: int) -> list[tuple[int, int, int, int]]:
    """(extent, first tile, second tile, lanes) of chains above lanes of which a tile leaves more lanes idle in its last
    pass than what the first lane does in all allows. fewer: of these lanes are not allowed."""
    found = []
    for extent in range(2, 31):
        for lanes in (2, 3, 4, 5):
            for first in range(1, extent + 1):
                for second in range(1, first + 1):
                    cuts = (terms.LoopCut(first), terms.LoopCut(second), terms.LoopCut(1, once=0))
                    pieces = [min(first, extent - at) for at in range(0, extent, first)]
                    inner = [min(second, piece - at) for piece in pieces for at in range(0, piece, second)]
                    assert terms.visits(extent, cuts) == extent == sum(inner)
                    most = sum(-(-piece // lanes) for piece in inner)
                    allowed = lanes * most - extent - fewer
                    tiles = np.array([first, second])
                    least = filled(extent, smallest_with(extent, tiles), np.array([lanes]), np.array([allowed]))
                    if (least > tiles).any():
                        found.append((extent, first, second, lanes))
    return found


def smallest_with(extent: int, tiles: np.ndarray) -> np.ndarray:
    return np.asarray(-(-extent // -(-extent // tiles)))


def test_what_lanes_leave_idle_is_allowed() -> None:
    assert not idle_missed(0)


def test_lanes_that_must_be_fuller_are_noticed() -> None:
    assert idle_missed(1)


# ---- planted mistakes in the search -------------------------------------------------------------------------------


def bound_of(seed: int) -> float:
    return integer_bound(comparison(seed).problem, float("inf"))[0]


def caught() -> bool:
    return any(bound_of(seed) > comparison(seed).least * (1 + SAME) for seed in SEEDS)


def test_a_bound_rounded_up_to_its_limit_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    least = Attempt.towards_least
    assert not caught()
    monkeypatch.setattr(Attempt, "towards_least", lambda self, limit: max(limit, least(self, limit)))
    assert caught()


def test_first_results_that_are_charged_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not caught()
    monkeypatch.setattr(LinkPrices, "_most_holders", lambda self, tensor, part: np.zeros(len(self.spreads), np.int64))
    assert caught()


# ---- where a user meets it ----------------------------------------------------------------------------------------


def mapped(**more: object) -> el.Result:
    return el.map("matmul:m=5,n=3,k=2", "simple", "edp", space="ragged", relax="integer", **more)  # type: ignore[arg-type]


def test_the_certificate_carries_the_bound() -> None:
    found = mapped()
    assert found.certificate is not None and found.certificate.integer is not None
    assert 0 < found.certificate.integer <= found.value
    again = el.Result.from_json(found.to_json())
    assert again.certificate == found.certificate
    assert verify.verify(again).ok
    assert "of any integer tiles" in str(el.explain(found, quick=True)) and "of any integer tiles" in header(found)


def test_a_bound_that_is_too_high_is_refused() -> None:
    found = el.map("matmul:m=5,n=3,k=2", "simple", "edp")
    assert found.certificate is not None
    above_value = replace(found, certificate=replace(found.certificate, integer=found.value * 1.01))
    assert not verify.verify(above_value, quick=True).ok
    worse = replace(found, certificate=replace(found.certificate, integer=found.value * (1 - 1e-7)))
    best = integer_bound(found.problem, found.value)[0]
    assert verify.verify(worse).ok == (best >= found.value * (1 - 1e-7))


def test_a_budget_leaves_a_bound() -> None:
    found = mapped(steps=1)
    assert found.certificate is not None and found.certificate.integer is not None
    assert 0 < found.certificate.integer <= found.value


def test_what_has_no_bound_is_refused_before_the_search() -> None:
    with pytest.raises(SpecError, match="a Pareto set has no single bound"):
        el.map("matmul:m=5,n=3,k=2", "simple", "pareto", relax="integer")
    with pytest.raises(SpecError, match="unknown relaxation 'real'"):
        el.map("matmul:m=5,n=3,k=2", "simple", relax="real")
    with pytest.raises(SpecError, match="may back what several Einsums share"):
        el.map("gpt3-6.7b:batch=1,tokens=4", "tpu-v4i-free", relax="integer")


def test_the_command_line_prints_it(tmp_path: Path) -> None:
    words = ["map", "matmul:m=5,n=3,k=2", "simple", "--space", "ragged", "--relax", "integer"]
    done = CliRunner().invoke(main, [*words, "--json", str(tmp_path / "r.json")])
    assert done.exit_code == 0, done.output
    assert "any integer tiles" in done.output
    assert CliRunner().invoke(main, ["verify", str(tmp_path / "r.json")]).exit_code == 0


def test_tiles_that_stand_for_others_are_not_counted_one_in_another() -> None:
    """A fused loop's 8 stands for itself, 5 in the relaxation: 10 in tiles of 5 and 4 has more pieces."""
    classes = RankClasses(EinsumClass((10,), (), False, (), (), False, uneven=frozenset({0}), tied=frozenset({0})))
    loops = (FusedLoop(0, None), FusedLoop(0, None))
    grid = Tilings(classes, loops, np.array([[5, 4], [8, 4]]))
    prices = SimpleNamespace(relevant=np.array([[False]]))
    store = OwnStore(tensor=0, memory=1, depth=2)
    assert grid._entered(prices, store, lambda *_: False).tolist() == [3, 3]  # type: ignore[arg-type]
