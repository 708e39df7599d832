"""Pairs of rows and boundaries that fit are found class by class: the same ones, in the same order, as pair by pair."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from einloom.search.exact.numerics import divisibility
from einloom.search.exact.numerics.divisibility import Lattice, by_class
from einloom.search.exact.numerics.pareto import IntArray


def suits(lattice: Lattice, inner: IntArray, outer: IntArray) -> NDArray[np.bool_]:
    """[m, n]: what the docstring of a lattice says of every pair of extents."""
    good = np.ones((len(outer), len(inner)), bool)
    for d, extent in enumerate(lattice.extents):
        below, above = inner[None, :, d], outer[:, None, d]
        fit = -(-extent // above) <= -(-extent // below) if lattice.loose[d] else above % below == 0
        good &= fit | (lattice.uneven[d] & (above == extent))
    return good


def drawn(rng: np.random.Generator) -> tuple[Lattice, IntArray, IntArray]:
    """A lattice of one to four classes, with tiles [n, classes] and [m, classes]."""
    count = rng.integers(1, 5)
    extents = tuple(rng.choice([2, 6, 7, 12, 30], count).tolist())
    uneven = tuple((rng.random(count) < 0.6).tolist())
    loose = tuple(bool(one and rng.random() < 0.5) for one in uneven)
    n, m = rng.choice([0, 1, 5, 60, 200], 2)
    tiles = [rng.integers(1, np.array(extents) + 1, (size, count)) for size in (n, m)]
    return Lattice(extents, uneven, loose), tiles[0], tiles[1]


@pytest.mark.parametrize("few", [0, 3, 4096])
@pytest.mark.parametrize("sparse", [0.0, 0.05, 1.0])
def test_pairs_are_those_that_fit(few: int, sparse: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(divisibility, "FEW", few)
    monkeypatch.setattr(divisibility, "SPARSE", sparse)
    rng, some = np.random.default_rng(few), 0
    for _ in range(60):
        lattice, inner, outer = drawn(rng)
        which, row = lattice.pairs(by_class(inner), outer)
        expected = np.nonzero(suits(lattice, inner, outer))
        assert which.tolist() == expected[0].tolist() and row.tolist() == expected[1].tolist()
        some += 0 < len(which) < len(inner) * len(outer)
    assert some > 15


def test_numbers_tell_rows_apart() -> None:
    rng = np.random.default_rng(5)
    for _ in range(60):
        lattice, _, outer = drawn(rng)
        rows = outer if not lattice.packed else np.gcd(outer, np.array(lattice.extents))
        numbers = lattice.numbers(rows)
        assert numbers is not None and len({*numbers.tolist()}) == len({*map(tuple, rows.tolist())})
    large = Lattice((2**31 - 1, 2**31 - 1), (True, True))
    assert large.numbers(np.ones((3, 2), np.int64)) is None
