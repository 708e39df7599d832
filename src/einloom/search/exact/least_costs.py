"""What the Einsums of a cascade cost at least, and what that leaves to each of them below a cutoff.

Comes in: a problem. Goes out: a lower bound of its objective, the choices of stores and spatial loops that partners can
agree on, and per Einsum the most that is of use of every column.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property

import numpy as np

from ...errors import Infeasible
from ...problem import Problem
from ..method import Watcher
from .blame import blame
from .bounds.choices import Agreement, Choices, Keys, wanted
from .bounds.cutoff import TIE, Cutoff, settled
from .bounds.neighbour_bounds import NeighbourBounds
from .bounds.relaxation import alone_bound, column_limits, einsum_bound
from .bounds.relaxed_rows import Left
from .bounds.weighted_sums import MANY_RATIOS, Lines
from .einsums.classes import EinsumClass, signatures
from .einsums.exchange import exchangeable
from .einsums.runs import TooManyChoices
from .einsums.spatial import RankClasses
from .einsums.users import Users
from .fusion.explore import Wanted
from .fusion.floors import Floors
from .model import Setting
from .numerics.pareto import FloatArray
from .numerics.uneven import Tiling
from .options import ExactOptions
from .rooms import followed_across, limited, persistent_bits
from .spatial_lists import Beside, SpatialLists
from .unlisted.backings import Barred, barred
from .unlisted.beginnings import limit_of
from .unlisted.points import room_of, unlisted_points

LISTED = 20_000  # spatial choices of an Einsum from which on those within a limit are listed alone
RISING = (0.1, 0.4, 1.0, 3.0)
"""Limits of such an Einsum alone, as shares above what is known before any choice is listed."""
NEXT = 1e-3  # above that is next to it: the least latency, which very many choices share, is not sought
AGREED = (0.01, 0.03, 0.06)  # limits of agreement among them, as shares above the bound
FURTHER = (0.12, 0.25, 0.5, 1.0, 1.6)  # further ones where windows slide, and floors are much higher
JUMP, FEW = 4, 10_000  # times the spatial choices, and so many besides, are many more
PARTS = (0.5, 0.25, 0.125)  # of the way to the next limit that are gone where there are many more
SHORT, LAST = 1e-3, 0.05  # the rest of that way, and as a share of that limit, which is gone at once
AGREEABLE = 100_000  # spatial choices of an Einsum within a limit, from which on nobody asks what they agree on
NEARER = (1.0, 0.3, 0.1, 0.03, 0.01)  # limits of choices that are listed, as shares above the bound
MASKED = 1 << 26  # choices of stores and spatial loops of one Einsum of which a mask is kept
MANY = 200_000  # choices of stores and spatial loops from which on those within the limits are counted first
MANY_KINDS = 40  # of Einsums, from which on they do not narrow each other down one by one


class LeastCosts:
    """The least costs of every Einsum of one problem (of one repeat), below a `cutoff`.

    A signature is a class of Einsums (`EinsumClass`).

    many: lists for those Einsums that have very many spatial choices; `classes` has what is within the cutoff. tiling:
    of ranks in the space `ragged` that several Einsums may cut alike. left: what a relaxation leaves within the cutoff.
    together: what neighbours cost at least together, as far as it is known.
    """

    left: Left | None = None
    together: NeighbourBounds | None = None

    def __init__(
        self,
        problem: Problem,
        options: ExactOptions,
        watcher: Watcher,
        counts: dict[str, int],
        checkpoint: Callable[[], None],
        tiling: Tiling = "loose",
    ) -> None:
        self.problem = problem
        self.options = options
        self.watcher = watcher
        self.counts = counts
        self.checkpoint = checkpoint
        self.repeats = problem.workload.repeat**problem.objective.degree
        workload, machine = problem.workload, problem.machine
        self.users = Users(workload, machine, problem.mapspace.order == "free", problem.mapspace.stores == "shared")
        uneven = problem.mapspace.name == "ragged" or tiling == "integer"
        found = signatures(self.users, problem.mapspace.limits, uneven, tiling)
        self.signatures = found if problem.mapspace.places else exchangeable(workload, found, uneven)
        self.classes = {sig: RankClasses(sig, checkpoint) for sig in self.signatures}
        self.many = {sig: SpatialLists(one) for sig, one in self.classes.items() if self._is_long(one)}
        self.setting = self._setting()
        self.tracked = self.setting.tracked
        self.objectives = settled(problem.objective)
        self.least = np.zeros((len(self.signatures), len(self.objectives)))
        self.agreed = 0.0
        self.cutoff = Cutoff(problem.objective.powers[: len(self.objectives)])

    @property
    def tied(self) -> bool:
        """True if Einsums may cut some rank alike and unevenly: then `tiling` matters."""
        return any(signature.tied for signature in self.signatures)

    @property
    def side_by_side(self) -> bool:
        """True if memories behind the same fanouts may hold different tensors, as scratchpads do."""
        return any(option.side_by_side for signature in self.signatures for option in signature.units)

    @cached_property
    def crowded(self) -> bool:
        """True if the kinds of Einsums have very many choices of stores and of spatial loops, which are listed; or few
        that take as long: windows slide, and memories stand side by side, so that charges of what they keep are put
        off."""
        if self.slides and self.side_by_side:
            return True
        every = {**self.classes, **{sig: lists.every for sig, lists in self.many.items()}}
        options = ((every[sig], option) for sig in set(self.signatures) for option in sig.units)
        return sum(len(option.held) * classes.number(option) for classes, option in options) > MANY

    @property
    def slides(self) -> bool:
        """True if some window may be followed along the loop that slides it."""
        return any(tensor.slides for signature in self.signatures for tensor in signature.tensors)

    def _is_long(self, classes: RankClasses) -> bool:
        """True if the spatial choices of an Einsum are so many that only those within a limit are listed."""
        signature = classes.signature
        if self.problem.mapspace.places or signature.uneven or signature.tiling != "loose":
            return False
        return any(classes.number(option) > LISTED for option in signature.units)

    @property
    def repetition(self) -> float:
        """How often an Einsum occurs on average, up to renaming."""
        return len(self.signatures) / len(set(self.signatures))

    def begin(self) -> float:
        """A first lower bound, known before spatial choices are listed; none where Einsums may run at the same time."""
        if self.problem.mapspace.places:
            return 0.0
        machine = self.problem.machine
        never = barred(self.problem.workload, self.signatures, [room_of(memory) for memory in machine.memories])
        every = list(zip(self.signatures, never, strict=True))
        found: dict[tuple[EinsumClass, Barred], FloatArray] = {}
        for sig, bar in dict.fromkeys(every):
            self.checkpoint()
            found[sig, bar] = unlisted_points(machine, sig, self.objectives, bar)
        for i, one in enumerate(every):
            if not len(found[one]):
                raise self._unmapped(i)
        self.least = np.array([found[one].min(axis=0) for one in every])
        lines = Lines.of(self.cutoff, self.least, MANY_RATIOS)
        lowest = {one: lines.extend(points).min(axis=0) for one, points in found.items()}
        self.agreed = float(lines.value(np.sum([lowest[one] for one in every], axis=0)[None])[0])
        return self.bound

    def lower_bound(
        self,
        enough: float = float("inf"),
        proven: Callable[[float], None] = lambda bound: None,
        known: float = float("inf"),
    ) -> float:
        """The objective of the sums of what every Einsum costs at least. proven: hears of it as it rises. known: it is
        not asked for above this.

        Raises Infeasible as soon as it is above `enough`.
        """
        if self.many and not self.least.any():
            self.begin()
        for column, objective in enumerate(self.objectives):
            setting = Setting(self.problem.machine, objective, (), self.setting.capacities, 0, self.options.rules)
            found: dict[EinsumClass, float] = {}
            for i, sig in enumerate(self.signatures):
                self.watcher.stage(f"bounding {objective}", i, len(self.signatures))
                if sig not in found:
                    found[sig] = self._least_of(setting, sig)
                self.least[i, column] = max(found[sig], self.least[i, column])
                if not np.isfinite(found[sig]):
                    raise self._unmapped(i)
                if self.bound > enough:
                    raise Infeasible("no combination of mappings stays within the limit")
                proven(self.bound)
        self.agreed = max(self.agreed, self._agree(known))
        if not self.bound <= enough:
            raise Infeasible("no combination of mappings stays within the limit")
        return self.bound

    @property
    def bound(self) -> float:
        """What `lower_bound` has found."""
        return max(self.agreed, float(self.cutoff.value(self.least.sum(axis=0, keepdims=True))[0]))

    def _least_of(self, setting: Setting, sig: EinsumClass) -> float:
        """What an Einsum costs at least in every row that this pass knows of it."""
        if sig not in self.many:
            return einsum_bound(setting, self.classes[sig])
        column = self.objectives.index(setting.objective)
        floor = float(min(self.least[i, column] for i, one in enumerate(self.signatures) if one == sig))
        some = Floors(setting, self.many[sig].few(setting)).least()
        if setting.objective.name == "latency" and some <= floor * (1 + NEXT):
            return floor
        limits = [some * (1 + TIE), *(limit for step in RISING if (limit := floor * (1 + step)) > some), np.inf]
        for most in limits:
            found = einsum_bound(setting, self.many[sig].near(setting, limit_of(most)), most)
            if found <= most:
                break
        return found

    def _within(self, cutoff: Cutoff, most: float = np.inf) -> dict[EinsumClass, RankClasses]:
        """The rank classes of all Einsums; of those with very many spatial choices with what can stay within a cutoff
        beside what the others cost at least. Raises TooManyChoices if more than `most` can of one."""
        if not self.many or not cutoff.finite:
            return {**self.classes, **{sig: lists.every for sig, lists in self.many.items()}}
        total, found = self.least.sum(axis=0), dict(self.classes)
        for sig, lists in self.many.items():
            if sig not in self.signatures:
                continue
            rests = [total - mine for one, mine in zip(self.signatures, self.least, strict=True) if one == sig]
            self.watcher.stage("listing spatial choices")
            found[sig] = lists.within(self.setting, Beside(cutoff, np.min(rests, axis=0)), most)
        return found

    def listed(self, share: float, most: float) -> float:
        """How many spatial choices Einsums that have very many of them have within a limit, as a share above the bound;
        infinite if one has more than `most`."""
        try:
            found = self._within(replace(self.cutoff, limit=self.bound * (1 + share) * (1 + 2 * TIE)), most)
        except TooManyChoices:
            return np.inf
        return sum(len(found[sig].spreads(option)) for sig in {*self.many} & {*found} for option in sig.units)

    def next_limit(self, reached: float, step: float) -> float:
        """The next limit on the way from one that was tried in vain to another, as shares above the bound: the whole
        way, or as much of it as does not bring many more spatial choices."""
        if not self.many or not np.isfinite(step) or step - reached <= max(SHORT, LAST * step):
            return step
        most = JUMP * self.listed(reached, np.inf) + FEW
        parts = (reached + (step - reached) * part for part in PARTS)
        for share in (step, *parts):
            if self.listed(share, most) <= most:
                break
        return share

    def sharpen(self, proven: Callable[[float], None] = lambda bound: None) -> None:
        """Raise the least costs to those of every Einsum with its backing stores, their room and fused loops, alone.

        proven: hears of the bound as it rises.
        """
        for column, objective in enumerate(self.objectives):
            setting = replace(self.setting, objective=objective, tracked=self.tracked)
            found: dict[EinsumClass, float] = {}
            for i, sig in enumerate(self.signatures):
                self.watcher.stage(f"bounding {objective} with shared room", i, len(self.signatures))
                if sig not in found:

                    def rising(least: float, at: tuple[int, int] = (i, column)) -> None:
                        self.least[at] = least
                        proven(self.bound)

                    found[sig] = alone_bound(setting, self.classes[sig], self.least[i, column], rising)
                self.least[i, column] = found[sig]
                if not np.isfinite(found[sig]):
                    raise self._unmapped(i)
        self.agreed = max(self.agreed, self._agree())

    def neighbouring(self, together: NeighbourBounds) -> None:
        """Take what neighbours cost at least together into the bound."""
        self.together = together
        lines = Lines.of(self.cutoff, self.least, MANY_RATIOS, raised=True)
        self.agreed = max(self.agreed, float(lines.value(together.before(lines, self.least)[-1:])[0]))

    def _agree(self, known: float = float("inf")) -> float:
        """What the cascade costs at least, as its Einsums have to agree on how they share tensors. known: as in
        `lower_bound`."""
        if not self.options.consistency:
            return 0.0
        if self._choices is None:
            return self._agree_below([known, *(self.bound * (1 + step) for step in NEARER if self.bound > 0)])
        found = self._agreement(self.cutoff).bound(self._at_least(self._choices))
        if not np.isfinite(found):
            why = "Einsums that share a tensor cannot agree on stores and spatial loops: "
            raise Infeasible(why + self._blame())
        return found

    def _agree_below(self, limits: list[float]) -> float:
        """The same as far as the first of these limits below which choices are few enough to be listed."""
        if self.many:
            return self._agree_from_below(limits[0])
        for limit in limits:
            cutoff = replace(self.cutoff, limit=limit)
            choices = self._choices_within(cutoff) if np.isfinite(limit) else None
            if choices is not None:
                choices = self._agreement(cutoff).filter(choices) if all(choices) else choices
                return min(limit, self._agreement(self.cutoff).bound(choices)) if all(choices) else limit
        return 0.0

    def _agree_from_below(self, known: float) -> float:
        """The same, from the bound up, where only choices within a limit are listed."""
        least, steps = self.bound, (*AGREED, *(FURTHER if self.slides else ()))
        for limit in (*(self.bound * (1 + step) for step in steps), known):
            cutoff = replace(self.cutoff, limit=min(limit, known) * (1 + 2 * TIE))
            try:
                choices = self._choices_within(cutoff, AGREEABLE) if np.isfinite(cutoff.limit) else None
            except TooManyChoices:
                return least
            if choices is None:
                return least
            if all(choices) and all(choices := self._agreement(cutoff).filter(choices)):
                return max(least, min(cutoff.limit, self._agreement(self.cutoff).bound(choices)))
            if least == self.bound:
                self.listed(AGREED[-1], AGREEABLE)  # what is within the limits between is found in that
            least = cutoff.limit
        return least

    def _agreement(self, cutoff: Cutoff) -> Agreement:
        known = self._keys, self.least, cutoff, self.counts, self.together
        return Agreement(self.problem.workload, *known, pause=self.checkpoint)

    def _agreed(self) -> tuple[dict[EinsumClass, Wanted], FloatArray | None]:
        """The choices that can be part of a cascade within the cutoff, and per Einsum the most of each settled column
        that is of use; empty and None where that is not known."""
        if not self.options.consistency or not self.cutoff.finite:
            return {}, None
        choices = self._choices or self._choices_within(self.cutoff)
        if choices is None:
            return {}, None
        agreement = self._agreement(self.cutoff)
        known = self._at_least(choices)
        choices = agreement.filter(known) if all(known) else known
        if not all(choices):
            raise Infeasible("no combination of mappings stays within the limit")
        most = agreement.most(choices) if self._uneven else None
        if self.left is not None:
            most = self.left.most if most is None else np.minimum(most, self.left.most)
        return wanted([self.classes[sig] for sig in self.signatures], choices), most

    @cached_property
    def _keys(self) -> Keys:
        return Keys()

    @cached_property
    def _choices(self) -> list[list[Choices]] | None:
        """The choices of every Einsum, each with what it costs at least; None if some Einsum has too many."""
        if self.many:
            return None
        found: dict[EinsumClass, list[Choices] | None] = {}
        for i, sig in enumerate(self.signatures):
            self.watcher.stage("comparing choices", i, len(self.signatures))
            if sig not in found:
                found[sig] = self._keys.choices(Floors(self.setting, self.classes[sig]))
            if found[sig] is None:
                return None
        return [known for sig in self.signatures if (known := found[sig]) is not None]

    def _choices_within(self, cutoff: Cutoff, most: float = np.inf) -> list[list[Choices]] | None:
        """The choices of every Einsum that are not beyond a cutoff beside what the others cost at least; None if some
        Einsum has too many, or Einsums may run at the same time. Raises TooManyChoices as `_within` does."""
        if self.problem.mapspace.places:
            return None
        classes = self._within(cutoff, most)
        if max(len(o.held) * len(classes[s].spreads(o)) for s in set(self.signatures) for o in s.units) > MASKED:
            return None
        total, found = self.least.sum(axis=0), dict[EinsumClass, list[Choices] | None]()
        for sig, least in zip(self.signatures, self.least, strict=True):
            if sig not in found:
                self.checkpoint()
                found[sig] = self._keys.within(Floors(self.setting, classes[sig]), cutoff, total - least)
            if found[sig] is None:
                return None
        return [known for sig in self.signatures if (known := found[sig]) is not None]

    def _at_least(self, choices: list[list[Choices]]) -> list[list[Choices]]:
        """The choices, none of which costs less than its Einsum does; the same list for Einsums that look alike."""
        if not self._uneven:
            return choices
        found: dict[EinsumClass, list[Choices]] = {}
        for sig, mine, least in zip(self.signatures, choices, self.least, strict=True):
            if sig not in found:
                found[sig] = [replace(some, cost=np.maximum(some.cost, least)) for some in mine]
        return [found[sig] for sig in self.signatures]

    def _column_limits(self, agreed: FloatArray | None) -> list[FloatArray]:
        """Per Einsum the largest useful value of each column. agreed: as `_agreed` says of settled columns."""
        width = len(self.setting.columns)
        if not self.cutoff.finite:
            return [np.full(width, np.inf) for _ in self.signatures]
        total = self.least.sum(axis=0)
        most = self.cutoff.most(total)
        slack = np.abs(most) * TIE  # the others' sums are rounded at the size of the total
        if self.together is not None:
            beside = self._beside(self.together)
            agreed = beside if agreed is None else np.minimum(agreed, beside)
        limits = []
        for i, least in enumerate(self.least):
            mine = most - (total - least) + slack
            mine = mine if agreed is None else np.minimum(mine, agreed[i] + slack)
            limits.append(column_limits(self.setting, *mine))
        return limits

    def _beside(self, together: NeighbourBounds) -> FloatArray:
        """Per Einsum the most of each settled column that is of use beside what is known of all others together."""
        lines = Lines.of(self.cutoff, self.least, raised=True)
        rests = together.before(lines, self.least)[:-1] + together.after(lines, self.least)[1:]
        return lines.most(rests, lines.extend(self.least))

    @cached_property
    def _uneven(self) -> bool:
        """True if tiles need not divide, so that rows are many, and the kinds of Einsums are not."""
        return any(sig.uneven for sig in self.signatures) and len(set(self.signatures)) <= MANY_KINDS

    def _setting(self) -> Setting:
        problem = self.problem
        capacities = limited(problem, self.signatures, self.set_aside)
        tracked = followed_across(self.signatures, capacities)
        return Setting(
            problem.machine,
            problem.objective,
            tracked,
            capacities,
            problem.mapspace.max_fused_loops,
            self.options.rules,
            problem.mapspace.max_fused_loops_per_rank_variable,
        )

    @cached_property
    def set_aside(self) -> dict[int, int]:
        """Bits per memory that persistent inputs and outputs of the cascade take there for the whole run, once per
        repeat."""
        return persistent_bits(self.problem, self.users)

    def _unmapped(self, position: int) -> Infeasible:
        name = self.problem.workload.einsums[position].name
        return Infeasible(f"Einsum {name} has no mapping on its own: " + self._blame(position), name)

    def _blame(self, position: int | None = None) -> str:
        """What may stand in the way, as far as this search can tell; `explain` finds out which of it does."""
        return blame(self.problem, self.signatures, self.setting.capacities, position)
