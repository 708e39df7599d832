"""The edge of an array: where its rows and columns read from, and the quantiser of every row.

Each left and top input has a multiplexer over memory and the arrays that the table of configurations puts beside it;
each row has a quantiser of its own, and sums leave at full width.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from amaranth.hdl import Array, Const, Module, Mux, Signal, signed
from amaranth.lib.wiring import Component, In, Out

from ..describe import Element


class Quantiser(Component):
    """A sum shifted to the right and cut to the range of an operand."""

    def __init__(self, element: Element) -> None:
        self.element = element
        super().__init__(
            {
                "sum": In(signed(element.sum_bits)),
                "shift": In(element.shift_bits),
                "value": Out(signed(element.operand_bits)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        bits = self.element.operand_bits
        shifted = Signal(signed(self.element.sum_bits))
        m.d.comb += shifted.eq(self.sum >> self.shift)
        high = shifted[bits - 1 :]
        fits = (high == 0) | high.all()
        least, most = Const(-(1 << (bits - 1)), signed(bits)), Const((1 << (bits - 1)) - 1, signed(bits))
        m.d.comb += self.value.eq(Mux(fits, shifted[:bits], Mux(shifted[-1], least, most)))
        return m


def choose(select: Any, sources: Sequence[Any]) -> Any:
    """The source of that number; the first one for numbers beyond the last."""
    chosen = sources[0]
    for i, source in enumerate(sources[1:], 1):
        chosen = Mux(select == i, source, chosen)
    return chosen


def bits_for(number: int) -> int:
    """Bits of a register for 0 to `number`."""
    return max(1, number.bit_length())


def table(values: Sequence[int], select: Any) -> Any:
    """A constant per configuration, of as many bits as the largest needs."""
    bits = bits_for(max(values))
    if len(set(values)) == 1:
        return Const(values[0], bits)
    return Array(Const(v, bits) for v in values)[select]


class VectorSelector(Component):
    """A multiplexer by itself, as area is measured of: `sources` vectors of so many bits, packed."""

    def __init__(self, sources: int, bits: int) -> None:
        self.sources, self.bits = sources, bits
        super().__init__({"select": In(bits_for(sources - 1)), "given": In(sources * bits), "chosen": Out(bits)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        every = [self.given.word_select(i, self.bits) for i in range(self.sources)]
        m.d.comb += self.chosen.eq(choose(self.select, every))
        return m
