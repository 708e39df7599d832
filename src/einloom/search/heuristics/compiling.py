"""Machine code that is made while a search goes on, by a process beside it, and kept for this search and later ones.

Comes in: which kernel a search waits for. Goes out: whether it may still come. The process has the least priority and
ends by itself, later than the search if need be; several compile one after the other. Nothing is compiled beside a
search where the machine has one core or is short of memory, or where the environment says EINLOOM_COMPILE=never.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from runpy import run_module

from ..resources import available_bytes, unlimited

SWITCH = "EINLOOM_COMPILE"  # environment variable; "never": nothing is compiled beside a search
ROOM = 2 << 30  # bytes that must be free: compiling takes 340 MiB
LOOKED = 1.0  # seconds from one look at the cache to the next, while machine code is made
FLAGS = os.O_CREAT | os.O_RDWR | getattr(os, "O_NOFOLLOW", 0)  # of the file that a process locks while it compiles
SPACES = {"even": "ffm", "uneven": "ragged"}
SEARCH = "map matmul:m=4,n=4,k=4 two-level --method anneal --budget-steps 40000".split()


class KernelCompiler:
    """The process that compiles for this one: at most one, started once."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._looked = 0.0

    @property
    def waits(self) -> bool:
        """True if the process is at work, and the cache was looked at a moment ago."""
        working = self._process is not None and self._process.poll() is None
        return working and time.monotonic() < self._looked + LOOKED

    def begun(self, uneven: bool) -> bool:
        """True if machine code may still come: the process is at work, or starts now."""
        self._looked = time.monotonic()
        if self._process is not None:
            return self._process.poll() is None
        if not able():
            return False
        command = [sys.executable, "-m", __name__, *sorted(SPACES, reverse=uneven)]
        null = subprocess.DEVNULL
        with suppress(OSError), unlimited():  # the limits of a search are not those of its compiler
            self._process = subprocess.Popen(command, stdin=null, stdout=null, stderr=null, start_new_session=True)
        return self._process is not None


def able() -> bool:
    """True if machine code may be made beside a search here."""
    free = available_bytes()
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    allowed = os.environ.get(SWITCH) != "never" and bool(sys.executable)
    return allowed and cores > 1 and (free is None or free >= ROOM)


COMPILER = KernelCompiler()


def compile_all(kinds: Iterable[str]) -> None:
    """Search tiny problems by a method that compiles what it needs and keeps it, with even or with uneven tiles."""
    for kind in kinds:
        sys.argv = ["einloom", *SEARCH, "--space", SPACES[kind]]
        with suppress(SystemExit):
            run_module("einloom", run_name="__main__")


def alone() -> bool:
    """Wait until no other process of this user compiles. False if the parent of this one has ended by then; True where
    files cannot be locked."""
    try:
        import fcntl
    except ImportError:
        return True
    parent = os.getppid()
    try:
        lock = os.open(Path(tempfile.gettempdir()) / f"einloom-compiles-{os.getuid()}", FLAGS, 0o600)
    except OSError:
        return False
    while True:
        with suppress(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        if os.getppid() != parent:
            return False
        time.sleep(LOOKED)


if __name__ == "__main__":
    if alone():
        if hasattr(os, "nice"):
            os.nice(19)
        compile_all(sys.argv[1:])
