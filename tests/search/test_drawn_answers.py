"""Drawn mappings: which of them end a search as proven, whom their privates serve, and when machine code is loaded."""

from __future__ import annotations

import time
from contextlib import suppress
from random import Random

import pytest

from einloom.errors import Defect, Ended
from einloom.mapspace.ffm.encoding.alike import alike, copied
from einloom.mapspace.ffm.space import Ffm
from einloom.mapspace.registry import space_for
from einloom.problem import Budget, Guarantee, Problem
from einloom.questions import problem
from einloom.search.evaluator import Evaluator
from einloom.search.exact import Exact, ExactOptions, drawing
from einloom.search.exact.attempt import Solution
from einloom.search.exact.branch_and_bound import Run
from einloom.search.exact.stops import Stopped
from einloom.search.first import FirstMappings
from einloom.search.heuristics.points import Points
from einloom.search.method import Watcher
from optima import enumerated, same
from tiny_problems import tiny_problem


def points_of(asked: Problem) -> Points:
    space = space_for(asked.workload, asked.machine, asked.mapspace)
    assert isinstance(space, Ffm)
    return Points(asked, space, Evaluator(asked, space))


def test_a_drawn_mapping_at_the_bound_is_proven(monkeypatch: pytest.MonkeyPatch) -> None:
    """Listing spatial choices would take seconds; the first mappings of this one cost what every mapping costs."""
    met = []

    class Seen(drawing.AtTheBound):
        def __init__(self, solution: Solution) -> None:
            met.append(solution)
            super().__init__(solution)

    monkeypatch.setattr(drawing, "AtTheBound", Seen)
    monkeypatch.setattr(drawing, "AFTER", 0.0)
    found = Exact().search(problem("matmul", "tileflow-fused", "latency"), Budget(seconds=300))
    assert len(met) == 1 and found.ended is None and found.certificate is not None
    assert found.certificate.guarantee is Guarantee.OPTIMAL
    assert found.certificate.bound == found.value == met[0].value


def test_a_drawn_mapping_above_the_bound_ends_nothing() -> None:
    asked = problem("residual-diamond", "simple:dram_energy=10,glb_bits=512", "edp")
    run = Run(asked, ExactOptions(), Budget(), Watcher())
    assert run.drawing.first is not None and run.drawing.first.draw() is not None
    run.incumbent.bound = run.drawing.first.value * 0.99
    run.drawing.end_if_met()
    run.incumbent.bound = run.drawing.first.value
    with pytest.raises(drawing.AtTheBound):
        run.drawing.end_if_met()


def test_the_better_of_what_was_found_and_drawn_is_the_answer() -> None:
    asked = problem("residual-diamond", "simple:dram_energy=10,glb_bits=512", "edp")
    optimum = Exact().search(asked)
    run = Run(asked, ExactOptions(), Budget(), Watcher())
    assert run.drawing.first is not None
    first = run.drawing.first.draw()
    assert first is not None
    drawn = run.incumbent.solution(first)
    for best in (None, run.incumbent.solution(optimum.mapping), Solution(drawn.value * 2, drawn.cost, drawn.mapping)):
        run.incumbent.best = best
        known = run.drawing.best()
        assert known is not None and known.value == min(drawn.value, drawn.value if best is None else best.value)


class Early(FirstMappings):
    """Draws at once, one mapping, and the search looks only below that."""

    eager, limits = True, True

    def work(self, until: float) -> None:
        self.draw()


LIMITED = (1045, 1050, 1280, 1283, 1396, 1416, 1601, 1743)  # tiny problems whose search looks below what was drawn


