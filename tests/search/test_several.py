"""The best of several problems: a quick look finds what all of them start from, whatever stands first."""

from __future__ import annotations

from dataclasses import replace
from math import inf
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

from einloom.errors import Infeasible
from einloom.machine.levels import Axis, ComputeUnit, Fanout, Machine, Memory
from einloom.mapspace.limits.data import BackLimit, Limits, LoopLimit, Numbers
from einloom.mapspace.registry import space_for
from einloom.mapspace.space import Mapspace
from einloom.problem import Alternative, Budget, Guarantee, Objective, Problem
from einloom.result import Result
from einloom.search import exact, several
from einloom.search.exact import Exact, feasible, first_feasible, least_value
from einloom.search.method import Method, Watcher
from einloom.search.registry import method
from einloom.search.several import Labelled, _Inner, _Several, best_of
from einloom.search.starts import fitting
from einloom.workload.build import build_workload
from einloom.workload.selectors import selector
from einloom.zoo.machine_by_name import load_machine

PAIR = build_workload(
    "pair", ("B[m,n] = A[m,k] * W[k,n]", "C[m,p] = B[m,n] * V[n,p]"), {"m": 8, "k": 4, "n": 8, "p": 4}, bits=8
)
WHOLE = Mapspace(  # B stays on chip, as a whole
    limits=Limits(
        backs=(BackLimit(selector("B"), ("GLB",)),),
        loops=(LoopLimit(selector("B"), ("m", "n"), Numbers(values=(1,))),),
    )
)


def roomy(bits: int) -> Machine:
    """The machine `simple` with a GLB of so many bits."""
    machine = load_machine("simple")
    levels = (replace(x, size=bits) if isinstance(x, Memory) and x.name == "GLB" else x for x in machine.levels)
    return replace(machine, levels=tuple(levels))


def asked(bits: int) -> Problem:
    return Problem(PAIR, roomy(bits), WHOLE, Objective("edp"))


class Stages(Watcher):
    """Hears which problem the search is in."""

    def __init__(self) -> None:
        self.heard: list[str] = []

    def stage(self, name: str, done: int = 0, total: int | None = None) -> None:
        if not self.heard or self.heard[-1] != name:
            self.heard.append(name)


class Ended(Watcher):
    """Asks the search to end."""

    def stopped(self) -> bool:
        return True


def test_a_glance_is_a_mapping_of_the_space_or_nothing() -> None:
    found = first_feasible(asked(4096), Budget(), Watcher())
    assert found is not None
    assert fitting(asked(4096), (found,)) == (found,)
    assert first_feasible(asked(64 * 8 - 1), Budget(), Watcher()) is None
    assert first_feasible(asked(4096), Budget(), Ended()) is None


