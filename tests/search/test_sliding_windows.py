"""Convolutions: a lower bound from the elements that they access, and a first dive that follows no window."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np
import pytest

from einloom.machine.levels import Axis, ComputeUnit, Fanout, Machine, Memory
from einloom.mapspace.ffm.rules import outside
from einloom.mapspace.space import Mapspace
from einloom.problem import Budget, Objective, Problem
from einloom.search.exact import Exact, ExactOptions, Rules
from einloom.search.exact.attempt import Attempt
from einloom.search.exact.bounds import relaxation
from einloom.search.exact.bounds.relaxation import einsum_bound
from einloom.search.exact.einsums.spatial import RankClasses
from einloom.search.exact.fusion.floors import Floors
from einloom.search.exact.model import Setting
from einloom.search.exact.prices.traffic import Prices
from einloom.search.exhaustive import Exhaustive
from einloom.search.method import Watcher
from einloom.workload.build import build_workload
from einloom.workload.notation import parse_einsum
from einloom.workload.selectors import selector
from einloom.zoo.machine_by_name import load_machine
from einloom.zoo.workload_by_name import load_workload
from tiny_problems import tiny_problem


def convolution(text: str, sizes: dict[str, int], inputs: int | None = None) -> Problem:
    """One Einsum whose tensors all fit the buffer; DRAM moves one value per second and decides the latency."""
    shapes = {} if inputs is None else {"I": (inputs,)}
    workload = build_workload("c", [parse_einsum(text)], sizes, bits={"default": 1}, shapes=shapes)
    dram = Memory("DRAM", read_throughput=1.0, write_throughput=1.0)
    levels = (dram, Memory("GLB", 64, must=selector("all")), ComputeUnit("MAC", throughput=100.0))
    return Problem(workload, Machine("m", levels), Mapspace(), Objective("latency"))


def searched(problem: Problem, counts: dict[str, int] | None = None) -> Attempt:
    return Attempt(problem, ExactOptions(), Watcher(), {} if counts is None else counts, lambda: None)


def accessed(problem: Problem, tensor: int) -> int:
    """What the search believes that an Einsum accesses."""
    attempt = searched(problem)
    (signature,) = attempt.signatures
    (option,) = signature.units
    classes = attempt.classes[signature]
    pricing = Floors(attempt.setting, classes).links(option, classes.spreads(option))
    return int(Prices(pricing, attempt.setting.slots).accessed(tensor, 1)[0])


@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("dilation", [1, 2])
@pytest.mark.parametrize("constant", [0, -1])
def test_elements_that_are_accessed(stride: int, dilation: int, constant: int) -> None:
    for p, r in product((1, 3, 4), (1, 2, 3)):
        size = stride * (p - 1) + dilation * (r - 1) + 1 + 2 * constant
        if size < 1:
            continue
        text = f"O[p] = I[{stride}*p+{dilation}*r{constant or ''}] * F[r]"
        problem = convolution(text, {"p": p, "r": r}, size)
        places = {stride * i + dilation * j + constant for i in range(p) for j in range(r)}
        assert accessed(problem, 1) == len(places & set(range(size))), (text, p, r)


def test_the_bound_counts_what_is_accessed_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """Windows of 2 values at a stride of 3: 8 of 11 values come from DRAM, the filter's 2, and 4 results leave."""
    problem = convolution("O[p] = I[3*p+r] * F[r]", {"p": 4, "r": 2})
    assert searched(problem).lower_bound() == 14
    assert Exact().search(problem).value == Exhaustive().search(problem).value == 14
    monkeypatch.setattr(Prices, "accessed", lambda self, t, _: np.array(self.classes.signature.tensors[t].shape[:1]))
    assert searched(problem).lower_bound() == 17


