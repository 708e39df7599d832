"""Which spatial choices are listed: all that the definition names, none twice, and none where memory has no room."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from math import prod
from random import Random

import numpy as np
import pytest

from einloom.api import verify
from einloom.errors import Ended, Infeasible
from einloom.machine.levels import NOTHING, Axis, ComputeUnit, Fanout, Machine, Memory
from einloom.mapspace.space import Mapspace
from einloom.problem import Budget, Guarantee, Problem, objective
from einloom.questions import problem
from einloom.search.exact import Exact
from einloom.search.exact.attempt import Attempt
from einloom.search.exact.einsums import runs, spatial
from einloom.search.exact.einsums.classes import UnitOption, signature
from einloom.search.exact.einsums.holds import Placement, backing
from einloom.search.exact.einsums.spatial import RankClasses, like_axes, together
from einloom.search.exact.einsums.users import Users
from einloom.search.exact.fusion.explore import Explorer
from einloom.search.exact.options import ExactOptions
from einloom.search.method import Watcher
from einloom.testing.problems.drawing import Wanted, draw_with
from einloom.workload.build import build_workload
from einloom.workload.selectors import selector


def drawn(seed: int) -> RankClasses:
    """An Einsum of three rank variables behind two fanouts of up to three axes, some alike, some in full use."""
    rng = Random(f"listed {seed}")
    extents = {v: rng.choice((1, 2, 4, 6, 8, 12)) for v in "mnk"}
    workload = build_workload("w", ["Z[m,n] = A[m,k] * B[k,n]"], extents, bits=1)
    levels: list[Memory | Fanout | ComputeUnit] = [Memory("D", None)]
    for f in range(rng.choice((1, 2))):
        use = rng.choice(("any", "any", "full"))
        kinds = [(), (("multicast", NOTHING),), (("only_irrelevant_to", selector("output")),)]
        many = [dict(rng.choice(kinds[: 1 + (rng.random() < 0.4) * 2])) for _ in range(rng.choice((1, 2, 3)))]
        axes = (Axis(f"a{f}{i}", rng.choice((2, 3, 4, 6, 8)), use=use, **kind) for i, kind in enumerate(many))
        levels.append(Fanout(f"F{f}", tuple(axes)))
    machine = Machine("m", (*levels, ComputeUnit("U")))
    return RankClasses(signature(Users(workload, machine), 0, merge=True))


def by_definition(classes: RankClasses, option: UnitOption) -> set[runs.SpatialChoice]:
    """What like axes take together in every choice of `RankClasses.spreads`, from all products of numbers."""
    s = classes.signature
    axes = [axis for axis in s.axes if axis.fanout < option.fanouts]
    rows = [
        [
            row
            for row in product(*(range(1, min(n, axis.size) + 1) for n in classes.extents))
            if prod(row) <= axis.size
            and all(row[d] == 1 or not classes.relevant(t, d) for t in axis.barred for d in range(len(row)))
        ]
        for axis in axes
    ]
    every = [
        spread
        for spread in product(*rows)
        if all(n % prod(row[d] for row in spread) == 0 for d, n in enumerate(classes.extents))
    ]
    used = [prod(prod(row) for axis, row in zip(axes, spread, strict=True) if axis.full) for spread in every]
    groups = like_axes(s, option, axes)
    return {together(spread, groups) for spread, n in zip(every, used, strict=True) if n == max(used)}


def compared(seed: int) -> tuple[int, int]:
    """The choices and the axes of an Einsum, after they were held against the definition."""
    classes = drawn(seed)
    s, (option,) = classes.signature, classes.signature.units
    listed = classes.spreads(option)
    keys = [together(spread, like_axes(s, option, list(s.axes))) for spread in listed]
    assert len(keys) == len(set(keys))
    assert set(keys) == by_definition(classes, option)
    return len(listed), len(s.axes)


SEEDS = [seed for seed in range(60) if len(drawn(seed).signature.axes) < 4]


@pytest.mark.parametrize("seed", SEEDS)
def test_the_list_is_what_the_definition_says(seed: int) -> None:
    compared(seed)


def planted_unlike(groups: list[list[int]]) -> list[tuple[int, ...]]:
    """The mistake: all axes are taken for alike."""
    return [tuple(sorted(i for group in groups for i in group))]


def test_axes_that_are_not_alike_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spatial, "_runs", planted_unlike)
    spatial._every_spread.cache_clear()
    wrong = 0
    for seed in SEEDS:
        try:
            compared(seed)
        except AssertionError:
            wrong += 1
    spatial._every_spread.cache_clear()
    assert wrong >= 5


def test_a_run_is_of_neighbours_of_one_group() -> None:
    assert spatial._runs([[0], [1, 2], [3]]) == [(0,), (1, 2), (3,)]
    assert spatial._runs([[0, 2], [1], [3, 4]]) == [(0,), (1,), (2,), (3, 4)]


PAIR = build_workload("w", ["T[m,n] = A[m,k] * B[k,n]", "Z[m,p] = T[m,n] * C[n,p]"], dict.fromkeys("mnkp", 4), bits=1)
CHIP = Machine(
    "chip",
    (
        Memory("D", None, read_energy=10.0, write_energy=10.0, read_throughput=1.0, write_throughput=1.0),
        Memory("G", 64, read_energy=1.0, write_energy=1.0, read_throughput=8.0, write_throughput=8.0),
        Fanout("F", (Axis("a", 4),)),
        ComputeUnit("U", energy=1.0, throughput=1.0),
    ),
)
ASKED = Problem(PAIR, CHIP, Mapspace(), objective("edp", CHIP))


@pytest.mark.parametrize(
    ("budget", "ended"),
    [
        (Budget(), Ended.NO_MEMORY),
        (Budget(steps=10**9), Ended.NO_MEMORY),
        (Budget(memory=2**40), Ended.MEMORY),
        (Budget(seconds=0.3), Ended.SECONDS),
    ],
)
def test_too_many_are_not_listed(budget: Budget, ended: Ended, monkeypatch: pytest.MonkeyPatch) -> None:
    """The answer is drawn, with a bound and a gap; what is left of the seconds goes to drawing."""
    monkeypatch.setattr(runs, "growth_left", lambda: 1000.0)
    monkeypatch.setattr("einloom.search.exact.drawing.ALONE", 0.1)
    spatial._every_spread.cache_clear()
    found = Exact().search(ASKED, budget)
    assert found.ended is ended and found.certificate is not None
    assert found.certificate.guarantee is Guarantee.BOUNDED and 0 < found.certificate.bound < found.value
    assert verify(found, quick=True).ok


def test_they_are_counted_before_they_are_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory is asked for as many as are listed: room for them is enough, a byte less is not."""
    tried = 0
    for seed in SEEDS[:20]:
        classes = drawn(seed)
        (option,) = classes.signature.units
        spatial._every_spread.cache_clear()
        monkeypatch.setattr(runs, "growth_left", lambda: float("inf"))
        neighbours = spatial._runs(like_axes(classes.signature, option, list(classes.signature.axes)))
        number = len(classes.spreads(option))
        alone = len(neighbours) == len(like_axes(classes.signature, option, list(classes.signature.axes)))
        for room, fits in ((number * runs.HELD, True), (number * runs.HELD - 1, False)) if alone else ():
            spatial._every_spread.cache_clear()
            monkeypatch.setattr(runs, "growth_left", lambda room=room: float(room))
            again, tried = replace(classes), tried + 1
            if fits:
                assert len(again.spreads(option)) == number
            else:
                with pytest.raises(runs.TooManyChoices):
                    again.spreads(option)
    spatial._every_spread.cache_clear()
    assert tried >= 10


