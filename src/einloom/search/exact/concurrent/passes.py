"""One pass of the search where groups of Einsums may run at the same time.

Every Einsum that may be a member has two kinds of blocks: of rows that run alone, as in `attempt`, and of rows that are
part of a group. Latency is bounded by seconds on one component (`candidates.py`), which add up like the sums of a
sequential cascade, so bounds, limits and consistency stay as they are. What is concurrent, and how, says `groups.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import cached_property

import numpy as np

from ....errors import Infeasible
from ....machine.levels import Fanout, Machine
from ....mapping.tree import Mapping
from ....problem import Objective
from ..attempt import Attempt
from ..bounds.choices import Choices, Keys
from ..bounds.cutoff import TIE
from ..einsums.classes import EinsumClass
from ..fusion.explore import Allowed, PmappingGroup, Stacks, Wanted
from ..joining.join import ChosenRow, Joiner
from ..model import Setting
from ..numerics.pareto import FloatArray
from ..numerics.uneven import Tiling
from ..traceback import Piece, Where, tree
from .candidates import Candidate, Candidates, drains
from .groups import Groups
from .joins import GroupJoiner, Sums
from .rows import MemberPmappings
from .shares import AxisShare, private


def without_leakage(machine: Machine) -> Machine:
    """The same machine, leaking nothing."""
    levels = (replace(x, leakage=0.0) if not isinstance(x, Fanout) else x for x in machine.levels)
    return replace(machine, levels=tuple(levels))


class ConcurrentAttempt(Attempt):
    """Complete solutions of a problem whose mapspace has groups, where these may be better than what is sequential."""

    plain = False

    @cached_property
    def groups(self) -> Groups:
        """What may run at the same time."""
        return Groups(self)

    @property
    def candidates(self) -> Candidates:
        return self.groups.candidates

    @cached_property
    def sequential(self) -> Attempt:
        """The pass without groups."""
        found = Attempt(self.problem, self.options, self.watcher, self.counts, self.checkpoint)
        found.classes = self.classes
        return found

    def tiled(self, tiling: Tiling) -> Attempt:
        """The same search with other tiles of tied ranks, also where Einsums run one after the other."""
        other = super().tiled(tiling)
        if isinstance(other, ConcurrentAttempt) and other is not self:
            other.sequential = self.sequential.tiled(tiling)
            other.sequential.classes = other.classes
            other.seconds, other.dynamic = self.seconds, self.dynamic
        return other

    @cached_property
    def seconds(self) -> FloatArray:
        """The least seconds that every Einsum adds to the latency; zero as long as `lower_bound` has not said."""
        return np.zeros(len(self.signatures))

    @cached_property
    def dynamic(self) -> FloatArray:
        """Likewise the least joules without leakage."""
        return np.zeros(len(self.signatures))

    @cached_property
    def sums(self) -> Sums:
        if not self.groups.timed:
            return Sums(0, None, 0.0)
        at = {objective.name: i for i, objective in enumerate(self.objectives)}
        return Sums(at.get("energy"), at.get("latency"), self.problem.machine.leakage)

    # ---- bounds ---------------------------------------------------------------------------------------------------

    def lower_bound(
        self,
        enough: float = float("inf"),
        proven: Callable[[float], None] = lambda bound: None,
        known: float = float("inf"),
    ) -> float:
        """The objective of the sums of what every Einsum adds at least, alone or in a group.

        It is known only at the end, and so is whether it is above `enough`: a group may take less than its members
        alone.
        """
        super().lower_bound()
        self.sequential.least = self.least.copy()
        with suppress(Infeasible):  # groups may still have mappings
            self.sequential.agreed = self.sequential._agree()
        at = self.sums
        self.seconds = self._seconds()
        if at.energy is not None:
            self.dynamic = self._dynamic()
        for i in self.candidates.members:
            if at.latency is not None:
                self.least[i, at.latency] = self.seconds[i]
            if at.energy is not None:
                self.least[i, at.energy] = self.dynamic[i] + at.watts * self.seconds[i]
        return self.bound

    @cached_property
    def _keys(self) -> Keys:
        return self.sequential._keys

    @cached_property
    def _choices(self) -> list[list[Choices]] | None:
        return self.sequential._choices

    def sharpen(self, proven: Callable[[float], None] = lambda bound: None) -> None:
        """Nothing if there may be groups: members with shared room may add less than alone."""
        if not self.candidates.members:
            super().sharpen(proven)

    @property
    def narrows(self) -> bool:
        """Not if there may be groups: rows that no row alone goes along with may be those of a member's partner."""
        return not self.candidates.members and super().narrows

    def _agree(self, known: float = float("inf")) -> float:
        """Nothing if there may be groups: members cost less than alone."""
        return 0.0 if self.candidates.members else super()._agree(known)

    def _seconds(self) -> FloatArray:
        """The least seconds that every Einsum adds to the latency."""
        if self.sums.latency is not None:
            return self.candidates.seconds(self.least[:, self.sums.latency])
        return self.candidates.seconds(self._leasts(self.problem.machine, Objective("latency")))

    def _dynamic(self) -> FloatArray:
        """The least joules of every Einsum without leakage."""
        if not self.sums.watts:
            return self.least[:, self.sums.energy].copy()
        return self._leasts(without_leakage(self.problem.machine), Objective("energy"))

    def _leasts(self, machine: Machine, goal: Objective) -> FloatArray:
        """What every Einsum costs at least on a machine, alone or in a group."""
        setting = Setting(machine, goal, (), self.setting.capacities, 0, self.options.rules)
        known = {sig: self._least_of(setting, sig) for sig in set(self.signatures)}
        return np.array([known[sig] for sig in self.signatures])

    def _member_limits(self, position: int, share: AxisShare | None, most: float) -> FloatArray:
        """The largest useful value of each column of a member with this share. most: seconds that it may take."""
        width, groups = len(self.setting.columns), self.groups
        if not self.cutoff.finite:
            return np.full(width, np.inf)
        energy, latency = self._left(position)
        busy = self.candidates.limits(position, latency, self.seconds)
        if share is not None:
            alone = private(self.problem.machine, self.setting.columns, groups.components, share)
            busy = np.minimum(np.where(alone, busy * (share.size / share.count), busy), most)
        return groups.components.columns(busy, energy, width)

    def _left(self, position: int) -> tuple[float, float]:
        """The most joules of an Einsum, and the most seconds of the cascade, that are useful.

        Sums are rounded at the size of the total, so that is what the slack is a share of.
        """
        total, at = self.least.sum(axis=0), self.sums
        most = self.cutoff.most(total)
        most = most + np.abs(most) * TIE
        energy = np.inf if at.energy is None else most[at.energy] - (total - self.least[position])[at.energy]
        if at.latency is not None:
            return float(energy), float(most[at.latency])
        return float(energy), float((most[0] - self.dynamic.sum()) / at.watts) if at.watts else float("inf")

    def _least_of(self, setting: Setting, sig: EinsumClass) -> float:
        return self.groups.least_of(setting, sig, super()._least_of(setting, sig))

    def _useful(self, position: int, share: AxisShare | None) -> float:
        """The most seconds that a stage with this share may take; below zero if no group can make use of it."""
        if share is None:
            return float("inf")
        _, latency = self._left(position)
        found = -1.0
        for candidate in self.candidates.around(position):
            most = latency - (self.seconds.sum() - self.seconds[list(candidate.members)].sum())
            if self._shared_out(candidate, position, share, most):
                found = max(found, most)
        return found

    def _shared_out(self, candidate: Candidate, position: int, share: AxisShare, most: float) -> bool:
        """True if the other members can have what is left and take at most so many seconds each."""
        need = share.count
        same = [other for other in self.groups.shares if other is not None and other.axis == share.axis]
        for i in candidate.members:
            mine = [other for other in same if self.groups.quickest(self.signatures[i], other) <= most]
            if i == position and share not in mine:
                return False
            if i != position:
                need += min((other.count for other in mine), default=share.size)
        return need <= share.size

    def first_limit(self) -> float | None:
        """For latency alone the sum of what Einsums take one after the other: mostly attained, and quickly shown."""
        return self.sequential.bound if self.sums.energy is None else None

    def hurried(self, sliding: bool = True) -> Attempt:
        """A pass over part of the sequential space: what it finds is in this space too."""
        return self.sequential.hurried(sliding)

    # ---- rows -----------------------------------------------------------------------------------------------------

    def _blocks(self, limits: list[FloatArray], wanted: dict[EinsumClass, Wanted]) -> list[list[PmappingGroup]]:
        alone = super()._blocks(limits, wanted)
        members = self._members(alone)
        wide: dict[int, list[PmappingGroup]] = {}
        found = []
        for i, blocks in enumerate(alone):
            if id(blocks) not in wide:
                wide[id(blocks)] = [self._widened(block) for block in blocks]
            found.append([*wide[id(blocks)], *members[i]] if members.get(i) else wide[id(blocks)])
            if not found[-1]:
                raise self._unmapped(i)
        return found

    def _agreed(self) -> tuple[dict[EinsumClass, Wanted], FloatArray | None]:
        """Nothing is known if there may be groups: partners may be members of one."""
        return ({}, None) if self.candidates.members else super()._agreed()

    def _grouped(self, position: int) -> bool:
        return position in self.candidates.members

    def _members(self, alone: list[list[PmappingGroup]]) -> dict[int, list[MemberPmappings]]:
        """The blocks of members; Einsums that look alike are explored once."""
        alike: dict[tuple[EinsumClass, frozenset[int], tuple[tuple[int, float], ...]], list[int]] = {}
        for i, tensors in self.candidates.members.items():
            names = self.problem.workload.einsums[i].tensors
            inner = frozenset(t for t, name in enumerate(names) if name in tensors)
            bounds = tuple(self.candidates.least_sums(i, self.seconds))
            alike.setdefault((self.signatures[i], inner, bounds), []).append(i)
        found: dict[int, list[MemberPmappings]] = {}
        for (_, inner, bounds), positions in alike.items():
            lone = self.options.consistency and len(positions) == 1
            met = self._met(positions[0], alone, found) if lone else {}
            blocks = self._explored(positions, inner, bounds, met)
            found.update((i, blocks) for i in positions)
        return found

    def _explored(
        self,
        positions: list[int],
        inner: frozenset[int],
        bounds: tuple[tuple[int, float], ...],
        met: dict[int, Allowed],
    ) -> list[MemberPmappings]:
        """The blocks of members that look alike, for every share that some group can use.

        met: how other users of their tensors store them.
        """
        found: list[MemberPmappings] = []
        stacks: Stacks = {}
        for share in self.groups.shares:
            useful = [(i, most) for i in positions if (most := self._useful(i, share)) >= 0]
            if useful:
                limits = np.max([self._member_limits(i, share, most) for i, most in useful], axis=0)
                kind = self.groups.kind(share, inner, bounds)
                explorer = self.groups.explorer(self.signatures[positions[0]], limits, kind)
                explorer.allowed, explorer.stacks = met, stacks
                found += explorer.members()
            else:
                self.counts["useless shares"] = self.counts.get("useless shares", 0) + 1
        return found

    def _met(
        self, position: int, alone: list[list[PmappingGroup]], members: dict[int, list[MemberPmappings]]
    ) -> dict[int, Allowed]:
        """For each tensor of a member, the ways in which all explored Einsums that share it store it."""
        known = (i for i in range(len(alone)) if i != position and (i in members or not self._grouped(i)))
        return super()._allowed(position, {i: [*alone[i], *members.get(i, ())] for i in known})

    def _allowed(self, position: int, found: dict[int, list[PmappingGroup]]) -> dict[int, Allowed]:
        """As for a sequential cascade, but members may store what they share in ways of their own."""
        members = {self.problem.workload.einsums[i].name for i in self.candidates.members}
        shared = self.problem.workload.einsums[position].tensors
        apart = [not members & self._users(name) for name in shared]
        return {t: keys for t, keys in super()._allowed(position, found).items() if apart[t]}

    def _users(self, tensor: str) -> set[str]:
        workload = self.problem.workload
        return {user for user in (*workload.consumers[tensor], workload.producers.get(tensor)) if user is not None}

    def _widened(self, block: PmappingGroup) -> PmappingGroup:
        """The same rows with a place for every memory that members of a group share."""
        tracked = self.groups.whole.tracked
        if tracked == self.setting.tracked:
            return block
        own = np.zeros((len(block), len(tracked), block.own.shape[2]), np.int64)
        own[:, [tracked.index(m) for m in self.setting.tracked]] = block.own
        return replace(block, own=own)

    # ---- joins and trees ------------------------------------------------------------------------------------------

    def _joiner(self) -> Joiner:
        return GroupJoiner(
            self.users,
            self.groups.whole,
            self._hopeless,
            self.counts,
            self.checkpoint,
            candidates=self.candidates,
            sums=self.sums,
            components=len(self.groups.components),
        )

    def _mapping(self, parts: list[ChosenRow]) -> Mapping:
        pieces = self._pieces(parts)
        shared = [len(part.partial.compatibility.axes) for part in parts]
        groups: dict[tuple[int, int], Where] = {}
        first: int | None = None
        for i, (partial, block, _, _) in enumerate(parts):
            if isinstance(block, MemberPmappings):
                first = i if first is None else first
                if partial.compatibility.group is None:
                    outer = max(shared[i], shared[first - 1] if first else 0)
                    for n in range(first, i + 1):
                        pieces[n] = self._lowered(pieces[n], parts[n], outer)
                    groups[first, i] = self._where([(part.block, part.row) for part in parts[first : i + 1]])
                    first = None
        return tree(self.problem.workload, self.problem.machine, pieces, shared, groups, self.users.away)

    def _where(self, members: list[tuple[PmappingGroup, int]]) -> Where:
        """The place of a group, from a row of each member."""
        shares = [block.share for block, _ in members if isinstance(block, MemberPmappings) and block.share is not None]
        if shares:
            return shares[0].name, tuple(share.count for share in shares)
        units = [block.variants[block.variant[row]].option.unit for block, row in members]
        busy = [unit for unit in units if unit is not None]
        own = "unit" in self.problem.mapspace.places and len(set(busy)) == len(busy)
        return ("unit" if own else "shared"), ()

    def _lowered(self, piece: Piece, part: ChosenRow, outer: int) -> Piece:
        """The piece with those of its stores below the split that would only make the pipeline drain above it.

        outer: loops above the split that holds the group. What stands above one of them stays: it drains nothing.
        """
        signature, names = self.signatures[part.position], self.problem.workload.einsums[part.position].tensors
        block, variant = part.block, part.block.variants[part.block.variant[part.row]]
        _, lowered = drains(signature, block.structure, variant.own, self.setting.slots)
        moved = {(store.depth, store.memory, names[store.tensor]) for store in lowered if store.depth >= outer}
        depth = len(block.structure.loops)
        stores = tuple(
            (depth if own and (place, m, t) in moved else place, m, t, own) for place, m, t, own in piece.stores
        )
        return replace(piece, stores=stores)
