"""The cycle model of a fabric: how long one operation keeps a region busy, from the first load to the last value out.

R and C are the rows and columns of elements of a region, s the steps of a stream. A value that enters at row r and
column c is added r + c + 2 cycles later, so a stream of s steps ends after s + R + C - 1 cycles in place, after
s + R + C where sums flow out. Loading, draining and turning sums into operands each shift a whole row: C cycles. With a
shadow register the next tile is loaded behind a running one, and one cycle swaps it in. The RTL is measured to take
exactly as long.
"""

from __future__ import annotations

from .describe import Configuration, Fabric, Operation


def cycles(
    fabric: Fabric, operation: Operation, configuration: Configuration, steps: int, more: int = 0, tiles: int = 1
) -> int:
    """Cycles of one operation. more: steps of the second stream of ``tile``. tiles: of ``hold``, in a row."""
    rows, columns = configuration.extents(fabric)
    swap = int(fabric.element.shadow)
    flow = steps + rows + columns
    if operation == "hold":
        return columns + tiles * (flow + 1) if swap else tiles * (columns + flow)
    if operation == "os":
        return flow - 1 + columns
    if operation == "tile":
        return flow - 1 + columns + swap + more + rows + columns
    return columns + swap + flow + columns + columns


def useful(fabric: Fabric, configuration: Configuration, operations: int, taken: int) -> float:
    """Utilisation: multiplications over what all elements of the regions in use could do in so many cycles."""
    rows, columns = configuration.extents(fabric)
    return operations / (rows * columns * configuration.regions * configuration.copies(fabric) * taken)
