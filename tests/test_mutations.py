"""Planted mistakes in the analysis are found by the comparison with the oracle.

Every entry of MUTATIONS replaces one function of the cost model by a wrong one. The same few hundred trees agree with
the oracle without a mutation, and at least one of them disagrees with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import pytest

from agreement import Subject, differences, subject
from einloom.cost import evaluate
from einloom.cost.formulas import terms, windows
from einloom.cost.formulas.terms import Number
from einloom.cost.formulas.windows import Choice
from einloom.cost.room import occupancy
from einloom.cost.room.occupancy import Tile
from einloom.cost.traffic import accesses, paths
from einloom.cost.traffic.accesses import StoreLink
from einloom.machine.levels import Memory

Mutation = Callable[[pytest.MonkeyPatch], None]
SEEDS = (*range(300), 1894, 2044, 2056, 2352, 4502, 4896, 6465, 6971, 11226)
CACHES = (terms._pieces_cached, windows.moved, windows.overlaps)
MUTATIONS: dict[str, Mutation] = {}


@cache
def subjects() -> tuple[Subject, ...]:
    return tuple(found for seed in SEEDS if (found := subject(seed)).legal)


@pytest.fixture(autouse=True)
def _forget() -> Iterator[None]:
    """What is remembered of one model must not reach another."""
    for cached in CACHES:
        cached.cache_clear()
    yield
    for cached in CACHES:
        cached.cache_clear()


def test_without_a_mutation_no_tree_disagrees() -> None:
    assert len(subjects()) > 250
    assert [found.seed for found in subjects() if differences(found)] == []


def mutation(function: Mutation) -> Mutation:
    MUTATIONS[function.__name__] = function
    return function


def retention(*, past: bool = False, unsplit: bool = False, strict: bool = False) -> Callable[[StoreLink], Any]:
    """Link.retention written again, for ints: with no argument it is right.

    past: loops further out than the sliding loop keep the tile. unsplit: sequential splits do not cut. strict: a loop
    of one trip counts as a step.
    """

    def walk(link: StoreLink) -> tuple[dict[int, bool], int | None]:
        keeps: dict[int, bool] = {}
        sliding = None
        still = link.child is not None
        edge = max((s for s in link.path.splits if s < link.place), default=-1)
        for loop in reversed([p for p in link.path.loops if p.place < link.place and p.axis is None]):
            still = still and (unsplit or loop.place > edge)
            if loop.variable not in link.access.variables:
                keeps[loop.place] = still
            elif loop.trips > 1 or strict:
                sliding = loop.place if still and sliding is None else sliding
                still = still and past
        return keeps, sliding

    return walk


def retain(patch: pytest.MonkeyPatch, **flags: bool) -> None:
    patch.setattr(StoreLink, "retention", property(retention(**flags)))


@mutation
def first_reads_are_charged(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(terms, "refills", lambda moved, fresh: moved)


@mutation
def nothing_is_read_back(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(terms, "refills", lambda moved, fresh: 0)


@mutation
def tiles_are_rounded_down(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(paths, "tile_of", lambda loop, extent: loop.tile or max(1, extent // loop.trips))


@mutation
def steps_of_outer_loops_keep_the_window(patch: pytest.MonkeyPatch) -> None:
    retain(patch, past=True)


@mutation
def sequential_splits_do_not_empty_stores(patch: pytest.MonkeyPatch) -> None:
    retain(patch, unsplit=True)


@mutation
def loops_of_one_trip_forget(patch: pytest.MonkeyPatch) -> None:
    retain(patch, strict=True)


@mutation
def tiles_live_in_their_users_branches_only(patch: pytest.MonkeyPatch) -> None:
    def alive(tile: Tile, path: paths.Path, choice: Choice) -> int:
        return int(tile.stays or any(user is path for user in tile.users))

    patch.setattr(Tile, "alive", alive)


@mutation
def loops_above_a_split_do_not_prolong_life(patch: pytest.MonkeyPatch) -> None:
    def alive(tile: Tile, path: paths.Path, choice: Choice) -> Number:
        if tile.stays or tile.users[0].order <= path.order <= tile.users[-1].order:
            return 1
        return tile.kept(choice) if path.order in tile.below else 0

    patch.setattr(Tile, "alive", alive)


@mutation
def kept_tiles_die_with_their_branch(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Tile, "kept", lambda tile, choice: 0)


@mutation
def einsums_always_have_work(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(paths.Path, "working", lambda path, choice, stop: [])


@mutation
def multicast_is_counted_as_unicast(patch: pytest.MonkeyPatch) -> None:
    right = StoreLink._joined
    patch.setattr(StoreLink, "_joined", lambda link, axis: link.written and right(link, axis))


@mutation
def reducing_axes_do_not_reduce(patch: pytest.MonkeyPatch) -> None:
    right = StoreLink._joined
    patch.setattr(StoreLink, "_joined", lambda link, axis: not link.written and right(link, axis))


@mutation
def every_axis_reduces_and_multicasts(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(StoreLink, "_joined", lambda link, axis: True)


@mutation
def windows_keep_no_overlap(patch: pytest.MonkeyPatch) -> None:
    right = windows.moved
    patch.setattr(windows, "moved", lambda uses, size, sliding: right(uses, size, None))
    each = windows.moved_each
    patch.setattr(windows, "moved_each", lambda uses, size, sliding, *picks: each(uses, size, None, *picks))


@mutation
def padding_is_moved(patch: pytest.MonkeyPatch) -> None:
    right = windows.hull
    patch.setattr(windows, "hull", lambda uses, choice, size, busy=None: right(uses, choice, size + 1, busy))


@mutation
def shared_windows_are_not_read_again(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(accesses, "_halo", lambda link, at_parent, picks, toll: 0)


def _counted_otherwise(patch: pytest.MonkeyPatch, trips: Callable[[int, int], int]) -> None:
    """Every piece of a cut is a full one, and there are as many as `trips` says."""
    right = terms._pieces_cached

    def other(extent: int, cuts: tuple[terms.LoopCut, ...], whole: bool) -> int:
        if not cuts or cuts[0].once or any(cut.ends is not None for cut in cuts):
            return int(right(extent, cuts, whole))
        return trips(extent, cuts[0].tile) * other(cuts[0].tile, cuts[1:], whole)

    patch.setattr(terms, "_pieces_cached", other)


@mutation
def ragged_edges_count_as_full_tiles(patch: pytest.MonkeyPatch) -> None:
    _counted_otherwise(patch, lambda extent, tile: -(-extent // tile))


@mutation
def ragged_edges_are_forgotten(patch: pytest.MonkeyPatch) -> None:
    _counted_otherwise(patch, lambda extent, tile: extent // tile)


@mutation
def the_last_tile_is_stored(patch: pytest.MonkeyPatch) -> None:
    def last(extent: int, cuts: tuple[terms.LoopCut, ...]) -> int:
        for cut in cuts:
            extent = (extent - 1) % cut.tile + 1
        return extent

    patch.setattr(terms, "largest", last)


@mutation
def one_instance_carries_all(patch: pytest.MonkeyPatch) -> None:
    right = StoreLink._once
    patch.setattr(
        StoreLink, "_once", lambda link, above, combine, busiest, fresh: right(link, above, combine, False, fresh)
    )


@mutation
def the_first_instance_is_the_busiest(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(evaluate, "instance_choices", lambda path, mine: {})


@mutation
def copies_in_place_are_charged(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(accesses, "_copy_in_place", lambda link: False)


@mutation
def double_buffers_are_single(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Memory, "capacity_share", lambda memory: 1)


@mutation
def persistent_tensors_are_ordinary(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(occupancy, "_persists", lambda workload, store, user: False)


@mutation
def inner_tiles_of_persistent_tensors_persist(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(occupancy, "_persists", lambda workload, store, user: workload.tensor(store.tensor).persistent)


@mutation
def memories_have_no_widths_of_their_own(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Memory, "bits", lambda memory, workload, einsum, tensor: workload.tensor(tensor).bits)


def test_the_retention_that_is_mutated_here_is_the_right_one(monkeypatch: pytest.MonkeyPatch) -> None:
    retain(monkeypatch)
    assert [found.seed for found in subjects() if differences(found)] == []


@pytest.mark.parametrize("name", MUTATIONS)
def test_a_mutation_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    everything = subjects()  # the oracle runs before anything is changed
    MUTATIONS[name](monkeypatch)
    assert any(differences(found) for found in everything)
