"""The rows of every Einsum that can be part of a cascade below a cutoff.

Comes in: the least costs. Goes out: groups of pmappings per Einsum, without what no partner goes along with.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np

from ...errors import Infeasible
from .bounds.arc_consistency import Consistency, Rest, common, either, keys_of
from .bounds.cutoff import Cutoff
from .bounds.relaxed_rows import RelaxedRows
from .einsums.classes import EinsumClass
from .fusion.explore import Allowed, Explorer, PmappingGroup, Wanted, keeps
from .least_costs import LeastCosts
from .numerics.pareto import FloatArray
from .rooms import innermost_backing

SEVERAL = 4  # Einsums of one signature up to which it is explored for what their neighbours leave


class ExploredRows(LeastCosts):
    """The rows of every Einsum of one problem below a `cutoff`.

    The blocks of an Einsum are groups of pmappings (`PmappingGroup`). plain: True for a whole cascade whose Einsums run
    one after the other. relaxed: the rows of the relaxation that bounds this attempt, if they are known.
    """

    plain = True
    relaxed: RelaxedRows | None = None
    consistency: Consistency | None = None

    def _rows(self, cutoff: Cutoff) -> list[list[PmappingGroup]]:
        """The blocks of every Einsum, without what the neighbours rule out, or Infeasible."""
        self.cutoff = cutoff
        if self.relaxed is not None and self.options.rules.relaxed:
            self.left = self.relaxed.within(cutoff) if cutoff.limit <= self.relaxed.limit else None
            self.least = self.relaxed.least if self.left is None else self.left.least
        self.rest = Rest(self.least)
        wanted, most = self._agreed()
        self.setting = replace(self.setting, tracked=self._followed(wanted))
        blocks = self._blocks(self._column_limits(most), wanted)
        self.consistency = None
        if self.options.consistency and cutoff.finite:
            self.watcher.stage("comparing neighbours")
            self.consistency = self._consistency()
            blocks = self.consistency.filter(blocks)
            if not all(blocks):
                raise Infeasible("no combination of mappings stays within the limit")
        return blocks

    def _consistency(self, known: frozenset[int] | None = None) -> Consistency:
        """What filters the rows of the Einsums whose rows are known."""
        workload, pause = self.problem.workload, self.checkpoint
        return Consistency(workload, self.least, self.cutoff, self.counts, known, self.together, pause)

    def forget(self) -> None:
        """Forget what was left out below an earlier cutoff: rows that were not explored below it may come now."""
        self.cutoff = replace(self.cutoff, limit=np.inf, front=None)
        self.consistency, self.setting = None, replace(self.setting, tracked=self.tracked)

    def _followed(self, wanted: dict[EinsumClass, Wanted]) -> tuple[int, ...]:
        """The memories whose room is followed along the cascade: of `tracked` not those further in than all that back
        something, where no own store within the cutoff outlives its Einsum."""
        if not wanted or self.problem.mapspace.stores != "own" or not self.plain:
            return self.tracked
        innermost = innermost_backing(self.signatures, len(self.setting.capacities))
        every = dict.fromkeys(self.signatures)
        return tuple(
            m
            for m in self.tracked
            if m <= innermost or any(keeps(self.classes[sig], m, wanted.get(sig, {})) for sig in every)
        )

    def _blocks(self, limits: list[FloatArray], wanted: dict[EinsumClass, Wanted]) -> list[list[PmappingGroup]]:
        cache: dict[EinsumClass, list[PmappingGroup]] = {}
        found: list[list[PmappingGroup]] = [[] for _ in self.signatures]
        uses = Counter(self.signatures)
        explorers = self._explorers(limits, wanted)
        order = self._order(limits, explorers)
        for done, i in enumerate(order):
            sig = self.signatures[i]
            self.watcher.stage("exploring Einsums", done, len(order))
            if sig not in cache:
                if self.narrows and done:
                    found, limits = self._narrowed(found, limits)
                    explorers = self._explorers(limits, wanted)
                explorer = explorers[sig]
                if self.left is not None:
                    explorer.counterparts = self.left.keys(sig, [j for j, s in enumerate(self.signatures) if s == sig])
                if self.options.consistency and uses[sig] <= SEVERAL:
                    explorer.allowed = self._allowed_anywhere(sig, found)
                cache[sig] = self._explored_by(explorer)
            else:
                self.counts["isomorphic"] = self.counts.get("isomorphic", 0) + 1
            if not cache[sig] and not self._grouped(i):
                raise self._unmapped(i)
            found[i] = cache[sig]
        return found

    def _explorers(self, limits: list[FloatArray], wanted: dict[EinsumClass, Wanted]) -> dict[EinsumClass, Explorer]:
        """What explores the Einsums of each signature, within the loosest of their limits."""
        found = {}
        for sig, loosest in self._loosest(limits).items():
            found[sig] = Explorer(self.setting, self.classes[sig], loosest, self.counts, self.checkpoint)
            found[sig].wanted = wanted.get(sig, {})
        return found

    def _explored_by(self, explorer: Explorer) -> list[PmappingGroup]:
        """The blocks of one kind of Einsum; a segment may have them already."""
        return explorer.blocks()

    def _grouped(self, position: int) -> bool:
        """True if the Einsum may also run at the same time as others, by rows of another kind."""
        return False

    def _allowed(self, position: int, found: list[list[PmappingGroup]]) -> dict[int, Allowed]:
        """For each tensor that explored Einsums share with this one, the ways in which all of them store it."""
        workload = self.problem.workload
        allowed: dict[int, Allowed] = {}
        for t, tensor in enumerate(workload.einsums[position].tensors):
            for other, blocks in enumerate(found):
                if blocks and tensor in workload.einsums[other].tensors:
                    keys = keys_of(workload, other, tensor, blocks)
                    allowed[t] = common(allowed[t], keys) if t in allowed else keys
        return allowed

    def _allowed_anywhere(self, sig: EinsumClass, found: list[list[PmappingGroup]]) -> dict[int, Allowed]:
        """As `_allowed`, for all Einsums of a signature: what any of them may have, of the tensors known to all."""
        every = [self._allowed(i, found) for i, s in enumerate(self.signatures) if s == sig]
        return {t: either(some[t] for some in every) for t in every[0] if all(t in some for some in every)}

    def _loosest(self, limits: list[FloatArray]) -> dict[EinsumClass, FloatArray]:
        """Per signature the loosest limits of its Einsums."""
        loosest: dict[EinsumClass, FloatArray] = {}
        for sig, limit in zip(self.signatures, limits, strict=True):
            loosest[sig] = np.maximum(loosest.get(sig, limit), limit)
        return loosest

    @property
    def narrows(self) -> bool:
        """True if what is explored narrows down what is explored next."""
        return self._uneven and self.options.consistency and self.cutoff.finite

    def _narrowed(
        self, found: list[list[PmappingGroup]], limits: list[FloatArray]
    ) -> tuple[list[list[PmappingGroup]], list[FloatArray]]:
        """The rows so far that can be part of a cascade within the cutoff, and what they leave to each Einsum."""
        known = frozenset(i for i, blocks in enumerate(found) if blocks)
        consistency = self._consistency(known)
        rows = consistency.filter(consistency.filled(found))
        if not all(rows):
            raise Infeasible("no combination of mappings stays within the limit")
        tighter = self._column_limits(consistency.most(rows))
        return [mine if i in known else [] for i, mine in enumerate(rows)], [
            np.minimum(*both) for both in zip(limits, tighter, strict=True)
        ]

    def _order(self, limits: list[FloatArray], explorers: dict[EinsumClass, Explorer]) -> list[int]:
        """The Einsums, those with most tensors first; where they narrow each other down, of these the ones with few
        spatial choices and little to spare. Where choices are many, those with the fewest within the limits first: what
        they leave of the tensors that they share is all that the others need."""
        positions = range(len(self.signatures))
        if self.crowded and not self.narrows:
            choices = {sig: explorer.choices for sig, explorer in explorers.items()}
            return sorted(positions, key=lambda i: choices[self.signatures[i]])
        settled = [0 if column.kind == "energy" else -1 for column in self.setting.columns]

        def effort(i: int) -> float:
            spreads = sum(len(self.classes[self.signatures[i]].spreads(option)) for option in self.signatures[i].units)
            least = self.least[i][settled]
            return float(spreads * (limits[i] / least).max()) if least.all() else np.inf

        rank = effort if self.narrows else lambda i: 0.0
        return sorted(positions, key=lambda i: (-len(self.signatures[i].tensors), rank(i)))
