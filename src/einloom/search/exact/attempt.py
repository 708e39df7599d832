"""One pass below a cutoff: classes of Einsums -> groups of pmappings -> arc consistency -> joins -> trees."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from copy import copy
from dataclasses import replace
from functools import cached_property

import numpy as np

from ...dataclass import dataclass
from ...errors import Infeasible
from ...mapping.normal import normal_form
from ...mapping.tree import Mapping
from .bounds.cutoff import TIE, Cutoff
from .bounds.relaxed_rows import RelaxedRows
from .bounds.weighted_sums import Lines
from .einsums.classes import fuses_below_fanout
from .einsums.orders import JoinStep, Layer, layers
from .explored_rows import ExploredRows
from .fusion.explore import PmappingGroup
from .fusion.serving import Serving
from .fusion.templates import Alone
from .joining.compatibility import Compatibility
from .joining.completions import Completions, Passing, TooMany
from .joining.join import ChosenRow, Joiner, Partial, RemainingCost
from .numerics.pareto import FloatArray, IntArray
from .numerics.uneven import Tiling
from .traceback import Piece, piece, tree

WORTH = 2000  # rows from which it is worth knowing what completes a cascade
# limits of joins, as shares above the least that rows without rooms cost
NEARER = (1e-6, 1e-5, 5e-5, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3, 1e-2, 2e-2, 0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2)


@dataclass(frozen=True)
class Solution:
    """The best complete cascade of one pass: objective value, columns, and the tree."""

    value: float
    cost: FloatArray
    mapping: Mapping


class Attempt(ExploredRows):
    """Complete solutions of one problem below a `cutoff` (of one repeat)."""

    @property
    def completes(self) -> bool:
        """True if joins without rooms bound those with: no Einsums run at the same time."""
        return self.options.completions and not self.problem.mapspace.places

    @property
    def relaxes(self) -> bool:
        """True if what the loose tiling costs bounds every other from below: no limit is on tiles, and fused loops are
        temporal."""
        return not (self.problem.mapspace.limits.tiles or fuses_below_fanout(self.users))

    @property
    def complete_space(self) -> bool:
        """True if what this attempt does not find is not there."""
        return all(signature.tiling in ("loose", "every") for signature in self.signatures)

    def tiled(self, tiling: Tiling) -> Attempt:
        """The same search with other tiles of tied ranks; what `lower_bound` has found holds there too."""
        if not self.tied:
            return self
        other = type(self)(self.problem, self.options, self.watcher, self.counts, self.checkpoint, tiling)
        other.least, other.agreed, other.together = self.least, self.agreed, self.together
        if tiling in ("loose", "rounded"):  # the same spatial choices
            other.__dict__.update(
                {name: self.__dict__[name] for name in ("_keys", "_choices") if name in self.__dict__}
            )
        return other

    def first_limit(self) -> float | None:
        """A limit to try before all others, if one is worth it."""
        return None

    def run(self, limit: float, proven: Callable[[float], None] = lambda bound: None) -> Solution:
        """The best cascade whose value is at most `limit` (others may come out too), or Infeasible. proven: hears of
        values that no cascade of these rows has less than, as they rise."""
        return self.towards(replace(self.cutoff, limit=limit * (1 + TIE)), proven)

    def towards_least(self, limit: float, bounded: tuple[Attempt, ...] = ()) -> float:
        """The least value of a relaxation if it is at most `limit`, or Infeasible. bounded: attempts of which it is the
        relaxation; they may know its rows."""
        cutoff = replace(self.cutoff, limit=limit * (1 + TIE))
        blocks = self._rows(cutoff)
        for other in bounded if self.consistency is not None and self.plain else ():
            other.relaxed = RelaxedRows(self.problem.workload, cutoff.limit, self.least, blocks, self.together)
        partials = self.joined(self._ready(blocks), blocks, cutoff)
        return min(float(self.cutoff.value(partial.cost).min()) for partial in partials)

    def towards(self, cutoff: Cutoff, proven: Callable[[float], None] = lambda bound: None) -> Solution:
        """The best cascade that is not beyond `cutoff` (others may come out too), or Infeasible. proven: see `run`."""
        blocks = self._rows(cutoff)
        joiner = self._ready(blocks)
        for nearer in self._nearer(joiner.completions, cutoff):
            try:
                return self.best(self.joined(joiner, blocks, nearer))
            except Infeasible:
                proven(nearer.limit)
        return self.best(self.joined(joiner, blocks, cutoff))

    def complete(self, cutoff: Cutoff) -> list[Partial]:
        """All undominated complete cascades that are not beyond `cutoff`, or Infeasible."""
        blocks = self._rows(cutoff)
        return self.joined(self._ready(blocks), blocks, cutoff)

    def _ready(self, blocks: list[list[PmappingGroup]]) -> Joiner:
        """A joiner for these blocks, with what it costs at least to complete each state where that is worth knowing."""
        joiner = self.join_of(blocks)
        rows = sum(len(block) for mine in {id(mine): mine for mine in blocks}.values() for block in mine)
        if self.completes and self.consistency is not None and rows >= WORTH:
            self.watcher.stage("joining without rooms")
            lines = self.consistency.lines
            with suppress(TooMany):
                joiner.completions = Completions(joiner, lines, blocks, self.layers, self._passing(lines))
        return joiner

    def _passing(self, lines: Lines) -> Passing:
        """What neighbours cost at least together on both sides of where some of them end, for any state of a join
        there."""
        if self.together is None:
            return {}
        both = np.stack([self.together.before(lines, self.least), self.together.after(lines, self.least)], axis=1)

        def at(place: int) -> Callable[[Compatibility], FloatArray]:
            return lambda state: both[place]

        return {(1 << place) - 1: at(place) for place in self.together.ends}

    def join_of(self, blocks: list[list[PmappingGroup]]) -> Joiner:
        """A joiner for these blocks."""
        joiner = self._joiner()
        joiner.asking = any(block.structure.asked for mine in blocks for block in mine)
        joiner.serving = self._serving(blocks)
        return joiner

    def _nearer(self, completions: RemainingCost | None, cutoff: Cutoff) -> list[Cutoff]:
        """Limits between the least that completions know of and that of the cutoff, from below."""
        if completions is None or cutoff.front is not None:
            return []
        least = completions.least_limit()
        limits = [least * (1 + step) for step in NEARER]
        return [replace(cutoff, limit=limit) for limit in limits if limit - least < (cutoff.limit - least) / 2]

    def joined(self, joiner: Joiner, blocks: list[list[PmappingGroup]], cutoff: Cutoff) -> list[Partial]:
        """All undominated complete cascades of these rows that are not beyond `cutoff`, or Infeasible."""
        if joiner.completions is not None:
            blocks = joiner.completions.towards(cutoff, blocks)
            if not all(blocks):
                raise Infeasible("no combination of mappings stays within the limit")
        reached = {0: joiner.start()}
        for number, layer in enumerate(self.layers):
            self.watcher.stage("joining Einsums", number, len(blocks))
            before, reached = reached, {}
            for done, steps in layer.items():
                ways = [(s, before[s.before], blocks[s.position]) for s in steps if s.before in before]
                if partials := joiner.step(ways):
                    reached[done] = partials
            if not reached:
                name = self.problem.workload.einsums[number].name
                upto = f"up to {name}" if len(layer) == 1 else f"up to any at place {number + 1}"
                raise Infeasible(f"no combination of mappings fits from the first Einsum {upto}: " + self._blame())
        return reached[(1 << len(blocks)) - 1]

    @cached_property
    def layers(self) -> list[Layer]:
        """The sets of Einsums that may have run, by size, with the steps to each."""
        return layers(self.problem.workload, self.problem.mapspace.order == "free")

    def _serving(self, blocks: list[list[PmappingGroup]]) -> Serving | None:
        """What follows own stores and those for several readers along the cascade; None if no row asks for anything."""
        asking = [frozenset[Alone]().union(*(block.structure.asks for block in mine)) for mine in blocks]
        return Serving(self.problem.workload, asking) if any(asking) else None

    def _joiner(self) -> Joiner:
        return Joiner(self.users, self.setting, self._hopeless, self.counts, self.checkpoint)

    def _hopeless(self, step: JoinStep, cost: FloatArray, rows: IntArray) -> np.ndarray:
        """Partial costs that exceed the limit once every later Einsum adds what it costs at least."""
        if not self.cutoff.finite or not self.options.incumbent:
            return np.zeros(len(cost), bool)
        if self.consistency is None:
            return self.cutoff.beyond(cost + self.rest.after(step.done))
        return self.consistency.beyond(step, cost, rows)

    def best(self, partials: list[Partial]) -> Solution:
        """The best of some complete cascades."""
        best: tuple[float, Partial, int] | None = None
        for partial in partials:
            values = self.cutoff.value(partial.cost)
            i = int(np.argmin(values))
            if best is None or values[i] < best[0]:
                best = (float(values[i]), partial, i)
        assert best is not None
        return self.solution(best[1], best[2])

    def heuristics(self) -> list[Attempt]:
        """Passes that look for a feasible mapping, the quickest first."""
        quick = self.tiled("coarse")
        return [quick.hurried(False), quick.hurried()] if self.slides or self.puts_off else [quick.hurried()]

    @property
    def puts_off(self) -> bool:
        """True if a store may keep its tile over stores of a memory further out, so that its charge is put off."""
        return len(self.problem.machine.memories) > 2

    def hurried(self, sliding: bool = True) -> Attempt:
        """A pass over part of the space with coarser dominance: feasible mappings, fast.

        sliding: False for the smaller part in which nothing is followed along the loop that slides or keeps it, but
        where memories stand side by side.
        """
        rules = replace(self.options.rules, heuristic=True)
        if not sliding:
            rules = replace(rules, sliding=False, deferral=rules.deferral and self.side_by_side)
        options = replace(self.options, rules=rules)
        quick, most = copy(self), self.setting.max_fused_loops
        fused = 2 if most is None else min(most, 2)
        quick.options, quick.setting = options, replace(self.setting, rules=rules, max_fused_loops=fused)
        return quick

    def solution(self, partial: Partial, row: int) -> Solution:
        """The tree of one complete cascade, from the rows that were joined."""
        cost = partial.cost[row]
        value = float(self.cutoff.value(cost[None, :])[0])
        parts: list[ChosenRow] = []
        for _ in self.problem.workload.einsums:
            previous, block, position = partial.parents[partial.parent[row]]
            parts.append(ChosenRow(partial, block, int(partial.right[row]), position))
            row, partial = int(partial.left[row]), previous
        mapping = self._mapping(parts[::-1])
        return Solution(value, cost, normal_form(mapping, self.problem.workload))

    def _mapping(self, parts: list[ChosenRow]) -> Mapping:
        """The tree of one row per Einsum, in the order in which they run."""
        shared = [len(part.partial.compatibility.axes) for part in parts]
        return tree(self.problem.workload, self.problem.machine, self._pieces(parts), shared, {}, self.users.away)

    def _pieces(self, parts: list[ChosenRow]) -> list[Piece]:
        workload, machine = self.problem.workload, self.problem.machine
        return [piece(workload, machine, part.position, part.block, part.row) for part in parts]
