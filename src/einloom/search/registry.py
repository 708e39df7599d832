"""The search methods by name: those that ship, and those that installed packages bring.

A package names its methods as entry points of the group ``einloom.methods``; each refers to a class (or a function)
whose keyword arguments are the method's options. How to write one: docs/how-to/my-optimizer.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module

from ..errors import BrokenMethod
from ..problem import Guarantee
from ..reading.plugins import built, known, loaded, names_of, parameters, tell_unused
from .method import Capabilities, Method

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

    Raises SpecError with a suggestion for an unknown name or option, and for a value that the option cannot have;
    BrokenMethod if a package brings something else under that name.
    """
    made: Method = built("method", name, _maker(name), options or {})
    if name not in _MADE and (why := flaw(made)) is not None:
        raise BrokenMethod(name, why)
    return made


def flaw(made: object) -> str | None:
    """Why an object is no method, in words; None if it is one."""
    if isinstance(made, type):
        return f"it is a class; give an object: {made.__name__}()"
    kinds = {"name": str, "guarantee": Guarantee, "able": Capabilities, "search": object}
    for name, kind in kinds.items():
        if not hasattr(made, name):
            return f"it lacks {name}"
        if not isinstance(value := getattr(made, name), kind):
            return f"its {name} is {value!r:.80}, and no {kind.__name__}"
    if (called := getattr(made, "name", None)) in _MADE and not ships(made):
        return f"it calls itself {called!r}, as a method that ships"
    return None


def tell_unused_methods() -> None:
    """Warn of methods of installed packages that are never used, because they have the names of methods that ship."""
    tell_unused(GROUP, "method", SHIPPED)


def takes(name: str, option: str) -> bool:
    """True if the method of that name has such an option. Raises SpecError for an unknown name."""
    return option in parameters("method", name, _maker(name))


def ships(asked: object) -> bool:
    """True if the method is one of einloom's own, which check their results themselves."""
    return type(asked).__module__.partition(".")[0] == __name__.partition(".")[0]


def _maker(name: str) -> Callable[..., Method]:
    if name in _MADE:
        module, made = _MADE[name]
        maker: Callable[..., Method] = getattr(import_module(f".{module}", __package__), made)
        return maker
    found: Callable[..., Method] = loaded(GROUP, known(GROUP, "method", name, SHIPPED))
    return found
