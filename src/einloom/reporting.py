"""The door from data to `report`: objects that are asked to draw themselves open it, and nothing opens it before.

Data comes before `report` in the flow, so it is named here by text only: importing data imports nothing of it.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any


def reported(function: str, *arguments: object) -> Any:
    """What ``MODULE.FUNCTION`` of `einloom.report` makes of the arguments."""
    module, _, name = function.rpartition(".")
    return getattr(import_module(f"einloom.report.{module}"), name)(*arguments)


class Drawn:
    """Something that notebooks draw."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        """The object as a piece of HTML without scripts."""
        return str(reported("notebook.draw", self))
