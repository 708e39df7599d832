"""The second solution for the space `ragged`: every pair of integer tiles of the three operands, tried one by one.

It shares the count of traffic of one tree with the closed form, and nothing of how that finds the best one.
"""

from __future__ import annotations

import numpy as np

from ...errors import BudgetExhausted, SpecError
from ...problem import Problem
from .matmul import OPERANDS, missing
from .method import buffer_values, checked, compulsory

MOST = 20_000_000
"""Pairs of tiles that are tried."""


def least_moved(problem: Problem) -> float:
    """The least traffic of one matrix multiplication, in bits. Raises BudgetExhausted for too many pairs of tiles."""
    (part, *more) = checked(problem)
    if more:
        raise SpecError("a pair of multiplications has no proof in the space ragged")
    workload = problem.workload
    matmul, room = part.matmul(workload), buffer_values(problem)
    if max(matmul.size(x) for x in OPERANDS) > MOST:
        raise BudgetExhausted(float(compulsory(problem)))
    found = []
    for x, (first, second) in OPERANDS.items():
        t1 = np.arange(1, matmul.extent(first) + 1)[:, None]
        t2 = np.arange(1, matmul.extent(second) + 1)[None, :]
        fits = t1 * t2 + np.minimum(t1, t2) + 1 <= room
        trips = {first: -(-matmul.extent(first) // t1), second: -(-matmul.extent(second) // t2)}
        total = np.zeros(fits.shape, dtype=np.int64)
        for operand in OPERANDS:
            visits = np.int64(1) if operand == x else trips[missing(operand)]
            if operand == "C" and problem.machine.partial_sums == "read-modify-write":
                visits = 2 * visits - 1
            total = total + matmul.size(operand) * visits
        found += [int(total[fits].min())] if fits.any() else []
    outer = problem.machine.memories[0]
    bits = outer.bits(workload, part.einsum, part.tensor("A")) * workload.repeat
    return float(min(found) * part.batches(workload) * bits)


def least_possible(problem: Problem) -> float:
    """What every mapping moves, in bits."""
    checked(problem)
    return float(compulsory(problem))
