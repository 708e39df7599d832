"""The machine code of the methods without a proof, run as the Python that it is compiled from."""

from __future__ import annotations

import numpy as np
import pytest

from einloom.mapspace.ffm.encoding.state import Word
from einloom.search.heuristics import kernel, row_kernel, uneven_kernel
from einloom.search.heuristics.bursts import Bursts


def interpret(monkeypatch: pytest.MonkeyPatch) -> int:
    """Have every function of the kernels run as Python; how many names that are."""
    done = 0
    for module in (kernel, row_kernel, uneven_kernel):
        for name, function in vars(module).copy().items():
            if hasattr(function, "py_func"):
                monkeypatch.setattr(module, name, function.py_func)
                done += 1
    return done


def kernel_price(bursts: Bursts, i: int, mine: Word) -> tuple[float, float, float]:
    """(joules, seconds, bits) of a path of Einsum i of the program, by the kernel that anneals it."""
    if not bursts.facts.ragged:
        return bursts.price(i, mine)
    tables, covers = bursts.packed(i, mine[-1][1]), bursts.facts.full[i] | dict(mine[-1][2])
    items = tables.items(mine[:-1])
    total, kept = np.array([covers[v] for v in tables.variables]), np.zeros(len(items), dtype=np.bool_)
    whole = np.array([bursts.facts.extents[v] for v in tables.variables])
    uneven_kernel.price(items, len(items), tables.tables, whole, total, tables.flows, kept, tables.out)
    energy, latency, traffic = tables.out.tolist()
    return energy, latency, traffic
