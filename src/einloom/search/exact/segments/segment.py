"""A segment of a cascade alone: what its Einsums cost at least together, by how the tensors at its ends are stored.

Comes in: an attempt for the whole cascade and the ends of the segment. Goes out: tables of least costs. What happens
outside the segment is left open: nothing takes room but what its Einsums access, loops end where no tensor of theirs
needs them, and a tensor that enters is there wherever its first reader in the segment wants it. So every cascade costs
in the segment at least what the table says (docs/model/pruning.md, segments).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator
from dataclasses import replace
from itertools import pairwise

import numpy as np

from ....errors import Infeasible
from ..attempt import Attempt
from ..bounds.cutoff import TIE, Cutoff
from ..einsums.users import is_shared
from ..fusion.explore import Explorer, PmappingGroup
from ..joining.compatibility import Stored
from ..joining.join import Joiner, Partial
from .cuts import CutPoint
from .known_rows import KnownRows
from .subcascade import Subcascade, stored

EXPLORED = (1e-4, 1e-3, 0.06, 0.3, 1.5, 16.0, float("inf"))  # of rows, as shares above the bound
# where two columns are weighed: rows are more, and are not asked for again
WEIGHED = (1e-4, 1e-3, 5e-3, 0.01, 0.02, 0.025, 0.03, 0.04, 0.08, 0.16, 0.3, 1.5, 16.0, float("inf"))
SMALL = 0.06  # a share of the bound, beyond which rows are explored AHEAD times as far as is asked
AHEAD = 1.05
RISE = 0.02  # share by which a limit rises that turns out to be too low, then twice that, and so on
NEARER = (1e-6, 1e-4, 1e-3, 3e-3, 1e-2, 2e-2, 5e-2, 0.1, 0.2)  # shares above the least known, tried before that


Table = dict[tuple[Stored | None, Stored | None], float]  # (as it enters, as it leaves) -> the least cost


class Segment(Subcascade):
    """The Einsums of `whole` from `start` to before `end`. known: the least costs by both ends, complete up to `limit`.
    hint: a value that rows are explored up to first.

    weights: of the settled columns in the sum that counts; None: one objective that adds up (`Chain`).
    """

    def __init__(
        self,
        whole: Attempt,
        start: int,
        end: int,
        enters: str | None,
        leaves: str | None,
        weights: tuple[float, ...] | None = None,
    ) -> None:
        cutoff = whole.cutoff if weights is None else Cutoff((1.0,) * len(weights), weights=weights)
        super().__init__(whole, start, end, cutoff)
        self.enters, self.leaves = enters, leaves
        self.steps = EXPLORED if weights is None else WEIGHED
        self.limit, self.known, self.hint, self.first = 0.0, Table(), 0.0, 0.0
        self._most, self._rise = 0.0, RISE
        self.known_rows: KnownRows | None = None
        self._explored: tuple[list[list[PmappingGroup]], Joiner] | None = None

    def begin(self) -> float:
        """A first limit: what the segment costs at least, as its Einsums have to agree."""
        self.agreed = self._agree()
        self.limit = self.bound
        return self.limit

    @property
    def at_least(self) -> float:
        """What the segment costs at least, as far as that is known."""
        return min(self.known.values(), default=self.limit)

    @property
    def kind(self) -> Hashable:
        """Equal for two segments only if they have the same table. Least costs may know of users outside the segment
        (`unlisted/backings.py`), so these have to be the same, too."""
        workload, whole = self.problem.workload, self.users.workload
        number: dict[str, int] = {}
        shape = []
        for signature, einsum in zip(self.signatures, workload.einsums, strict=True):
            accesses = []
            for access in einsum.accesses:
                first = self.users.first(access.tensor)
                ends = access.tensor == self.enters, access.tensor == self.leaves, is_shared(whole, access.tensor)
                bits = tuple(m.bits(whole, first, access.tensor) for m in self.problem.machine.memories)
                ranks = tuple((access.rank_of(v), workload.extents[v]) for v in einsum.variables)
                alone = tuple(index.simple for index in access.indices)
                name = number.setdefault(access.tensor, len(number))
                accesses.append((name, ends, bits, self.users.span(access.tensor), ranks, alone))
            shape.append((signature, tuple(accesses)))
        return (self.least.tobytes(), *shape)

    def _explored_by(self, explorer: Explorer) -> list[PmappingGroup]:
        return explorer.blocks() if self.known_rows is None else self.known_rows.of(explorer)

    def rows(self, most: float) -> list[list[PmappingGroup]]:
        """The rows that can be part of a cascade which costs at most so much here, and maybe others; Infeasible if
        there are none."""
        if self._most < most:
            most *= AHEAD if self._most > self.bound * (1 + SMALL) else 1.0
            self._explored, self._most = None, most
            blocks = self._rows(replace(self.cutoff, limit=most * (1 + TIE)))
            self._explored = blocks, self._ready(blocks)
        if self._explored is None:
            raise Infeasible("no combination of mappings stays within the limit")
        return self._explored[0]

    def learn(self) -> None:
        """Raise `limit`: the first time until something is known."""
        for limit in self._limits():
            self.known, self.limit = self._table(limit), limit
            if self.known:
                return
        raise Infeasible("no combination of mappings fits a part of the cascade: " + self._blame())

    def _limits(self) -> Iterator[float]:
        """Limits above the one so far. At first rows are sought: what they cost without rooms says where to begin."""
        while self.known:
            self._rise = 2 * self._rise
            limit = self.limit * (1 + self._rise / 2)
            yield self._most if self.limit * (1 + NEARER[0]) < self._most < limit else limit
        for most in (self.hint, *(self.bound * (1 + step) for step in self.steps)):
            if most <= self.limit:
                continue
            try:
                self.rows(most)
            except Infeasible:
                self.limit = most
                continue
            least = max(self.bound, self._least)
            if self.limit < self.first <= most:
                yield self.first
            yield from (least * (1 + step) for step in NEARER if self.limit < least * (1 + step))
            if self.limit < most:
                yield most

    @property
    def _least(self) -> float:
        """What the rows cost at least without rooms, if that is known."""
        joiner = self._explored and self._explored[1]
        return joiner.completions.least_limit() if joiner and joiner.completions else 0.0

    def _table(self, limit: float) -> Table:
        """The least costs of at most `limit` by both ends."""
        found = Table()
        try:
            blocks = self.rows(limit)
            assert self._explored is not None
            partials = self.joined(self._explored[1], blocks, replace(self.cutoff, limit=limit * (1 + TIE)))
        except Infeasible:
            return found
        for partial in partials:
            ends = partial.compatibility.entered, self._left(partial)
            least = float(self.cutoff.value(partial.cost).min())
            if least <= limit:
                found[ends] = min(found.get(ends, np.inf), least)
        return found

    def _left(self, partial: Partial) -> Stored | None:
        live = next((one for one in partial.compatibility.live if one.tensor == self.leaves), None)
        return None if live is None else stored(live, partial.compatibility.axes)


def segments(attempt: Attempt, places: list[CutPoint], weights: tuple[float, ...] | None = None) -> list[Segment]:
    """The segments between these cuts, in their order: of those of one kind the first stands for all."""
    ends = [(0, None), *places, (len(attempt.signatures), None)]
    known: dict[Hashable, Segment] = {}
    found: list[Segment] = []
    for (start, enters), (end, leaves) in pairwise(ends):
        segment = Segment(attempt, start, end, enters, leaves, weights)
        found.append(known.setdefault(segment.kind, segment))
    uses = Counter(signature for kind in known.values() for signature in set(kind.signatures))
    rows = KnownRows(signature for signature, times in uses.items() if times > 1)
    for kind in known.values():
        kind.known_rows = rows
    return found
