"""Joining Einsums one by one: partial cascades of the same Einsums, with equal live tensors and shared loops, compete.

Comes in: the blocks of every Einsum. Goes out: the undominated complete cascades. A partial cascade knows its open
loops (those shared with the next Einsum), its live tensors, its cost, and its reservations (`reservations.py`).
Where a tensor that stays for the whole run may be backed here or there it is kept, with the bits of these: ``lasting``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import field
from functools import cached_property
from itertools import accumulate
from math import prod
from typing import ClassVar, NamedTuple, Protocol

import numpy as np

from ....dataclass import dataclass
from ....workload.einsum import Access, Workload
from ..bounds.cutoff import Cutoff, settled
from ..einsums.orders import JoinStep
from ..einsums.users import Users, is_shared
from ..fusion.explore import PmappingGroup
from ..fusion.serving import NOTHING, Served, Serving, ServingStep
from ..fusion.templates import FusedLoop, FusedTemplate, SplitConstraint
from ..model import Setting
from ..numerics.pareto import FloatArray, IntArray, pareto
from ..numerics.row_table import RowTable
from .compatibility import Axes, Compatibility, LiveTensor, Opened, OpenGroup
from .lending import NONE as NONE_LENT
from .lending import Lent, Loan, Part, Rank, lend, tile_of
from .matching import Meeting, matching_pairs
from .reservations import Reservations, Reserved, reserve, worst_moment


class RemainingCost(Protocol):
    """What is known of all that follows a partial cascade (`completions.Completions`)."""

    def beyond(self, done: int, compatibility: Compatibility, tiles: IntArray, cost: FloatArray) -> np.ndarray: ...
    def towards(self, cutoff: Cutoff, blocks: list[list[PmappingGroup]]) -> list[list[PmappingGroup]]: ...
    def least_limit(self) -> float: ...


@dataclass(eq=False)
class Partial(RowTable):
    """Partial cascades with one compatibility.

    tiles [n, open loops]; cost [n, c]; alive, peak: `Reservations`. parents: what they were joined from: previous
    partials, and a block of the Einsum at a place; `left` and `right` are the rows of these. opened [n, g]: what an
    open group has gathered (g = 0 without one). lasting [n, memories, 2]: bits that stay for the whole run, and the
    worst moment so far without them (no memories where nothing may stay here or there).
    """

    COLUMNS: ClassVar[tuple[str, ...]] = (
        "tiles",
        "cost",
        "alive",
        "peak",
        "parent",
        "left",
        "right",
        "opened",
        "lasting",
    )

    compatibility: Compatibility
    tiles: IntArray
    cost: FloatArray
    alive: IntArray
    peak: IntArray
    parents: tuple[tuple[Partial, PmappingGroup, int], ...]
    parent: IntArray
    left: IntArray
    right: IntArray
    opened: FloatArray
    lasting: IntArray

    def __len__(self) -> int:
        return len(self.cost)


class ChosenRow(NamedTuple):
    """A row of the block of the Einsum at `position`, with the partial cascades that it completes."""

    partial: Partial
    block: PmappingGroup
    row: int
    position: int


@dataclass
class Joiner:
    """Joins the Einsums of a workload one by one.

    hopeless: rows -> mask of partial costs that cannot lead to anything better than the incumbent, given the step and
    the number of the Einsum's own row, counted over all its blocks. asking: some block asks for splits. serving:
    follows what own stores ask. completions: what states cost at least to complete, instead of `hopeless`.
    """

    users: Users
    setting: Setting
    hopeless: Callable[[JoinStep, FloatArray, IntArray], np.ndarray]
    counts: dict[str, int] = field(default_factory=dict)
    checkpoint: Callable[[], None] = lambda: None
    asking: bool = False
    serving: Serving | None = None
    completions: RemainingCost | None = None

    @property
    def workload(self) -> Workload:
        return self.users.workload

    @cached_property
    def _readers(self) -> dict[str, int]:
        """Tensor -> the Einsums that read it, or write a part of it, as a set of places."""
        found: dict[str, int] = {}
        for i, einsum in enumerate(self.workload.einsums):
            for tensor in einsum.tensors:
                if tensor != einsum.output.tensor or len(self.workload.writers[tensor]) > 1:
                    found[tensor] = found.get(tensor, 0) | 1 << i
        return found

    @cached_property
    def _accesses(self) -> dict[tuple[int, int], tuple[FusedTemplate, dict[str, LiveTensor]]]:
        """What `accesses` has found, by the Einsum and its template, which is kept so that no other gets its `id`."""
        return {}

    @cached_property
    def _stays(self) -> frozenset[str]:
        """The tensors whose backing tile stays for the whole run, in a memory that is not known beforehand."""
        ends = frozenset(self.workload.ends)
        return frozenset(t.name for t in self.workload.tensors if t.persistent and t.name not in ends)

    def start(self) -> list[Partial]:
        memories = len(self.setting.tracked)
        width = len(settled(self.setting.objective))
        zero = np.zeros(1, np.int64)
        empty = np.zeros((1, memories, 0), np.int64)
        return [
            Partial(
                Compatibility((), ()),
                np.zeros((1, 0), np.int64),
                np.zeros((1, width)),
                empty,
                empty,
                (),
                zero,
                zero,
                zero,
                np.zeros((1, 0)),
                np.zeros((1, memories if self._stays else 0, 2), np.int64),
            )
        ]

    def step(self, ways: Iterable[tuple[JoinStep, list[Partial], list[PmappingGroup]]]) -> list[Partial]:
        """All undominated joins of partial cascades with one Einsum more. ways: those that lead to the same Einsums."""
        found: dict[Compatibility, list[Partial]] = {}
        for step, partials, blocks in ways:
            for joined in self._joins(step, partials, blocks):
                found.setdefault(joined.compatibility, []).append(joined)
        return [self._reduce(parts) for parts in found.values()]

    def _joins(self, step: JoinStep, partials: list[Partial], blocks: list[PmappingGroup]) -> Iterator[Partial]:
        position = step.position
        meeting = self.meeting(position, [partial.compatibility for partial in partials])
        for start, block in zip(accumulate(map(len, blocks), initial=0), blocks, strict=False):
            self.checkpoint()
            mine = self.accesses(position, block)
            for partial in (partials[number] for number in meeting.with_block(self.axes(block.structure.loops), mine)):
                self.checkpoint()
                if not self.follows(position, partial.compatibility, block):
                    continue
                left, right = matching_pairs(partial.tiles, block.tiles[:, : len(partial.compatibility.axes)])
                if not len(left):
                    continue
                joined = self._join(step, partial, block, mine, left, right, start)
                joined = None if joined is None else self._timed(step, partial, block, joined, start)
                if joined is not None and len(joined):
                    yield joined

    # ---- matching -------------------------------------------------------------------------------------------------

    def accesses(self, position: int, block: PmappingGroup) -> dict[str, LiveTensor]:
        """The shared tensors that the Einsum accesses, as this block stores them, with the rank of every fused loop."""
        key = position, id(block.structure)
        if key not in self._accesses:
            self._accesses[key] = block.structure, self._accessed(position, block)
        return self._accesses[key][1]

    def _accessed(self, position: int, block: PmappingGroup) -> dict[str, LiveTensor]:
        einsum = self.workload.einsums[position]
        variables = einsum.variables
        table = {}
        for i, access in enumerate(einsum.accesses):
            if not self.several(access.tensor):
                continue
            over = (variables[loop.variable] for loop in block.structure.loops)
            ranks = tuple(self.alone(access, v) for v in over)
            table[access.tensor] = LiveTensor(access.tensor, *block.structure.place(i), ranks)
        return table

    def alone(self, access: Access, variable: str) -> Rank | None:
        """The rank of a tensor that a variable iterates alone, and its extent; None if there is none."""
        rank = access.rank_of(variable)
        alone = rank is not None and access.indices[rank].simple and self.workload.tied(access.tensor, rank)
        return (rank, self.workload.extents[variable]) if rank is not None and alone else None

    @cached_property
    def _axis_names(self) -> tuple[str, ...]:
        return tuple(self.setting.machine.axes)

    def axes(self, loops: tuple[FusedLoop, ...]) -> tuple[str | None, ...]:
        return tuple(None if loop.axis is None else self._axis_names[loop.axis] for loop in loops)

    def follows(self, position: int, compatibility: Compatibility, block: PmappingGroup) -> bool:
        """Whether the block's rows may follow as far as groups of Einsums are concerned."""
        return True

    def meeting(self, position: int, asks: Iterable[Compatibility]) -> Meeting:
        """What these ask of the rows of an Einsum."""
        return Meeting(asks, self.workload.einsums[position].tensors, self.workload.producers)

    # ---- joining --------------------------------------------------------------------------------------------------

    def several(self, tensor: str) -> bool:
        """True if more than one Einsum accesses the tensor."""
        return is_shared(self.workload, tensor)

    def still_needed(self, step: JoinStep, tensor: str) -> bool:
        return bool(self._readers.get(tensor, 0) & ~step.done)

    def _join(
        self,
        step: JoinStep,
        partial: Partial,
        block: PmappingGroup,
        mine: dict[str, LiveTensor],
        left: IntArray,
        right: IntArray,
        start: int,
    ) -> Partial | None:
        """The rows that these pairs make; None if they may not follow one another at all."""
        before = partial.compatibility
        compatibility = self.after(step, before, block, mine)
        if compatibility is None:
            return None
        fresh = _fresh(before, mine)
        cost = partial.cost[left] + block.cost[right]
        hopeful = np.flatnonzero(self._hopeful(step, compatibility, block.tiles[right], cost, start + right))
        self.counts["joined"] = self.counts.get("joined", 0) + len(left)
        self.counts["bound"] = self.counts.get("bound", 0) + len(left) - len(hopeful)
        left, right, cost = left[hopeful], right[hopeful], cost[hopeful]
        tiles = block.tiles[right]
        reserved, lasting, fits = self._reserve(step, partial, block, fresh, compatibility, left, right, tiles)
        index = np.flatnonzero(fits)
        self.counts["joint capacity"] = self.counts.get("joint capacity", 0) + len(left) - len(index)
        return Partial(
            compatibility,
            tiles[index, : len(compatibility.axes)],
            cost[index],
            reserved.alive[index],
            reserved.peak[index],
            ((partial, block, step.position),),
            np.zeros(len(index), np.int64),
            left[index],
            right[index],
            np.zeros((len(index), 0)),
            lasting[index],
        )

    def _timed(self, step: JoinStep, partial: Partial, block: PmappingGroup, joined: Partial, start: int) -> Partial:
        """The rows with what an open group has gathered; those that close one with its time, if they are of use."""
        return joined

    def _hopeful(
        self, step: JoinStep, after: Compatibility, tiles: IntArray, cost: FloatArray, rows: IntArray
    ) -> np.ndarray:
        """Mask of the joins that may lead to something of use."""
        if self.completions is None:
            return ~self.hopeless(step, cost, rows)
        return ~self.completions.beyond(step.done, after, tiles[:, : len(after.axes)], cost)

    def after(
        self, step: JoinStep, before: Compatibility, block: PmappingGroup, mine: dict[str, LiveTensor]
    ) -> Compatibility | None:
        """What the next Einsum must match if this one takes rows of the block; None if they may not follow at all."""
        fresh = _fresh(before, mine)
        after = [live for live in (*before.live, *fresh.values()) if self.still_needed(step, live.tensor)]
        open_loops = self._reasoned(after)
        if open_loops is None:
            return None
        axes = self.axes(block.structure.loops)[:open_loops]
        made = self.workload.einsums[step.position].output.tensor
        new = {**fresh, made: mine[made]} if made in mine else fresh
        live_after = tuple(
            sorted(
                (LiveTensor(x.tensor, x.memory, x.depth, self._tied(x, new, before, open_loops)) for x in after),
                key=lambda x: x.tensor,
            )
        )
        group = self._group(step.position, before, block, mine, axes)
        if group is False:
            return None
        asked = self._asked(before, block, open_loops)
        lent = self._lent(step, before, block, open_loops)
        served = None if lent is None else self._served(step, before, block, after, open_loops, group, lent)
        if asked is None or lent is None or served is None:
            return None
        splits = frozenset({*(d for d in before.splits if d < open_loops), open_loops} if self.asking else ())
        return Compatibility(axes, live_after, group, splits, asked, served, lent.loans)

    def _reasoned(self, after: list[LiveTensor]) -> int | None:
        """The loops that the next Einsum shares: those above the stores of intermediates that are still needed.

        None if an input is still needed below more: its store gives loops no reason (rule 7).
        """
        loops = max((live.depth for live in after if live.tensor in self.workload.producers), default=0)
        return None if any(live.depth > loops for live in after) else loops

    def _lent(self, step: JoinStep, before: Compatibility, block: PmappingGroup, open_loops: int) -> Lent | None:
        """The stores for several readers that are in use after the Einsum; None if it may not follow."""
        if not before.loans and not block.structure.lent:
            return NONE_LENT
        names, seen = self.workload.einsums[step.position].tensors, dict(before.served.seen)
        parts = self._borrowed(step.position, block)
        return lend(before.loans, parts, names, len(before.axes), seen, open_loops)

    def _borrowed(self, position: int, block: PmappingGroup) -> list[Part]:
        """What the Einsum has to do with stores for several readers."""
        einsum, found = self.workload.einsums[position], []
        for number, m, depth, part in block.structure.lent:
            access, memory = einsum.access(einsum.tensors[number]), self.setting.machine.memories[m]
            extents = [self.workload.extents[index.variables[0]] for index in access.indices]
            bits = prod(extents) * memory.bits(self.workload, einsum.name, access.tensor) * memory.capacity_share()
            ranks = []
            for loop in block.structure.loops[:depth]:
                rank = access.rank_of(einsum.variables[loop.variable])
                ranks.append(None if rank is None else (rank, extents[rank]))
            found.append(Part(Loan(access.tensor, m, depth, tuple(ranks), bits), part))
        return found

    def _served(
        self,
        step: JoinStep,
        before: Compatibility,
        block: PmappingGroup,
        after: list[LiveTensor],
        open_loops: int,
        group: Opened,
        lent: Lent,
    ) -> Served | None:
        """What own stores ask of the Einsums to come; None if one of them would serve two Einsums."""
        if self.serving is None:
            return NOTHING
        live = {x.tensor: x.depth for x in after}
        alone, shared = block.structure.alone, len(before.axes)
        grouped = self._grouped(step.position, before, group)
        serving = ServingStep(step, alone, shared, open_loops, live, *grouped, lent.guards)
        return self.serving.after(before.served, serving)

    def _grouped(self, position: int, before: Compatibility, group: Opened) -> tuple[tuple[int, ...], int, bool]:
        """(members of the Einsum's group so far, loops above the split that holds it, whether the group ends here)."""
        return (), 0, False

    def _group(
        self, position: int, before: Compatibility, block: PmappingGroup, mine: dict[str, LiveTensor], axes: Axes
    ) -> Opened:
        """The group that is open after the Einsum, if any; False if the Einsum may not run here with this block."""
        return None

    def _asked(self, before: Compatibility, block: PmappingGroup, split: int) -> frozenset[SplitConstraint] | None:
        """What is asked of the splits after the one below `split` loops; None if that is not as it was asked."""
        waiting = set(before.asked)
        for x in block.structure.asked:
            if not any(x.least <= d <= x.most for d in before.splits):
                waiting.add(x)
            elif not x.some:
                return None
        if any(x.some if split < x.least else split <= x.most and not x.some for x in waiting):
            return None
        return frozenset(x for x in waiting if split > x.most)

    def _tied(
        self, live: LiveTensor, made: dict[str, LiveTensor], before: Compatibility, open_loops: int
    ) -> tuple[Rank | None, ...]:
        """Ranks of the open loops that who wrote it last stood under; loops opened later concern a finished tensor."""
        if live.tensor in made:
            return made[live.tensor].ranks[:open_loops]
        return live.ranks[: min(len(before.axes), open_loops)]

    def _reserve(
        self,
        step: JoinStep,
        partial: Partial,
        block: PmappingGroup,
        fresh: dict[str, LiveTensor],
        after: Compatibility,
        left: IntArray,
        right: IntArray,
        tiles: IntArray,
    ) -> tuple[Reservations, IntArray, np.ndarray]:
        """(reservations, lasting, fits) after the Einsum has run inside the open loops."""
        before = Reservations(partial.alive[left], partial.peak[left])
        held = self._tiles(step, partial.compatibility, block, fresh, after, tiles)
        reserved, over = reserve(before, held, block.own[right], after.depth, self._at_once(block))
        lasting = self._lasting(partial.lasting[left], fresh, over)
        worst = worst_moment(reserved, over)
        if self._stays:
            worst = np.maximum(worst, lasting[:, :, 1]) + lasting[:, :, 0]
        capacities = [self.setting.capacities[m] for m in self.setting.tracked]
        return reserved, lasting, np.asarray((worst <= np.array(capacities, np.int64)).all(axis=1))

    def _tiles(
        self,
        step: JoinStep,
        before: Compatibility,
        block: PmappingGroup,
        fresh: dict[str, LiveTensor],
        after: Compatibility,
        tiles: IntArray,
    ) -> Iterator[Reserved]:
        """The tiles that the Einsum reserves room for, besides its own stores.

        Those that stand above open loops already are counted.
        """
        deepest = max(before.depth, after.depth)
        for live in (*before.live, *fresh.values()):
            depth, new = block.structure.temporal(live.depth), live.tensor in fresh
            if live.memory in self.setting.tracked and (new or depth >= before.depth):
                bits = self._tile(live, tiles)
                bits = self._standing(bits, live, block, None if new else before.group) if depth >= deepest else bits
                yield Reserved(self.setting.tracked.index(live.memory), depth, bits)
        filled = {x.loan for x in self._borrowed(step.position, block) if x.part == "fills"}
        for loan in (*before.loans, *filled):
            depth = block.structure.temporal(loan.depth)
            if loan.memory in self.setting.tracked and (loan in filled or depth >= before.depth):
                bits = loan.tile(tiles)
                bits = self._lent_standing(bits, block, loan in filled) if depth >= deepest else bits
                yield Reserved(self.setting.tracked.index(loan.memory), depth, bits)

    def _lasting(self, before: IntArray, fresh: dict[str, LiveTensor], moment: IntArray) -> IntArray:
        """Bits that stay for the whole run and the worst moment so far, per memory. moment: what is over at depth 0."""
        if not self._stays:
            return before
        lasting = before.copy()
        lasting[:, :, 1] = np.maximum(lasting[:, :, 1], moment)
        for live in fresh.values():
            if live.tensor in self._stays and live.memory in self.setting.tracked:
                whole = self._width(live) * self.users.span(live.tensor) * self.workload.repeat
                lasting[:, self.setting.tracked.index(live.memory), 0] += whole
        return lasting

    def _standing(self, bits: IntArray, live: LiveTensor, block: PmappingGroup, group: OpenGroup | None) -> IntArray:
        """Bits that a tile directly above the Einsum's split adds to its moment. group: one that has it already."""
        return bits

    def _lent_standing(self, bits: IntArray, block: PmappingGroup, fresh: bool) -> IntArray:
        """Likewise of a store for several readers. fresh: the Einsum fills it."""
        return bits

    def _at_once(self, block: PmappingGroup) -> bool:
        """True if the Einsum runs at the same time as those before it below the same split."""
        return False

    def _tile(self, live: LiveTensor, tiles: IntArray) -> IntArray:
        """Bits of the tensor's tile below the loops above its store; none if its room is taken for the whole run."""
        if self.workload.tensor(live.tensor).persistent:
            return np.zeros(len(tiles), np.int64)
        return tile_of(self.users.span(live.tensor) * self._width(live), live.ranks[: live.depth], tiles)

    def _width(self, live: LiveTensor) -> int:
        """Bits of a value of the tensor in its memory, times the tiles that a store holds in turns."""
        memory = self.setting.machine.memories[live.memory]
        return memory.bits(self.users.workload, self.users.first(live.tensor), live.tensor) * memory.capacity_share()

    def _compared(self, partial: Partial) -> FloatArray:
        """The columns by which partial cascades of one compatibility compete, besides the room that they take."""
        return partial.cost

    def _reduce(self, parts: list[Partial]) -> Partial:
        whole = parts[0] if len(parts) == 1 else Partial.united(parts, "parent", "parents")
        if not self.setting.rules.dominance or len(whole) < 2:
            return whole
        self.checkpoint()
        n = len(whole)
        room = np.concatenate([x.reshape(n, -1) for x in (whole.alive, whole.peak, whole.lasting)], axis=1)
        kept = pareto(whole.tiles, self._compared(whole), room, self.checkpoint)
        self.counts["dominated joins"] = self.counts.get("dominated joins", 0) + n - len(kept)
        return whole.take(kept)


def _fresh(before: Compatibility, mine: dict[str, LiveTensor]) -> dict[str, LiveTensor]:
    """The shared tensors that no Einsum before has had."""
    known = {live.tensor for live in before.live}
    return {name: live for name, live in mine.items() if name not in known}
