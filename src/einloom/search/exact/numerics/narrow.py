"""Questions about arrays of many short rows, column by column: NumPy reduces short rows slowly, one after the other."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

MANY = 128  # rows from which on columns are quicker


def every(mask: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Mask [n] of the rows of a mask [n, columns] that are true throughout.

    >>> every(np.array([[True, True], [True, False]])).tolist()
    [True, False]
    """
    if len(mask) < MANY or not mask.shape[1]:
        return np.asarray(mask.all(axis=1))
    found = mask[:, 0].copy()
    for column in range(1, mask.shape[1]):
        found &= mask[:, column]
    return found


def largest(values: NDArray[Any]) -> NDArray[Any]:
    """The largest number of every row [n, columns], of which there is at least one."""
    if len(values) < MANY:
        return np.asarray(values.max(axis=1))
    found = values[:, 0].copy()
    for column in range(1, values.shape[1]):
        np.maximum(found, values[:, column], out=found)
    return found


def multiplied(values: NDArray[np.int64]) -> NDArray[np.int64]:
    """The product of every row [n, columns]; 1 without columns."""
    if len(values) < MANY or not values.shape[1]:
        return np.asarray(values.prod(axis=1))
    found = values[:, 0].copy()
    for column in range(1, values.shape[1]):
        found *= values[:, column]
    return found


def varying(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Mask of the columns of [n, columns], of at least one row, that hold different numbers."""
    if len(values) < MANY:
        return np.asarray(values.max(axis=0) > values.min(axis=0))
    return np.array([(values[:, c] != values[0, c]).any() for c in range(values.shape[1])], bool)
