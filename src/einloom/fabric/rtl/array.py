"""A rectangle of processing elements: rows of elements, and a column of rows.

Vectors are packed, the first row or column in the low bits. With ``instances`` children are named modules, each written
once, so that a large array stays small; without, they are parts of the design, as Amaranth's simulator needs them.
"""

from __future__ import annotations

from typing import Any

from amaranth.hdl import ClockSignal, Instance, Module, Signal
from amaranth.lib.wiring import Component, In

from ..describe import Element
from .element import ProcessingElement, controls, ports, widths

ELEMENT, ROW, ARRAY = "processing_element", "element_row", "element_array"


class ElementRow(Component):
    """`columns` elements, each to the right of the one before it."""

    def __init__(self, element: Element, columns: int, instances: bool = False) -> None:
        self.element, self.columns, self.instances = element, columns, instances
        super().__init__(ports(widths(element, 1, columns)))

    def elaborate(self, platform: object) -> Module:
        m = Module()
        wide, sums = self.element.operand_bits, self.element.sum_bits
        left: Any = self.left
        psum: Any = self.left_psum
        for c in range(self.columns):
            right, right_psum = Signal(wide, name=f"right_{c}"), Signal(sums, name=f"psum_{c}")
            wires = {
                "left": left,
                "left_psum": psum,
                "top": self.top.word_select(c, wide),
                "right": right,
                "right_psum": right_psum,
                "bottom": self.bottom.word_select(c, wide),
            } | {name: getattr(self, name) for name in controls(self.element)}
            place(m, f"element_{c}", ELEMENT, ProcessingElement(self.element), wires, self.instances)
            left, psum = right, right_psum
        m.d.comb += [self.right.eq(left), self.right_psum.eq(psum)]
        return m


class Rectangle(Component):
    """`rows` rows, each below the one before it."""

    def __init__(self, element: Element, rows: int, columns: int, instances: bool = False) -> None:
        self.element, self.rows, self.columns, self.instances = element, rows, columns, instances
        super().__init__(ports(widths(element, rows, columns)))

    def elaborate(self, platform: object) -> Module:
        m = Module()
        wide, sums = self.element.operand_bits, self.element.sum_bits
        top: Any = self.top
        for r in range(self.rows):
            bottom = Signal(wide * self.columns, name=f"bottom_{r}")
            wires = {
                "left": self.left.word_select(r, wide),
                "left_psum": self.left_psum.word_select(r, sums),
                "top": top,
                "right": self.right.word_select(r, wide),
                "right_psum": self.right_psum.word_select(r, sums),
                "bottom": bottom,
            } | {name: getattr(self, name) for name in controls(self.element)}
            place(m, f"row_{r}", ROW, ElementRow(self.element, self.columns), wires, self.instances)
            top = bottom
        m.d.comb += self.bottom.eq(top)
        return m


def place(m: Module, name: str, kind: str, child: Component, wires: dict[str, Any], instances: bool) -> None:
    """Add a child to a design, its ports connected: as a part of it, or as an instance of a module of that kind."""
    members = child.signature.members
    if instances:
        ways = {port: "i" if member.flow == In else "o" for port, member in members.items()}
        connected: dict[str, Any] = {f"{way}_{port}": wires[port] for port, way in ways.items()}
        m.submodules[name] = Instance(kind, i_clk=ClockSignal(), **connected)
        child._MustUse__silence = True  # only its ports are needed: Amaranth would warn that it is in no design
        return
    m.submodules[name] = child
    for port, member in members.items():
        mine, other = getattr(child, port), wires[port]
        m.d.comb += mine.eq(other) if member.flow == In else other.eq(mine)
