"""What installed packages bring: entry points, found by group and name, loaded when they are asked for.

Groups: ``einloom.methods``, ``einloom.spaces``, ``einloom.components``, ``einloom.pictures``, ``einloom.formats``
(docs/how-to).
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from ..errors import SpecError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

WRONG = (ArithmeticError, AssertionError, AttributeError, ImportError, LookupError, RuntimeError, SyntaxError)
MISTAKES = (*WRONG, TypeError, ValueError)


_OFFERED: dict[tuple[str, str], Any] = {}
"""(group, name) -> what this session offers itself."""


def brought(group: str) -> tuple[str, ...]:
    """The names that installed packages, or this session, give in a group, in alphabetical order."""
    return tuple(sorted({*_points(group), *(name for kind, name in _OFFERED if kind == group)}))


def offer(group: str, name: str, thing: Any) -> None:
    """From now on `loaded` finds the thing under this name, as if an installed package had brought it."""
    _OFFERED[group, name] = thing


def loaded(group: str, name: str) -> Any:
    """What the entry point refers to. Raises SpecError with package and reason if it cannot be imported."""
    if (group, name) in _OFFERED:
        return _OFFERED[group, name]
    point = _points(group)[name]
    try:
        return point.load()
    except MISTAKES as error:
        package = point.dist.name if point.dist is not None else point.module
        reason = f"{type(error).__name__}: {error}"
        raise SpecError(f"{name!r} of {package} ({group}: {point.value}) cannot be loaded: {reason}") from error


def forget() -> None:
    """Look again at what is installed, and forget what was offered: for tests, and after an installation."""
    _OFFERED.clear()
    _points.cache_clear()


@cache
def _points(group: str) -> dict[str, EntryPoint]:
    from importlib.metadata import entry_points  # takes as long to import as a tenth of numpy

    return {point.name: point for point in entry_points(group=group)}
