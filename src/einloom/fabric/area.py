"""Area by synthesis with open cells: leaf by leaf, times how often each leaf stands in the fabric, as ratios.

Debian's yosys maps every leaf to the OSU 0.18 um cells of `qflow-tech-osu018` (Oklahoma State University's library, in
square micrometres as its Liberty file states them). Wires between leaves and their placement are not in the numbers, so
they serve for ratios alone.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from ..dataclass import dataclass
from ..errors import SpecError
from ..reading import writing
from .describe import Element, Fabric
from .tools import cells, tool

if TYPE_CHECKING:
    from amaranth.lib.wiring import Component

VARIANTS: dict[str, Element] = {
    "WS": Element(("WS",)),
    "WS, shadow": Element(("WS",), shadow=True),
    "OS": Element(("OS",)),
    "XS": Element(("WS", "IS", "OS")),
    "XS, shadow": Element(("WS", "IS", "OS"), shadow=True),
}
"""Elements by what they can do; input-stationary is weight-stationary with its operands changed over."""


@dataclass(frozen=True, slots=True)
class Leaf:
    """One leaf: its cells and their area, and how often it stands in the whole."""

    name: str
    cells: int
    area: float
    count: int = 1

    @property
    def total(self) -> float:
        return self.area * self.count


def element_leaf(name: str, element: Element) -> Leaf:
    """The area of one element. Raises SpecError where yosys or the cells are missing."""
    from .rtl.element import ProcessingElement

    return _synthesised(name, ProcessingElement(element))


def fabric_leaves(fabric: Fabric) -> tuple[Leaf, ...]:
    """The leaves of a fabric with their counts: elements, quantisers, multiplexers of the edges, the sequencer."""
    from .rtl.edge import Quantiser
    from .rtl.element import ProcessingElement
    from .rtl.sequencer import Sequencer

    found = [_synthesised("element", ProcessingElement(fabric.element), fabric.elements), *_edges(fabric)]
    if fabric.quantised:
        rows = len(fabric.quantised) * fabric.rows
        found.append(_synthesised("quantiser of a row", Quantiser(fabric.element), rows))
    return (*found, _synthesised("sequencer", Sequencer(fabric), reset=True))


def _edges(fabric: Fabric) -> list[Leaf]:
    """The multiplexers at the inputs of rows and columns, by how many sources they have."""
    from .rtl.edge import VectorSelector

    bits, sums = fabric.element.operand_bits, fabric.element.sum_bits
    counts: dict[tuple[str, int, int], int] = {}
    for i in range(fabric.count):
        lefts, tops = len(fabric.left_sources(i)), len(fabric.top_sources(i))
        neighbours = 1 + sum(s.kind == "next" for s in fabric.left_sources(i))
        for key, number in (
            ((f"left of a row, {lefts} sources", lefts, bits), fabric.rows),
            ((f"sum of a row, {neighbours} sources", neighbours, sums), fabric.rows),
            ((f"top of a column, {tops} sources", tops, bits), fabric.columns),
        ):
            if key[1] > 1:
                counts[key] = counts.get(key, 0) + number
    return [_synthesised(name, VectorSelector(n, wide), count) for (name, n, wide), count in counts.items()]


def _synthesised(name: str, part: Component, count: int = 1, reset: bool = False) -> Leaf:
    """A component mapped to the cells."""
    from .rtl.write import rtlil_text

    return Leaf(name, *_mapped(rtlil_text(part, "leaf", reset)), count)


@lru_cache(maxsize=256)
def _mapped(rtlil: str) -> tuple[int, float]:
    """Number of cells and their area."""
    yosys, library = tool("yosys"), cells()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "leaf.il"
        writing.write(rtlil, path)
        script = "; ".join(
            (
                f"read_rtlil {path}",
                "synth -flatten -top leaf",
                f"dfflibmap -liberty {library}",
                f"abc -liberty {library}",
                "opt_clean -purge",
                f"stat -liberty {library}",
            )
        )
        done = subprocess.run([yosys, "-p", script], capture_output=True, text=True, check=False, cwd=folder)
    number = re.findall(r"Number of cells:\s+(\d+)", done.stdout)
    area = re.findall(r"Chip area[^:]*: ([\d.]+)", done.stdout)
    if not number or not area:
        raise SpecError(f"yosys could not synthesise a leaf: {done.stderr.strip()[-200:]}")
    return int(number[-1]), float(area[-1])
