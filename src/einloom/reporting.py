"""The door from data to its pictures, texts and files: whoever makes these registers here, and objects that are asked
to draw, print or write themselves call it.

Data comes before its pictures and files in the flow and knows nothing of them: `einloom` itself introduces the two.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_DRAWERS: dict[str, Callable[..., Any]] = {}


def register(what: str, draw: Callable[..., Any]) -> None:
    """From now on `draw` answers for `what`: html, page, frame, comparison, or a function of files."""
    _DRAWERS[what] = draw


def reported(what: str, *arguments: object) -> Any:
    """What the one registered for `what` makes of the arguments."""
    return _DRAWERS[what](*arguments)


class Drawn:
    """Something that notebooks draw."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        """The object as a piece of HTML without scripts."""
        return str(reported("html", self))
