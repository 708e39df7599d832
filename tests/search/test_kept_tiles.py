"""Own stores above a split that keep their tile over loops that they cannot stand above."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from einloom.errors import Defect
from einloom.machine.levels import Axis, ComputeUnit, Fanout, Machine, Memory
from einloom.mapspace.ffm.rules import outside
from einloom.mapspace.space import Mapspace
from einloom.problem import Objective, Problem
from einloom.search.exact import Exact
from einloom.search.exact.fusion.templates import Stacker
from einloom.search.exact.joining.join import Joiner
from einloom.search.exhaustive import Exhaustive
from einloom.workload.build import build_workload
from einloom.workload.notation import parse_einsum
from einloom.workload.selectors import selector


def cascade(texts: tuple[str, ...], sizes: dict[str, int], *levels: Memory | Fanout, objective: str) -> Problem:
    workload = build_workload("w", [parse_einsum(text) for text in texts], sizes, bits={"default": 1})
    return Problem(workload, Machine("m", (*levels, ComputeUnit("MAC"))), Mapspace(), Objective(objective))


def sums() -> Problem:
    """Z is the sum over n of what is made of T in the buffer of each of two cores; it fits beside T and one operand."""
    dram = Memory("DRAM", None, 5.0, 5.0, read_throughput=1.0, write_throughput=1.0)
    cores, buffer = Fanout("cores", (Axis("x", 2, use="full"),)), Memory("LB", 3, 1.0, 1.0, must=selector("all"))
    texts = ("T[n] = exp(A[n])", "Z[m] = T[n] * C[m,n]")
    return cascade(texts, {"m": 1, "n": 4}, dram, cores, buffer, objective="latency")


def apart() -> Problem:
    """S is in a buffer of all cores, T in one of each: the split for S comes between the loop and the store of B."""
    texts = ("S[m,n] = exp(A[m,n])", "T[m,n] = S[m,n] * B[m]", "Z[m,n] = exp(T[m,n])")
    shared, cores = Memory("GLB", 2, 1.0, 1.0, may=selector("S")), Fanout("cores", (Axis("x", 2, use="full"),))
    levels = (Memory("DRAM", None, 100.0, 100.0), shared, cores, Memory("LB", 2, 1.0, 1.0, may=selector("B | T")))
    return cascade(texts, {"m": 1, "n": 4}, *levels, objective="energy")


def test_a_sum_is_kept_in_each_core() -> None:
    found = Exact().search(sums())
    assert found.value == Exhaustive().search(sums()).value == 9
    lines = found.mapping_text.splitlines()
    assert lines[1:5] == ["for n in 2", "par n in 2 @ x", "store LB: T Z", "split sequential:"]
    assert not outside(sums().workload, sums().machine, sums().mapspace, found.mapping)


def test_without_it_the_optimum_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    never: Callable[..., bool] = lambda at, loop: False  # noqa: E731
    monkeypatch.setattr(Stacker, "_barred", staticmethod(never))
    assert Exact().search(sums()).value == 11


def test_a_split_in_between_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """1016 J by the enumeration of all trees (`test_all_trees`); a search that does not ask where splits stand believes
    in 922 J, for a tree that costs 1024."""
    assert Exact().search(apart()).value == 1016
    monkeypatch.setattr(Joiner, "_asked", lambda self, before, block, split: frozenset())
    with pytest.raises(Defect, match=r"the search says energy 922\.0, the mapping found has 1024\.0"):
        Exact().search(apart())


@pytest.mark.slow
def test_all_trees() -> None:
    assert Exhaustive().search(apart()).value == 1016
