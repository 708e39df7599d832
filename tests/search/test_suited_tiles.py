"""Of many tiles of fused loops only those are looked at that leave each class an extent below which some row fits."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress

import numpy as np
import pytest
from bench.ragged_problems import grouped_problem, ragged_problem, shared_problem, window_problem

from einloom.errors import SpecError
from einloom.problem import Problem
from einloom.search.exact.fusion import tilings
from einloom.search.exact.fusion.match import Below
from einloom.search.exact.fusion.tilings import TilingsByLoops
from einloom.search.exact.numerics.divisibility import Lattice
from fused_again import levelled
from varied_problems import answer, layers

SOURCES = (ragged_problem, window_problem, grouped_problem, shared_problem, layers, levelled)


def left_out(source: Callable[[int], Problem], seeds: Iterable[int], patch: pytest.MonkeyPatch) -> tuple[int, int]:
    """How many tiles are left out in searches of these problems, and how many of those some row fits below."""
    found: list[tuple[int, int]] = []
    real = TilingsByLoops.of

    def of(self, loops, spread, suited):  # type: ignore[no-untyped-def]
        some = real(self, loops, spread, suited)
        whole = real(TilingsByLoops(self.classes), loops, spread, lambda _, extents: np.ones(len(extents), bool))
        kept = {*map(tuple, some.tiles)}
        assert kept <= {*map(tuple, whole.tiles)}
        gone = np.array([tuple(row) not in kept for row in whole.tiles], bool)
        which, _ = suited.__self__.match(whole.below(len(loops))[gone])
        found.append((int(gone.sum()), len({*which.tolist()})))
        return some

    patch.setattr(tilings, "LARGE", 0)
    patch.setattr(TilingsByLoops, "of", of)
    for seed in seeds:
        with suppress(SpecError):
            answer(source(seed))
    return sum(gone for gone, _ in found), sum(fit for _, fit in found)


FEW = range(1, 40, 8)
MORE = [seed for seed in range(40) if seed not in FEW]


@pytest.mark.parametrize("seeds", [FEW, pytest.param(MORE, marks=pytest.mark.slow)], ids=["few", "more"])
@pytest.mark.parametrize("source", SOURCES)
def test_no_row_fits_below_what_is_left_out(
    source: Callable[[int], Problem], seeds: Iterable[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    gone, fit = left_out(source, seeds, monkeypatch)
    assert fit == 0
    assert gone > 0 or (source is levelled and seeds is FEW)  # most of its rows without room go before


def trips_for_tiles(patch: pytest.MonkeyPatch) -> None:
    """Where tiles must divide, what they leave is taken for the number of trips."""
    real = TilingsByLoops._suited

    def suited(self, loops, options, asked):  # type: ignore[no-untyped-def]
        extents = self.classes.extents
        turned = lambda d, left: asked(d, left if self.classes.uneven[d] else extents[d] // left)  # noqa: E731
        return real(self, loops, options, turned)

    patch.setattr(TilingsByLoops, "_suited", suited)


def tiles_for_trips(patch: pytest.MonkeyPatch) -> None:
    """Where the numbers of trips must suit, the tiles must divide."""
    real = Lattice.suit
    strict = lambda self, d, inner, outer: real(self, d, inner, outer) & (outer[:, None] % inner == 0)  # noqa: E731
    patch.setattr(Below, "suited", lambda self, d, x: strict(self.lattice, d, self._by_class[d][0], x).any(axis=1))


def one_row(patch: pytest.MonkeyPatch) -> None:
    """Only the first row is asked."""
    patch.setattr(Below, "suited", lambda self, d, x: self.lattice.suit(d, self.rows.x[:1, d], x).any(axis=1))


MISTAKES = {trips_for_tiles: levelled, tiles_for_trips: ragged_problem, one_row: ragged_problem}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_caught(mistake: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch) -> None:
    mistake(monkeypatch)
    _, fit = left_out(MISTAKES[mistake], range(20), monkeypatch)
    assert fit > 0
