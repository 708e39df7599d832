"""Jobs in Amaranth's own simulator, which needs no other program."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from amaranth.sim import Simulator

from ..describe import OPERATIONS
from ..streams import Job, Matrix, stimuli
from .fabric import FabricTop


def run_inside(jobs: Sequence[Job]) -> list[tuple[int, Matrix]]:
    """Per job the cycles that the fabric was busy, and the sums that left: [cycle, array, row]."""
    fabric = jobs[0].fabric
    top = FabricTop(fabric)
    found: list[tuple[int, Matrix]] = []

    async def bench(context: Any) -> None:
        await context.tick().repeat(fabric.count * (fabric.rows + fabric.columns) + 4)
        for job in jobs:
            found.append(await _job(context, top, job))

    simulator = Simulator(top)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    return found


async def _job(context: Any, top: FabricTop, job: Job) -> tuple[int, Matrix]:
    element, vectors = job.fabric.element, stimuli(job)
    settings = {
        "operation": OPERATIONS.index(job.operation),
        "configuration": job.fabric.configurations.index(job.configuration),
        "steps": job.steps,
        "more_steps": job.more,
        "tiles": job.tiles,
        "shift": job.shift,
        "start": 1,
    }
    for port, value in settings.items():
        context.set(getattr(top, port), value)
    await context.tick()
    context.set(top.start, 0)
    seen = np.zeros((job.cycles, job.fabric.count, job.fabric.rows), np.int64)
    cycle = 0
    while context.get(top.busy) and cycle < 2 * job.cycles + 1000:
        inside = cycle < job.cycles
        for port, values, bits in (
            (top.left, vectors.left, element.operand_bits),
            (top.left_psum, vectors.psum, element.sum_bits),
            (top.top, vectors.top, element.operand_bits),
        ):
            context.set(port, _number(values[cycle], bits) if inside else 0)
        if inside:
            seen[cycle] = _values(context.get(top.right_psum), element.sum_bits, seen[cycle].shape)
        await context.tick()
        cycle += 1
    return cycle, seen


def _number(values: Matrix, bits: int) -> int:
    mask = (1 << bits) - 1
    return sum((int(v) & mask) << (bits * i) for i, v in enumerate(values.reshape(-1)))


def _values(number: int, bits: int, shape: tuple[int, ...]) -> Matrix:
    half = 1 << (bits - 1)
    flat = [((number >> (bits * i)) % (2 * half) + half) % (2 * half) - half for i in range(int(np.prod(shape)))]
    return np.array(flat, np.int64).reshape(shape)
