"""Seconds that one component instance is busy, from the bits that it reads and writes."""

from __future__ import annotations

from ...machine.levels import Memory, Toll
from . import terms
from .terms import Number


def passing_time(toll: Toll, passed: Number) -> Number | None:
    """Busy seconds of one instance of a toll; None if its throughput is unlimited."""
    return None if toll.throughput is None else terms.transfer_time(passed, toll.throughput)


def component_time(memory: Memory, read: Number, written: Number) -> Number | None:
    """Busy seconds of one instance: reads and writes over their throughputs, added (shared port) or their maximum.

    None if the memory's throughput is unlimited both ways.
    """
    if memory.read_throughput is None and memory.write_throughput is None:
        return None
    reading = terms.transfer_time(read, memory.read_throughput) if memory.read_throughput is not None else 0.0
    writing = terms.transfer_time(written, memory.write_throughput) if memory.write_throughput is not None else 0.0
    return reading + writing if memory.ports == "shared" else terms.maximum(reading, writing)
