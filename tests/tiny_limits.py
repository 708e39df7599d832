"""Random limits of a mapspace for the tiny problems of `tiny_problems`."""

from __future__ import annotations

from random import Random

from einloom.machine.levels import Machine
from einloom.mapspace.limits.data import AxisLimit, BackLimit, HoldLimit, Limits, LoopLimit, Numbers, TileLimit
from einloom.workload.einsum import Workload
from einloom.workload.selectors import selector

KINDS = ("holds", "backs", "loops", "tiles", "axes")


def _numbers(rng: Random) -> Numbers:
    return rng.choice((Numbers(values=(1,)), Numbers(values=(2,)), Numbers(1, 2), Numbers(2), Numbers(values=(1, 3))))


def tiny_limits(rng: Random, workload: Workload, machine: Machine, kinds: tuple[str, ...] = KINDS) -> Limits:
    """One to three limits, each about something that the problem has."""
    memories = [memory.name for memory in machine.memories]
    variables = sorted({v for e in workload.einsums for v in e.variables})
    names = [t.name for t in workload.tensors]
    found: dict[str, list[object]] = {kind: [] for kind in KINDS}
    for _ in range(rng.choice((1, 1, 2, 3))):
        kind = rng.choice(kinds)
        einsums = rng.choice((None, None, (rng.choice(workload.einsums).name,)))
        which = selector(rng.choice((rng.choice(names), rng.choice(names), "input", "output", "all")))
        memory = rng.choice(memories[1:] or memories)
        chosen = tuple(rng.sample(variables, rng.choice((1, 1, min(2, len(variables))))))
        if kind == "holds":
            found[kind].append(HoldLimit(rng.choice(("keep", "may_keep", "bypass", "once")), memory, which, einsums))
        elif kind == "backs":
            fused = selector(rng.choice(("intermediate", "all", rng.choice(workload.intermediates or names))))
            found[kind].append(BackLimit(fused, rng.choice(((memories[0],), tuple(memories[1:]) or (memories[0],)))))
        elif kind == "loops":
            fused = selector(rng.choice(("intermediate", "all", rng.choice(workload.intermediates or names))))
            found[kind].append(LoopLimit(fused, chosen, _numbers(rng), einsums))
        elif kind == "tiles":
            found[kind].append(TileLimit(memory, which, chosen, _numbers(rng), einsums))
        elif machine.axes:
            axis = rng.choice(sorted(machine.axes))
            found[kind].append(AxisLimit(axis, _numbers(rng), rng.choice(((), chosen)), einsums))
    return Limits(*(tuple(found[kind]) for kind in KINDS))  # type: ignore[arg-type]
