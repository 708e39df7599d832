"""Random jobs of a fabric: every operation in every configuration, ragged sizes, one or several regions at once."""

from __future__ import annotations

from random import Random

import numpy as np

from .describe import Configuration, Fabric, Operation
from .streams import Job, Matrix, Operands

MOST_STEPS = 12


def random_job(fabric: Fabric, rng: Random) -> Job:
    """One operation with random operands, each region with its own sizes."""
    operation, configuration = rng.choice(list(fabric.operations()))
    copies = rng.randint(1, configuration.copies(fabric))
    steps, more = rng.randint(1, MOST_STEPS), rng.randint(1, MOST_STEPS)
    tiles = rng.choice((1, 1, 2, 3)) if operation == "hold" else 1
    operands = tuple(_operands(fabric, operation, configuration, rng, steps, more, tiles) for _ in range(copies))
    return Job(fabric, operation, configuration, operands, rng.randint(0, 8))


def _operands(
    fabric: Fabric, operation: Operation, one: Configuration, rng: Random, steps: int, more: int, tiles: int
) -> Operands:
    rows, columns = one.extents(fabric)
    high, wide = rng.randint(1, rows), rng.randint(1, columns)
    element = fabric.element
    made = []
    for _ in range(tiles):
        length = rng.randint(1, steps)
        if operation in ("os", "tile"):
            a, b, sums = _matrix(rng, high, length, element.operand_bits), _matrix(rng, length, wide, 8), None
        else:
            a, b = _matrix(rng, high, wide, element.operand_bits), _matrix(rng, wide, length, element.operand_bits)
            sums = _matrix(rng, high, length, 20) if operation == "hold" and rng.random() < 0.5 else None
        made.append((a, b, sums))
    d: Matrix | None = None
    if operation == "tile":
        d = _matrix(rng, wide, rng.randint(1, more), element.operand_bits)
    elif operation == "column":
        d = _matrix(rng, made[0][1].shape[1], rng.randint(1, columns), element.operand_bits)
    return Operands(tuple(made), d)


def _matrix(rng: Random, rows: int, columns: int, bits: int) -> Matrix:
    half = 1 << (bits - 1)
    return np.array([[rng.randint(-half, half - 1) for _ in range(columns)] for _ in range(rows)], np.int64)