def goes_with(classes: RankClasses, option: UnitOption, held: Placement, spread: runs.SpatialChoice) -> bool:
    """Rule 10, and what is complete at a home behind a fanout, of one choice of stores and spatial loops."""
    s = classes.signature
    axes = [axis for axis in s.axes if axis.fanout < option.fanouts]
    backs = [tensor.home if tensor.housed else backing(held, t) for t, tensor in enumerate(s.tensors)]
    for axis, row in zip(axes, spread, strict=True):
        used = {d for d, n in enumerate(row) if n > 1}
        if s.copy and used and axis.fanout >= max(option.above[m] for m in backs):
            return False
        for t, tensor in enumerate(s.tensors):
            outside = tensor.housed and axis.fanout < option.above[tensor.home]
            wrong = used if tensor.persistent else {d for d in used if tensor.output and not classes.relevant(t, d)}
            if outside and wrong:
                return False
    return True


def problems_with_copies_or_homes() -> Iterator[Problem]:
    """Drawn problems whose homes are inner memories, and a layer that begins with a copy."""
    yield problem("gpt3-6.7b:batch=1,tokens=4", "tileflow-edge", "energy")
    for seed in range(30):
        drawn_one = draw_with(Wanted(("home by role",)), seed)
        if drawn_one is not None:
            workload, machine, mapspace = drawn_one.files.read
            yield Problem(workload, machine, mapspace, objective("energy", machine))


def test_choices_of_stores_go_with_spatial_ones_by_definition() -> None:
    rng, seen = Random(0), {"copy": [0, 0], "home": [0, 0]}
    for asked in problems_with_copies_or_homes():
        try:
            attempt = Attempt(asked, ExactOptions(), Watcher(), {}, pass_)
        except Infeasible:
            continue
        for classes in attempt.classes.values():
            s, columns = classes.signature, len(attempt.setting.columns)
            if not s.copy and not any(tensor.housed for tensor in s.tensors):
                continue
            explorer = Explorer(attempt.setting, classes, np.full(columns, np.inf), {})
            for option in s.units:
                spreads, found = classes.spreads(option), list(explorer._suited(option))
                assert sorted(i for some, _ in found for i in some) == list(range(len(option.held)))
                for some, mask in found:
                    for _ in range(40):
                        i, j = int(rng.choice(some)), rng.randrange(len(spreads))
                        right = goes_with(classes, option, option.held[i], spreads[j])
                        assert right == bool(mask[j])
                        seen["copy" if s.copy else "home"][right] += 1
    assert min(seen["copy"]) > 20 and sum(seen["home"]) > 100, seen


def pass_() -> None:
    """Goes on."""
