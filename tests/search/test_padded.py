"""Mappings from ranks rounded up: what they are, what is left of them, and that a search begins from them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from einloom.cost.evaluate import evaluate
from einloom.machine.levels import Axis, ComputeUnit, Fanout, Level, Machine, Memory
from einloom.mapspace.limits.data import Limits
from einloom.mapspace.space import Mapspace
from einloom.problem import Budget, Objective, Problem
from einloom.search.exact import Exact
from einloom.search.exact.branch_and_bound import Run
from einloom.search.exact.head_starts import round_up
from einloom.search.exact.options import ExactOptions
from einloom.search.exact.padded import clipped, grown, on_one_axis, padded
from einloom.search.method import Watcher
from einloom.search.starts import misfits
from einloom.workload.build import build_workload
from einloom.workload.einsum import Workload
from einloom.zoo.machine_by_name import load_machine


def arrays(*sizes: int) -> Machine:
    """A memory above so many fanouts of one axis, each behind the one before, with a buffer between them."""
    levels: list[Level] = [Memory("DRAM", None, 1.0, 1.0, read_throughput=64.0, write_throughput=64.0)]
    for number, size in enumerate(sizes):
        levels += [Fanout(f"F{number}", (Axis(f"x{number}", size),)), Memory(f"B{number}", 4096, 1.0, 1.0)]
    return Machine("arrays", (*levels, ComputeUnit("MAC", 1.0, 1.0)))


def attention(tokens: int) -> Workload:
    einsums = (
        "QK[h,m,p] = Q[h,m,e] * K[h,p,e]",
        "SM[h,m,p] = softmax(QK[h,m,p])",
        "AV[h,m,f] = SM[h,m,p] * V[h,p,f]",
    )
    return build_workload("attention", einsums, {"h": 2, "m": tokens, "p": tokens, "e": 16, "f": 16}, bits=16)


def test_ranks_are_rounded_up_together() -> None:
    found = [dict(grown(attention(13), wider)) for wider in padded(attention(13))]
    assert found == [{"m": 14, "p": 14}, {"m": 16, "p": 16}]
    wider = next(padded(attention(13)))
    assert wider.tensor("SM").shape == (2, 14, 14)
    assert wider.tensor("V").shape == (2, 14, 16)


def test_a_rank_that_windows_move_stays() -> None:
    sizes = {"c": 5, "k": 7, "p": 11, "r": 3, "n": 13}
    einsums = ("O[k,p] = I[c,p+r] * W[k,c,r]", "Z[n,p] = O[k,p] * V[n,k]")
    workload = build_workload("convolution", einsums, sizes, bits=8)
    changed = {v for wider in padded(workload) for v, _ in grown(workload, wider)}
    assert changed == {"c", "k", "n"}


@pytest.mark.parametrize("machine", ["nvdla", "ffm-edge", "tpu-v4i"])
def test_what_is_cut_off_is_a_mapping_of_the_problem(machine: str) -> None:
    workload, built = attention(13), load_machine(machine)
    problem = Problem(workload, built, Mapspace("ragged"), Objective("edp"))
    best = Exact().search(problem)
    for wider in padded(workload):
        found = Exact().search(Problem(wider, built, Mapspace("ffm"), Objective("edp")))
        mapping = clipped(found.mapping, wider, workload)
        assert not misfits(problem, mapping)
        cost = evaluate(workload, built, mapping)
        assert best.cost.edp * (1 - 1e-9) <= cost.edp < found.cost.edp


def test_a_search_begins_from_the_best_of_them() -> None:
    workload, machine = attention(37), load_machine("nvdla")
    problem = Problem(workload, machine, Mapspace("ragged"), Objective("edp"))
    run = Run(problem, ExactOptions(), Budget(), Watcher())
    round_up(run, float("inf"))
    values = []
    for wider in padded(workload):
        found = Exact().search(Problem(wider, machine, Mapspace("ffm"), Objective("edp")))
        values.append(evaluate(workload, machine, clipped(found.mapping, wider, workload)).edp)
    perfect = Exact().search(Problem(workload, machine, Mapspace("ffm"), Objective("edp")))
    assert run.incumbent.value == pytest.approx(min(values), rel=1e-12)
    assert run.incumbent.value < perfect.cost.edp / 2


def test_ranks_that_an_axis_cuts_unevenly_stay_off_the_others() -> None:
    """13 by 11 by 7 on three axes: what is best of 14 by 12 by 8 spreads ranks twice, so it is no mapping of the
    problem when cut off; with each rank on one axis it is."""
    einsums, sizes = ("Z[m,n] = A[m,k] * B[k,n]",), {"m": 13, "n": 11, "k": 7}
    workload, machine = build_workload("odd", einsums, sizes, bits=8), arrays(4, 4, 2)
    problem = Problem(workload, machine, Mapspace("ragged"), Objective("latency"))
    for wider in padded(workload):
        even = Problem(wider, machine, Mapspace("ffm"), Objective("latency"))
        found = Exact().search(even).mapping
        if misfits(problem, clipped(found, wider, workload)):
            break
    else:
        raise AssertionError("no rank is spread twice")
    apart = on_one_axis(found, wider, workload, machine)
    for rank, _ in grown(workload, wider):
        assert sum((rank,) == limit.variables for limit in apart) >= len(machine.axes) - 1
    limited = Exact().search(replace(even, mapspace=Mapspace("ffm", limits=Limits(axes=apart))))
    assert not misfits(problem, clipped(limited.mapping, wider, workload))
    run = Run(problem, ExactOptions(), Budget(), Watcher())
    round_up(run, float("inf"))
    assert run.incumbent.best is not None and not misfits(problem, run.incumbent.best.mapping)
