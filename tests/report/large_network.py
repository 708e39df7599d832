"""A network of hundreds of Einsums with a mapping written by rule: every fourth tensor passes through main memory."""

from __future__ import annotations

from einloom import Result, evaluate

FUSED = 4


def chain(count: int = 320, size: int = 64) -> Result:
    """A chain of matrix multiplications, fused by fours below a loop over m; evaluated, not searched."""
    outside = [f"W{i}" for i in range(count)] + [f"T{i}" for i in range(0, count + 1, FUSED)]
    lines = [f"store DRAM: {' '.join(outside)}", "split sequential:"]
    for first in range(0, count, FUSED):
        inside = " ".join(f"T{i}" for i in range(first + 1, first + FUSED))
        lines += [f"  - for m in {size}", f"    store GLB: {inside}", "    split sequential:"]
        for i in range(first, first + FUSED):
            lines += [f"      - store GLB: W{i}", f"        for n{i} in {size}", f"        for n{i + 1} in {size}"]
            lines += [f"        compute E{i} @ MAC"]
    return evaluate(f"matmuls:n={count},m={size},kn={size}", "simple:glb_bits=65536", "\n".join(lines) + "\n")
