"""Cycles per second, for files that count in cycles."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from ..errors import SpecError, nearest
from ..reading.units import parse

HERTZ = "1 Hz"


def cycles_per_second(text: str = HERTZ) -> float:
    """The clock that `text` says, such as ``400MHz``; by default seconds are cycles."""
    number = float(parse(text, "rate"))
    if not 0 < number < 1e18:
        raise SpecError(f"clock {text}: cycles per second must be greater than zero")
    return number


def only(known: Collection[str], parameters: Mapping[str, str]) -> None:
    """Refuse parameters that the files do not have."""
    for name in parameters:
        if name not in known:
            raise SpecError(f"no parameter {name!r:.60}; known are {', '.join(known)}", suggestion=nearest(name, known))
