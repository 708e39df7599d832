"""Seconds that one component instance is busy, from the bits that it reads and writes, or that pass it."""

from __future__ import annotations

from ...machine.levels import Memory, Toll
from . import terms
from .terms import Number


def component_time(way: Memory | Toll, read: Number, written: Number) -> Number | None:
    """Busy seconds of one instance: reads and writes over their throughputs, added (shared port) or their maximum; all
    that passes a toll over that of the toll.

    None if the throughput is unlimited both ways.
    """
    if isinstance(way, Toll):
        return None if way.throughput is None else terms.transfer_time(read + written, way.throughput)
    if way.read_throughput is None and way.write_throughput is None:
        return None
    reading = terms.transfer_time(read, way.read_throughput) if way.read_throughput is not None else 0.0
    writing = terms.transfer_time(written, way.write_throughput) if way.write_throughput is not None else 0.0
    return reading + writing if way.ports == "shared" else terms.maximum(reading, writing)
