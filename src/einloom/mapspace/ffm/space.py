"""The spaces `ffm` and `ragged` of one workload on one machine, as searches see them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import field
from functools import cached_property
from itertools import islice
from random import Random

import numpy as np
from numpy.typing import NDArray

from ...cost.evaluate import legality
from ...dataclass import dataclass
from ...machine.levels import Machine
from ...mapping.normal import normal_form
from ...mapping.tree import Mapping
from ...workload.einsum import Workload
from ..space import Mapspace, Skeleton
from .encoding import Encoding
from .enumerate import enumerate_trees
from .rules import outside
from .tilings import loops_of, neighbouring, retiled, rows

DRAWS = 20  # draws that may come to nothing before `sample` gives up; the later ones fuse nothing
BLOCK = 4096  # rows of tiles at a time


@dataclass(frozen=True)
class Ffm:
    """Perfect tiles, one loop per rank variable between two stores, no recomputation (docs/mapspace.md).

    checkpoint: called again and again between two trees, which may be minutes apart; what it raises comes through.
    """

    workload: Workload
    machine: Machine
    mapspace: Mapspace
    checkpoint: Callable[[], None] = field(default=lambda: None, compare=False, repr=False)

    def outside(self, tree: Mapping) -> tuple[str, ...]:
        """Every rule that a legal `tree` breaks."""
        return outside(self.workload, self.machine, self.mapspace, tree)

    def contains(self, tree: Mapping) -> bool:
        """True if `tree` is legal and inside."""
        return not legality(self.workload, self.machine, tree) and not self.outside(tree)

    def trees(self) -> Iterator[Mapping]:
        """Every well-formed tree inside, in the order of the grammar."""
        return enumerate_trees(self.workload, self.machine, self.mapspace, self.checkpoint)

    def sample(self, rng: Random) -> Mapping | None:
        """A legal tree inside, with sequential splits."""
        for draw in range(DRAWS):
            state = self.encoding.sample(rng, None if draw < DRAWS // 2 else 0.0)
            if state is not None:
                tree = normal_form(self.encoding.decode(state), self.workload)
                if self.contains(tree):
                    return tree
        return None

    def neighbours(self, tree: Mapping, rng: Random) -> Iterator[Mapping]:
        """Legal trees inside with one prime factor of one rank variable moved to another loop, which may be new."""
        steps = list(neighbouring(tree))
        rng.shuffle(steps)
        seen = {tree}
        for step in steps:
            found = normal_form(step, self.workload)
            if found not in seen and self.contains(found):
                yield found
            seen.add(found)

    def skeleton(self, tree: Mapping) -> Skeleton:
        """The skeleton of `tree`, with every loop open: tiles of spatial loops follow those of the loops above."""
        return Skeleton(tree, tuple(sorted(loops_of(tree))))

    def tree(self, skeleton: Skeleton, tiles: Sequence[int] | NDArray[np.int64]) -> Mapping:
        """The mapping that one row of perfect tiles makes of a skeleton, in normal form."""
        return normal_form(retiled(self.workload, skeleton, [int(tile) for tile in tiles]), self.workload)

    def tilings(self, skeleton: Skeleton) -> Iterator[NDArray[np.int64]]:
        """All perfect tiles with at least two trips per loop, in `ragged` too; spatial loops keep their trips."""
        found = rows(self.workload, skeleton)
        while block := list(islice(found, BLOCK)):
            yield np.array(block, dtype=np.int64)

    @cached_property
    def encoding(self) -> Encoding:
        """The states that samplers and moves work on (docs/mappers.md)."""
        return Encoding(self.workload, self.machine, self.mapspace)
