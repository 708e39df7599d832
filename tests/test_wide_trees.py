"""The analysis equals the oracle on random trees of whatever a workload file can say, number by number.

One more exception to equal verdicts than in `test_analysis_equals_oracle`: a consumer that reads one position of a
rank, under a loop over that rank which it shares with the producer. The oracle lets that be where the position
happens to be computed in time; the analysis refuses it whatever the position is.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from agreement import Subject, differences, priced
from cases import cascade, machine, tree
from concurrent_trees import fused, kinds
from einloom.cost.batch.retile import plain_paths
from einloom.cost.evaluate import evaluate, latencies, legality
from einloom.cost.event import event_time
from einloom.cost.formulas import windows
from einloom.cost.room import occupancy as occupancies
from einloom.cost.traffic import accesses
from einloom.cost.traffic.accesses import StoreLink
from einloom.errors import SpecError
from einloom.machine.levels import ComputeUnit, Machine, Memory
from einloom.mapping.legality.structure import problems
from einloom.oracle import execute, simulate
from einloom.workload.einsum import Einsum
from trees import Case
from wide_trees import WIDE, wide_case, wide_concurrent_case

SEQUENTIAL, CONCURRENT = 1400, 600
PARTS = pytest.mark.parametrize("part", [3, pytest.param(1, marks=pytest.mark.slow)])
"""A third of the trees, and all of them."""
UNLIKE = (303, 357, 468, 1713, 5808)  # a store whose users a loop moves in different ways
EARLY = re.compile(r"'.*' stands above \w+ and \w+, which reads (\w+): .*")


def subject(seed: int, case: Case) -> Subject:
    case = replace(case, machine=priced(case.machine))
    reasons = problems(case.workload, case.machine, case.mapping)
    return Subject(seed, case, reasons, simulate(case.workload, case.machine, case.mapping))


@cache
def sequential(seed: int) -> Subject:
    return subject(seed, wide_case(seed))


@cache
def concurrent(seed: int) -> Subject | None:
    """None if the sequential tree of the seed has no split."""
    return subject(seed, wide_concurrent_case(seed)) if fused(wide_case(seed)) else None


def subjects(part: int = 3) -> tuple[Subject, ...]:
    """Random cases, the last of them with concurrent splits, executed."""
    alone = tuple(sequential(seed) for seed in range(SEQUENTIAL // part))
    seeds = range(SEQUENTIAL, 2 * CONCURRENT + SEQUENTIAL)
    forked = (found for seed in seeds if (found := concurrent(seed)) is not None)
    return alone + tuple(found for _, found in zip(range(CONCURRENT // part), forked, strict=False))


def reads_a_position(einsums: tuple[Einsum, ...], tensor: str) -> bool:
    return any(not i.variables for e in einsums for a in e.inputs if a.tensor == tensor for i in a.indices)


def refused_early(found: Subject) -> bool:
    """True if only the analysis refuses: a loop over a rank of which a consumer below it reads one position."""
    read = [match.group(1) for reason in found.reasons if (match := EARLY.fullmatch(reason))]
    mine = any(reads_a_position(found.case.workload.einsums, tensor) for tensor in read)
    return mine and len(read) == len(found.reasons) and not found.simulation.reasons


def disagreements(found: Subject) -> tuple[str, ...]:
    """Latency is left out where branches run at the same time: the oracle's loads alone do not say it."""
    forked = bool(kinds(found.case.mapping.nest))
    return tuple(text for text in differences(found) if not (forked and text.startswith("('latency',)")))


@PARTS
def test_two_thousand_wide_trees_agree_exactly(part: int) -> None:
    trees = subjects(part)
    assert len(trees) == SEQUENTIAL // part + CONCURRENT // part
    early = [s.seed for s in trees if refused_early(s)]
    assert {s.seed: d[:3] for s in trees if s.seed not in early and (d := disagreements(s))} == {}
    assert all(s.simulation.correct for s in trees if s.legal)
    assert sum(s.legal for s in trees) >= 1700 // part and len(early) <= 5


