"""The analysis equals the oracle on random trees with concurrent splits: traffic, occupancy, values, order of rules."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from itertools import pairwise, product
from typing import Any

import pytest

from agreement import Subject, differences, priced
from concurrent_trees import concurrent_case, fused, kinds, loaded
from einloom.cost.evaluate import price
from einloom.cost.room import moments, occupancy
from einloom.cost.time.schedule import Schedule
from einloom.cost.traffic import paths, visits
from einloom.cost.traffic.accesses import StoreLink, links
from einloom.machine.levels import NOTHING, Fanout
from einloom.mapping.legality.structure import problems
from einloom.oracle import simulate
from trees import Case, random_case

SEEDS = 3600
PARTS = pytest.mark.parametrize("part", [6, pytest.param(1, marks=pytest.mark.slow)])
"""A sixth of the trees, and all of them."""


@cache
def subject(seed: int) -> Subject | None:
    """The concurrent case of a seed, executed; None if its tree has no split."""
    if not fused(random_case(seed)):
        return None
    case = concurrent_case(seed)
    case = replace(case, machine=priced(case.machine))
    reasons = problems(case.workload, case.machine, case.mapping)
    return Subject(seed, case, reasons, simulate(case.workload, case.machine, case.mapping))


@cache
def subjects(count: int = SEEDS) -> tuple[Subject, ...]:
    return tuple(found for seed in range(count) if (found := subject(seed)) is not None)


@cache
def legal(count: int = SEEDS) -> tuple[Subject, ...]:
    """Legal cases with at least one concurrent split."""
    return tuple(s for s in subjects(count) if s.legal and kinds(s.case.mapping.nest))


def disagreements(found: Subject) -> tuple[str, ...]:
    """Where analysis and oracle differ in anything but latency, which the oracle's loads alone do not say."""
    return tuple(text for text in differences(found) if not text.startswith("('latency',)"))


@PARTS
def test_a_thousand_trees_agree_exactly(part: int) -> None:
    seeds = SEEDS // part
    assert {s.seed: found[:3] for s in subjects(seeds) if (found := disagreements(s))} == {}
    assert len(legal(seeds)) >= 1000 // part
    assert all(s.simulation.correct for s in legal(seeds))


