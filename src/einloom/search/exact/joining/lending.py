"""Stores for several readers (rule 8 with `stores: shared`) along a cascade: filled by one Einsum, met by others.

Comes in: the stores that are in use, and an Einsum's parts in them. Goes out: those in use after it, and what those
that have ended ask of the Einsums to come; or that the Einsum may not follow. Such a store is like a tensor whose
producer is outside of the cascade: whoever reads the tensor below it must know of it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from ....dataclass import dataclass
from ..fusion.serving import Guard
from ..numerics.pareto import IntArray

Rank = tuple[int, int]  # of a tensor, by number; and its extent


def tile_of(whole: int, ranks: tuple[Rank | None, ...], tiles: IntArray) -> IntArray:
    """Bits of a tensor's tile for each choice of tiles [n, loops]. whole: of all of it; ranks: of the loops above, None
    where one does not move it."""
    bits = np.full(len(tiles), whole)
    for (_, extent), i in {rank: i for i, rank in enumerate(ranks) if rank is not None}.items():
        bits = bits // extent * tiles[:, i]
    return np.asarray(bits)


@dataclass(frozen=True, slots=True)
class Loan:
    """A store for several readers while it is in use.

    ranks: of the tensor, for each loop above it; None where the loop does not move it. bits: of the whole tensor, as
    its first reader has it. crossed: it stands above a split directly below it. met: an Einsum before the first reader
    accesses the tensor in another branch of such a split.
    """

    tensor: str
    memory: int
    depth: int
    ranks: tuple[Rank | None, ...]
    bits: int
    crossed: bool = False
    met: bool = False

    def tile(self, tiles: IntArray) -> IntArray:
        """Bits of its tile for each choice of tiles [n, loops]."""
        return tile_of(self.bits, self.ranks, tiles)

    def same(self, other: Loan) -> bool:
        """True if an Einsum whose part is in `other` has its part in this one."""
        mine, theirs = ((x.tensor, x.memory, x.depth, x.ranks) for x in (self, other))
        return mine == theirs


@dataclass(frozen=True, slots=True)
class Part:
    """An Einsum's part in a store, and which: `fills`, `keeps` or `ends`."""

    loan: Loan
    part: str


@dataclass(frozen=True, slots=True)
class Lent:
    """The stores in use after an Einsum, and what the others ask of those to come."""

    loans: frozenset[Loan] = frozenset()
    guards: tuple[Guard, ...] = ()


NONE = Lent()


def lend(
    before: Iterable[Loan], parts: Iterable[Part], names: tuple[str, ...], shared: int, seen: dict[str, int], after: int
) -> Lent | None:
    """What an Einsum leaves; None if it may not follow.

    names: the tensors that it accesses. shared: loops that it shares with the Einsum before. seen: tensor -> loops that
    it shares with the last Einsum that accessed it. after: loops that it shares with the next.
    """
    mine = {x.loan.tensor: x for x in parts}
    loans, guards = set[Loan](), list[Guard]()
    for loan in before:
        loan = replace(loan, crossed=loan.crossed or shared == loan.depth)
        if loan.crossed and loan.met:
            return None
        part = mine.pop(loan.tensor, None)
        if loan.tensor in names and (part is None or part.part == "fills" or not loan.same(part.loan)):
            return None
        if part is not None and part.part == "ends":
            guards.append(Guard(loan.tensor, loan.depth - loan.crossed))
        elif loan.depth > after:
            return None
        else:
            loans.add(loan)
    for tensor, part in mine.items():
        met = seen.get(tensor, -1)
        if part.part != "fills" or met > part.loan.depth or part.loan.depth > after:
            return None
        loans.add(replace(part.loan, met=met == part.loan.depth))
    return Lent(frozenset(loans), tuple(guards))
