"""Edits of the data of result files, for tests that forge them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Data = dict[str, Any]
Edit = Callable[[Data], None]


def put(*path: str | int, value: Any) -> Edit:
    """Set one field; a callable value gets the old one."""

    def edit(data: Data) -> None:
        place: Any = data
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] = value(place[path[-1]]) if callable(value) else value

    return edit


def both(*edits: Edit) -> Edit:
    def edit(data: Data) -> None:
        for one in edits:
            one(data)

    return edit
