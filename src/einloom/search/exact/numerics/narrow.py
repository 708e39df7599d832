"""Arrays of many short rows: asked column by column, since NumPy reduces short rows slowly, and taken in pieces."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

MANY = 128  # rows from which on columns are quicker
PIECE = 1 << 18  # rows between two looks at what stops a search


def slices(rows: int) -> list[slice]:
    """Consecutive slices of at most PIECE rows that make up so many; one, empty, of none."""
    return [slice(first, min(first + PIECE, rows)) for first in range(0, max(rows, 1), PIECE)]


def every(mask: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Mask [n] of the rows of a mask [n, columns] that are true throughout.

    >>> every(np.array([[True, True], [True, False]])).tolist()
    [True, False]
    """
    return _reduced(np.logical_and, mask)


def largest(values: NDArray[Any]) -> NDArray[Any]:
    """The largest number of every row [n, columns], of which there is at least one."""
    return _reduced(np.maximum, values)


def multiplied(values: NDArray[np.int64]) -> NDArray[np.int64]:
    """The product of every row [n, columns]; 1 without columns."""
    return _reduced(np.multiply, values)


def _reduced(function: np.ufunc, values: NDArray[Any]) -> NDArray[Any]:
    """A function of two numbers over every row [n, columns]."""
    if len(values) < MANY or not values.shape[1]:
        return np.asarray(function.reduce(values, axis=1))
    found = values[:, 0].copy()
    for column in range(1, values.shape[1]):
        function(found, values[:, column], out=found)
    return found


def varying(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Mask of the columns of [n, columns], of at least one row, that hold different numbers."""
    if len(values) < MANY:
        return np.asarray(values.max(axis=0) > values.min(axis=0))
    return np.array([(values[:, c] != values[0, c]).any() for c in range(values.shape[1])], bool)
