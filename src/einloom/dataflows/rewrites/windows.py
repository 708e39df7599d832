"""Two convolutions with the output in tiles of rows and columns: what lies between them is computed once per tile.

A workload of the family ``convolution-chain`` comes in with two numbers of tiles, one of ``tiled-convolution-chain``
goes out. Source: Alwani et al., Fused-layer CNN accelerators (MICRO'16): a pyramid of tiles, overlaps recomputed.

Tile i of the output's rows h needs the rows of the tensor between that its windows reach: with the overlap of
neighbours, so the first convolution computes that overlap for each. The input keeps its shape, so no memory pretends to
hold an overlap twice: row y of tile i reads row ``rows*i + y + r`` of it. Tiles are ranks of their own that index the
tensor between alone, so loops over them may be fused.
"""

from __future__ import annotations

from ...errors import SpecError
from ...workload.einsum import Index, Workload
from ..casts import Cast, cast
from ..families import family
from .cascade import Script, check_whole, write


def chain(workload: Workload) -> Cast:
    """Who plays which role in a chain of two convolutions. Raises SpecError for any other workload."""
    return cast(family("convolution-chain"), workload, in_order=True)


def windows(workload: Workload, height: int = 1, width: int = 1) -> Workload:
    """The chain of convolutions with the rows of its output in `height` equal tiles and the columns in `width`.

    >>> from einloom.zoo.workload_by_name import load_workload
    >>> tiled = windows(load_workload("tileflow-cc3"), height=8)
    >>> str(tiled.einsums[0].inputs[0]), tiled.extents["y"]
    ('Im[7*h_i+y+r,56*w_j+x+s,c]', 9)

    Strides are kept. Raises SpecError for a workload of another family, one with padding, and for numbers that do not
    divide the output.
    """
    players = chain(workload)
    check_whole(workload, "windows", windows=True)
    first, second = (workload.einsum(players.einsums[role]) for role in ("first", "second"))
    image, between = first.access(players.tensors["image"]), second.access(players.tensors["between"])
    sizes: dict[str, int] = {}
    weights: dict[tuple[str, str], int] = {}
    for tile, count, row, window, outer, tap, what in (
        ("i", height, "h", "u", "y", "r", "rows"),
        ("j", width, "w", "v", "x", "s", "columns"),
    ):
        inner, kernel = (players.variables["second"][role] for role in (row, window))
        extent = workload.extents[inner]
        if count < 1 or extent % count:
            raise SpecError(f"windows: {count} tiles do not divide the {extent} {what} of {workload.name}")
        names = players.variables["first"]
        over, under = (_weight(between.indices, name) for name in (inner, kernel))
        stride, dilation = (_weight(image.indices, names[role]) for role in (outer, tap))
        sizes |= {tile: count, row: extent // count}
        sizes[outer] = 1 + over * (extent // count - 1) + under * (workload.extents[kernel] - 1)
        weights |= {("between", row): over, ("between", window): under}
        weights |= {
            ("image", tile): stride * over * (extent // count),
            ("image", outer): stride,
            ("image", tap): dilation,
        }
    script = Script(
        family("tiled-convolution-chain"), {}, {}, {"i": ("second", "h"), "j": ("second", "w")}, sizes, weights
    )
    tiles = f"{height} x {width} tiles"
    return write(script, players, workload, f"{workload.name} (windows, {tiles})", ("out",), f"windows, {tiles}")


def _weight(indices: tuple[Index, ...], variable: str) -> int:
    """The coefficient of a rank variable in the index that has it."""
    return next(weight for index in indices for name, weight in index.terms if name == variable)
