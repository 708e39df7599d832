"""Rows kept as parallel arrays: what several tables of the search do with them."""

from __future__ import annotations

from copy import copy
from itertools import accumulate, chain
from typing import Any, ClassVar, Self

import numpy as np


class RowTable:
    """A dataclass some of whose fields have one entry per row.

    COLUMNS: the names of these; `take` and `stacked` leave all others as they are.
    """

    COLUMNS: ClassVar[tuple[str, ...]]

    def take(self, index: np.ndarray) -> Self:
        """Some of the rows."""
        found = copy(self)
        for name in self.COLUMNS:
            setattr(found, name, getattr(self, name)[index])
        return found

    @classmethod
    def stacked(cls, parts: list[Self], **others: Any) -> Self:
        """The rows of all parts, and for the rest what the first part has. others: fields that are known better."""
        found = copy(parts[0])
        columns = {
            name: np.concatenate([getattr(p, name) for p in parts]) for name in cls.COLUMNS if name not in others
        }
        for name, value in {**columns, **others}.items():
            setattr(found, name, value)
        return found

    @classmethod
    def united(cls, parts: list[Self], number: str, of: str) -> Self:
        """The rows of all parts. number: the column that numbers what `of` has; both go on from part to part."""
        every = [getattr(p, of) for p in parts]
        starts = accumulate(map(len, every), initial=0)
        numbers = np.concatenate([getattr(p, number) + start for p, start in zip(parts, starts, strict=False)])
        return cls.stacked(parts, **{number: numbers, of: tuple(chain.from_iterable(every))})
