"""Chains of two convolutions whose image is cut, with uneven tiles: `exact` finds what all trees say."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from einloom.dataflows.rewrites import rewrite
from einloom.machine.levels import Axis, ComputeUnit, Fanout, Machine, Memory
from einloom.mapspace.space import Mapspace
from einloom.problem import Objective, Problem
from einloom.workload.build import build_workload
from einloom.workload.selectors import selector
from optima import enumerated, optimum, same


def cut_problem(seed: int) -> Problem:
    """One axis of an image, cut in some rows each or not at all, on a few lanes without a store below."""
    rng = Random(f"cut {seed}")
    rows, taps = rng.choice((5, 7, 9, 10)), rng.choice((1, 2))
    sizes = {"y": rows + taps - 1, "r": rng.choice((1, 2)), "h": rows, "u": taps, **dict.fromkeys("xlscwkv", 1)}
    texts = ("T[y,x,l] = I[y+r,x+s,c] * A[l,r,s,c]", "Z[h,w,k] = T[h+u,w+v,l] * B[k,u,v,l]")
    chain = build_workload("chain", texts, sizes, bits=rng.choice((1, 2)))
    workload = rewrite(chain, "windows", height=rng.choice([n for n in range(1, rows) if rows % n == 0]), width=1)
    bits = sum(tensor.size * tensor.bits for tensor in workload.tensors)
    speeds = {"read_throughput": float(rng.randint(1, 8)), "write_throughput": float(rng.randint(1, 8))}
    outer = Memory("DRAM", None, 5.0, 7.0, **speeds, may=selector("~T" if rng.random() < 0.7 else "all"))
    must = selector("T" if rng.random() < 0.8 else "nothing")
    inner = Memory("GLB", rng.choice((None, rng.randint(2, bits))), 1.0, 1.0, 6.0, 8.0, must=must, may=selector("T"))
    multicast = selector(rng.choice(("all", "nothing")))
    lanes = Fanout("F", (Axis("X", rng.choice((2, 3, 4, 4)), use=rng.choice(("any", "full")), multicast=multicast),))
    machine = Machine("lanes", (outer, inner, lanes, ComputeUnit("MAC", throughput=rng.choice((0.5, 1.0)), energy=1.0)))
    space = Mapspace("ragged", rng.choice((None, None, 1)))
    return Problem(workload, machine, space, Objective(rng.choice(("latency", "edp", "energy"))))


@pytest.mark.parametrize("seed", [39, 42])
def test_exact_is_what_all_trees_say_of_cut_images(seed: int) -> None:
    problem = cut_problem(seed)
    best = optimum(problem)
    assert best is not None and same(best, enumerated(problem))
    assert problem.workload.extents["h_i"] > 1
    perfect = optimum(replace(problem, mapspace=replace(problem.mapspace, name="ffm")))
    assert perfect is None or best < perfect
