"""Native libraries that print by themselves: what they write to standard output and error is dropped."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

STANDARD = (1, 2)  # descriptors of output and error, whatever Python's own streams are


@contextmanager
def silenced() -> Iterator[None]:
    """Nothing that is written to descriptors 1 and 2 meanwhile arrives, what C keeps in its buffers included.

    Python's streams have buffers of their own, which stay as they are. A descriptor that is closed stays closed.
    """
    kept: dict[int, int] = {}
    flush = _flushing()
    flush()  # what C has in its buffers from before belongs to where it was written
    for number in STANDARD:
        with suppress(OSError):
            kept[number] = os.dup(number)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        for number in kept:
            os.dup2(nowhere, number)
        yield
    finally:
        flush()
        for number, saved in kept.items():
            os.dup2(saved, number)
            os.close(saved)
        os.close(nowhere)


def _flushing() -> Callable[[], object]:
    """C's function that empties all its buffers; nothing where there is no such library to be found."""
    try:
        empty = ctypes.CDLL(None).fflush
    except (OSError, TypeError, AttributeError):
        return lambda: None
    return lambda: empty(None)
