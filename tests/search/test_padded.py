"""Mappings from ranks rounded up: what they are, what is left of them, and that a search begins from them."""

from __future__ import annotations

import pytest

from einloom.cost.evaluate import evaluate
from einloom.mapspace.space import Mapspace
from einloom.problem import Budget, Objective, Problem
from einloom.search.exact import Exact
from einloom.search.exact.branch_and_bound import Run
from einloom.search.exact.head_starts import round_up
from einloom.search.exact.options import ExactOptions
from einloom.search.exact.padded import clipped, grown, padded
from einloom.search.method import Watcher
from einloom.search.starts import misfits
from einloom.workload.build import build_workload
from einloom.workload.einsum import Workload
from einloom.zoo.machine_by_name import load_machine


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
