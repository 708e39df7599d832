"""The machine code of `ragged`: every burst ends in states that keep the rules, at the price of `evaluate`."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from einloom.cost.traffic.even import EvenPaths
from einloom.machine.levels import Machine
from einloom.mapspace.ffm.encoding import Encoding
from einloom.mapspace.ffm.encoding.state import word
from einloom.mapspace.space import Mapspace
from einloom.problem import Objective, Problem
from einloom.search.heuristics import uneven_kernel
from einloom.search.heuristics.bursts import Bursts
from einloom.workload.build import build_workload
from einloom.workload.einsum import Workload
from einloom.zoo.machine_by_name import load_machine
from kernels import kernel_price

ATTENTION = ("QK[h,m,p] = Q[h,m,e] * K[h,p,e]", "SM[h,m,p] = softmax(QK[h,m,p])", "AV[h,m,f] = SM[h,m,p] * V[h,p,f]")
REST = (1.0, 1.0, 0.0)


def attention(tokens: int) -> Workload:
    return build_workload("attention", ATTENTION, {"h": 3, "m": tokens, "p": tokens, "e": 16, "f": 16}, bits=16)


def bursts(workload: Workload, machine: Machine) -> tuple[Encoding, Bursts]:
    problem = Problem(workload, machine, Mapspace("ragged"), Objective("edp"))
    encoding = Encoding(workload, machine, problem.mapspace)
    return encoding, Bursts(problem, encoding.facts)


@pytest.mark.slow
@pytest.mark.parametrize("machine", ["nvdla", "tpu-v4i", "ffm-edge"])
@pytest.mark.parametrize("tokens", [29, 30])
def test_bursts_keep_the_rules_and_the_price(machine: str, tokens: int) -> None:
    encoding, many = bursts(attention(tokens), load_machine(machine))
    rng, uneven, legal = Random(tokens), 0, 0
    for _ in range(25):
        state = encoding.sample(rng)
        for i in range(0 if state is None else 3):
            assert state is not None
            if not many.able(state, i):
                continue
            one = EvenPaths(encoding.workload, encoding.machine, encoding.workload.einsums[i].name)
            alone = one.cost(word(encoding.facts, state, i))
            assert kernel_price(many, i, word(encoding.facts, state, i))[:2] == pytest.approx(
                (alone.energy, alone.latency), rel=1e-12
            )
            found = many.run(state, i, REST, 200, 10**9, 0.05, rng)
            for value, after in ((found.value, found.state), (found.best_value, found.best)):
                assert encoding.fault(after) is None
                price = one.cost(word(encoding.facts, after, i))
                assert value == pytest.approx((REST[0] + price.energy) * (REST[1] + price.latency), rel=1e-10)
                uneven += bool(after.owns[i].covers)
            legal += found.legal
    assert uneven > 20 and legal > 1000


def test_pieces_are_those_of_chains_of_loops() -> None:
    """The pure Python of the kernel: 7 in tiles of 3, then of 1; one instance of three takes the first tile."""
    items = np.array([(uneven_kernel.FOR, 0, 3, 0), (uneven_kernel.PAR, 0, 3, 0)])
    whole, total, kept, joined = np.array([7]), np.array([9]), np.zeros(2, dtype=np.bool_), np.zeros(1, dtype=np.bool_)

    def pieces(below: int, has: bool, mode: int) -> float:
        count = uneven_kernel.pieces.py_func
        found: float = count(items, below, 0, 0, has, mode, joined, kept, whole, total)
        return found

    assert (pieces(1, False, 4), pieces(2, False, 4), pieces(2, True, 4)) == (3, 7, 7)
    assert (pieces(2, True, 5), pieces(2, False, 5), pieces(1, False, 6)) == (3, 3, 1)


@pytest.mark.parametrize(("total", "kept"), [(8, False), (9, True), (14, False), (21, False)])
def test_the_last_tile_is_not_empty_and_instances_are_balanced(total: int, kept: bool) -> None:
    """7 over 3 instances below a loop of so many tiles of 3 or 7, or on 2 instances of 4."""
    rows = {
        8: [(uneven_kernel.PAR, 0, 2, 0), (uneven_kernel.PAR, 0, 4, 1)],
        9: [(uneven_kernel.FOR, 0, 3, 0), (uneven_kernel.PAR, 0, 3, 0)],
        14: [(uneven_kernel.FOR, 0, 2, 0), (uneven_kernel.FOR, 0, 7, 0)],
        21: [(uneven_kernel.FOR, 0, 7, 0), (uneven_kernel.PAR, 0, 3, 0)],
    }
    items, shares = np.array(rows[total]), np.zeros(8, dtype=np.int64)
    assert uneven_kernel.fair.py_func(items, 2, np.array([7]), np.array([total]), shares) is kept
