"""The fullest moment of a memory when branches run at the same time.

Comes in: what is alive when each leaf is reached, branch by branch. Goes out: the largest sum. Branches of a concurrent
split are at different tokens at any one time, so each is taken at its own fullest moment: live tiles add over branches
(in a memory private to the split's axis each branch stands alone), and a tile above the split is alive in all of them,
at the largest size that it has in any. Section 1.5 of the bindings: docs/model/bindings.md.
"""

from __future__ import annotations

from collections.abc import Callable

from ...dataclass import dataclass
from ...mapping.extents import Address
from ...mapping.tree import Split
from ..traffic.paths import Fork

Live = tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Moment:
    """A leaf is reached: the concurrent splits above it, and (store, depth, tensor, bits) for every live tile.

    depth: how many of the splits stand above the tile's store.
    """

    forks: tuple[Fork, ...]
    live: tuple[tuple[tuple[object, ...], int, str, int], ...]


def fullest(moments: list[Moment], private: Callable[[Split], bool], depth: int = 0) -> tuple[int, Live]:
    """(bits, tensors with their bits) of the fullest moment, below the first `depth` concurrent splits.

    private: does each branch of a split have instances of this memory of its own?
    """
    best: tuple[int, Live] = (0, ())
    groups: dict[Address, list[Moment]] = {}
    for moment in moments:
        if len(moment.forks) == depth:
            best = max(best, _sum(tuple((name, bits) for _, d, name, bits in moment.live if d == depth)), key=_bits)
        else:
            fork = moment.forks[depth]
            groups.setdefault(fork.address, []).append(moment)
    for group in groups.values():
        above: dict[tuple[object, ...], tuple[str, int]] = {}
        for moment in group:
            for key, d, name, bits in moment.live:
                if d == depth and bits > above.get(key, ("", -1))[1]:
                    above[key] = (name, bits)
        branches: dict[int, list[Moment]] = {}
        for moment in group:
            branches.setdefault(moment.forks[depth].branch, []).append(moment)
        parts = [fullest(part, private, depth + 1) for part in branches.values()]
        if private(group[0].forks[depth].split):
            parts = [max(parts, key=_bits)]
        best = max(best, _sum((*above.values(), *(entry for _, live in parts for entry in live))), key=_bits)
    return best


def _sum(live: Live) -> tuple[int, Live]:
    return sum(bits for _, bits in live), live


def _bits(found: tuple[int, Live]) -> int:
    return found[0]
