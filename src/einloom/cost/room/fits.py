"""Capacity: does everything that is alive fit, in exact integers and without tolerance?"""

from __future__ import annotations

from ..breakdown import Occupancy


def overflows(occupancies: tuple[Occupancy, ...]) -> tuple[str, ...]:
    """One reason for each memory that is too small, with the tensors that were alive at the worst moment."""
    reasons = []
    for o in occupancies:
        if o.size is not None and o.bits > o.size:
            parts = ", ".join(f"{tensor} {bits}" for tensor, bits in o.tensors)
            reasons.append(f"capacity: {o.memory} holds {o.size} bits, needs {o.bits} ({parts})")
    return tuple(reasons)
