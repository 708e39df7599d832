"""Pairs of rows and boundaries that fit are found class by class: the same ones, in the same order, as pair by pair."""

from __future__ import annotations

import numpy as np
import pytest

from einloom.search.exact.numerics import divisibility
from einloom.search.exact.numerics.divisibility import Lattice
from einloom.search.exact.numerics.pareto import IntArray


def suits(lattice: Lattice, inner: IntArray, outer: IntArray) -> bool:
    """What the docstring of a lattice says of one pair of extents."""
    for extent, uneven, loose, below, above in zip(
        lattice.extents, lattice.uneven, lattice.loose, inner.tolist(), outer.tolist(), strict=True
    ):
        if loose:
            good = -(-extent // above) <= -(-extent // below)
        else:
            good = above % below == 0
        if not (good or (uneven and above == extent)):
            return False
    return True


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
        which, row = lattice.pairs(inner, outer)
        expected = np.nonzero(lattice.fits(inner, outer))
        assert which.tolist() == expected[0].tolist() and row.tolist() == expected[1].tolist()
        some += 0 < len(which) < len(inner) * len(outer)
        for i, j in zip(rng.integers(0, max(len(outer), 1), 20), rng.integers(0, max(len(inner), 1), 20), strict=True):
            if len(outer) and len(inner):
                assert lattice.fits(inner, outer)[i, j] == suits(lattice, inner[j], outer[i])
    assert some > 15
