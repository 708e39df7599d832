"""Stops from outside: SIGINT (Ctrl-C), SIGTERM and SIGHUP.

The command line listens for them. A stop raises `Interrupted` wherever the program is, except in a `politely` block,
where a search ends by itself, and in a `held` block, where a file is written whole first. A search that is called from
Python hears SIGINT alone, for as long as it takes (`interrupts`). Nothing is imported here that takes time: `__main__`
listens before it imports the rest.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

WORDS = {"SIGINT": "interrupted", "SIGTERM": "terminated", "SIGHUP": "hung up"}
HEARD = tuple(getattr(signal, name) for name in WORDS if hasattr(signal, name))


class Interrupted(KeyboardInterrupt):
    """The signal `number` asked the program to stop."""

    def __init__(self, number: int) -> None:
        self.number = number
        super().__init__(number)


def exit_code(number: int) -> int:
    """The exit code of a program that a signal stopped, as shells give it: 130 after Ctrl-C, 143 after SIGTERM."""
    return 128 + number


def words(number: int) -> str:
    """What such a signal does to a program, in a word or two."""
    return WORDS.get(signal.Signals(number).name, "stopped")


class _Blocks:
    """Which blocks the main thread is in, and the stops that wait for the end of one."""

    polite: list[int] | None = None
    held = 0
    waiting: list[int] = []  # noqa: RUF012 (one list for the process)
    begun: float | None = None


def leave_at_once() -> None:
    """Until something else is installed, a stop ends the process with one line: for the time of imports."""
    _Blocks.begun = time.monotonic()
    for number in HEARD:
        signal.signal(number, _leave)


def begun() -> float:
    """When the program began, as `time.monotonic` counts; now, if it is not one of its own."""
    return time.monotonic() if _Blocks.begun is None else _Blocks.begun


def ignore() -> None:
    """Hear nothing any more: everything is written, and the interpreter is about to end."""
    _Blocks.begun = None
    for number in HEARD:
        signal.signal(number, signal.SIG_IGN)


@contextmanager
def listening() -> Iterator[None]:
    """A ``with`` block in which a stop raises `Interrupted`. In any thread but the main one nothing changes."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, _heard) for number in HEARD}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)


@contextmanager
def politely() -> Iterator[list[int]]:
    """The numbers of the stops heard so far. The first only stands there, for a search to see; the next ones raise."""
    outer, asked = _Blocks.polite, []  # type: ignore[var-annotated]
    _Blocks.polite = asked
    try:
        yield asked
    finally:
        _Blocks.polite = outer


@contextmanager
def interrupts() -> Iterator[list[int]]:
    """A `politely` block for Ctrl-C in a program that uses einloom, which comes back with the handler that was there.

    Nothing is done in any thread but the main one, nor where somebody else's handler hears SIGINT already. Inside of
    such a block the numbers are those of the outer one.
    """
    handler = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread():
        yield []
    elif handler is _heard and _Blocks.polite is not None:
        yield _Blocks.polite
    elif handler is not signal.default_int_handler:
        yield []
    else:
        with politely() as asked:
            signal.signal(signal.SIGINT, _heard)
            try:
                yield asked
            finally:
                signal.signal(signal.SIGINT, handler)


@contextmanager
def held() -> Iterator[None]:
    """A short ``with`` block at whose end, and not before, a stop is heard."""
    _Blocks.held += 1
    try:
        yield
    finally:
        _Blocks.held -= 1
    while not _Blocks.held and _Blocks.waiting:
        _heard(_Blocks.waiting.pop(0), None)


def _heard(number: int, frame: FrameType | None) -> None:
    if _Blocks.held:
        _Blocks.waiting.append(number)
        return
    if _Blocks.polite is not None:
        _Blocks.polite.append(number)
        if len(_Blocks.polite) == 1:
            _say("stopping; the same again stops at once")
            return
    raise Interrupted(number)


def _leave(number: int, frame: FrameType | None) -> None:
    _say(words(number))
    os._exit(exit_code(number))


def _say(text: str) -> None:
    """A line on standard error, past all buffers: the signal may have come while one was being written."""
    with suppress(OSError):
        os.write(2, f"einloom: {text}\n".encode())