def test_a_glance_goes_on_to_higher_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is below the bound; twice the bound is not too little here."""
    monkeypatch.setattr(feasible, "FIRST_FEASIBLE", (-0.5, 1.0))
    assert first_feasible(asked(4096), Budget(), Watcher()) is not None


def test_a_problem_without_a_mapping_is_not_searched_first() -> None:
    """B takes 512 bits; where it does not fit, limits are raised only once a mapping of another problem is known."""
    watch = Stages()
    both = (Labelled("small", asked(511)), Labelled("large", asked(4096)))
    found = best_of(both, "exact", Budget(), watch)
    alone = Exact().search(asked(4096))
    assert found.certificate is not None and found.certificate.guarantee is Guarantee.OPTIMAL
    assert found.value == pytest.approx(alone.value, rel=1e-12)
    assert any(name.startswith("large: ") for name in watch.heard)
    assert not any(name.startswith("small: looking below") for name in watch.heard)
    small, large = found.certificate.alternatives
    assert (small.value, large.value) == (None, found.value)
    assert small.bound is not None and small.bound >= found.value * (1 - 1e-9)


def dear(energy: float) -> Labelled:
    """The pair on a machine whose outermost memory takes so much energy."""
    machine = roomy(4096)
    outer = replace(machine.memories[0], read_energy=energy, write_energy=energy)
    levels = tuple(outer if x is machine.memories[0] else x for x in machine.levels)
    return Labelled(f"{energy:g} J", replace(asked(4096), machine=replace(machine, levels=levels)))


def test_the_least_bound_comes_first_and_dismisses_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    each = [dear(energy) for energy in (3000.0, 2000.0, 1000.0, 1500.0)]
    values = [Exact().search(one.problem).value for one in each]
    found = [least_value(one.problem, Budget(), Watcher()) for one in each]
    assert all(whole and 0 < bound <= value * (1 + 1e-9) for (bound, whole), value in zip(found, values, strict=True))
    bounds = {one.problem: (value, True) for one, value in zip(each, values, strict=True)}
    bounds[each[1].problem] = values[2] / 2, False  # the budget ended
    monkeypatch.setattr(exact, "least_value", lambda problem, *rest: bounds[problem])
    searched = list[Problem]()
    right = several.ask

    def seen(method: Method, problem: Problem, *rest: Any) -> Result:
        searched.append(problem)
        return right(method, problem, *rest)

    monkeypatch.setattr(several, "ask", seen)
    best = best_of(each, "exact", Budget(), Watcher())
    assert best.value == pytest.approx(values[2]) and best.certificate is not None
    assert best.certificate.guarantee is Guarantee.OPTIMAL
    assert searched == [each[1].problem]  # what a quick look found of the third is at its bound


def test_a_bound_that_the_budget_cuts_short_is_said() -> None:
    assert least_value(asked(4096), Budget(), Ended())[1] is False
    must = tuple(
        replace(x, size=1, must=selector("A")) if isinstance(x, Memory) and x.name == "GLB" else x
        for x in roomy(1).levels
    )
    nowhere = replace(asked(1), machine=replace(roomy(1), levels=must))
    assert least_value(nowhere, Budget(), Watcher()) == (inf, True)


def test_no_mapping_anywhere_is_said() -> None:
    with pytest.raises(Infeasible, match="with second, as with the others"):
        best_of((Labelled("first", asked(511)), Labelled("second", asked(500))), "exact", Budget(), Watcher())


def test_the_problem_with_the_best_start_is_solved_first() -> None:
    """The cheaper the known mapping, the earlier; problems without one come last, in the order that was asked. Lower
    bounds of all decide, once they are known."""
    plain = replace(asked(4096), mapspace=Mapspace())
    worse, better = space_for(PAIR, plain.machine, plain.mapspace).sample(Random(1)), Exact().search(plain).mapping
    assert worse is not None
    each = [Labelled(f"number {i}", plain) for i in range(5)]
    one = _Several(each, method("exact"), Budget(), Watcher(), [(), (worse,), (), (worse, better), ()])
    assert one.order() == [3, 1, 0, 2, 4]
    assert one.reached[3] < one.reached[1] and one.best is not None and one.best.value == one.reached[3]
    one.least, one.sure = {0: 2.0, 1: 4.0, 2: 1.0, 3: 5.0}, {0, 1, 2, 3}
    assert one.order() == [3, 2, 0, 1, 4]
    value = one.reached[3]
    one.uneven = {0: 0.1 * value, 1: 0.3 * value, 2: 0.3 * value, 3: 0.6 * value, 4: 0.0}
    assert one.order() == [3, 0, 2, 1, 4]
    one.uneven[3] = 0.2 * value  # far below the best mapping, which says little then
    assert one.order() == [0, 3, 2, 1, 4]


def test_with_a_start_for_any_of_the_problems_nobody_looks_around(monkeypatch: pytest.MonkeyPatch) -> None:
    known = first_feasible(asked(4096), Budget(), Watcher())
    assert known is not None
    looked: list[int] = []
    monkeypatch.setattr(_Several, "look_around", lambda self: looked.append(1))
    both = (Labelled("small", asked(600)), Labelled("large", asked(4096)))
    found = best_of(both, "exact", Budget(), Watcher(), (known,))
    assert not looked and found.certificate is not None and found.certificate.guarantee is Guarantee.OPTIMAL
    best_of(both, "exact", Budget(), Watcher())
    assert looked == [1]


def uneven(lanes: int) -> Problem:
    """Seven values on so many lanes: perfect tiles take seven seconds, uneven ones need not."""
    workload = build_workload("pass", ("Z[m] = A[m]",), {"m": 7}, bits=8)
    levels = (Memory("DRAM", None, 1.0, 1.0), Fanout("PE", (Axis("X", lanes),)), ComputeUnit("MAC", throughput=1.0))
    return Problem(workload, Machine("lanes", levels), Mapspace("ragged"), Objective("latency"))


@pytest.mark.parametrize("seconds", [None, 20.0])
def test_uneven_tiles_of_several_begin_with_perfect_ones(seconds: float | None) -> None:
    """Where seconds are counted: without, the answer of a search does not depend on what was found before."""
    problems = [Labelled(f"{lanes} lanes", uneven(lanes)) for lanes in (2, 3)]
    even = [replace(one.problem, mapspace=Mapspace()) for one in problems]
    least = min(Exact().search(problem).value for problem in even)
    several = _Several(problems, method("exact"), Budget(seconds=seconds), Stages(), [(), ()])
    several.begin_evenly()
    values = [
        Result.of(one.problem, each).value for one, mine in zip(problems, several.starts, strict=True) for each in mine
    ]
    assert (not values) if seconds is None else min(values) == pytest.approx(least)
    found = best_of(problems, "exact", Budget(seconds=seconds), Stages())
    assert found.value == 3.0 < least == 7.0
    assert found.certificate is not None and found.certificate.guarantee is Guarantee.OPTIMAL


def test_a_search_that_is_stopped_with_perfect_tiles_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    problems = [Labelled(f"{lanes} lanes", uneven(lanes)) for lanes in (2, 3)]
    asked_of = list[str]()

    def once(self: _Several, i: int, budget: Budget | None) -> Alternative:
        asked_of.append(self.asked[i].problem.mapspace.name)
        if len(asked_of) > 1:
            raise KeyboardInterrupt
        return right(self, i, budget)

    right = _Several.alternative
    monkeypatch.setattr(_Several, "alternative", once)
    found = best_of(problems, "exact", Budget(seconds=20.0), Stages())
    assert asked_of == ["ffm", "ffm"] and found.ended is not None


def test_counts_of_several_searches_are_added() -> None:
    """Each from nothing on."""
    counts: dict[str, int] = {}
    for label in ("one", "other"):
        inner = _Inner(SimpleNamespace(counts=counts), label)  # type: ignore[arg-type]
        inner.count("evaluated", 3)
        inner.count("bound")
    assert counts == {"evaluated": 6, "bound": 2}
