"""Sums over the pieces of nested cuts: counted extent by extent, the same as piece by piece."""

from __future__ import annotations

from random import Random

from einloom.cost.formulas import terms
from einloom.cost.formulas.terms import LoopCut, covered, visits


def pieces(extent: int, cuts: tuple[LoopCut, ...]) -> list[int]:
    """The extents of all pieces below the cuts that count."""
    if not cuts:
        return [extent] if extent > 0 else []
    head, rest = cuts[0], cuts[1:]
    starts = [head.pick * int(head.tile)] if head.once else range(0, extent, int(head.tile))
    return [one for at in starts for one in pieces(max(0, min(int(head.tile), extent - at)), rest)]


def test_counted_extents_are_the_pieces_one_by_one() -> None:
    rng = Random(1)
    for _ in range(3000):
        extent = rng.randint(1, 60)
        cuts = tuple(
            LoopCut(rng.randint(1, 25), once=int(rng.random() < 0.3), pick=rng.choice((0, 0, 1, 2)))
            for _ in range(rng.randint(0, 4))
        )
        listed = pieces(extent, cuts)
        assert visits(extent, cuts) == len(listed), (extent, cuts)
        assert covered(extent, cuts) == sum(listed), (extent, cuts)


def test_thousands_of_cuts_are_counted_one_after_the_other() -> None:
    """No step for every piece of every loop, and no call within a call: 5,000 loops, of one trip and of two."""
    assert visits(7, (LoopCut(7),) * 5000) == 1
    assert covered(7, (LoopCut(7),) * 5000) == 7
    halves = tuple(LoopCut(2**n) for n in reversed(range(3000)))
    terms._pieces_cached.cache_clear()
    assert visits(2**3000, halves) == 2**3000
