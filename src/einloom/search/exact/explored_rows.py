"""The rows of every Einsum that can be part of a cascade below a cutoff.

Comes in: the least costs. Goes out: groups of pmappings per Einsum, without what no partner goes along with.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np

from ...errors import Infeasible
from .bounds.arc_consistency import Consistency, Rest, common, either, keys_of
from .bounds.cutoff import TIE, Cutoff
from .bounds.relaxed_rows import RelaxedRows
from .einsums.classes import EinsumClass
from .fusion.explore import Allowed, Explorer, PmappingGroup, Wanted, keeps
from .least_costs import LeastCosts
from .numerics.pareto import FloatArray
from .rooms import innermost_backing

SEVERAL = 4  # Einsums of one signature up to which it is explored for what their neighbours leave

Kind = tuple[EinsumClass, int]  # a signature and, if it is explored for one Einsum alone, that one's number, else -1


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
        self.rest, self.classes = Rest(self.least), self._within(cutoff)
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

    def choices_within(self, limit: float) -> int:
        """How many choices of stores and spatial loops all kinds of Einsums have below a limit."""
        before = self.cutoff, self.classes, self.counts
        self.cutoff, self.counts = replace(self.cutoff, limit=limit * (1 + 2 * TIE)), {}
        try:
            self.classes = self._within(self.cutoff)
            wanted, most = self._agreed()
            return sum(one.choices for one in self._explorers(self._column_limits(most), wanted).values())
        except Infeasible:
            return 0
        finally:
            self.cutoff, self.classes, self.counts = before

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
        innermost = innermost_backing(self.signatures)
        every = dict.fromkeys(self.signatures)
        return tuple(
            m
            for m in self.tracked
            if m <= innermost or any(keeps(self.classes[sig], m, wanted.get(sig, {})) for sig in every)
        )

    def _blocks(self, limits: list[FloatArray], wanted: dict[EinsumClass, Wanted]) -> list[list[PmappingGroup]]:
        cache: dict[Kind, list[PmappingGroup]] = {}
        found: list[list[PmappingGroup]] = [[] for _ in self.signatures]
        kinds = self._kinds
        explorers = self._explorers(limits, wanted)
        order = self._order(limits, explorers)
        for done, i in enumerate(order):
            kind = kinds[i]
            self.watcher.stage("exploring Einsums", done, len(order))
            if kind not in cache:
                if self.narrows and done:
                    found, limits = self._narrowed(found, limits)
                    explorers = self._explorers(limits, wanted)
                # taken out, because it holds its tables and no other Einsum asks it
                explorer, mine = explorers.pop(kind), [j for j, one in enumerate(kinds) if one == kind]
                if self.left is not None:
                    explorer.counterparts = self.left.keys(self.signatures[i], mine)
                if self.options.consistency and len(mine) <= SEVERAL:
                    explorer.allowed = self._allowed_anywhere(mine, found)
                cache[kind] = self._explored_by(explorer)
            else:
                self.counts["isomorphic"] = self.counts.get("isomorphic", 0) + 1
            if not cache[kind] and not self._grouped(i):
                raise self._unmapped(i)
            found[i] = cache[kind]
        return found

    @property
    def _kinds(self) -> list[Kind]:
        """Per Einsum what it is explored as: its signature alone, or, where choices are very many and few Einsums have
        it, each by itself, for what its own neighbours leave."""
        uses = Counter(self.signatures)
        apart = self.crowded and self.options.consistency and not self._uneven
        return [(sig, i if apart and uses[sig] <= SEVERAL else -1) for i, sig in enumerate(self.signatures)]

    def _explorers(self, limits: list[FloatArray], wanted: dict[EinsumClass, Wanted]) -> dict[Kind, Explorer]:
        """What explores the Einsums of each kind, within the loosest of their limits."""
        loosest: dict[Kind, FloatArray] = {}
        for kind, limit in zip(self._kinds, limits, strict=True):
            loosest[kind] = np.maximum(loosest.get(kind, limit), limit)
        found = {}
        for (sig, i), limit in loosest.items():
            found[sig, i] = Explorer(self.setting, self.classes[sig], limit, self.counts)
            found[sig, i].wanted = wanted.get(sig, {})
        return found

    def _explored_by(self, explorer: Explorer) -> list[PmappingGroup]:
        """The blocks of one kind of Einsum; a segment may have them already."""
        return explorer.blocks()

    def _grouped(self, position: int) -> bool:
        """True if the Einsum may also run at the same time as others, by rows of another kind."""
        return False

    def _allowed(self, position: int, found: dict[int, list[PmappingGroup]]) -> dict[int, Allowed]:
        """For each tensor that explored Einsums share with this one, the ways in which all of them store it."""
        workload = self.problem.workload
        allowed: dict[int, Allowed] = {}
        for t, tensor in enumerate(workload.einsums[position].tensors):
            for other, blocks in found.items():
                if tensor in workload.einsums[other].tensors:
                    keys = keys_of(workload, other, tensor, blocks)
                    allowed[t] = common(allowed[t], keys) if t in allowed else keys
        return allowed

    def _allowed_anywhere(self, positions: list[int], found: list[list[PmappingGroup]]) -> dict[int, Allowed]:
        """As `_allowed`, for several Einsums of one signature: what any may have, of the tensors known to all."""
        known = {i: blocks for i, blocks in enumerate(found) if blocks}
        every = [self._allowed(i, known) for i in positions]
        return {t: either(some[t] for some in every) for t in every[0] if all(t in some for some in every)}

    @property
    def narrows(self) -> bool:
        """True if what is explored narrows down what is explored next."""
        return (self._uneven or self.crowded) and self.options.consistency and self.cutoff.finite

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

    def _order(self, limits: list[FloatArray], explorers: dict[Kind, Explorer]) -> list[int]:
        """The Einsums, those with most tensors first; where they narrow each other down, of these the ones with few
        spatial choices and little to spare. Where choices are very many, `_fewest_first`."""
        if self.crowded and not self._uneven:
            return self._fewest_first([explorers[kind].choices for kind in self._kinds])
        settled = [0 if column.kind == "energy" else -1 for column in self.setting.columns]

        def effort(i: int) -> float:
            spreads = sum(len(self.classes[self.signatures[i]].spreads(option)) for option in self.signatures[i].units)
            least = self.least[i][settled]
            return float(spreads * (limits[i] / least).max()) if least.all() else np.inf

        rank = effort if self.narrows else lambda i: 0.0
        return sorted(range(len(self.signatures)), key=lambda i: (-len(self.signatures[i].tensors), rank(i)))

    def _fewest_first(self, choices: list[int]) -> list[int]:
        """The Einsums, always the one that shares the fewest tensors with Einsums of which none has come, and of these
        the one with the fewest choices: what those before leave of a tensor is all that it needs."""
        tensors = [
            {name for name, tensor in zip(einsum.tensors, signature.tensors, strict=True) if tensor.fusable}
            for einsum, signature in zip(self.problem.workload.einsums, self.signatures, strict=True)
        ]
        order, known, left = list[int](), set[str](), set(range(len(tensors)))
        while left:
            order.append(min(left, key=lambda i: (choices[i] > 0 and len(tensors[i] - known), choices[i], i)))
            known |= tensors[order[-1]]
            left.remove(order[-1])
        return order
