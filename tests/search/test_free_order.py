"""`order: free`: the join over sets of Einsums finds the least of every order, by every route."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest

from einloom.errors import SpecError
from einloom.machine.levels import ComputeUnit, Machine, Memory
from einloom.mapspace.space import Mapspace
from einloom.problem import Objective, Problem
from einloom.search.exact import Exact, ExactOptions, attempt
from einloom.search.exact.bounds.arc_consistency import Rest
from einloom.search.exact.einsums import orders as steps
from einloom.search.exact.einsums.orders import JoinStep, layers
from einloom.search.exact.joining.join import Joiner
from einloom.workload.build import build_workload
from einloom.workload.einsum import Workload
from einloom.workload.orders import orders, reordered
from einloom.workload.selectors import selector
from einloom.zoo.workload_by_name import load_workload
from optima import best_of_all, optimum, optimum_or_defect, same

BETWEEN = ("T[m] = exp(A[m])", "V[m] = exp(B[m])", "Z[m] = exp(T[m])")
ATTENTION = (
    "Q[m,e] = X[m] * U[e]",
    "S[m,p] = Q[m,e] * K[p,e]",
    "V[p] = X[p] * W[]",
    "E[m,p] = exp(S[m,p])",
    "Z[m] = E[m,p] * V[p]",
)
READERS = ("T[m] = X[m] * E[]", "Y[m] = Y0[m] * F[]", "Z[m] = T[m] * E[]", "R[m] = Y[m] * E[]")


def asked(einsums: tuple[str, ...], glb: Memory, goal: str = "energy", m: int = 4, **sizes: int) -> Problem:
    """A cascade on DRAM and one buffer, its Einsums in any order."""
    workload = build_workload("w", list(einsums), {"m": m, **sizes}, bits=8)
    dram = Memory("DRAM", None, 20.0, 20.0, read_throughput=1.0, write_throughput=1.0)
    return Problem(
        workload, Machine("m", (dram, glb, ComputeUnit("MAC", 1.0, 1.0))), Mapspace(order="free"), Objective(goal)
    )


def buffer(bits: int, may: str = "all") -> Memory:
    return Memory("GLB", bits, 1.0, 1.0, 4.0, 4.0, may=selector(may))


SMALL = {
    "between": asked(BETWEEN, buffer(8, "T"), m=2),
    "between whole": asked(BETWEEN, buffer(16, "T | V"), m=2),
    "two readers": asked(READERS[:3], buffer(16, "T | E"), m=2),
}
MIDDLE = {
    "attention": asked(ATTENTION, buffer(60), m=4, p=4, e=1),
    "attention edp": asked(ATTENTION, buffer(30), "edp", m=2, p=2, e=1),
    "readers": asked(READERS, buffer(16), m=2),
    "uneven": replace(asked(BETWEEN, buffer(24), m=5), mapspace=Mapspace("ragged", order="free")),
    "uneven edp": replace(asked(BETWEEN, buffer(24), "edp", m=5), mapspace=Mapspace("ragged", order="free")),
}


@cache
def best_of(name: str) -> float | None:
    """The optimum of one of the problems above, if this is first asked for before anything is changed."""
    return optimum({**SMALL, **MIDDLE}[name])


def in_order(problem: Problem, workload: Workload) -> Problem:
    return replace(problem, workload=workload, mapspace=replace(problem.mapspace, order="program"))


@pytest.mark.parametrize("name", SMALL)
def test_the_optimum_is_the_least_of_all_trees_of_all_orders(name: str) -> None:
    problem = SMALL[name]
    least = min(v for w in orders(problem.workload) if (v := best_of_all(in_order(problem, w))) is not None)
    assert same(optimum(problem), least) and same(best_of_all(problem), least)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow if "attention" in name else ()) for name in MIDDLE]
)
def test_the_optimum_is_that_of_the_best_order(name: str) -> None:
    problem = MIDDLE[name]
    alone = [optimum(in_order(problem, workload)) for workload in orders(problem.workload)]
    least = min(value for value in alone if value is not None)
    assert same(best_of(name), least)
    assert same(optimum(replace(problem, workload=list(orders(problem.workload))[-1])), least)


def test_the_order_given_costs_and_the_free_one_does_not() -> None:
    problem = MIDDLE["attention"]
    bad, good = Exact().search(in_order(problem, problem.workload)), Exact().search(problem)
    assert good.value < bad.value
    assert good.mapping.einsums != tuple(problem.workload.names) and good.certificate is not None
    assert good.certificate.guarantee.name == "OPTIMAL" and "any order" in good.certificate.mapspace
    again = reordered(problem.workload, good.mapping.einsums)
    assert same(optimum(in_order(problem, again)), good.value)


@pytest.mark.parametrize("name", [pytest.param("attention edp", marks=pytest.mark.slow), "readers", "uneven edp"])
def test_every_route_finds_it(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without consistency, without limits, and with what every state costs at least to complete."""
    problem, best = MIDDLE[name], best_of(name)
    for rule in ("consistency", "completions", "incumbent"):
        assert same(optimum(problem, replace(ExactOptions(), **{rule: False})), best), rule
    monkeypatch.setattr(attempt, "WORTH", 0)
    assert same(optimum(problem), best)