def test_a_search_below_what_was_drawn_has_the_optimum(monkeypatch: pytest.MonkeyPatch) -> None:
    """And one that looks below less than that has not: the limit matters."""
    seen, wrong, limit, part = list[float](), 0, vars(drawing.Drawing)["limit"].fget, 1.0
    monkeypatch.setattr(drawing, "SLICE", 0.003)
    monkeypatch.setattr(drawing.Drawing, "limit", property(lambda self: seen.append(limit(self) * part) or seen[-1]))
    for seed in LIMITED:
        asked, part = tiny_problem(seed), 1.0
        best = enumerated(asked)
        found = Exact(drawing=Early).search(asked, Budget(seconds=1000))
        assert found.certificate is not None and found.certificate.guarantee is Guarantee.OPTIMAL
        assert same(found.value, best)
        part = 0.7
        with suppress(Defect):
            wrong += not same(Exact(drawing=Early).search(asked, Budget(seconds=1000)).value, best)
    assert min(seen) < float("inf") and wrong > 1


@pytest.mark.parametrize("workload", ["gpt3-6.7b:tokens=64", "resnet18:stages=1,image=32", "matmuls:n=4"])
def test_einsums_that_are_alike_take_over_privates(workload: str) -> None:
    points, rng, served = points_of(problem(workload, "ffm-edge", "edp")), Random(0), 0
    facts = points.facts
    groups = [group for group in alike(facts) if len(group) > 1]
    for _ in range(20):
        state = points.encoding.sample(rng, 0.0)
        if state is None:
            continue
        for group in groups:
            found = copied(facts, state, group, group[0])
            if not state.owns[group[0]].raised and not any(found.shared[i] for i in group):
                assert points.encoding.fault(found) in (None, "capacity")
                same = [points.cost(found, i) == points.cost(found, group[0]) for i in group]
                served += sum(same) - 1
    assert groups and served > 10


def test_machine_code_is_loaded_only_if_it_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first seconds of a search are no time for a compiler."""
    from einloom.search.heuristics import kernel, machine_code

    asked = problem("matmuls:n=3", "nvdla", "edp")
    drawing, cold = FirstMappings(asked, Watcher(), True), FirstMappings(asked, Watcher(), True)
    monkeypatch.setattr("einloom.search.first.LOADS", 0.0)
    compiles = machine_code.compiled(kernel.anneal)
    for one, there in ((cold, False), (drawing, compiles)):
        monkeypatch.setattr(machine_code, "compiled", lambda _, there=there: there)
        one.work(time.process_time() + 0.3)
        assert one._points is not None and one._points.machine_code is there and one.best is not None
        assert one._fast(one._points) is there
        assert one.draw() is not None


def test_drawing_gets_better() -> None:
    """In 150 pieces the value of the first mapping falls to less than a tenth."""
    asked = problem("gpt3-6.7b:tokens=2048", "tpu-v4i", "edp")
    drawing = FirstMappings(asked, Watcher())
    drawing.work(0.0)
    first = drawing.value
    for _ in range(150):
        drawing.work(0.0)
    assert drawing.draw() is not None and drawing.value < 0.1 * first


def test_a_stop_gives_what_was_drawn() -> None:
    asked = problem("tileflow-cc1", "tileflow-cloud", "edp")
    found = Exact().search(asked, Budget(seconds=1.0))
    assert found.ended is Ended.SECONDS and found.certificate is not None and 0 < found.certificate.bound < found.value


def test_the_end_of_a_search_is_part_of_its_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was drawn took 0.4 s to price as a whole, so will the answer: a search of 2 s ends after 1.2 s, one of 1 s
    after half of them."""
    for seconds, end in ((2.0, 1.2), (1.0, 0.5)):
        run = Run(problem("residual-diamond", "simple", "energy"), ExactOptions(), Budget(seconds), Watcher())
        run.drawing.allowed, now = False, run.stops.started
        assert run.drawing.first is not None
        run.drawing.first.pricing = 0.4
        monkeypatch.setattr(time, "monotonic", lambda now=now, end=end: now + end - 0.01)
        run.drawing.checkpoint()
        monkeypatch.setattr(time, "monotonic", lambda now=now, end=end: now + end + 0.01)
        with pytest.raises(Stopped):
            run.drawing.checkpoint()


def test_reading_is_part_of_a_budget() -> None:
    assert Budget(5.0, 7).after(2.0) == Budget(3.0, 7)
    assert Budget(None, 7).after(2.0) == Budget(None, 7)
    assert 0 < Budget(1.0).after(2.0).seconds <= 0.01  # type: ignore[operator]
