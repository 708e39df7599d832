"""A mapping of a fused pair as what the hardware runs: a job per block of the intermediate, and the sums put together.

Comes in: the tree that `exact` found, and the operands. Goes out: jobs of operation ``tile`` in the configuration,
block by block; `assembled` adds what they give, as the memory does with partial sums.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np

from einloom.fabric.describe import Configuration, Fabric
from einloom.fabric.machine import tile_of
from einloom.fabric.streams import Job, Matrix, Operands, quantised
from einloom.mapping.tree import Mapping
from einloom.workload.einsum import Workload


def fused_jobs(
    fabric: Fabric,
    one: Configuration,
    workload: Workload,
    mapping: Mapping,
    operands: tuple[Matrix, Matrix, Matrix],
    shift: int,
) -> list[Job]:
    """Jobs for E = q(A B) D, each with as many blocks as the configuration has copies of its region."""
    a, b, d = operands
    high, wide = tile_of(workload, mapping)
    blocks = list(product(range(0, a.shape[0], high), range(0, b.shape[1], wide)))
    each = [Operands(((a[i : i + high], b[:, j : j + wide], None),), d[j : j + wide]) for i, j in blocks]
    copies = one.copies(fabric)
    return [Job(fabric, "tile", one, tuple(each[n : n + copies]), shift) for n in range(0, len(each), copies)]


def assembled(
    workload: Workload, mapping: Mapping, operands: tuple[Matrix, Matrix, Matrix], answers: Sequence[Matrix]
) -> Matrix:
    """E of the answers of all jobs in their order: blocks of one row of blocks are added."""
    a, b, d = operands
    high, wide = tile_of(workload, mapping)
    found = np.zeros((a.shape[0], d.shape[1]), np.int64)
    starts = [i for i in range(0, a.shape[0], high) for _ in range(0, b.shape[1], wide)]
    for i, answer in zip(starts, answers, strict=True):
        found[i : i + high] += answer
    return found


def column_jobs(fabric: Fabric, one: Configuration, operands: tuple[Matrix, Matrix, Matrix], shift: int) -> list[Job]:
    """Jobs for E = q(A B) D by column: blocks of rows, each with the whole of B and D streaming past.

    The schedule is the closed form's (`traffic.fused_choices`); K and N may be no wider than a region.
    """
    a, b, d = operands
    high, _ = one.extents(fabric)
    each = [Operands(((a[i : i + high], b, None),), d) for i in range(0, a.shape[0], high)]
    copies = one.copies(fabric)
    return [Job(fabric, "column", one, tuple(each[n : n + copies]), shift) for n in range(0, len(each), copies)]


def reference(operands: tuple[Matrix, Matrix, Matrix], shift: int, bits: int) -> Matrix:
    """E = q(A B) D by NumPy alone."""
    a, b, d = operands
    return np.asarray(quantised(a @ b, shift, bits) @ d, np.int64)
