"""A machine component in a package of its own: an SRAM whose energy, area, leakage and rate follow from its size."""

from __future__ import annotations

from collections.abc import Mapping
from math import sqrt
from typing import Any

from einloom.errors import SpecError
from einloom.machine.levels import Memory
from einloom.reading.keys import Key, Number

CELL = 0.5e-12  # square metres of one bit with its share of decoders and sense amplifiers
LEAK = 2e-12  # watts of one bit
WIRE = 4e-18  # joules for one bit over the height of one row


class Sram:
    """Banks of square arrays: an access drives word and bit lines, so its energy grows with the square root of a bank.

    banks: arrays beside each other, of which one is accessed at a time. cycle: seconds between two accesses.
    """

    name = "sram"
    level = "memory"
    source = "square-array estimate with round constants, for teaching"
    keys = (
        Key("banks", Number("count", minimum=1), "arrays beside each other"),
        Key("cycle", Number("time", positive=True), "seconds between two accesses"),
    )

    def numbers(self, level: Memory, own: Mapping[str, Any]) -> Mapping[str, float | None]:
        """Joules per access, bits per second, square metres and watts per instance."""
        if level.size is None:
            raise SpecError("an sram needs a size")
        side = sqrt(level.size / own.get("banks", 1))
        access = level.bits_per_access * side * WIRE
        rate = level.bits_per_access / own.get("cycle", 1e-9)
        return {
            "read_energy": access,
            "write_energy": 1.2 * access,
            "read_throughput": rate,
            "write_throughput": rate,
            "area": level.size * CELL,
            "leakage": level.size * LEAK,
        }
