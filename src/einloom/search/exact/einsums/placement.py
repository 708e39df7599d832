"""What stands above and below a boundary, as far as the rows of the tables can tell.

Comes in: the admissible choices of held tensors of one Einsum on one unit. Goes out: numbered `Base`s and `Level`s per
memory. Rows of choices that look alike from a boundary share a number there, and so compete: a row below a boundary
knows of the stores above only which memory each tensor comes from.
"""

from __future__ import annotations

from ....dataclass import dataclass
from .holds import Placement


@dataclass(frozen=True, slots=True)
class Base:
    """Rows complete below a memory's own stores.

    parents: per tensor the innermost memory down to this one that holds it, or -1; tails: what the memories further in
    may hold.
    """

    parents: tuple[int, ...]
    tails: frozenset[Placement]


@dataclass(frozen=True, slots=True)
class Level:
    """Rows at a memory. outside, inside: numbers of the bases above and below its stores. held: its tensors.

    parents: per tensor the innermost memory further out that holds it, or -1.
    """

    outside: int
    inside: int
    held: frozenset[int]
    parents: tuple[int, ...]

    @property
    def own(self) -> frozenset[int]:
        """The stores that are not backing ones."""
        return frozenset(t for t in self.held if self.parents[t] >= 0)

    @property
    def backs(self) -> bool:
        """True if some store is a backing store."""
        return len(self.own) < len(self.held)


class StoreContexts:
    """All bases and levels of some choices of held tensors.

    fused: rows end at the innermost memory that backs something, where the fused part begins; else they go on to the
    outermost memory. first, at: numbers of the base and of the level that a choice meets at a memory.
    """

    def __init__(self, helds: tuple[Placement, ...], tensors: int, fused: bool) -> None:
        self.tensors, self.fused = tensors, fused
        memories = len(helds[0])
        self.bases: list[list[Base]] = [[] for _ in range(memories)]
        self.levels: list[list[Level]] = [[] for _ in range(memories)]
        self.busy: list[list[bool]] = [[] for _ in range(memories)]
        self.base_of: dict[Placement, int] = {}
        self.level_of: dict[Placement, int] = {}
        for m in range(memories):
            tails: dict[Placement, set[Placement]] = {}
            for held in helds:
                tails.setdefault(held[: m + 1], set()).add(held[m + 1 :])
            numbers: dict[Base, int] = {}
            for prefix, after in tails.items():
                base = Base(self._parents(prefix), frozenset(after))
                number = numbers.setdefault(base, len(numbers))
                if number == len(self.busy[m]):
                    self.busy[m].append(False)
                self.base_of[prefix] = number
                self.busy[m][number] |= any(t in h for j in range(1, m + 1) for t in prefix[j] for h in prefix[:j])
            self.bases[m] = list(numbers)
            if m:
                layers: dict[Level, int] = {}
                for prefix in tails:
                    level = Level(self.base_of[prefix[:m]], self.base_of[prefix], prefix[m], self._parents(prefix[:m]))
                    self.level_of[prefix] = layers.setdefault(level, len(layers))
                self.levels[m] = list(layers)

    def _parents(self, prefix: Placement) -> tuple[int, ...]:
        return tuple(max((m for m, h in enumerate(prefix) if t in h), default=-1) for t in range(self.tensors))

    def wanted(self, memory: int, base: int) -> bool:
        """False if rows of this base are of no use: a fused part reaches further in than `memory`."""
        return not self.fused or min(self.bases[memory][base].parents) >= 0

    def passes(self, memory: int, level: int) -> bool:
        """True if complete rows of this level go on outwards."""
        return not (self.fused and self.levels[memory][level].backs)


def links(helds: tuple[Placement, ...]) -> frozenset[tuple[int, int, int]]:
    """Every (tensor, parent, memory) of a store that is not a backing one, in any of the choices."""
    found = set()
    for held in helds:
        for m in range(1, len(held)):
            for t in held[m]:
                parent = max((p for p in range(m) if t in held[p]), default=-1)
                if parent >= 0:
                    found.add((t, parent, m))
    return frozenset(found)
