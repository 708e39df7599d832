"""Where each intermediate is kept: its backing memory and the loops above it."""

from __future__ import annotations

from ...mapping.extents import outermost_stores
from ...mapping.tree import Loop
from ...result import Result


def backings(result: Result) -> dict[str, tuple[str, tuple[Loop, ...]]]:
    """(memory, loops above) of the outermost store of each intermediate; an empty name if there is none."""
    found = outermost_stores(result.mapping.nest)
    return {name: found.get(name, ("", ())) for name in result.workload.intermediates}


def fused(result: Result) -> dict[str, str]:
    """The memory that backs each intermediate whose outermost store is not in the outermost memory."""
    outermost = result.machine.memories[0].name
    return {name: memory for name, (memory, _) in backings(result).items() if memory not in ("", outermost)}
