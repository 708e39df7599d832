"""Rows sorted and reduced column by column come out as NumPy has them, small and large, with ties and without."""

from __future__ import annotations

import numpy as np
import pytest

from einloom.search.exact.numerics.narrow import MANY, every, largest, multiplied, varying
from einloom.search.exact.numerics.pareto import ordered, ranking

SIZES = (1, 2, MANY - 1, MANY, 3 * MANY)


@pytest.mark.parametrize("rows", SIZES)
@pytest.mark.parametrize("columns", [1, 2, 3, 7])
@pytest.mark.parametrize("distinct", [1, 3, 1000])
def test_columns_one_by_one_are_rows_at_once(rows: int, columns: int, distinct: int) -> None:
    rng = np.random.default_rng([rows, columns, distinct])
    values = rng.integers(0, distinct, (rows, columns))
    values[:, 0] = values[0, 0]
    assert every(values > 0).tolist() == (values > 0).all(axis=1).tolist()
    assert largest(values).tolist() == values.max(axis=1).tolist()
    assert multiplied(values).tolist() == values.prod(axis=1).tolist()
    assert varying(values).tolist() == (values.max(axis=0) > values.min(axis=0)).tolist()


@pytest.mark.parametrize("rows", SIZES)
@pytest.mark.parametrize("columns", [1, 2, 3, 7])
@pytest.mark.parametrize("distinct", [1, 2, 5, 1000])
def test_later_columns_are_sorted_where_earlier_ones_tie(rows: int, columns: int, distinct: int) -> None:
    rng = np.random.default_rng([rows, columns, distinct])
    values = rng.integers(0, distinct, (rows, columns)).astype(float)
    for keys in (np.zeros(rows, np.int64), rng.integers(0, 4, rows)):
        assert ordered(keys, values).tolist() == np.lexsort((*ranking(values), keys)).tolist()