@PARTS
def test_every_binding_is_among_the_legal_trees(part: int) -> None:
    common = Counter(kind for s in legal(SEEDS // part) for kind in kinds(s.case.mapping.nest))
    assert all(common["pipelined", place] >= 200 // part for place in ("axis", "unit", "shared")), common
    assert all(common["parallel", place] >= 20 // part for place in ("axis", "unit", "shared")), common
    assert common["nested", ""] >= 100 // part, common


@pytest.mark.parametrize("count", [600, pytest.param(800, marks=pytest.mark.slow)])
def test_what_enters_a_level_was_read_above(count: int) -> None:
    """Where no axis multicasts or reduces, both ends of every link count the same."""
    crossed = 0
    for s in legal(count):
        case = s.case
        levels = tuple(
            replace(n, axes=tuple(replace(axis, multicast=NOTHING, reduce=NOTHING) for axis in n.axes))
            if isinstance(n, Fanout)
            else n
            for n in case.machine.levels
        )
        found = paths.paths(case.workload, case.mapping)
        for link in links(case.workload, replace(case.machine, levels=levels), found):
            if link.child is not None:
                crossed += 1
                assert link.moved(at_parent=True, picks=None) == link.moved(at_parent=False, picks=None)
    assert crossed > 500


def test_visits_add_up_to_what_is_moved() -> None:
    """The busiest instance's share of every link, visit by visit, is its share of the whole run."""
    checked = 0
    for s in legal(600):
        found = paths.paths(s.case.workload, s.case.mapping)
        if any(path.complex_variables for path in found):
            continue
        for link in links(s.case.workload, s.case.machine, found):
            if link.child is None:
                continue
            kept = visits.kept_places(link)
            loops = [n for n in link.path.loops if n.axis is None and n.place < link.place and n.place not in kept]
            steps = product(*(range(loop.trips) for loop in loops))
            total = sum(
                visits.moved(
                    link,
                    at_parent=True,
                    stop=link.place,
                    indices={loop.place: i for loop, i in zip(loops, step, strict=True)},
                )
                for step in steps
            )
            assert total == link.moved(at_parent=True, picks={})
            checked += 1
    assert checked > 200


@pytest.mark.slow
def test_each_view_of_latency_is_at_most_the_next_and_nothing_is_faster_than_the_floor() -> None:
    apart = Counter[str]()
    for s in legal():
        case = s.case
        found = paths.paths(case.workload, case.mapping)
        einsum = price(case.workload, case.machine, found, "einsum", ())
        schedule = Schedule.of(case.machine, found, einsum.busy)
        views = [schedule.roofline, *(schedule.latency(rule) for rule in ("floor", "tile", "einsum"))]
        assert views[0] == einsum.roofline
        assert views[3] == einsum.latency
        assert all(a <= b * (1 + 1e-12) for a, b in pairwise(views)), (s.seed, views)
        cycles = simulate(case.workload, case.machine, case.mapping, timed=True).cycles
        assert cycles is not None
        assert views[1] <= cycles * (1 + 1e-12), s.seed
        apart.update(name for name, a, b in zip(("floor", "tile", "einsum"), views, views[1:], strict=False) if a < b)
    assert apart["floor"] and min(apart["tile"], apart["einsum"]) >= 20, apart


@pytest.mark.parametrize(
    "seeds", [range(150), pytest.param(range(150, 300), marks=pytest.mark.slow)], ids=["few", "more"]
)
@pytest.mark.parametrize("make", [random_case, concurrent_case])
def test_nothing_is_faster_than_the_floor_whatever_is_slow(make: Callable[[int], Case], seeds: range) -> None:
    seen = 0
    for seed in seeds:
        case = make(seed)
        machine = loaded(case.machine, seed)
        if problems(case.workload, machine, case.mapping):
            continue
        found = paths.paths(case.workload, case.mapping)
        schedule = Schedule.of(machine, found, price(case.workload, machine, found, "einsum", ()).busy)
        cycles = simulate(case.workload, machine, case.mapping, timed=True).cycles
        assert cycles is not None
        assert schedule.roofline <= schedule.latency("floor") <= cycles * (1 + 1e-12), seed
        seen += 1
    assert seen > 100


Mutation = Callable[[pytest.MonkeyPatch], None]


def concurrent_splits_end_lives(patch: pytest.MonkeyPatch) -> None:
    right = paths._path

    def cut(*arguments: Any) -> paths.Path:
        path = right(*arguments)
        return replace(path, splits=tuple(sorted((*path.splits, *(fork.place for fork in path.forks)))))

    patch.setattr(paths, "_path", cut)


def branches_take_turns_in_memories(patch: pytest.MonkeyPatch) -> None:
    right = moments.fullest
    patch.setattr(occupancy, "fullest", lambda found, private: right(found, lambda split: True))
    patch.setattr(moments, "fullest", lambda found, private, depth=0: right(found, lambda split: True, depth))


def private_memories_add(patch: pytest.MonkeyPatch) -> None:
    right = moments.fullest
    patch.setattr(moments, "fullest", lambda found, private, depth=0: right(found, lambda split: False, depth))
    patch.setattr(occupancy, "fullest", lambda found, private: right(found, lambda split: False))


def exchanged_tiles_have_one_slot(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(occupancy, "exchanges", lambda store, users: iter(()))


def stages_are_neighbours(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(occupancy, "stage_distance", lambda split, producer, consumer: 1)


def written_slots_are_ignored(patch: pytest.MonkeyPatch) -> None:
    right = occupancy.slots
    patch.setattr(occupancy, "slots", lambda memory, store, users: right(memory, store._replace(slots=None), users))


def siblings_share_one_read(patch: pytest.MonkeyPatch) -> None:
    right = StoreLink.moved

    def once(link: StoreLink, *, at_parent: bool = True, picks: Any, fresh: bool = False, toll: Any = None) -> Any:
        inside = link.child is not None and any(fork.branch and fork.place < link.place for fork in link.path.forks)
        shared = inside and not link.written and at_parent
        return 0 if shared else right(link, at_parent=at_parent, picks=picks, fresh=fresh, toll=toll)

    patch.setattr(StoreLink, "moved", once)


@pytest.mark.parametrize(
    "mutation",
    [
        concurrent_splits_end_lives,
        branches_take_turns_in_memories,
        private_memories_add,
        exchanged_tiles_have_one_slot,
        stages_are_neighbours,
        written_slots_are_ignored,
        siblings_share_one_read,
    ],
)
def test_a_mutation_is_caught(mutation: Mutation, monkeypatch: pytest.MonkeyPatch) -> None:
    everything = legal(800)
    mutation(monkeypatch)
    assert any(disagreements(found) for found in everything)
