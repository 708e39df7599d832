"""Iterations in classes: the same worst moment, busiest instance and window sums as one iteration after the other.

The slow counts are kept here: every piece of a rank, every moment of a memory, every instance of a path.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from itertools import product
from random import Random
from typing import Any

import numpy as np
import pytest

from agreement import every_instance
from concurrent_trees import concurrent_case
from einloom.cost.evaluate import busiest, instance_traffic
from einloom.cost.formulas import shifts, windows
from einloom.cost.formulas.components import component_time
from einloom.cost.formulas.terms import LoopCut
from einloom.cost.formulas.windows import RankUse
from einloom.cost.room import occupancy as rooms
from einloom.cost.room.occupancy import occupancy, peak, tiles
from einloom.cost.traffic.accesses import links, operations
from einloom.cost.traffic.paths import Path, paths
from einloom.machine.levels import Memory
from einloom.mapping.legality.structure import problems
from trees import Case, random_case
from wide_trees import wide_case

SEEDS = range(450)


@cache
def legal(seed: int) -> tuple[Case, tuple[Path, ...]] | None:
    case = (random_case, wide_case, concurrent_case)[seed % 3](seed)
    if problems(case.workload, case.machine, case.mapping):
        return None
    return case, paths(case.workload, case.mapping)


def hull(uses: tuple[RankUse, ...], choice: dict[int, int], size: int) -> tuple[int, int] | None:
    """[low, high) of one choice of pieces; None if nobody has work in it."""
    sides = [(low, high) for low, high, work in (use.interval(choice) for use in uses) if work]
    if not sides:
        return None
    low, high = max(0, min(side[0] for side in sides)), min(size, max(side[1] for side in sides))
    return low, max(low, high)


def moved(uses: tuple[RankUse, ...], size: int, sliding: int | None) -> int:
    """What `windows.moved` says, piece by piece."""
    ranges: dict[int, range] = {}
    for place, cut in (step for use in uses for _, _, chain in use.terms for step in chain):
        ranges[place] = range(cut.pick, cut.pick + 1) if cut.once else range(cut.trips)
    outer = [place for place in sorted(ranges) if place != sliding]
    total = 0
    for combination in product(*(ranges[place] for place in outer)):
        before: tuple[int, int] | None = None
        for step in ranges.get(-1 if sliding is None else sliding, range(1)):
            now = hull(
                uses, {**dict(zip(outer, combination, strict=True)), -1 if sliding is None else sliding: step}, size
            )
            if now is not None:
                kept = max(0, min(now[1], before[1]) - max(now[0], before[0])) if before is not None else 0
                total, before = total + now[1] - now[0] - kept, now
    return total


def random_chain(rng: Random, extent: int, first: int, once: dict[int, int]) -> tuple[tuple[int, LoopCut], ...]:
    """Cuts of a variable by up to three loops, the last ones derived now and then; `once`: picked pieces by place."""
    chain: list[tuple[int, LoopCut]] = []
    outer, tile = [extent], extent
    for place in range(first, first + rng.randint(0, 3)):
        tile = rng.randint(1, tile)
        trips = -(-max(b - a for a, b in zip((0, *outer), outer, strict=False)) // tile)
        ends: list[int] = []
        for start, stop in zip((0, *outer), outer, strict=False):
            inside = sorted(rng.randint(start, stop) for _ in range(trips - 1))
            ends.extend([*inside, stop])
        derived = (chain and chain[-1][1].ends is not None) or rng.random() < 0.3
        chain.append(
            (place, LoopCut(tile, tuple(ends) if derived else None, int(place in once), once.get(place, 0), trips))
        )
        outer = (
            ends
            if derived
            else [min(s + (k + 1) * tile, e) for s, e in zip((0, *outer), outer, strict=False) for k in range(trips)]
        )
    return tuple(chain)


def random_use(rng: Random, once: dict[int, int]) -> RankUse:
    extents = [rng.randint(1, 9) for _ in range(rng.randint(1, 2))]
    chains = (random_chain(rng, extent, 4 * i, once) for i, extent in enumerate(extents))
    terms = tuple((rng.choice((1, 1, 2)), e, chain) for e, chain in zip(extents, chains, strict=True))
    return RankUse(terms, rng.choice((0, 0, -1, 2)))


@pytest.mark.parametrize("seed", range(300))
def test_pieces_together_are_the_pieces_one_by_one(seed: int) -> None:
    rng = Random(seed)
    use = random_use(rng, {})
    size, sliding = rng.randint(1, 14), rng.choice((None, 0, 1, 4, 5))
    assert windows.moved((use,), size, sliding) == moved((use,), size, sliding)
    at = sorted({place for _, _, chain in use.terms for place, _ in chain})
    if not at or at[0] == sliding:
        return
    cut = next(cut for _, _, chain in use.terms for place, cut in chain if place == at[0])
    picked = [  # the same use, with one piece of its first loop
        RankUse(
            tuple(
                (
                    c,
                    e,
                    tuple(
                        (p, LoopCut(n.tile, n.ends, int(p == at[0]), i, n.trips) if p == at[0] else n) for p, n in chain
                    ),
                )
                for c, e, chain in use.terms
            ),
            use.constant,
        )
        for i in range(cut.trips)
    ]
    each = windows.moved_each((picked[0],), size, sliding, {at[0]: np.arange(cut.trips)}, 1)
    assert list(np.broadcast_to(each, cut.trips)) == [moved((one,), size, sliding) for one in picked]


def even_chain(rng: Random, tile: int, first: int) -> tuple[int, tuple[tuple[int, LoopCut], ...]]:
    """(extent, cuts) of a variable by up to three loops, of which the outermost may leave a smaller last piece."""
    chain: list[tuple[int, LoopCut]] = []
    for place in range(first + 2, first - 1, -1):
        trips = rng.choice((1, 2, 5, 6))
        chain.append((place, LoopCut(tile, trips=trips)))
        tile *= trips
        if rng.random() < 0.3:
            break
    cut = rng.randint(0, chain[-1][1].tile - 1) if rng.random() < 0.3 else 0
    return tile - cut, tuple(reversed(chain))


def even_uses(rng: Random) -> tuple[RankUse, ...]:
    """One or two Einsums that reach a rank alike, by two variables whose loops are of many like iterations."""
    chains = [even_chain(rng, rng.randint(1, 4), 4 * i) for i in range(rng.randint(1, 2))]
    terms = tuple((rng.choice((1, 1, 2)), extent, chain) for extent, chain in chains)
    uses = [RankUse(terms, rng.choice((0, 0, 0, -1, -3, 2)))]
    if rng.random() < 0.3:
        unlike = tuple((c, extent + rng.randint(0, 1), chain) for c, extent, chain in terms)
        uses.append(RankUse(rng.choice((terms, unlike)), rng.choice((0, 1))))
    return tuple(uses)


def unlike_sums(seeds: range) -> int:
    """How many random window sums with like iterations differ from those piece by piece."""
    unlike = 0
    for seed in seeds:
        rng = Random(seed)
        uses = even_uses(rng)
        longest = 1 + max(use.constant + sum(c * (extent - 1) for c, extent, _ in use.terms) for use in uses)
        size, sliding = longest + rng.choice((0, 0, 0, 3, -2)), rng.choice((None, 0, 1, 2, 4, 5, 6))
        unlike += windows.moved(uses, max(size, 1), sliding) != moved(uses, max(size, 1), sliding)
    return unlike


def test_iterations_that_only_move_a_window_along_are_counted_together(monkeypatch: pytest.MonkeyPatch) -> None:
    right, saved = shifts.steps_of, [0, 0]

    def counted(*found: Any) -> dict[int, shifts.Steps]:
        steps = right(*found)
        saved[0] += sum(len(one.at) for one in steps.values())
        saved[1] += sum(found[2].values())
        return steps

    monkeypatch.setattr(windows, "steps_of", counted)
    assert not unlike_sums(range(1000))
    assert saved[0] < 0.8 * saved[1]


def _all_alike(trips: int, first: int, last: int, *, sliding: bool) -> shifts.Steps:
    return shifts.Steps(np.array([0]), np.array([trips]))


def _one_stands_for_all(trips: int, first: int, last: int, *, sliding: bool) -> shifts.Steps:
    return LISTED(trips, first, last, sliding=False)


def _one_too_many(trips: int, first: int, last: int, *, sliding: bool) -> shifts.Steps:
    return LISTED(trips, first, min(last + 1, trips - 1), sliding=sliding)


def _one_too_early(trips: int, first: int, last: int, *, sliding: bool) -> shifts.Steps:
    return LISTED(trips, max(first - 1, 0), last, sliding=sliding)


def _no_step_keeps_anything(window: shifts.EvenWindow, size: int) -> int:
    slides = [window.slide] * (window.slide[0] > 0)
    return MOVED(replace(window, steps=(*window.steps, *slides), slide=(0, 1)), size)


def _nothing_is_cut(window: shifts.EvenWindow, size: int) -> int:
    return MOVED(replace(window, start=0), 10**6)


LISTED, MOVED = shifts._listed, shifts.EvenWindow.moved


@pytest.mark.parametrize("wrong", [_no_step_keeps_anything, _nothing_is_cut])
def test_a_wrong_sum_of_even_windows_is_noticed(
    wrong: Callable[[shifts.EvenWindow, int], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shifts.EvenWindow, "moved", wrong)
    windows.moved.cache_clear()
    assert unlike_sums(range(300))
    windows.moved.cache_clear()


@pytest.mark.parametrize("wrong", [_all_alike, _one_stands_for_all, _one_too_many, _one_too_early])
def test_a_wrong_set_of_like_iterations_is_noticed(
    wrong: Callable[..., shifts.Steps], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shifts, "_listed", wrong)
    windows.moved.cache_clear()
    assert unlike_sums(range(300))
    windows.moved.cache_clear()


def one_by_one(trips: list[int], arrays: list[object]) -> list[np.ndarray]:
    """As `windows.representatives`, without classes: every iteration."""
    axes = windows.axes(dict(enumerate(trips)))
    return list(axes.values())


def last_alone(trips: list[int], arrays: list[object]) -> list[np.ndarray]:
    """One class for each loop, of which the last iteration is asked: wrong."""
    return [axis.take([-1], place) for place, axis in windows.axes(dict(enumerate(trips))).items()]


def test_the_worst_moment_of_all_is_among_the_classes(monkeypatch: pytest.MonkeyPatch) -> None:
    found = {seed: legal(seed) for seed in SEEDS}
    cases = {seed: one for seed, one in found.items() if one is not None}
    quick = {seed: occupancy(case.workload, case.machine, ways) for seed, (case, ways) in cases.items()}
    monkeypatch.setattr(rooms.windows, "representatives", one_by_one)
    moving = 0
    for seed, (case, ways) in cases.items():
        assert occupancy(case.workload, case.machine, ways) == quick[seed], seed
        moving += any(tile.moving for tile in tiles(case.workload, case.machine, ways))
    assert moving > 25


def test_classes_that_are_too_large_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    cases = [found for seed in SEEDS if (found := legal(seed)) is not None]
    right = [occupancy(case.workload, case.machine, ways) for case, ways in cases]
    monkeypatch.setattr(rooms.windows, "representatives", last_alone)
    assert right != [occupancy(case.workload, case.machine, ways) for case, ways in cases]


def test_moments_together_are_the_moments_one_by_one() -> None:
    """Without arrays: every tile asked at every moment, with plain integers."""
    compared = 0
    for seed in SEEDS:
        if (found := legal(seed)) is None or any(path.forks for path in found[1]):
            continue
        case, ways = found
        every = tiles(case.workload, case.machine, ways)
        if not any(tile.moving for tile in every):
            continue
        for memory in {tile.store.memory for tile in every}:
            mine = [tile for tile in every if tile.store.memory == memory]
            worst = 0
            for path in ways:
                places = {p for t in mine if t.stays or path.order in t.below for p in t.moving}
                loops = [loop for loop in path.loops if loop.place in places]
                for steps in product(*(range(loop.trips) for loop in loops)):
                    choice = {loop.place: i for loop, i in zip(loops, steps, strict=True)}
                    if path.works(choice, len(path.nodes)):
                        worst = max(worst, sum(t.bits(choice) * t.alive(path, choice) for t in mine))
            assert peak(every, ways, memory)[0] == worst, (seed, memory)
            compared += 1
    assert compared > 40


def test_the_busiest_instance_of_all_is_among_the_classes() -> None:
    several = 0
    for seed in SEEDS:
        if (found := legal(seed)) is None or found[0].machine.tolls:
            continue
        case, ways = found
        all_links = links(case.workload, case.machine, ways)
        for path in ways:
            mine = tuple(link for link in all_links if link.path is path)
            instances, times = busiest(case.machine, path, mine)
            most: dict[str, tuple[float, dict[int, int]]] = {}
            for picks in every_instance(path):
                loads = dict(instance_traffic(mine, picks))
                lengths = {name: length(case.machine.memory(name), *load) for name, load in loads.items()}
                if path.leaf.unit is not None and path.einsum.kind != "copy":
                    unit = case.machine.unit(path.leaf.unit)
                    done = operations(path, picks)
                    lengths[unit.name] = done if unit.throughput is None else done / unit.throughput
                for name, long in lengths.items():
                    if name not in most or long > most[name][0]:
                        most[name] = long, picks
            assert instances == {name: picks for name, (_, picks) in most.items()}, (seed, path.einsum.name)
            assert times == {name: most[name][0] for name in times}
            several += len(every_instance(path)) > 1
    assert several > 25


def length(memory: Memory, read: int, written: int) -> float:
    """Seconds of one instance, or bits where nothing limits it."""
    seconds = component_time(memory, read, written)
    return read + written if seconds is None else float(seconds)