@PARTS
def test_every_feature_is_common_among_the_legal_trees(part: int) -> None:
    common = Counter(feature for s in subjects(part) if s.legal for feature in s.case.features)
    print("legal trees with each feature:", dict(common.most_common()))
    assert all(common[feature] >= 40 // part for feature in WIDE), common


@pytest.mark.parametrize("seed", UNLIKE)
def test_stores_whose_users_part_agree_exactly(seed: int) -> None:
    found = subject(seed, wide_case(seed))
    assert found.legal
    assert disagreements(found) == ()


def one_slot(machine: Machine) -> Machine:
    levels = (replace(level, double_buffer=False) if isinstance(level, Memory) else level for level in machine.levels)
    return replace(machine, levels=tuple(levels))


def times(case: Case) -> tuple[float, float]:
    """Event time and simulated time. Raises SpecError for windows and for users that part."""
    cycles = simulate(case.workload, case.machine, case.mapping, timed=True).cycles
    assert cycles is not None
    return event_time(case.workload, case.machine, case.mapping).seconds, cycles


def legal_and_fast(found: Subject) -> bool:
    return found.legal and not legality(found.case.workload, found.case.machine, found.case.mapping)


def test_nothing_is_faster_than_the_floor() -> None:
    """Floor, event time and simulated time, in this order."""
    seen = 0
    for found in filter(legal_and_fast, subjects()[-300:]):
        case = found.case
        views = latencies(case.workload, case.machine, case.mapping)
        try:
            event, cycles = times(case)
        except SpecError:
            seen, event = seen - 1, views.floor
            cycles = simulate(case.workload, case.machine, case.mapping, timed=True).cycles or 0.0
        seen += 1
        assert views.roofline <= views.floor <= event * (1 + 1e-12) and event <= cycles * (1 + 1e-12), found.seed
    assert seen >= 100


def test_with_one_slot_the_event_time_is_what_happens() -> None:
    seen = 0
    for found in filter(legal_and_fast, subjects()[:300]):
        try:
            event, cycles = times(replace(found.case, machine=one_slot(found.case.machine)))
        except SpecError:
            continue
        assert event == pytest.approx(cycles, rel=1e-12), found.seed
        seen += 1
    assert seen >= 150


@pytest.mark.parametrize(
    "seed",
    [
        10021,  # work of several iterations under a kept tile
        10253,  # a tile written back while another branch is at work
        10275,  # loads of two branches, with work between them
        10316,  # two constants in one rank
        12626,  # iterations in which a tile is empty
    ],
)
def test_event_times_that_were_wrong(seed: int) -> None:
    event, cycles = times(subject(seed, wide_case(seed)).case)
    assert event == cycles


DRAM = Memory("DRAM", None, 1.0, 1.0, 1, 1.0, 1.0)


def test_a_tensor_that_is_two_operands_is_read_once() -> None:
    workload = cascade("E: Z[m] = A[m] * A[m]", {"m": 3})
    plain = machine(DRAM, ComputeUnit("MAC", 1.0, 1.0))
    mapping = tree("DRAM[A Z] E.m:3 !E@MAC")
    cost = evaluate(workload, plain, mapping)
    assert (cost.count("DRAM", "A", "read"), cost.count("DRAM", "Z", "write")) == (3, 3)
    seen = simulate(workload, plain, mapping, timed=True)
    assert (seen.count("DRAM", "A", "read"), seen.cycles, seen.correct) == (3, 6.0, True)
    one = machine(DRAM, ComputeUnit("MAC", 1.0, 1.0, operands=(1,)))
    assert any("2 operands" in reason for reason in legality(workload, one, mapping))


def test_work_under_a_kept_tile_is_one_operation() -> None:
    """Z stays in L: four values take the unit 6 s and L 1 + 3 * 2 s; its way up takes 1 s."""
    levels = (Memory("G"), Memory("L", read_throughput=1.0, write_throughput=1.0), ComputeUnit("MAC", 2 / 3, 1.0))
    workload = cascade("E: Z[] = exp(X[k])", {"k": 4})
    case = Case(workload, machine(*levels), tree("G[X Z] E.k:4 L[Z] !E@MAC"), frozenset())
    assert times(case) == (8.0, 8.0)


def test_a_tile_from_one_constant_to_another() -> None:
    """X[1] and X[3] are read: three values of it come to L."""
    workload = cascade("E0: Y[] = exp(X[1])\nE1: Z[] = exp(X[3])", {}, shapes={"X": (4,)}, outputs=("Y", "Z"))
    levels = (Memory("G", read_throughput=1.0), Memory("L"), ComputeUnit("MAC", 1.0, 1.0))
    mapping = tree("G[X Y Z] L[X] { !E0@MAC } { !E1@MAC }")
    assert times(Case(workload, machine(*levels), mapping, frozenset())) == (5.0, 5.0)


def test_a_tile_that_two_users_see_differently() -> None:
    """X below the loop: E0 needs one value of it in each iteration, E1 the third one in all of them.

    Boxes [0,3), [1,3), [2,3) and [2,4): 3 values to begin with, none, none, and 1.
    """
    sizes = {"m": 4, "n": 4}
    workload = cascade("E0: Y[m] = exp(X[m])\nE1: Z[n] = Y[n] * X[2]", sizes, shapes={"X": (4,)})
    two = machine(DRAM, Memory("GLB"), ComputeUnit("MAC", 1.0, 1.0))
    mapping = tree("DRAM[X Z] E0.m,E1.n:4 GLB[X] GLB[Y] { !E0@MAC } { !E1@MAC }")
    cost = evaluate(workload, two, mapping)
    assert cost.count("GLB", "X", "write") == 4
    assert simulate(workload, two, mapping).count("GLB", "X", "write") == 4
    with pytest.raises(SpecError, match="need different parts"):
        event_time(workload, two, mapping)
    with pytest.raises(SpecError, match="need different parts"):
        plain_paths(workload, mapping, ())


Mutation = Callable[[pytest.MonkeyPatch], None]


def every_operand_is_read(patch: pytest.MonkeyPatch) -> None:
    """The oracle reads a tensor as often as the Einsum names it."""
    right = execute.Execution._operand

    def read(self: Any, leaf: Any, operand: Any, lane: Any, asked: Any) -> Any:
        asked -= {key for key in asked if key[0] == operand.tensor}
        return right(self, leaf, operand, lane, asked)

    patch.setattr(execute.Execution, "_operand", read)


def the_first_user_stands_for_all(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(StoreLink, "unlike", property(lambda link: None))
    right = accesses.moving
    patch.setattr(accesses, "moving", lambda users, tensor: right(users[:1], tensor))


def a_constant_is_a_whole_rank(patch: pytest.MonkeyPatch) -> None:
    right = windows.hull

    def whole(uses: Any, choice: Any, size: int, busy: Any = None) -> Any:
        found = right(uses, choice, size, busy)
        return (0, size, found[2]) if any(not use.terms for use in uses) else found

    patch.setattr(windows, "hull", whole)
    for cached in (windows.moved, windows.overlaps):
        cached.cache_clear()


def plain_tiles_are_always_whole(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(occupancies.Tile, "_plain_at", lambda tile, choice: [tile._plain])


@pytest.mark.parametrize("mutation", [the_first_user_stands_for_all, a_constant_is_a_whole_rank])
def test_a_mutation_of_the_analysis_is_caught(mutation: Mutation, monkeypatch: pytest.MonkeyPatch) -> None:
    everything = [s for s in subjects() if s.legal]
    mutation(monkeypatch)
    assert any(disagreements(found) for found in everything)
    monkeypatch.undo()
    for cached in (windows.moved, windows.overlaps):
        cached.cache_clear()


def test_tiles_in_a_ragged_last_iteration_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    plain_tiles_are_always_whole(monkeypatch)
    assert disagreements(subject(5808, wide_case(5808)))


def test_a_mutation_of_the_oracle_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    twice = [s for s in subjects() if s.legal and "repeated operand" in s.case.features][:20]
    every_operand_is_read(monkeypatch)
    assert any(disagreements(subject(s.seed, s.case)) for s in twice)
