"""Where things stand in a JSON text: Python's parser is fast and keeps no places, so they are looked up when asked for.

Below `located`. The text has been accepted by `json.loads`; subtrees on the way are skipped by its own scanner.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from .yamltree import HALF, SURROGATE, Place, place, refused_at

_SPACE = re.compile(r"[ \t\n\r]*")
_STRING = r'"(?:[^"\\]|\\.)*"'
_ODD = re.compile(rf"(?P<key>{_STRING})[ \t\n\r]*:|{_STRING}|(?P<mark>[{{}}])|(?P<constant>NaN|-?Infinity)", re.DOTALL)


class JsonPlaces:
    """Line and column of the values of one text. A *trail* is the way to a value from the top: places among siblings.

    >>> JsonPlaces('{"a": 1,\\n "b": [2, 3]}').value((1, 0)), JsonPlaces('{"a": 1,\\n "b": [2, 3]}').key((1,))
    ((2, 8), (2, 2))
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._decoder = json.JSONDecoder(strict=False)
        self._opened: dict[int, list[tuple[int, int]]] = {}

    def value(self, trail: Sequence[int]) -> Place:
        """Where the value at the end of the trail begins."""
        return place(self._text, self._offset(trail))

    def key(self, trail: Sequence[int]) -> Place:
        """Where the key of the value at the end of the trail begins."""
        return place(self._text, self._children(self._offset(trail[:-1]))[trail[-1]][0])

    def _offset(self, trail: Sequence[int]) -> int:
        offset = self._skip(0)
        for index in trail:
            offset = self._children(offset)[index][1]
        return offset

    def _children(self, offset: int) -> list[tuple[int, int]]:
        """Offsets of (key, value) of each child of the object or list at `offset`; in a list the key is the value."""
        if offset in self._opened:
            return self._opened[offset]
        found: list[tuple[int, int]] = []
        closing = "}" if self._text[offset] == "{" else "]"
        at = self._skip(offset + 1)
        while self._text[at] != closing:
            key = at
            if closing == "}":
                at = self._skip(self._skip(self._after(at)) + 1)
            found.append((key, at))
            at = self._skip(self._after(at))
            if self._text[at] == ",":
                at = self._skip(at + 1)
        self._opened[offset] = found
        return found

    def _after(self, offset: int) -> int:
        return self._decoder.raw_decode(self._text, offset)[1]

    def _skip(self, offset: int) -> int:
        match = _SPACE.match(self._text, offset)
        return offset if match is None else match.end()


def refuse_oddities(text: str, file: str) -> None:
    """Raise SpecError for what `json.loads` accepts and einloom does not.

    NaN, Infinity, a key twice in one object, a lone surrogate.
    """
    inside: list[dict[str, int]] = []
    for match in _ODD.finditer(text):
        if "\\u" in match.group() and SURROGATE.search(json.loads(match["key"] or match.group(), strict=False)):
            raise refused_at(match.start(), f"{match.group():.40}: {HALF}", text, file)
        if match["mark"] == "{":
            inside.append({})
        elif match["mark"] == "}" and inside:
            inside.pop()
        elif match["constant"]:
            raise refused_at(match.start(), f"{match['constant']} is not a number", text, file)
        elif match["key"] and inside:
            name = json.loads(match["key"], strict=False)
            if name in inside[-1]:
                first, _ = place(text, inside[-1][name])
                message = f"key {name!r:.80} stands twice in one object, first in line {first}"
                raise refused_at(match.start(), message, text, file)
            inside[-1][name] = match.start()
