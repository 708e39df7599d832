"""Which shares of an axis the branches of a pipelined split may have (rule 13), and rule 9 inside a share.

Comes in: an axis, or a tree. Goes out: the admissible shares, or why those of a split are not, and for every path the
axes of which it has a share only.
"""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Mapping as Table
from itertools import combinations, pairwise

from ...machine.levels import Machine
from ...mapping.extents import Trail
from ...mapping.legality.concurrency import axis_of, concurrent, shares, title
from ...mapping.tree import Split

PARTS = 4


def least_share(size: int) -> int:
    """The unit of shares of so many instances: their least divisor that is a quarter of them or more.

    >>> [least_share(n) for n in (2, 3, 4, 6, 7, 8, 9, 10, 32)]
    [1, 1, 1, 2, 7, 2, 3, 5, 8]
    """
    return next(n for n in range(1, size + 1) if size % n == 0 and PARTS * n >= size)


def every_share(size: int, branches: int) -> Iterator[tuple[int, ...]]:
    """Every way to share out all of `size` instances among so many branches."""
    unit = least_share(size)
    for cuts in combinations(range(unit, size, unit), branches - 1):
        yield tuple(stop - start for start, stop in pairwise((0, *cuts, size)))


def share_reasons(machine: Machine, split: Split) -> Iterator[str]:
    """Why the shares of a split on an axis are not in the space."""
    axis = axis_of(split)
    assert axis is not None
    size, given = machine.axes[axis].size, shares(split)
    unit, written = least_share(size), " ".join(map(str, given))
    if any(share % unit for share in given):
        yield f"rule 13: {title(split)} has shares {written}; of {size} instances a share is a multiple of {unit}"
    if sum(given) != size:
        yield f"rule 13: {title(split)} has shares {written}, which are not all {size} instances"


def axes_left(steps: Trail) -> Table[str, int]:
    """Axis -> instances of it that the end of a path has, for the axes of which it has a share only."""
    left: dict[str, int] = {}
    for (address, node), (below, _) in pairwise(steps):
        if isinstance(node, Split) and concurrent(node):
            axis = axis_of(node)
            if axis is not None:
                left[axis] = shares(node)[below[len(address)]]
    return left
