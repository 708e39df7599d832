"""An own store serves one Einsum (rule 8), also where several that access its tensor have loops in common."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from einloom.errors import Defect
from einloom.machine.levels import Axis, ComputeUnit, Fanout, Level, Machine, Memory
from einloom.mapspace.space import Mapspace
from einloom.problem import Objective, Problem
from einloom.search.exact import Exact
from einloom.search.exact.attempt import Attempt
from einloom.search.exact.concurrent.rows import GroupExplorer
from einloom.search.exact.einsums.orders import as_written
from einloom.search.exact.einsums.users import Users
from einloom.search.exact.fusion.serving import NOTHING, Guard, Served, Serving, ServingStep
from einloom.search.exact.fusion.templates import Alone, FusedTemplate, OwnStore, Stack, Stacker
from einloom.workload.build import build_workload
from einloom.workload.selectors import selector
from optima import best_of_all, optimum

READERS = ("T[m] = X[m] * E[]", "Z[m] = T[m] * E[]")


def readers(m: int, *levels: Level, goal: str = "energy", concurrent: str = "none") -> Problem:
    """Two Einsums, fused or not, that both read E."""
    workload = build_workload("w", list(READERS), {"m": m}, bits=8)
    dram = Memory("D", None, 5.0, 5.0, read_throughput=1.0, write_throughput=1.0)
    machine = Machine("m", (dram, *levels, ComputeUnit("MAC", 1.0, 1.0)))
    return Problem(workload, machine, Mapspace(concurrent=concurrent), Objective(goal))  # type: ignore[arg-type]


def inner(name: str, size: int, may: str = "all", must: str = "nothing") -> Memory:
    return Memory(name, size, 1.0, 1.0, may=selector(may), must=selector(must))


def under() -> Problem:
    """T in C would stand above the split, and so would the stores of E in B, which is further out: T stays in D."""
    return readers(2, inner("B", 64, "E", "E"), inner("C", 24, "T"))


def behind() -> Problem:
    cores = Fanout("F", (Axis("x", 2),))
    return readers(2, inner("B", 16, "E"), cores, inner("C", 24, "T | E"))


CASES = {
    "one memory": (324, readers(2, Memory("B", 16))),
    "under": (452, under()),
    "behind a fanout": (276, behind()),
    # each keeps E for itself from token to token, where no store above the loop may serve both
    "alone": (810, readers(5, Memory("B", 32))),
    "group": (490, readers(5, Memory("B", 32), concurrent="shared")),
}


@pytest.mark.parametrize("name", sorted(CASES.keys() - {"one memory"}))  # that one is in test_defects.py
def test_exact_finds_what_all_trees_say(name: str) -> None:
    right, asked = CASES[name]
    assert optimum(asked) == right
    for goal in ("energy", "latency", "edp", "traffic"):
        p = replace(asked, objective=Objective(goal, "D" if goal == "traffic" else None))
        assert optimum(p) == pytest.approx(best_of_all(p), rel=1e-12), goal


def answer(name: str) -> float | str | None:
    try:
        return optimum(CASES[name][1])
    except Defect as defect:
        return defect.difference


Mistake = Callable[[pytest.MonkeyPatch], None]
NOT_UNDER, NOT_LATE, SERVED = Stacker._alone, GroupExplorer._lowered, Serving._guard


def nobody_asks(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Attempt, "_serving", lambda self, blocks: None)


def stores_below_others_of_their_depth(patch: pytest.MonkeyPatch) -> None:
    def alone(self: Stacker, at: Stack) -> Iterator[Alone]:
        return (replace(asked, under=frozenset()) for asked in NOT_UNDER(self, at))

    patch.setattr(Stacker, "_alone", alone)


def nothing_before(patch: pytest.MonkeyPatch) -> None:
    """Only what comes after a store is asked, not what came before it."""
    patch.setattr(
        Serving, "_guard", lambda self, asked, names, seen, split, step: SERVED(self, asked, names, {}, split, step)
    )


def members_as_others(patch: pytest.MonkeyPatch) -> None:
    def lowered(self: GroupExplorer, structure: FusedTemplate, own: tuple[OwnStore, ...]) -> FusedTemplate:
        return structure

    patch.setattr(GroupExplorer, "_lowered", lowered)


def uncontested(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Users, "contested", lambda self, position, tensor: False)


MISTAKES: dict[Mistake, tuple[str, ...]] = {
    nobody_asks: ("one memory", "under", "group"),
    stores_below_others_of_their_depth: ("under",),
    nothing_before: ("one memory",),
    members_as_others: ("group",),
    uncontested: ("one memory", "under", "group"),
}


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda f: f.__name__)
def test_a_planted_mistake_is_caught(mistake: Mistake, monkeypatch: pytest.MonkeyPatch) -> None:
    mistake(monkeypatch)
    for name in MISTAKES[mistake]:
        assert answer(name) != CASES[name][0], name


# ---- what a partial cascade remembers, step by step -----------------------------------------------------------------


def chain(*texts: str) -> Serving:
    """Einsums E0, E1, ... of one value each, that read what is named; every own store of E asks something."""
    workload = build_workload("w", list(texts), {"m": 2}, bits=1)
    asked = [frozenset({Alone(e.tensors.index("E"), 0)}) if "E" in e.tensors else frozenset() for e in workload.einsums]
    return Serving(workload, asked)


def three() -> Serving:
    """E is read by the first and by the last of three; B links the first two, C the last two, D all."""
    return chain("B[m] = X[m] * E[]", "C[m] = B[m]", "Z[m] = C[m] * E[]")


def alone(loops: int, late: bool = False, under: tuple[int, ...] = ()) -> frozenset[Alone]:
    return frozenset({Alone(2, loops, frozenset(under), late)})


def test_a_later_reader_that_shares_the_loop_is_refused() -> None:
    serving = three()
    first = serving.after(NOTHING, ServingStep(as_written(0), alone(0), 0, 1, {"B": 1, "E": 0}))
    assert first == Served(frozenset({Guard("E", 0)}), frozenset({("E", 1)}))
    second = serving.after(first, ServingStep(as_written(1), frozenset(), 1, 1, {"C": 1, "E": 0}))
    assert second is not None and second.guards == first.guards
    assert serving.after(second, ServingStep(as_written(2), frozenset(), 1, 0, {})) is None


def test_a_loop_that_ends_between_them_ends_it() -> None:
    serving = three()
    first = serving.after(NOTHING, ServingStep(as_written(0), alone(0), 0, 1, {"B": 1, "E": 0}))
    assert first is not None
    second = serving.after(first, ServingStep(as_written(1), frozenset(), 1, 0, {"C": 0, "E": 0}))
    assert second == Served(frozenset(), frozenset({("E", 0)}))
    assert serving.after(second, ServingStep(as_written(2), alone(0), 0, 0, {})) is not None


def test_an_earlier_reader_that_shares_the_loop_is_noticed() -> None:
    serving = three()
    first = serving.after(NOTHING, ServingStep(as_written(0), frozenset(), 0, 1, {"B": 1, "E": 0}))
    assert first == Served(frozenset(), frozenset({("E", 1)}))
    second = serving.after(first, ServingStep(as_written(1), frozenset(), 1, 1, {"C": 1, "E": 0}))
    assert second is not None
    assert serving.after(second, ServingStep(as_written(2), alone(0), 1, 0, {})) is None
    assert (
        serving.after(second, ServingStep(as_written(2), alone(1), 1, 0, {})) is not None
    )  # below the loop that they share


def test_above_a_split_it_stands_above_those_that_share_as_many_loops() -> None:
    """The store has one loop above it; B, backed further in below as many, stands above the split after it."""
    serving = three()
    before = serving.after(NOTHING, ServingStep(as_written(0), alone(1, under=(0,)), 0, 1, {"B": 1, "E": 0}))
    assert before is not None and before.guards == frozenset({Guard("E", 0)})
    stays = serving.after(NOTHING, ServingStep(as_written(0), alone(1, under=(0,)), 0, 2, {"B": 1, "E": 0}))
    assert stays is not None and stays.guards == frozenset({Guard("E", 1, frozenset({"B"}))})
    # the split comes later, while B is needed still: then the store is above it
    later = serving.after(stays, ServingStep(as_written(1), frozenset(), 2, 1, {"B": 1, "E": 0}))
    assert later is not None and later.guards == frozenset({Guard("E", 0)})
    # or B is done before it comes: then the store stands in its branch
    done = serving.after(stays, ServingStep(as_written(1), frozenset(), 2, 2, {"C": 2, "E": 0}))
    assert done is not None and done.guards == frozenset({Guard("E", 1)})


def test_it_may_turn_out_later_that_an_earlier_reader_is_below_it() -> None:
    serving = three()
    known = Served(frozenset(), frozenset({("E", 1)}))
    kept = serving.after(known, ServingStep(as_written(0), alone(1, under=(0,)), 1, 2, {"B": 1, "E": 0}))
    assert kept is not None and kept.guards == frozenset({Guard("E", 1, frozenset({"B"}), met=True)})
    assert serving.after(kept, ServingStep(as_written(1), frozenset(), 2, 1, {"B": 1, "E": 0})) is None
    done = serving.after(kept, ServingStep(as_written(1), frozenset(), 2, 2, {"C": 2, "E": 0}))
    assert done is not None and done.guards == frozenset({Guard("E", 1)})


def test_a_backing_store_above_a_split_already_takes_own_stores_with_it() -> None:
    """B is read by the third Einsum too, and a split stands below its store since the first."""
    serving = chain("B[m] = X[m] * E[]", "C[m] = B[m]", "Z[m] = C[m] * E[] * B[m]")
    serving._under |= {"B"}
    first = serving.after(NOTHING, ServingStep(as_written(0), frozenset(), 0, 1, {"B": 1, "E": 0}))
    assert first is not None and first.split == {"B"}
    second = serving.after(first, ServingStep(as_written(1), frozenset(), 1, 1, {"B": 1, "C": 1, "E": 0}))
    assert second is not None and second.split == {"B"}
    assert serving.after(second, ServingStep(as_written(2), frozenset({Alone(2, 1, frozenset({3}))}), 1, 0, {})) is None
    assert serving.after(second, ServingStep(as_written(2), frozenset({Alone(2, 1)}), 1, 0, {})) is not None


def test_stores_of_members_stand_below_the_split_of_their_group() -> None:
    """Unless the split that holds the group is below the store: then the group is, too."""
    serving = chain("B[m] = X[m] * E[]", "C[m] = B[m] * E[]", "Z[m] = C[m] * E[]")
    first = serving.after(NOTHING, ServingStep(as_written(0), alone(0, late=True), 0, 1, {"B": 1, "E": 0}, (0,)))
    assert first is not None and first.guards == frozenset({Guard("E", 0, member=0)})
    second = ServingStep(as_written(1), alone(0, late=True), 1, 0, {"C": 0, "E": 0}, (0, 1), closing=True)
    assert serving.after(first, second) is not None
    assert serving.after(first, replace(second, open=1, live={"C": 1, "E": 0})) is None
    inside = serving.after(
        NOTHING, ServingStep(as_written(0), alone(0, late=True), 1, 2, {"B": 2, "E": 0}, members=(0,), outer=1)
    )
    assert inside is not None and inside.guards == frozenset({Guard("E", 0)})


def test_exact_never_asks_where_nothing_is_contested() -> None:
    """In a chain the tensors between neighbours are the only reason for loops: its structures ask for nothing."""
    workload = build_workload("w", ["T[m] = exp(X[m])", "Z[m] = exp(T[m])", "Y[m] = exp(Z[m])"], {"m": 2}, bits=1)
    users = Users(workload, CASES["one memory"][1].machine)
    assert not any(users.contested(i, t) for i, e in enumerate(workload.einsums) for t in e.tensors)
    assert not users.any_contested
    asked = CASES["one memory"][1]
    assert Users(asked.workload, asked.machine).any_contested
    assert Exact().search(asked).value == 324
