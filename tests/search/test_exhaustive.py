"""The brute-force oracle finds what pencil and paper find, and says so when there is nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from cases import cascade, machine
from einloom.cost.evaluate import evaluate, legality
from einloom.errors import BudgetExhausted, Infeasible
from einloom.machine.levels import Axis, ComputeUnit, Fanout, Machine, Memory
from einloom.mapspace.ffm import enumerate as enumerate_
from einloom.mapspace.ffm.enumerate import enumerate_trees
from einloom.mapspace.space import Mapspace
from einloom.problem import Budget, Guarantee, Objective, Problem
from einloom.search.exhaustive import Exhaustive
from einloom.search.method import Recorder
from einloom.workload.einsum import Workload
from einloom.workload.selectors import selector

CHAIN = cascade("E0: T[m] = exp(A[m])\nE1: Z[m] = exp(T[m])", {"m": 2})
MATMUL = cascade("E: Z[m,n] = A[m,k] * B[k,n]", {"m": 2, "n": 2, "k": 1})


def simple(size: int | None, dram: float = 10.0) -> Machine:
    return machine(
        Memory("DRAM", None, dram, dram, must=selector("~intermediate")),
        Memory("GLB", size, 1.0, 1.0, must=selector("unheld")),
        ComputeUnit("MAC", 1.0, 1.0),
    )


def problem(workload: Workload, on: Machine, objective: str = "energy") -> Problem:
    return Problem(workload, on, Mapspace(), Objective(objective))


def test_a_chain_fuses_if_a_value_fits() -> None:
    """Fused: read A and write Z at 10 each, write and read T at 1 each, 2 values: 44, and 4 operations."""
    found = Exhaustive().search(problem(CHAIN, simple(1)))
    assert found.value == 48
    assert found.trees == 176
    assert evaluate(CHAIN, simple(1), found.mapping).energy == found.value


def test_a_chain_stays_apart_if_nothing_fits() -> None:
    """Unfused: 8 accesses of DRAM and 4 operations."""
    found = Exhaustive().search(problem(CHAIN, simple(0)))
    assert found.value == 84
    assert found.legal == 1


def test_capacity_only_removes_trees() -> None:
    values = [Exhaustive().search(problem(CHAIN, simple(size))) for size in (0, 1, 2, 4, None)]
    assert [v.value for v in values] == sorted((v.value for v in values), reverse=True)
    assert [v.legal for v in values] == sorted(v.legal for v in values)
    assert values[-1].legal == values[-1].trees == 176
    fits = sum(not legality(CHAIN, simple(1), tree) for tree in enumerate_trees(CHAIN, simple(1), Mapspace()))
    assert values[1].legal == fits


def test_an_outer_product_reads_each_value_once() -> None:
    """DRAM: A 2, B 2 read, Z 4 written; GLB: A and B written 2 and read 4 each."""
    found = Exhaustive().search(problem(MATMUL, simple(None)))
    assert found.value == 10 * 8 + 2 * (2 + 4) + 4
    assert found.trees == 120


def test_a_store_that_keeps_its_tile_below_an_irrelevant_loop_can_win() -> None:
    """B stays in LB over m while A and Z move through GLB; LB[B] above m would stand above stores of GLB (rule 3)."""
    on = machine(
        Memory("DRAM", None, 100.0, 100.0),
        Memory("GLB", 6, 10.0, 10.0, must=selector("all")),
        Memory("LB", 4, 1.0, 1.0, must=selector("all")),
        ComputeUnit("MAC", 1.0, 1.0),
    )
    found = Exhaustive().search(problem(MATMUL, on))
    # DRAM: 8 accesses; GLB: 4 writes of A and B, 4 reads of them, 4 writes and 4 reads of Z; LB: 4 writes of A and B,
    # 8 reads of them, 4 writes and 4 reads of Z; 4 operations
    assert found.value == 100 * 8 + 10 * (4 + 4 + 4 + 4) + (4 + 8 + 4 + 4) + 4


@pytest.mark.parametrize("objective", ["energy", "latency", "edp"])
def test_the_value_is_what_evaluate_says(objective: str) -> None:
    asked = problem(CHAIN, simple(2), objective)
    found = Exhaustive().search(asked)
    assert found.value == asked.objective.value(evaluate(CHAIN, simple(2), found.mapping))
    assert found == Exhaustive().search(asked)


def test_a_watcher_hears_of_every_better_tree() -> None:
    heard: list[float] = []
    watch = Recorder(lambda now: heard.append(now.best) if now.best is not None else None)
    found = Exhaustive().search(problem(MATMUL, simple(3), "edp"), Budget(), watch)
    assert watch.best == found.value and watch.best_mapping == found.mapping
    assert len(set(heard)) > 1 and heard == sorted(heard, reverse=True)


def test_infeasible_names_a_witness() -> None:
    on = machine(Memory("DRAM"), Memory("GLB", 1, must=selector("all")), ComputeUnit("MAC"))
    with pytest.raises(Infeasible, match="GLB"):
        Exhaustive().search(problem(CHAIN, on))
    with pytest.raises(Infeasible, match="none of 0 trees is legal"):
        Exhaustive().search(problem(CHAIN, machine(Memory("DRAM"), ComputeUnit("MAC", kinds=("multiply",)))))


def test_budget() -> None:
    found = Exhaustive().search(problem(CHAIN, simple(None)), Budget(steps=5))
    assert (found.trees, found.complete) == (5, False)
    with pytest.raises(BudgetExhausted):
        Exhaustive().search(problem(CHAIN, machine(Memory("DRAM", 0), ComputeUnit("MAC"))), Budget(steps=1))


def test_the_budget_is_looked_at_for_every_candidate(monkeypatch: pytest.MonkeyPatch) -> None:
    """Under full use nearly all are refused: 59,000 were looked at between two looks at the budget."""
    chain = cascade(
        "A: T[p,c] = I[p+r,c] * F[r]\nB: O[q,c] = T[q+s,c] * G[s]", {"p": 5, "q": 3, "r": 3, "s": 3, "c": 4}
    )
    fanout = Fanout("F", (Axis("X", 4, use="full"), Axis("Y", 6, use="full")))
    on = machine(Memory("DRAM"), Memory("L2"), fanout, Memory("L1"), ComputeUnit("MAC"))
    between, every, refused = [0], list[int](), enumerate_.problems

    def looked(*given: Any) -> Any:
        between[0] += 1
        every.append(between[0])
        if len(every) == 3000:
            raise InterruptedError
        return refused(*given)

    def ask() -> None:
        between[0] = 0

    monkeypatch.setattr(enumerate_, "problems", looked)
    with pytest.raises(InterruptedError):
        for _ in enumerate_trees(chain, on, Mapspace(), ask):
            pass
    assert set(every) == {1}


def test_it_promises_the_optimum_of_every_named_space() -> None:
    assert Exhaustive.guarantee is Guarantee.OPTIMAL
    perfect = problem(cascade("E: Z[m,n] = A[m] * B[n]", {"m": 3, "n": 3}), simple(3))
    values = [Exhaustive().search(replace(perfect, mapspace=Mapspace(space))).value for space in ("ffm", "ragged")]
    assert values[1] < values[0]