@pytest.mark.parametrize(("batch", "channels"), [pytest.param(1, 4, marks=pytest.mark.slow), (2, 3)])
def test_rank_variables_that_the_search_merges(batch: int, channels: int) -> None:
    """b and c are one class of the search, and share out the instances of an axis: none of them divides them alone."""
    sizes = {"b": batch, "c": channels, "p": 2, "r": 2}
    text = "O[b,c,p] = I[b,c,p+r] * F[r]"
    workload = build_workload("c", [parse_einsum(text)], sizes, bits={"default": 1})
    axis = Axis("x", batch * channels // 2, use="full")
    levels = (
        Memory("DRAM", read_throughput=1.0, write_throughput=1.0),
        Fanout("pes", axes=(axis,)),
        Memory("GLB", 64, must=selector("all")),
        ComputeUnit("MAC", throughput=100.0),
    )
    problem = Problem(workload, Machine("m", levels), Mapspace(), Objective("latency"))
    (signature,) = searched(problem).signatures
    assert (0, 1) in searched(problem).classes[signature].members
    least, found = Exhaustive().search(problem).value, Exact().search(problem).value
    assert searched(problem).lower_bound() <= least == found


def test_windows_that_are_followed_along_their_loop_can_win() -> None:
    """7.5 s by the enumeration of all trees; 8 s where no window keeps what it shares with the next."""
    problem = tiny_problem(1185)
    assert Exhaustive().search(problem, Budget(seconds=20)).value == Exact().search(problem).value == 7.5
    assert Exact(ExactOptions(Rules(sliding=False))).search(problem).value == 8


def test_the_first_dive_follows_no_window() -> None:
    """It looks at fewer rows than the second, and what it finds is a mapping of the space."""
    problem = tiny_problem(1185)
    looked = []
    for dive in searched(problem).heuristics():
        dive.lower_bound()
        dive.counts.clear()
        found = dive.run(8.0)
        assert found.value in (7.5, 8.0)
        assert outside(problem.workload, problem.machine, problem.mapspace, found.mapping) == ()
        looked.append(dive.counts["evaluated"])
    assert len(looked) == 2
    assert looked[0] < looked[1]
    assert len(searched(tiny_problem(1)).heuristics()) == 1


def test_where_charges_can_be_put_off_the_first_dive_puts_none_off() -> None:
    """It looks at fewer rows than the second; a machine of two memories has nothing to put off."""
    problem = Problem(load_workload("matmuls"), load_machine("nvdla"), Mapspace(), Objective("edp"))
    looked = []
    for dive in searched(problem).heuristics():
        dive.lower_bound()
        dive.counts.clear()
        dive.run(dive.bound * 2)
        looked.append(dive.counts["evaluated"])
    assert len(looked) == 2
    assert looked[0] < looked[1]


# -- bounds where windows slide under many spatial choices ------------------------------------------------------------

SPREADING = ((4, 2), (6, 3), (8, 2), (6, 2))  # places of the output and of the window


def bounds(limits: Callable[..., float] | None, monkeypatch: pytest.MonkeyPatch) -> list[tuple[float, float]]:
    """(the bound of an Einsum by limits among one spatial choice at most, the bound by a dive)."""
    found = []
    for (p, r), instances, room in product(SPREADING, (2, 4), (4, 6, 10)):
        sizes = {"p": p, "r": r, "c": 4}
        workload = build_workload("c", [parse_einsum("O[p,c] = I[p+r,c] * F[r]")], sizes, bits={"default": 1})
        levels = (
            Memory("DRAM", read_energy=9.0, write_energy=9.0),
            Fanout("cores", (Axis("x", instances),)),
            Memory("LB", room, read_energy=1.0, write_energy=2.0),
            ComputeUnit("MAC", energy=0.5),
        )
        asked = Problem(workload, Machine("m", levels), Mapspace(), Objective("energy"))
        attempt = searched(asked)
        (signature,) = attempt.signatures
        classes = attempt.classes[signature]
        plain = einsum_bound(attempt.setting, classes)
        with monkeypatch.context() as patched:
            patched.setattr(relaxation, "SLIDING", 1)
            if limits is not None:
                patched.setattr(relaxation, "_climbed", limits)
            found.append((einsum_bound(attempt.setting, classes), plain))
    return found


def test_limits_among_few_spatial_choices_are_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    found = bounds(None, monkeypatch)
    assert all(climbed <= plain * (1 + 1e-9) for climbed, plain in found)
    assert any(climbed < plain * (1 - 1e-3) for climbed, plain in found)  # some stop before the least row


def test_a_limit_that_was_not_tried_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The mistake: the limit within which too many stay is taken for proven, though nothing was looked at."""

    def wrong(setting: Setting, classes: RankClasses, limits: list[float]) -> float:
        return next(n for n in limits if relaxation._spread(setting, classes, n) > 1)

    assert any(climbed > plain * (1 + 1e-9) for climbed, plain in bounds(wrong, monkeypatch))
