"""The search methods by name: those that ship, and those that installed packages bring.

A package names its methods as entry points of the group ``einloom.methods``; each refers to a class (or a function)
whose keyword arguments are the method's options. How to write one: docs/how-to/my-optimizer.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from inspect import signature

from ..reading.plugins import built, known, loaded, names_of
from .method import Method

GROUP = "einloom.methods"
_MADE = {  # name -> module and class, imported when asked for
    "exact": ("shipped", "ExactMethod"),
    "exhaustive": ("enumerated", "Enumerated"),
    "principles": ("principles", "Principles"),
    "random": ("heuristics.sampling", "RandomSearch"),
    "anneal": ("heuristics.anneal", "Anneal"),
    "genetic": ("heuristics.genetic", "Genetic"),
    "local": ("heuristics.local", "LocalSearch"),
    "tileflow": ("heuristics.tileflow", "Tileflow"),
    "dat": ("heuristics.dat", "Dat"),
    "gradient": ("heuristics.gradient", "Gradient"),
    "bayes": ("heuristics.bayes", "Bayes"),
    "auto": ("heuristics.auto", "Auto"),
}
SHIPPED = tuple(_MADE)


def methods() -> tuple[str, ...]:
    """The names of all search methods, those that ship first."""
    return names_of(GROUP, SHIPPED)


def method(name: str, options: Mapping[str, object] | None = None) -> Method:
    """The method called `name`, made with these options, whose texts are read as the options' types.

    Raises SpecError with a suggestion for an unknown name or option, and for a value that the option cannot have.
    """
    made: Method = built("method", name, _maker(name), options or {})
    return made


def takes(name: str, option: str) -> bool:
    """True if the method of that name has such an option. Raises SpecError for an unknown name."""
    return option in signature(_maker(name)).parameters


def ships(asked: Method) -> bool:
    """True if the method is one of einloom's own, which check their results themselves."""
    return type(asked).__module__.partition(".")[0] == __name__.partition(".")[0]


@cache
def _maker(name: str) -> Callable[..., Method]:
    if name in _MADE:
        module, made = _MADE[name]
        maker: Callable[..., Method] = getattr(import_module(f".{module}", __package__), made)
        return maker
    found: Callable[..., Method] = loaded(GROUP, known(GROUP, "method", name, SHIPPED))
    return found
