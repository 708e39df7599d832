"""What one visit of a store moves, and what one run of a leaf's inner loops reads and writes: plain ranks only.

The sums of these over all visits are what `accesses` counts for the whole run.
"""

from __future__ import annotations

from collections.abc import Mapping as Table
from math import prod

from ...machine.levels import Toll
from ..formulas import terms
from .accesses import StoreLink, _copy_in_place
from .paths import Path, PathLoop


def moved(
    link: StoreLink,
    *,
    at_parent: bool,
    stop: int,
    indices: Table[int, int],
    fresh: bool = False,
    toll: Toll | None = None,
) -> int:
    """Values that cross the link at the busiest instance of one side or of a toll, in one iteration of the loops above
    `stop`.

    indices: iteration of each temporal loop, by place. fresh: as if loops below `stop` that the tensor lacks ran once.
    """
    relevant, above = set(link.access.variables), link.above(at_parent, toll)

    def once(loop: PathLoop) -> int:
        lacked = loop.variable not in relevant
        if loop.axis is None:
            return int(loop.place < stop or (fresh and lacked))
        if loop.place in above:
            return 1
        return int(at_parent and lacked and link._joined(link.axes[loop.place]))

    picks = {
        loop.place: indices.get(loop.place, 0) for loop in link.path.loops if loop.axis is None and loop.place < stop
    }

    def cuts(variable: str) -> tuple[terms.LoopCut, ...]:
        return link.path.cuts(variable, link.place, once, picks)

    extents, variables = link.workload.extents, link.path.einsum.variables
    total: int = prod(terms.visits(extents[v], cuts(v)) for v in variables if v not in relevant)
    for rank, index in enumerate(link.access.indices):
        if index.variables:
            total *= terms.covered(extents[index.variables[0]], cuts(index.variables[0]))
        else:
            total *= _positions(link, rank)
    return total


def _positions(link: StoreLink, rank: int) -> int:
    """Positions of a rank that the charged Einsum indexes by a constant: from the first to the last of all users'.

    No loop above the store moves any of them (`Path.unlike`): a user that goes through the rank needs all of it.
    """
    indices = [user.einsum.access(link.tensor).indices[rank] for user in link.users]
    if any(index.variables for index in indices):
        return link.workload.shape(link.access)[rank]
    fixed = [index.constant for index in indices]
    return max(fixed) - min(fixed) + 1


def kept_places(link: StoreLink) -> tuple[int, ...]:
    """Places of the loops over which the link's store keeps its tile."""
    return tuple(place for place, keeps in link.retention[0].items() if keeps)


def repeated(link: StoreLink, stop: int, indices: Table[int, int]) -> bool:
    """True if a temporal loop above `stop` that the tensor lacks is past its first iteration: it was here before."""
    relevant = set(link.access.variables)
    loops = (loop for loop in link.path.loops if loop.axis is None and loop.place < stop)
    return any(indices.get(loop.place, 0) for loop in loops if loop.variable not in relevant)


def operations(path: Path, stop: int, indices: Table[int, int]) -> int:
    """Operations of the busiest instance in one iteration of the loops above `stop`."""

    def once(loop: PathLoop) -> int:
        return int(loop.axis is not None or loop.place < stop)

    picks = {loop.place: indices.get(loop.place, 0) for loop in path.loops if loop.axis is None and loop.place < stop}
    counts = (terms.visits(path.extent(v), path.cuts(v, len(path.nodes), once, picks)) for v in path.einsum.variables)
    return prod(counts)


def operands(link: StoreLink, stop: int, indices: Table[int, int]) -> tuple[int, int]:
    """(values read, values written) at the innermost store by a leaf, in one iteration of the loops above `stop`."""
    if link.path.einsum.kind == "copy" and _copy_in_place(link):
        return 0, 0
    crossed = moved(link, at_parent=True, stop=stop, indices=indices)
    return (_read_back(link, crossed, stop, indices), crossed) if link.written else (crossed, 0)


def _read_back(link: StoreLink, crossed: int, stop: int, indices: Table[int, int], toll: Toll | None = None) -> int:
    """Of `crossed` values of a leaf that are written up, those that were there before: partial results to add to."""
    first = 0
    if not repeated(link, stop, indices):
        first = moved(link, at_parent=True, stop=stop, indices=indices, fresh=True, toll=toll)
    back: int = terms.refills(crossed, first)
    return back


def passed(link: StoreLink, toll: Toll, stop: int, indices: Table[int, int]) -> int:
    """Values of a leaf that a toll charges, both ways, in one iteration of the loops above `stop`."""
    down, up = toll.charges(link.workload, link.path.einsum.name, link.tensor)
    crossed = moved(link, at_parent=True, stop=stop, indices=indices, toll=toll)
    if link.path.einsum.kind == "copy":
        inwards = link.machine.position[link.parent.memory] < link.machine.position[toll.name]
        return crossed if (down if inwards else up) else 0
    if not link.written:
        return crossed if down else 0
    return (crossed if up else 0) + (_read_back(link, crossed, stop, indices, toll) if down else 0)
