"""Two answers field by field: where they differ, and how."""

from __future__ import annotations

from collections.abc import Iterator
from math import isclose
from typing import Any

SAME = 1e-9


def differences(recorded: Any, now: Any, place: str = "") -> Iterator[str]:
    """A line for each field that differs; floats are the same within 1e-9."""
    if isinstance(recorded, dict) and isinstance(now, dict):
        for key in dict.fromkeys((*recorded, *now)):
            yield from _both(recorded, now, key, f"{place}.{key}" if place else key)
    elif isinstance(recorded, list) and isinstance(now, list):
        longer = max(len(recorded), len(now))
        for i in range(longer):
            yield from _both(dict(enumerate(recorded)), dict(enumerate(now)), i, f"{place}[{i}]")
    elif not _same(recorded, now):
        yield f"{place}: recorded {recorded!r}, now {now!r}"


def _both(recorded: dict[Any, Any], now: dict[Any, Any], key: Any, place: str) -> Iterator[str]:
    if key not in recorded:
        yield f"{place}: not recorded, now {now[key]!r}"
    elif key not in now:
        yield f"{place}: recorded {recorded[key]!r}, now gone"
    else:
        yield from differences(recorded[key], now[key], place)


def _same(recorded: Any, now: Any) -> bool:
    numbers = all(isinstance(one, int | float) and not isinstance(one, bool) for one in (recorded, now))
    if numbers and (isinstance(recorded, float) or isinstance(now, float)):
        return isclose(recorded, now, rel_tol=SAME)
    return type(recorded) is type(now) and recorded == now