def test_sets_of_einsums() -> None:
    workload = load_workload("gpt3-6.7b:batch=1,tokens=2048")
    found = layers(workload, free=True)
    assert len(found) == 10 and sum(map(len, found)) == 16
    paths = {0: 1}
    for layer in found:
        paths = {done: sum(paths[step.before] for step in ways) for done, ways in layer.items()}
    assert paths == {2**10 - 1: 10} and len(list(orders(workload))) == 10
    assert [len(layer) for layer in layers(workload, free=False)] == [1] * 10


def test_what_is_not_searched_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps, "MOST", 4)
    with pytest.raises(SpecError, match="at most 4 sets of Einsums"):
        Exact().search(SMALL["between"])


def test_where_the_first_reader_decides_it_is_refused() -> None:
    """A value of E has 8 bits for an Einsum that has it as input, and 16 for one that has it as weight."""
    einsums = ("Y[m] = X[m] * E[m]", "Z[m] = E[m] * W[m]")
    glb = Memory("GLB", 64, 1.0, 1.0, backs=selector("all"))
    problem = asked(einsums, glb)
    sized = replace(problem.machine.memories[0], size=4096, widths=((selector("weight"), 16),))
    machine = replace(problem.machine, levels=(sized, *problem.machine.levels[1:]))
    with pytest.raises(SpecError, match="first reader of E"):
        Exact().search(replace(problem, machine=machine))
    chained = build_workload("w", ["Y[m] = X[m] * E[m]", "Z[m] = E[m] * Y[m]"], {"m": 4}, bits=8)
    Exact().search(replace(problem, machine=machine, workload=chained))  # there is one order


AFTER = Rest.after


def _as_in_the_program(self: Joiner, step: JoinStep, tensor: str) -> bool:
    """A tensor is over with its last reader in the program, whoever has run."""
    return self._readers.get(tensor, 0) >> (step.position + 1) > 0


MISTAKES = {
    "joining.join.Joiner.still_needed": (_as_in_the_program, "attention"),
    # bounds of what is behind in the program, whoever has run
    "einsums.orders.JoinStep.as_written": (True, "between"),
    # as if none had run
    "bounds.arc_consistency.Rest.after": (lambda self, done: AFTER(self, 0), "between"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_planted_mistake_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    mistake, asked_of = MISTAKES[name]
    best = best_of(asked_of)
    monkeypatch.setattr(f"einloom.search.exact.{name}", mistake)
    assert not same(optimum_or_defect({**SMALL, **MIDDLE}[asked_of]), best)
