"""One processing element: an operand register, a register of the stream from above, and a partial sum.

    act    <= left if shift else act          (or the shadow register, when that is swapped in)
    weight <= top
    psum   <= (psum if own else left_psum) + act * weight

``own`` keeps the sum where it is (output-stationary), else sums flow to the right (input- or weight-stationary: which
of the two depends on what is fed from where). Nothing clears a sum: streams end in zeros, and every phase of the
sequencer is long enough for these to arrive everywhere, so each phase leaves sums of zero behind. For the same reason
no register is reset: as many idle cycles as an array has rows and columns flush it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from amaranth.hdl import Module, Mux, Signal, signed
from amaranth.lib.wiring import Component, In, Out

from ..describe import Element

OUTPUTS = ("right", "bottom", "right_psum")


class ProcessingElement(Component):
    """Ports: left, top, left_psum come in; right, bottom, right_psum go out; shift, own and load, swap control it."""

    def __init__(self, element: Element) -> None:
        self.element = element
        bits = widths(element, 1, 1)
        shapes = {name: wide if name in controls(element) else signed(wide) for name, wide in bits.items()}
        super().__init__(ports(shapes))

    def elaborate(self, platform: object) -> Module:
        m = Module()
        element = self.element
        act = Signal(signed(element.operand_bits), reset_less=True)
        weight = Signal(signed(element.operand_bits), reset_less=True)
        psum = Signal(signed(element.sum_bits), reset_less=True)
        m.d.comb += [self.bottom.eq(weight), self.right_psum.eq(psum), self.right.eq(act)]
        m.d.sync += weight.eq(self.top)
        if element.shadow and element.holds:
            shadow = Signal(signed(element.operand_bits), reset_less=True)
            with m.If(self.load):
                m.d.sync += shadow.eq(self.left)
            with m.If(self.swap):
                m.d.sync += act.eq(shadow)
            m.d.comb += self.right.eq(Mux(self.shift, act, shadow) if element.owns else shadow)
        if "shift" in controls(element):
            with m.If(self.shift):
                m.d.sync += act.eq(self.left)
        elif not element.shadow or not element.holds:
            m.d.sync += act.eq(self.left)
        addend = Mux(self.own, psum, self.left_psum) if "own" in controls(element) else self.left_psum
        m.d.sync += psum.eq((addend + act * weight)[: element.sum_bits])
        return m


def widths(element: Element, rows: int, columns: int) -> dict[str, int]:
    """The bits of every port of so many elements in rows and columns: packed vectors, and what controls them."""
    wide, sums = element.operand_bits, element.sum_bits
    return {
        "left": wide * rows,
        "top": wide * columns,
        "left_psum": sums * rows,
        "right": wide * rows,
        "bottom": wide * columns,
        "right_psum": sums * rows,
    } | dict.fromkeys(controls(element), 1)


def ports(shapes: Mapping[str, Any]) -> dict[str, Any]:
    """The ports of these shapes, each with its direction."""
    return {name: Out(shape) if name in OUTPUTS else In(shape) for name, shape in shapes.items()}


def controls(element: Element) -> tuple[str, ...]:
    """The control inputs that such an element needs."""
    found = []
    if element.holds and (element.owns or not element.shadow):
        found.append("shift")  # an element that never holds always shifts
    if element.owns:
        found.append("own")  # sums leave an output-stationary array by flowing
    if element.holds and element.shadow:
        found += ["load", "swap"]
    return tuple(found)
