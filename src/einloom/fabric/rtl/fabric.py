"""The fabric: arrays, their edges, and the sequencer. The table of configurations decides which multiplexers exist."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib.wiring import Component, In, Out

from ..describe import MEMORY, Fabric, Source
from .array import ARRAY, Rectangle, place
from .edge import Quantiser, bits_for, choose, table
from .element import controls, widths
from .sequencer import Sequencer, commands

NEIGHBOURS = {"left": "right", "left_psum": "right_psum", "top": "bottom"}
"""Port of an array -> that of the array beside or above it."""


class FabricTop(Component):
    """Ports: the sequencer's, the memory's side of every array (left, left_psum, top), and every array's sums.

    Vectors are packed array by array. shift: places by which sums are shifted before they are used as operands.
    """

    def __init__(self, fabric: Fabric, instances: bool = False) -> None:
        self.fabric, self.instances = fabric, instances
        element = fabric.element
        wide, sums = element.operand_bits, element.sum_bits
        count, rows, columns = fabric.count, fabric.rows, fabric.columns
        super().__init__(
            {
                **commands(fabric),
                "shift": In(element.shift_bits),
                "left": In(wide * rows * count),
                "left_psum": In(sums * rows * count),
                "top": In(wide * columns * count),
                "right_psum": Out(sums * rows * count),
                "busy": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        fabric = self.fabric
        m.submodules.sequencer = sequencer = Sequencer(fabric)
        for port in commands(fabric):
            m.d.comb += getattr(sequencer, port).eq(getattr(self, port))
        m.d.comb += self.busy.eq(sequencer.busy)
        wires = [self._wires(i) for i in range(fabric.count)]
        quantised = {i: self._quantised(m, i, wires[i]["right_psum"]) for i in fabric.quantised}
        for i in range(fabric.count):
            self._edge(m, i, wires, quantised, sequencer)
            self._control(m, i, wires[i], sequencer)
            child = Rectangle(fabric.element, fabric.rows, fabric.columns)
            place(m, f"array_{i}", ARRAY, child, wires[i], self.instances)
        m.d.comb += self.right_psum.eq(Cat(*(w["right_psum"] for w in wires)))
        s = sequencer  # what a simpler fabric has no use for
        spare = Cat(s.turning, s.column, s.shift, s.own, s.load, s.swap, s.chosen, self.shift)
        spare_unused = Signal(len(spare))
        m.d.comb += spare_unused.eq(spare)
        return m

    def _wires(self, i: int) -> dict[str, Any]:
        fabric = self.fabric
        sizes = widths(fabric.element, fabric.rows, fabric.columns)
        read = {source.array for j in range(fabric.count) for source in fabric.left_sources(j) if source.kind == "next"}
        above = {source.array for j in range(fabric.count) for source in fabric.top_sources(j) if source.kind == "next"}
        unread = {name for name, readers in (("right", read), ("bottom", above)) if i not in readers}
        # a name with "unused" in it tells linters that nobody is meant to read it
        names = {n: f"array_{i}_{n}" + ("_unused" if n in unread else "") for n in sizes}
        return {n: Signal(size, name=names[n]) for n, size in sizes.items()}

    def _quantised(self, m: Module, i: int, sums: Any) -> Signal:
        """The sums of every row of an array as operands: a quantiser per row."""
        element, rows = self.fabric.element, self.fabric.rows
        found = Signal(element.operand_bits * rows, name=f"quantised_{i}")
        for r in range(rows):
            one = m.submodules[f"quantiser_{i}_{r}"] = Quantiser(element)
            m.d.comb += [
                one.sum.eq(sums.word_select(r, element.sum_bits)),
                one.shift.eq(self.shift),
                found.word_select(r, element.operand_bits).eq(one.value),
            ]
        return found

    def _edge(self, m: Module, i: int, wires: list[dict[str, Any]], quantised: dict[int, Signal], s: Sequencer) -> None:
        """The multiplexers of one array: memory, a neighbour, or somebody's quantised sums."""
        fabric = self.fabric
        lefts, tops = fabric.left_sources(i), fabric.top_sources(i)

        bits = widths(fabric.element, fabric.rows, fabric.columns)

        def read(port: str, source: Source) -> Any:
            if source.kind == "next":
                return wires[source.array][NEIGHBOURS[port]]
            if source.kind == "sums" and port == "left":
                return quantised[source.array]
            return getattr(self, port).word_select(i, bits[port])

        chained = any(x.kind == "next" for x in lefts)
        plain = [lefts.index(c.left(fabric, i, False)) for c in fabric.configurations]
        turning = [lefts.index(c.left(fabric, i, True)) for c in fabric.configurations]
        upper = [tops.index(c.top(fabric, i)) for c in fabric.configurations]
        select = Signal(bits_for(len(lefts) - 1), name=f"left_select_{i}")
        select_top = Signal(bits_for(len(tops) - 1), name=f"top_select_{i}")
        m.d.comb += select.eq(table(plain, s.chosen))
        with m.If(s.turning):
            m.d.comb += select.eq(table(turning, s.chosen))
        m.d.comb += [
            select_top.eq(table(upper, s.chosen)),
            wires[i]["left"].eq(choose(select, [read("left", x) for x in lefts])),
            wires[i]["left_psum"].eq(choose(select, [read("left_psum", x) for x in (lefts if chained else [MEMORY])])),
            wires[i]["top"].eq(choose(select_top, [read("top", x) for x in tops])),
        ]

    def _control(self, m: Module, i: int, wires: dict[str, Any], s: Sequencer) -> None:
        """Which of the two groups of control bits the array listens to."""
        second = table([int(c.reads_sums(self.fabric, i)) for c in self.fabric.configurations], s.chosen)
        group = Signal(name=f"group_{i}")
        m.d.comb += group.eq(second)
        for name in controls(self.fabric.element):
            source = getattr(s, name)
            m.d.comb += wires[name].eq(source.bit_select(group, 1) if name in ("shift", "own") else source)
