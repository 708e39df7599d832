"""Times that nothing is added to any more count once (rule ``settled``); what goes wrong where that is forgotten."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from einloom.machine.levels import ComputeUnit, Machine, Memory
from einloom.mapspace.space import Mapspace
from einloom.problem import Objective, Problem
from einloom.search.exact import Exact, ExactOptions, Rules
from einloom.search.exact.concurrent.passes import ConcurrentAttempt
from einloom.search.exact.fusion.explore import Explorer
from einloom.search.exact.numerics.pareto import skyline
from einloom.search.exact.pmappings.cost_to_go import CostToGo
from einloom.search.exact.pmappings.prune import Pruner
from einloom.search.exact.pmappings.rows import ABSORBED, FRESH, OPEN, Rows
from einloom.search.exact.pmappings.sweep import sweep
from einloom.search.method import Watcher
from einloom.workload.build import build_workload
from einloom.workload.notation import parse_einsum
from einloom.workload.selectors import selector

UNPRUNED = ExactOptions(Rules(settled=False), incumbent=False)


def kept_waiting() -> Problem:
    """T = A B on three memories: B stays in LB while A and T move through GLB, which is then busy for 152 s."""
    einsum = parse_einsum("T[m,n] = A[m,k] * B[k,n]")
    workload = build_workload("w", [einsum], {"m": 4, "n": 8, "k": 2}, bits={"default": 1, "A": 3, "B": 3})
    levels = (
        Memory("DRAM", read_throughput=2.0, write_throughput=1.0),
        Memory("GLB", 12, read_throughput=2.0, write_throughput=4.0, ports="separate", must=selector("all")),
        Memory("LB", 4, read_throughput=3.0, write_throughput=2.0, may=selector("weight | output")),
        ComputeUnit("MAC", throughput=0.75),
    )
    return Problem(workload, Machine("m", levels), Mapspace(), Objective("latency"))


def optimum(options: ExactOptions | None = None) -> float:
    return Exact(options).search(kept_waiting()).value


def test_the_optimum_is_the_same_without_the_rule() -> None:
    assert optimum() == optimum(UNPRUNED) == optimum(ExactOptions(incumbent=False)) == 152


def test_columns_taken_as_final_too_early_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stores of memories further out still add to the ports that the compared rows use."""
    true = Pruner.coming

    def coming(self: Pruner, rows: Rows, memory: int, base: bool = False) -> CostToGo | None:
        found = true(self, rows, memory, base)
        return None if found is None else CostToGo(np.zeros_like(found.grows), found.least)

    monkeypatch.setattr(Pruner, "coming", coming)
    assert optimum(ExactOptions(incumbent=False)) == 168


def test_forgotten_charges_that_are_put_off_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A store that keeps its tile is charged when a loop further out moves it: till then its columns grow."""
    true = Pruner.coming

    def coming(self: Pruner, rows: Rows, memory: int, base: bool = False) -> CostToGo | None:
        charged = rows.take(np.arange(len(rows)))
        charged.marks[:, [OPEN, FRESH, ABSORBED]] = 0
        return true(self, charged, memory, base)

    monkeypatch.setattr(Pruner, "coming", coming)
    assert optimum(ExactOptions(incumbent=False)) == 168


def test_members_of_groups_are_compared_by_every_time() -> None:
    """Their seconds on one component are added to those of other Einsums, final or not."""
    problem = replace(kept_waiting(), mapspace=Mapspace(concurrent="any"))
    attempt = ConcurrentAttempt(problem, ExactOptions(), Watcher(), {}, lambda: None)
    limits = np.full(len(attempt.setting.columns), np.inf)
    member = attempt.groups.explorer(attempt.signatures[0], limits, attempt.groups.kind(None))
    member.wanted = {}  # a single Einsum is no member of any group
    alone = Explorer(attempt.setting, attempt.classes[attempt.signatures[0]], limits, {})
    assert compared(alone) < compared(member) == len(attempt.setting.columns)


def compared(explorer: Explorer) -> int:
    """Columns of a row with nothing to come that can differ from row to row."""
    (option,) = explorer.signature.units
    expansion = next(explorer._batches(option, fused=False))
    cost = np.arange(12.0).reshape(2, -1)[:, : len(expansion.prices.links.columns)]
    rows = replace(sweep(expansion).bases[0].take(np.zeros(2, np.int64)), cost=cost)
    return expansion.pruner.values(rows, expansion.pruner.coming(rows, 0)).shape[1]


def test_final_times_count_once() -> None:
    """Joules, a port that grows, one that does not, compute; the port gets at least 3 s more."""
    cost = np.array([[1.0, 2.0, 8.0, 9.0], [1.0, 2.0, 9.0, 4.0], [1.0, 7.0, 1.0, 2.0], [2.0, 1.0, 10.0, 1.0]])
    coming = CostToGo(np.array([[False, True, False, False]]), np.array([[0.0, 3.0, 0.0, 0.0]]))
    settled = coming.settled(cost, [1, 2, 3])
    assert settled.tolist() == [[1, 2, 0, 0, 9], [1, 2, 0, 0, 9], [1, 7, 0, 0, 10], [2, 1, 0, 0, 10]]
    keys = np.zeros(4, np.int64)
    assert set(skyline(keys, settled).tolist()) == {0, 3}
    assert len(skyline(keys, cost)) == 4


def test_the_rule_leaves_fewer_rows() -> None:
    """Counted on the problem above: rows that were looked at with the rule and without."""
    found = [Exact(ExactOptions(Rules(settled=on), incumbent=False)).search(kept_waiting()) for on in (True, False)]
    counts = [result.certificate.counts["evaluated"] for result in found if result.certificate is not None]
    assert counts[0] < counts[1]
