"""A mapspace in a package of its own: the mappings of `ffm` in which no two Einsums are fused."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from einloom.mapping.extents import addressed_paths
from einloom.mapping.tree import Mapping, Store
from einloom.mapspace.ffm.space import Ffm


class Unfused(Ffm):
    """Every intermediate has its outermost store in the outermost memory."""

    def outside(self, tree: Mapping) -> tuple[str, ...]:
        """The rules of `ffm` that a legal tree breaks, and the one of this space."""
        return (*super().outside(tree), *(f"unfused: {tensor} is not in {self._outer}" for tensor in self._fused(tree)))

    def trees(self) -> Iterator[Mapping]:
        """Those of `ffm` that fuse nothing."""
        return (tree for tree in super().trees() if not self._fused(tree))

    def sample(self, rng: Random) -> Mapping | None:
        """A legal tree that fuses nothing; None if a good number of draws gave none."""
        draws = (super(Unfused, self).sample(rng) for _ in range(3))
        return next((tree for tree in draws if tree is not None and not self._fused(tree)), None)

    @property
    def _outer(self) -> str:
        return self.machine.memories[0].name

    def _fused(self, tree: Mapping) -> list[str]:
        """Intermediates whose outermost store is further in."""
        first: dict[str, str] = {}
        for steps in addressed_paths(tree.nest).values():
            for _, node in steps:
                if isinstance(node, Store):
                    for tensor in node.tensors:
                        first.setdefault(tensor, node.memory)
        return [tensor for tensor in self.workload.intermediates if first.get(tensor, self._outer) != self._outer]
