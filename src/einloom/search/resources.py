"""How much memory the process holds, how much it may still take, and a stop where it takes more.

Tables grow by a hundred megabytes between two looks at `resident_bytes`. So Linux is asked to refuse what is too much:
RLIMIT_DATA counts all writable memory that a process has asked for. Elsewhere only the looks are left.
"""

from __future__ import annotations

import gc
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import lru_cache
from pathlib import Path

LEAST_ROOM = 16 << 20  # bytes that are left to a search in any case, to end it in good order
COLLECTED_AT = 20_000  # new objects until Python looks for circles; by default 700, which took 8 % of a long search
SHARE = 2  # by default a search takes one part in so many of the memory that the machine has free
GROUPS = Path("/sys/fs/cgroup")
NAMES = {
    "": ("", "memory.max", "memory.current", "inactive_file"),
    "memory": ("memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
}
"""Controllers as /proc/self/cgroup lists them -> folder, limit, use, and what of the use could be given back."""


def resident_bytes() -> int:
    """Bytes of the process in memory now; where the system does not tell, the most that it ever held."""
    try:
        return _pages()[1] * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        import resource

        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else peak * 1024


def _pages() -> list[int]:
    """Pages of the process, as Linux tells them: all, resident, shared, text, unused, data and stack."""
    with open("/proc/self/statm", "rb") as stream:
        return [int(word) for word in stream.read().split()]


def available_bytes(proc: Path = Path("/proc"), groups: Path = GROUPS) -> int | None:
    """Bytes that the process could still take before the system is short, or its control group; None if unknown."""
    try:
        table = dict(line.split(":", 1) for line in (proc / "meminfo").read_text().splitlines())
        free = [int(table["MemAvailable"].split()[0]) * 1024]
        listed = [line.split(":", 2) for line in (proc / "self/cgroup").read_text().splitlines()]
    except (OSError, ValueError, KeyError):
        return None
    for _, controller, path in listed:
        if controller in NAMES:
            top, *names = NAMES[controller]
            places = {groups / top / path.lstrip("/"), groups / top}
            free += [room for place in places if (room := _room(place, *names)) is not None]
    return max(min(free), 0)


def _room(place: Path, limit: str, use: str, spare: str) -> int | None:
    """What is left of a control group's limit; None without one."""
    try:
        most = (place / limit).read_text().strip()
        table = dict(line.split() for line in (place / "memory.stat").read_text().splitlines())
        return None if most == "max" else int(most) - int((place / use).read_text()) + int(table.get(spare, "0"))
    except (OSError, ValueError):
        return None


@contextmanager
def at_most(memory: int | None) -> Iterator[None]:
    """A ``with`` block in which the process does not grow beyond so many bytes: MemoryError instead.

    None: beyond a share of what the machine has free: others need memory too, and the system would kill it. The limit
    is one of the whole process, so only the main thread sets it.
    """
    room = _growth(memory)
    if room is None:
        yield
        return
    wanted = _pages()[5] * os.sysconf("SC_PAGE_SIZE") + max(room, LEAST_ROOM)
    with _limited(lambda soft, hard: _least(wanted, soft, hard)):
        yield


@contextmanager
def _limited(chosen: Callable[[int, int], int]) -> Iterator[None]:
    """A ``with`` block with a soft limit that is chosen from the soft and the hard one before it."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (chosen(soft, hard), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def _growth(memory: int | None) -> int | None:
    """Bytes by which the process may grow; None for no limit."""
    if not sys.platform.startswith("linux") or threading.current_thread() is not threading.main_thread():
        return None
    most = _ceiling(int(time.monotonic())) if memory is None else memory
    return None if most is None else most - resident_bytes()


@lru_cache(maxsize=1)
def _ceiling(second: int) -> int | None:
    """Bytes that the process may hold without harm to others; asked once a second, because it takes milliseconds."""
    free = available_bytes()
    return None if free is None else resident_bytes() + free // SHARE


def growth_left() -> float:
    """Bytes that the process may still ask for within the limit that `at_most` has set; infinite without one."""
    if not sys.platform.startswith("linux"):
        return float("inf")
    import resource

    soft, _ = resource.getrlimit(resource.RLIMIT_DATA)
    return float("inf") if soft < 0 else soft - _pages()[5] * os.sysconf("SC_PAGE_SIZE")


def _least(wanted: int, *limits: int) -> int:
    """The smallest of the limits; negative ones are none."""
    return min([wanted, *(limit for limit in limits if limit >= 0)])


@contextmanager
def rarely_collected() -> Iterator[None]:
    """A ``with`` block in which Python looks for circles of objects less often: tables are many objects without."""
    known = gc.get_threshold()
    gc.set_threshold(max(known[0], COLLECTED_AT) if known[0] else 0, *known[1:])
    try:
        yield
    finally:
        gc.set_threshold(*known)


@contextmanager
def unlimited() -> Iterator[None]:
    """A ``with`` block for code that is not ready for a refusal, such as a compiler's."""
    with _limited(lambda soft, hard: hard) if sys.platform.startswith("linux") else nullcontext():
        yield
