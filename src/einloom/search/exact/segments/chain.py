"""A cascade as a chain of segments: what it costs at least, and its best mapping within so much.

Comes in: an attempt and its cuts. Goes out: a lower bound from the segments' tables, chained end to end so that a
tensor leaves one segment as it enters the next, and a search whose rows may cost what the other segments leave to
theirs. Equal segments, as of repeated layers, are solved once (docs/model/pruning.md, segments).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from enum import Enum

import numpy as np

from ....dataclass import dataclass
from ....problem import Problem
from ..attempt import Attempt, Solution
from ..bounds.arc_consistency import Rest
from ..bounds.cutoff import TIE
from ..bounds.weighted_sums import Lines
from ..fusion.explore import PmappingGroup
from ..joining.compatibility import Compatibility, Stored
from ..joining.completions import Completions, Passing
from ..numerics.pareto import FloatArray
from ..options import ExactOptions
from .cuts import CutPoint, cuts
from .segment import Segment, Table, segments
from .subcascade import stored


class Other(Enum):
    """A way to store a tensor that no table tells of."""

    ONE = 1


OTHER = Other.ONE
FEWEST, SHORT = 3, 20  # segments, and Einsums, of a cascade from which on a chain is worth it


@dataclass(frozen=True)
class Costs:
    """What one side of a cut costs at least, by how the tensor that passes is stored there. other: in any other way."""

    known: dict[Stored | None, float]
    other: float

    def of(self, end: Stored | Other | None) -> float:
        return self.other if isinstance(end, Other) else self.known.get(end, self.other)

    @property
    def least(self) -> float:
        return min((self.other, *self.known.values()))


class Chain:
    """The segments of a cascade. kinds: of each segment that with the same table that is solved."""

    def __init__(self, attempt: Attempt, places: list[CutPoint]) -> None:
        self.attempt = attempt
        self.complete_space = attempt.complete_space
        self.places = places
        self.kinds = segments(attempt, places)
        self.different = list(dict.fromkeys(self.kinds))

    @staticmethod
    def able(problem: Problem, options: ExactOptions) -> bool:
        """False where a cascade has few segments, or the mapspace or the objective is none that chains carry."""
        space, workload = problem.mapspace, problem.workload
        if problem.objective.name not in ("energy", "traffic") or space.places or not options.consistency:
            return False
        if space.order == "free" or space.stores != "own" or not options.segments or workload.parted:
            return False
        return len(workload.einsums) >= SHORT and len(cuts(workload)) + 1 >= FEWEST

    @classmethod
    def of(cls, attempt: Attempt) -> Chain | None:
        """None where there are few segments, or something passes that the tables do not tell."""
        if not cls.able(attempt.problem, attempt.options) or attempt.tied or type(attempt) is not Attempt:
            return None
        chain = cls(attempt, cuts(attempt.problem.workload))
        return chain if all(kind.begin() > 0 for kind in chain.different) else None

    # ---- the bound --------------------------------------------------------------------------------------------------

    def behind(self) -> list[Costs]:
        """Of the segments before each cut, and of all; first of none."""
        found = [Costs({None: 0.0}, np.inf)]
        for kind in self.kinds:
            turned = {(leaves, enters): cost for (enters, leaves), cost in kind.known.items()}
            found.append(_further(turned, kind.limit, found[-1]))
        return found

    def ahead(self) -> list[Costs]:
        """Of the segments behind each cut; first of all of them."""
        found = [Costs({None: 0.0}, np.inf)]
        for kind in reversed(self.kinds):
            found.append(_further(kind.known, kind.limit, found[-1]))
        return found[::-1]

    @property
    def bound(self) -> float:
        return self.ahead()[0].of(None)

    def _along(self) -> Iterator[tuple[Segment, float]]:
        """A chain that gives the bound: of each segment the kind, and from which limit its table is right."""
        end: Stored | Other | None = None
        for kind, costs in zip(self.kinds, self.ahead()[1:], strict=True):
            ways = [(cost + costs.of(leaves), leaves) for (enters, leaves), cost in kind.known.items() if enters == end]
            best, end = min(ways, key=lambda way: way[0], default=(np.inf, OTHER))
            needed = best - costs.least
            if needed > kind.limit:
                end = min(costs.known, key=lambda leaves: costs.known[leaves], default=OTHER)
                if costs.other < costs.of(end):
                    end = OTHER
            yield kind, needed

    def doubtful(self) -> list[Segment]:
        """The kinds whose limit, not their table, says what they cost in a chain that gives the bound."""
        return list({id(kind): kind for kind, needed in self._along() if needed > kind.limit}.values())

    def guided(self, quick: Chain) -> None:
        """Begin as far as a chain of the same segments has come, and with the limits that it needs at its bound."""
        needed = {id(kind): kind.limit for kind in quick.kinds}
        if not quick.doubtful():
            needed = dict.fromkeys(needed, 0.0)
            for kind, limit in quick._along():
                needed[id(kind)] = max(needed[id(kind)], limit)
        for mine, other in zip(self.kinds, quick.kinds, strict=True):
            mine.hint, mine.first = max(mine.hint, other.limit), needed[id(other)]

    def rising(self) -> Iterator[float]:
        """The bound, while the segments are asked for more, until a chain of their tables attains it."""
        yield self.bound
        while kinds := self.doubtful():
            for kind in sorted(kinds, key=lambda kind: kind.bound - kind.hint):  # those that look furthest first
                self.attempt.watcher.stage("bounding segments", self.different.index(kind), len(self.different))
                kind.learn()
                yield self.bound

    # ---- the search -------------------------------------------------------------------------------------------------

    def run(self, limit: float) -> Solution:
        """The best cascade that costs at most `limit` (others may come out too), or Infeasible. Raises TooMany if there
        are too many joins."""
        attempt, behind, ahead = self.attempt, self.behind(), self.ahead()
        most: dict[int, float] = {}
        for kind, before, after in zip(self.kinds, behind, ahead[1:], strict=False):
            most[id(kind)] = max(most.get(id(kind), 0.0), limit - before.least - after.least)
        attempt.cutoff = replace(attempt.cutoff, limit=limit * (1 + TIE))
        attempt.rest, attempt.consistency = Rest(attempt.least), None
        attempt.setting = replace(attempt.setting, tracked=attempt.tracked)
        blocks: list[list[PmappingGroup]] = []
        for kind in self.kinds:
            blocks += kind.rows(most[id(kind)])
        joiner = attempt.join_of(blocks)
        lines = Lines.of(attempt.cutoff, attempt.least)
        joiner.completions = Completions(joiner, lines, blocks, attempt.layers, self._passing(behind, ahead))
        return attempt.best(attempt.joined(joiner, blocks, attempt.cutoff))

    def _passing(self, behind: list[Costs], ahead: list[Costs]) -> Passing:
        """What both sides of each cut cost at least, for any state of the join there."""

        def costs(tensor: str, before: Costs, after: Costs) -> Callable[[Compatibility], FloatArray]:
            def of(state: Compatibility) -> FloatArray:
                end = stored(next(live for live in state.live if live.tensor == tensor), state.axes)
                return np.array([[before.of(end)], [after.of(end)]])

            return of

        return {
            (1 << cut.position) - 1: costs(cut.tensor, before, after)
            for cut, before, after in zip(self.places, behind[1:], ahead[1:], strict=False)
        }


def _further(table: Table, limit: float, beyond: Costs) -> Costs:
    """Costs with one segment more. table: its entries; a way of storing without an entry costs more than `limit`."""
    floor = limit + beyond.least
    found: dict[Stored | None, float] = {}
    for (here, there), cost in table.items():
        found[here] = min(found.get(here, floor), cost + beyond.of(there))
    return Costs(found, floor)
