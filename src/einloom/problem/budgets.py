"""A budget or a seed as its user gives it, as arguments in Python or options of a verb, checked before any work."""

from __future__ import annotations

from numbers import Integral

from ..errors import SpecError
from ..reading.fields import STATED, read_record
from ..reading.keys import Key, Number, Record
from ..reading.located import from_data
from ..reading.units import parse
from . import Budget

BUDGET = Record(
    "a budget",
    (
        Key("seconds", Number("time", positive=True, sourced=False), "of wall time"),
        Key("steps", Number("count", minimum=1, sourced=False), "evaluated points"),
    ),
)


def read_budget(
    seconds: float | str | None = None, steps: int | None = None, memory: int | str | None = None
) -> Budget:
    """The budget of these values, of which None means no limit; texts are read as those of a file are.

    memory: bytes, or a size.

    >>> read_budget(60, memory="2 GiB")
    Budget(seconds=60.0, steps=None, memory=2147483648)

    Raises SpecError for values that end a search before it begins, and for what is no such number.
    """
    view = from_data({"seconds": seconds, "steps": steps})
    found = read_record(view, BUDGET, STATED)
    view.raise_gathered()
    return Budget(memory=None if memory is None else _bytes(memory), **found)


def _bytes(memory: int | str) -> int:
    """Bytes of a number of them, or of a size such as '2 GiB', which units count in bits."""
    try:
        bits = parse(memory if isinstance(memory, str) else f"{memory} B", "size")
    except SpecError as error:
        raise SpecError(f"memory budget: {error.message}", suggestion=error.suggestion) from None
    if bits < 8:
        raise SpecError(f"memory budget: {str(memory)!r:.40} is less than a byte", suggestion="2 GiB")
    if bits % 8:
        raise SpecError(f"memory budget: {str(memory)!r:.40} is not a whole number of bytes")
    return int(bits) // 8


def read_seed(seed: object) -> int:
    """The seed as Python's own integer. Raises SpecError for what is no whole number."""
    if isinstance(seed, bool) or not isinstance(seed, Integral):
        raise SpecError(f"seed: a whole number, not {seed!r:.80}")
    return int(seed)
