"""Where each intermediate is kept: its backing memory and the loops above it, in one walk of the tree."""

from __future__ import annotations

from ...mapping.tree import Loop, Nest, Split, Store
from ...result import Result

Backing = tuple[str, tuple[Loop, ...]]


def backings(result: Result) -> dict[str, Backing]:
    """(memory, loops above) of the outermost store of each intermediate; an empty name if there is none."""
    found: dict[str, Backing] = {}

    def walk(nest: Nest, above: tuple[Loop, ...]) -> None:
        for node in nest:
            if isinstance(node, Loop):
                above = (*above, node)
            elif isinstance(node, Store):
                for tensor in node.tensors:
                    found.setdefault(tensor, (node.memory, above))
            elif isinstance(node, Split):
                for branch in node.branches:
                    walk(branch, above)

    walk(result.mapping.nest, ())
    return {name: found.get(name, ("", ())) for name in result.workload.intermediates}


def fused(result: Result) -> dict[str, str]:
    """The memory that backs each intermediate whose outermost store is not in the outermost memory."""
    outermost = result.machine.memories[0].name
    return {name: memory for name, (memory, _) in backings(result).items() if memory not in ("", outermost)}
