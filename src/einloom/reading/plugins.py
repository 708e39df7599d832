"""What installed packages bring: entry points, found by group and name, loaded when they are asked for.

Groups: ``einloom.methods``, ``einloom.spaces``, ``einloom.formats``, ``einloom.pictures`` (docs/how-to).
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from ..errors import SpecError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

WRONG = (ArithmeticError, AssertionError, AttributeError, ImportError, LookupError, RuntimeError, SyntaxError)
MISTAKES = (*WRONG, TypeError, ValueError)


def brought(group: str) -> tuple[str, ...]:
    """The names that installed packages give in a group, in alphabetical order."""
    return tuple(sorted(_points(group)))


def loaded(group: str, name: str) -> Any:
    """What the entry point refers to. Raises SpecError with package and reason if it cannot be imported."""
    point = _points(group)[name]
    try:
        return point.load()
    except MISTAKES as error:
        package = point.dist.name if point.dist is not None else point.module
        reason = f"{type(error).__name__}: {error}"
        raise SpecError(f"{name!r} of {package} ({group}: {point.value}) cannot be loaded: {reason}") from error


def forget() -> None:
    """Look again at what is installed: for tests, and for sessions that install something."""
    _points.cache_clear()


@cache
def _points(group: str) -> dict[str, EntryPoint]:
    from importlib.metadata import entry_points  # takes as long to import as a tenth of numpy

    return {point.name: point for point in entry_points(group=group)}
