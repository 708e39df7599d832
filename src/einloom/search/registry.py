"""The search methods by name: those that ship, and those that installed packages bring.

A package names its methods as entry points of the group ``einloom.methods``; each refers to a class (or a function)
whose keyword arguments are the method's options. How to write one: docs/how-to/my-optimizer.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from inspect import Parameter, signature
from typing import get_type_hints

from ..errors import SpecError, nearest
from ..reading.plugins import brought, loaded
from .method import Method

GROUP = "einloom.methods"
SHIPPED = ("exact", "exhaustive", "principles", "random", "anneal")
_MADE = {  # name -> module and class, imported when asked for
    "exact": ("shipped", "ExactMethod"),
    "exhaustive": ("enumerated", "Enumerated"),
    "principles": ("shipped", "PrinciplesMethod"),
    "random": ("heuristics.sampling", "RandomSearch"),
    "anneal": ("heuristics.anneal", "Anneal"),
}
_WORDS = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}


def methods() -> tuple[str, ...]:
    """The names of all search methods, those that ship first."""
    return (*SHIPPED, *(name for name in brought(GROUP) if name not in SHIPPED))


def method(name: str, options: Mapping[str, object] | None = None) -> Method:
    """The method called `name`, made with these options, whose texts are read as the options' types.

    Raises SpecError with a suggestion for an unknown name or option, and for a value that the option cannot have.
    """
    return _built(name, _maker(name), options or {})


def ships(asked: Method) -> bool:
    """True if the method is one of einloom's own, which check their results themselves."""
    return type(asked).__module__.partition(".")[0] == __name__.partition(".")[0]


@cache
def _maker(name: str) -> Callable[..., Method]:
    if name in _MADE:
        module, made = _MADE[name]
        maker: Callable[..., Method] = getattr(import_module(f".{module}", __package__), made)
        return maker
    if name not in brought(GROUP):
        known = ", ".join(methods())
        raise SpecError(f"unknown method {name!r:.80}; known are {known}", suggestion=nearest(name, methods()))
    found: Callable[..., Method] = loaded(GROUP, name)
    return found


def _built(name: str, maker: Callable[..., Method], options: Mapping[str, object]) -> Method:
    known = {
        key: parameter
        for key, parameter in signature(maker).parameters.items()
        if parameter.kind in (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)
    }
    for key in options:
        if key not in known:
            has = f"it has {', '.join(known)}" if known else "it has none"
            raise SpecError(f"method {name!r} has no option {key!r:.80}; {has}", suggestion=nearest(key, known))
    hints = get_type_hints(vars(maker).get("__init__", maker) if isinstance(maker, type) else maker)
    try:
        return maker(**{key: _value(name, key, value, hints.get(key, str)) for key, value in options.items()})
    except (TypeError, ValueError) as error:
        raise SpecError(f"method {name!r}: {error}") from error


def _value(name: str, key: str, value: object, wanted: object) -> object:
    """An option's value; a text is read as the type that is wanted."""
    if not isinstance(value, str) or wanted is str:
        return value
    try:
        if wanted is bool:
            return _WORDS[value.lower()]
        return wanted(value) if wanted in (int, float) else value
    except (KeyError, ValueError):
        kind = {bool: "yes or no", int: "an integer", float: "a number"}[wanted]  # type: ignore[index]
        raise SpecError(f"method {name!r}, option {key}: {value!r:.80} is not {kind}") from None
