"""Jobs in Amaranth's own simulator, which needs no other program."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from amaranth.sim import Simulator

from ..describe import OPERATIONS
from ..streams import Job, Matrix, packed, unpacked, words_out
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
    fed = list(zip((top.left, top.left_psum, top.top), packed(job), strict=True))
    width = words_out(job.fabric)
    seen = np.zeros((job.cycles, width), "<u4")
    cycle = 0
    while context.get(top.busy) and cycle < 2 * job.cycles + 1000:
        inside = cycle < job.cycles
        for port, words in fed:
            context.set(port, int.from_bytes(words[cycle].tobytes(), "little") if inside else 0)
        if inside:
            seen[cycle] = np.frombuffer(context.get(top.right_psum).to_bytes(4 * width, "little"), "<u4")
        await context.tick()
        cycle += 1
    return cycle, unpacked(seen, job)
