"""A network's first mapping: each Einsum alone. It is a mapping of the space, and proofs do not depend on it."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from einloom.api import problem
from einloom.errors import Infeasible
from einloom.mapping.text import print_mapping
from einloom.mapspace.ffm.encoding import Encoding
from einloom.mapspace.ffm.encoding.alike import alike
from einloom.problem import Budget, Objective
from einloom.search.checked import priced
from einloom.search.exact import Exact
from einloom.search.exact import branch_and_bound as engine
from einloom.search.exact.unfused import unfused
from einloom.search.method import Watcher
from optima import optimum
from tiny_problems import tiny_problem

GOALS = ("energy", "latency", "edp")


def attempt_of(asked: engine.Problem) -> engine.Attempt:
    attempt = engine.Run(asked, engine.ExactOptions(), Budget(), Watcher())._pass()
    attempt.begin()
    return attempt


@pytest.mark.parametrize("first", range(0, 30, 10))
def test_it_is_a_mapping_and_no_better_than_the_best(first: int) -> None:
    found = 0
    for seed in range(first, first + 10):
        asked = replace(tiny_problem(seed), objective=Objective(GOALS[seed % 3]))
        best = optimum(asked)
        try:
            solution = unfused(attempt_of(asked))
        except Infeasible:
            continue
        found += 1
        said = solution.value * asked.workload.repeat**asked.objective.degree
        priced(asked, solution.mapping, said)
        assert best is not None and said >= best * (1 - 1e-9)
        top = print_mapping(solution.mapping, asked.workload).splitlines()[0]
        assert set(asked.workload.intermediates) <= set(top.split(": ")[1].split())
    assert found >= 5


def test_optima_do_not_depend_on_it(monkeypatch: pytest.MonkeyPatch) -> None:
    problems = [replace(tiny_problem(seed), objective=Objective(GOALS[seed % 3])) for seed in range(40, 64)]
    without = [optimum(asked) for asked in problems]
    used: list[float] = []

    def seen(attempt: engine.Attempt) -> engine.Solution:
        used.append(0.0)
        return unfused(attempt)

    monkeypatch.setattr(engine, "SHORT", 1)
    monkeypatch.setattr(engine, "unfused", seen)
    assert [within_seconds(asked) for asked in problems] == without and len(used) > 10


def within_seconds(asked: engine.Problem) -> float | None:
    try:
        return Exact().search(asked, Budget(seconds=engine.HASTE - 1)).value
    except Infeasible:
        return None


def test_a_network_is_drawn_once_for_einsums_that_are_alike() -> None:
    asked = problem("resnet18", "nvdla", "energy")
    encoding = Encoding(asked.workload, asked.machine, asked.mapspace)
    state = encoding.unfused(Random(0))
    assert state is not None and encoding.fault(state) is None
    groups = alike(encoding.facts)
    assert any(len(group) > 1 for group in groups)
    for group in groups:
        mine = {tuple(m for m, _ in state.owns[i].stores) for i in group}
        assert len(mine) == 1
