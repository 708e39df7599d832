"""What installed packages bring: entry points, found by group and name, loaded when they are asked for.

Groups: ``einloom.methods``, ``einloom.spaces``, ``einloom.components``, ``einloom.importers``, ``einloom.pictures``
(docs/how-to).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from inspect import Parameter, signature
from numbers import Integral, Real
from types import UnionType
from typing import TYPE_CHECKING, Any, Union, get_args, get_origin

from ..errors import EinloomError, EinloomWarning, SpecError, nearest, unknown

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

WRONG = (ArithmeticError, AssertionError, AttributeError, ImportError, LookupError, RuntimeError, SyntaxError)
MISTAKES = (*WRONG, TypeError, ValueError)
FAILURES: tuple[type[BaseException], ...] = (Exception, SystemExit)
"""Whatever the code of a package may end with. Ctrl-C and the end of a search are none of these."""
OURS = (EinloomError, MemoryError)
"""What is no mistake of a package, and passes."""
_WORDS = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
_NUMBERS: dict[object, tuple[type, str]] = {
    bool: (bool, "yes or no"),
    int: (Integral, "an integer"),
    float: (Real, "a number"),
}
"""Types of options that are checked: what a value must be, and that in words."""

_OFFERED: dict[tuple[str, str], Any] = {}
"""(group, name) -> what this session offers itself."""


def brought(group: str, shipped: Iterable[str] = ()) -> tuple[str, ...]:
    """The names that installed packages, or this session, give in a group, in alphabetical order, without those that
    ship."""
    offered = {name for kind, name in _OFFERED if kind == group}
    return tuple(sorted({*_points(group), *offered} - set(shipped)))


def names_of(group: str, shipped: Iterable[str]) -> tuple[str, ...]:
    """The names of all things of a group, those that ship first."""
    first = tuple(shipped)
    return (*first, *brought(group, first))


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


def loaded(group: str, name: str) -> Callable[..., Any]:
    """What the entry point refers to. Raises SpecError, with package and reason, if that cannot be imported, cannot be
    called, or is not the only one of that name."""
    if (group, name) in _OFFERED:
        found: Callable[..., Any] = _OFFERED[group, name]
        return found
    point, *others = _points(group)[name]
    if others:
        several = " and ".join(f"{package_of(one)} ({one.value})" for one in (point, *others))
        raise SpecError(f"{name!r} is brought by {several} ({group}), and only one of them can have that name")
    where = f"{name!r} of {package_of(point)} ({group}: {point.value})"
    try:
        found = point.load()
    except FAILURES as error:
        raise SpecError(f"{where} cannot be loaded: {reason_of(error)}") from error
    if not callable(found):
        raise SpecError(f"{where} is {found!r:.80}, neither a class nor a function")
    return found


def each(group: str, what: str, shipped: Iterable[str], make: Callable[[str], Any]) -> Iterator[tuple[str, Any]]:
    """(name, what `make` makes of it) of everything that was brought. Warns of what fails and is left out, and of what
    is never used."""
    tell_unused(group, what, shipped)
    for name in brought(group, shipped):
        try:
            made = make(name)
        except SpecError as error:
            left_out(error)
        else:
            yield name, made


def left_out(why: SpecError) -> None:
    """Warn that something which nobody asked for by its name is left out, and why."""
    warnings.warn(f"left out: {why}", EinloomWarning, stacklevel=2)


def tell_unused(group: str, what: str, shipped: Iterable[str]) -> None:
    """Warn of everything that is never used, because something that ships has its name."""
    points = _points(group)
    for name in shipped:
        for point in points.get(name, ()):
            told = f"{what} {name!r} of {package_of(point)} is never used: einloom has a {what} of that name"
            warnings.warn(told, EinloomWarning, stacklevel=2)


def entry_faults(group: str, made: object, name: str, shipped: Iterable[str]) -> Iterator[str]:
    """What is wrong with the entry points that refer to the class of an object which calls itself `name`."""
    maker, first = type(made), tuple(shipped)
    for called, points in _points(group).items():
        if all((point.module, point.attr) != (maker.__module__, maker.__qualname__) for point in points):
            continue
        if called in first:
            yield f"its entry point is called {called!r}, as one that ships, and is never used"
        elif called != name:
            yield f"it calls itself {name!r}, and its entry point is called {called!r}"
        if len(points) > 1:
            yield f"several packages have an entry point {called!r}: {', '.join(map(package_of, points))}"


def forget() -> None:
    """Look again at what is installed, and forget what was offered: for tests, and after an installation."""
    _OFFERED.clear()
    _points.cache_clear()


@cache
def _points(group: str) -> dict[str, tuple[EntryPoint, ...]]:
    """The entry points of each name; those of several packages that refer to the same thing are one."""
    from importlib.metadata import entry_points  # takes as long to import as a tenth of numpy

    found: dict[str, dict[str, EntryPoint]] = {}
    for point in entry_points(group=group):
        found.setdefault(point.name, {}).setdefault(point.value, point)
    return {name: tuple(points.values()) for name, points in found.items()}


def package_of(point: EntryPoint) -> str:
    """The name of the package that an entry point belongs to."""
    return point.dist.name if point.dist is not None else point.module


def reason_of(error: BaseException) -> str:
    """An exception in words: its class, and what it says."""
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


def parameters(what: str, name: str, maker: Callable[..., Any]) -> dict[str, Parameter]:
    """The keyword arguments of `maker` with their types, whichever class they come from.

    Raises SpecError if they cannot be found out.
    """
    try:
        found = signature(maker, eval_str=True).parameters
    except FAILURES as error:
        raise SpecError(f"the options of {what} {name!r} cannot be read: {reason_of(error)}") from error
    kinds = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)
    return {key: parameter for key, parameter in found.items() if parameter.kind in kinds}


def built(what: str, name: str, maker: Callable[..., Any], options: Mapping[str, object]) -> Any:
    """What `maker` makes of these options: texts are read as the types of its keyword arguments, other values have
    them.

    what: a method, an importer, a component, a picture. Raises SpecError for an option that it does not have or that
    cannot have the value, and if nothing can be made. Warns if what is made calls itself by another name.
    """
    known = parameters(what, name, maker)
    for key in options:
        if key not in known:
            has = f"it has {', '.join(known)}" if known else "it has none"
            raise SpecError(f"{what} {name!r} has no option {key!r:.80}; {has}", suggestion=nearest(key, known))
    given = {key: _value(f"{what} {name!r}", key, value, _kind(known[key])) for key, value in options.items()}
    try:
        made = maker(**given)
    except OURS:
        raise
    except (TypeError, ValueError) as error:
        raise SpecError(f"{what} {name!r}: {error}") from error
    except FAILURES as error:
        raise SpecError(f"{what} {name!r} cannot be made: {reason_of(error)}") from error
    if (called := getattr(made, "name", name)) != name:
        told = f"{what} {name!r} calls itself {called!r:.80}; its class and its entry point need one name"
        warnings.warn(told, EinloomWarning, stacklevel=2)
    return made


def _kind(option: Parameter) -> object:
    return str if option.annotation is Parameter.empty else option.annotation


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
