"""Windows that reach outside the declared shape of what they read, as those of a padded convolution do."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from .einsum import Workload


class ReadRank(NamedTuple):
    """A rank as an Einsum accesses it. terms: (number of the variable, coefficient) each."""

    terms: Sequence[tuple[int, int]]
    constant: int
    size: int

    def outside(self, extents: Sequence[int]) -> tuple[int, int]:
        """How far its windows reach outside the declared shape, in front and at the end."""
        most = self.constant + sum(c * (extents[v] - 1) for v, c in self.terms)
        return max(0, -self.constant), max(0, most + 1 - self.size)


def padded_variables(workload: Workload, einsum: str) -> frozenset[str]:
    """Rank variables of the ranks whose windows reach outside the declared shape."""
    return frozenset(padding_reach(workload, einsum))


def padding_reach(workload: Workload, einsum: str) -> dict[str, int]:
    """Positions of each variable of a padded rank whose windows reach outside the declared shape, for some position of
    the rank's other variables."""
    e = workload.einsum(einsum)
    number = {v: i for i, v in enumerate(e.variables)}
    ranks = (
        ReadRank([(number[v], c) for v, c in index.terms], index.constant, size)
        for access in e.accesses
        for index, size in zip(access.indices, workload.shape(access), strict=True)
    )
    found = reaching(ranks, [workload.extents[v] for v in e.variables])
    return {v: found[i] for v, i in number.items() if i in found}


def reaching(ranks: Iterable[ReadRank], extents: Sequence[int]) -> dict[int, int]:
    """As `padding_reach`, of variables by number. extents: of every variable."""
    first: dict[int, int] = {}
    last: dict[int, int] = {}
    for rank in ranks:
        front, end = rank.outside(extents)
        for v, c in rank.terms if front or end else ():
            first[v] = max(first.get(v, 0), -(-front // c))
            last[v] = max(last.get(v, 0), -(-end // c))
    return {v: min(extents[v], n + last[v]) for v, n in first.items()}


def only_padding(workload: Workload, einsum: str) -> dict[tuple[str, str], int]:
    """(tensor, variable) -> positions of the variable from which every window of the tensor is padding alone: the
    declared shape is smaller than a convolution can mean, or the padding larger."""
    found = {}
    for access in workload.einsum(einsum).inputs:
        for index, size in zip(access.indices, workload.shape(access), strict=True):
            for v, c in index.terms:
                others = index.extent(workload.extents) - 1 - c * (workload.extents[v] - 1)
                front, end = -index.constant - others, index.constant + c * (workload.extents[v] - 1) + 1 - size
                most = sum(min(workload.extents[v], -(-max(0, beyond) // c)) for beyond in (front, end))
                if most:
                    found[access.tensor, v] = min(workload.extents[v], most)
    return found


def has_windows(workload: Workload) -> bool:
    """True if some rank is indexed by more than one variable."""
    return any(len(index.terms) > 1 for e in workload.einsums for access in e.accesses for index in access.indices)
