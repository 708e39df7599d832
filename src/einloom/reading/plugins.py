"""What installed packages bring: entry points, found by group and name, loaded when they are asked for.

Groups: ``einloom.methods``, ``einloom.spaces``, ``einloom.components``, ``einloom.importers``, ``einloom.pictures``
(docs/how-to).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from inspect import Parameter, signature
from numbers import Integral, Real
from types import UnionType
from typing import TYPE_CHECKING, Any, Union, get_args, get_origin, get_type_hints

from ..errors import SpecError, nearest, unknown

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

WRONG = (ArithmeticError, AssertionError, AttributeError, ImportError, LookupError, RuntimeError, SyntaxError)
MISTAKES = (*WRONG, TypeError, ValueError)
_WORDS = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
_NUMBERS: dict[object, tuple[type, str]] = {
    bool: (bool, "yes or no"),
    int: (Integral, "an integer"),
    float: (Real, "a number"),
}
"""Types of options that are checked: what a value must be, and that in words."""

_OFFERED: dict[tuple[str, str], Any] = {}
"""(group, name) -> what this session offers itself."""


def brought(group: str) -> tuple[str, ...]:
    """The names that installed packages, or this session, give in a group, in alphabetical order."""
    return tuple(sorted({*_points(group), *(name for kind, name in _OFFERED if kind == group)}))


def names_of(group: str, shipped: Iterable[str]) -> tuple[str, ...]:
    """The names of all things of a group, those that ship first."""
    first = tuple(shipped)
    return (*first, *(name for name in brought(group) if name not in first))


def known(group: str, what: str, name: str, shipped: Iterable[str]) -> str:
    """`name`, if something ships or was brought under it. Raises SpecError with a suggestion for any other."""
    first = tuple(shipped)
    if name in first:  # found without a look at what is installed, which takes time
        return name
    names = names_of(group, first)
    if name not in names:
        raise unknown(what, name, names)
    return name


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


def built(what: str, name: str, maker: Callable[..., Any], options: Mapping[str, object]) -> Any:
    """What `maker` makes of these options: texts are read as the types of its keyword arguments, other values have
    them.

    what: a method, an importer. Raises SpecError for an option that it does not have or that cannot have the value.
    """
    known = {
        key: parameter
        for key, parameter in signature(maker).parameters.items()
        if parameter.kind in (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)
    }
    for key in options:
        if key not in known:
            has = f"it has {', '.join(known)}" if known else "it has none"
            raise SpecError(f"{what} {name!r} has no option {key!r:.80}; {has}", suggestion=nearest(key, known))
    hints = get_type_hints(vars(maker).get("__init__", maker) if isinstance(maker, type) else maker)
    try:
        texts = options.items()
        return maker(**{key: _value(f"{what} {name!r}", key, value, hints.get(key, str)) for key, value in texts})
    except (TypeError, ValueError) as error:
        raise SpecError(f"{what} {name!r}: {error}") from error


def _value(what: str, key: str, value: object, wanted: object) -> object:
    """An option's value, which has the type that is wanted; a text is read as that type."""
    kinds = get_args(wanted) if get_origin(wanted) in (Union, UnionType) else (wanted,)
    if not isinstance(value, str):
        if all(kind in _NUMBERS for kind in kinds if kind is not type(None)) and not any(_is(value, k) for k in kinds):
            raise _unlike(what, key, value, kinds[0])
        return int(value) if type(value) is not bool and isinstance(value, Integral) else value  # not NumPy's
    kind = next((one for one in kinds if one is not type(None)), wanted)  # of int | None, int
    try:
        if kind is bool:
            return _WORDS[value.lower()]
        return kind(value) if kind in (int, float) else value
    except (KeyError, ValueError):
        raise _unlike(what, key, value, kind) from None


def _is(value: object, kind: object) -> bool:
    """True if the value has the type of an option, where that is a number, yes or no, or nothing."""
    if isinstance(value, bool):
        return kind is bool
    return value is None if kind is type(None) else isinstance(value, _NUMBERS[kind][0])


def _unlike(what: str, key: str, value: object, kind: object) -> SpecError:
    return SpecError(f"{what}, option {key}: {value!r:.80} is not {_NUMBERS[kind][1]}")
