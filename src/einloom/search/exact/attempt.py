"""One pass below a cutoff: classes of Einsums -> groups of pmappings -> arc consistency -> joins -> trees."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from copy import copy
from dataclasses import field, replace
from functools import cached_property

import numpy as np

from ...dataclass import dataclass
from ...errors import Infeasible
from ...mapping.normal import normal_form
from ...mapping.tree import Mapping
from ...problem import Problem
from ..method import Watcher
from .bounds.arc_consistency import Consistency, Rest, common, keys_of
from .bounds.backings import barred
from .bounds.choices import Agreement, Choices, Keys, wanted
from .bounds.cutoff import TIE, Cutoff, settled
from .bounds.neighbour_bounds import NeighbourBounds
from .bounds.relaxation import alone_bound, column_limits, einsum_bound
from .bounds.relaxed_rows import Left, RelaxedRows
from .bounds.unlisted import room_of, unlisted_points
from .bounds.weighted_sums import MANY_RATIOS, Lines
from .einsums.classes import EinsumClass, fuses_below_fanout, signatures
from .einsums.orders import JoinStep, Layer, layers
from .einsums.spatial import RankClasses
from .einsums.users import Users
from .fusion.explore import Allowed, Explorer, PmappingGroup, Wanted, keeps
from .fusion.floors import Floors
from .fusion.serving import Serving
from .fusion.templates import Alone
from .joining.completions import Completions
from .joining.join import ChosenRow, Joiner, Partial, RemainingCost
from .model import Setting
from .numerics.pareto import FloatArray, IntArray
from .numerics.uneven import Tiling
from .pmappings.prune import Rules
from .prices.columns import columns
from .traceback import Piece, piece, tree

WORTH = 2000  # rows from which it is worth knowing what completes a cascade
# limits of joins, as shares above the least that rows without rooms cost
NEARER = (1e-6, 1e-5, 5e-5, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3, 1e-2, 2e-2)
MANY_KINDS = 40  # of Einsums, from which on they do not narrow each other down one by one


@dataclass(frozen=True)
class ExactOptions:
    """Which pruning rules the search may use.

    consistency: rows and choices that no partner can save go before joining and before exploring. incumbent: bounds and
    a limit on the objective cut the tables and joins; off, nothing does. segments: energy and traffic are bounded, and
    searched, by segments of the cascade. limit: look only for mappings of at most this value, instead of raising
    limits from the bound ("is anything better than this?"). start: mappings that are known already; the search looks
    below the best of them and returns it if nothing is there.
    """

    rules: Rules = field(default_factory=Rules)
    incumbent: bool = True
    consistency: bool = True
    completions: bool = True
    segments: bool = True
    limit: float | None = None
    start: tuple[Mapping, ...] = ()


@dataclass(frozen=True)
class Solution:
    """The best complete cascade of one pass: objective value, columns, and the tree."""

    value: float
    cost: FloatArray
    mapping: Mapping


class Attempt:
    """Complete solutions of one problem below a `cutoff` (of one repeat).

    A signature is a class of Einsums (`EinsumClass`), its blocks are groups of pmappings (`PmappingGroup`).

    tiling: of ranks in the space `ragged` that several Einsums may cut alike. relaxed: the rows of the relaxation that
    bounds this attempt, if they are known; left: what they leave within the cutoff. together: what
    neighbours cost at least together, as far as it is known.
    """

    relaxed: RelaxedRows | None = None
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
        self.signatures = signatures(self.users, problem.mapspace.limits, uneven, tiling)
        self.classes = {sig: RankClasses(sig, checkpoint) for sig in self.signatures}
        self.setting = self._setting()
        self.tracked = self.setting.tracked
        self.objectives = settled(problem.objective)
        self.least = np.zeros((len(self.signatures), len(self.objectives)))
        self.agreed = 0.0
        self.consistency: Consistency | None = None
        self.cutoff = Cutoff(problem.objective.powers[: len(self.objectives)])

    @property
    def tied(self) -> bool:
        """True if Einsums may cut some rank alike and unevenly: then `tiling` matters."""
        return any(signature.tied for signature in self.signatures)

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
        found = {(sig, bar): unlisted_points(machine, sig, self.objectives, bar) for sig, bar in dict.fromkeys(every)}
        for i, one in enumerate(every):
            if not len(found[one]):
                raise self._unmapped(i)
        self.least = np.array([found[one].min(axis=0) for one in every])
        lines = Lines.of(self.cutoff, self.least, MANY_RATIOS)
        lowest = {one: lines.extend(points).min(axis=0) for one, points in found.items()}
        self.agreed = float(lines.value(np.sum([lowest[one] for one in every], axis=0)[None])[0])
        return self.bound

    def lower_bound(self, enough: float = float("inf"), proven: Callable[[float], None] = lambda bound: None) -> float:
        """The objective of the sums of what every Einsum costs at least. proven: hears of it as it rises.

        Raises Infeasible as soon as it is above `enough`.
        """
        for column, objective in enumerate(self.objectives):
            setting = Setting.of(self.problem.machine, objective, (), self.setting.capacities, 0, self.options.rules)
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
        self.agreed = max(self.agreed, self._agree())
        if not self.bound <= enough:
            raise Infeasible("no combination of mappings stays within the limit")
        return self.bound

    def _agree(self) -> float:
        """What the cascade costs at least, as its Einsums have to agree on how they share tensors."""
        choices = self._choices if self.options.consistency else None
        if choices is None:
            return 0.0
        found = self._agreement(self.cutoff).bound(self._at_least(choices))
        if not np.isfinite(found):
            why = "Einsums that share a tensor cannot agree on stores and spatial loops: "
            raise Infeasible(why + self._blame())
        return found

    @cached_property
    def _keys(self) -> Keys:
        return Keys()

    @cached_property
    def _choices(self) -> list[list[Choices]] | None:
        """The choices of every Einsum, each with what it costs at least; None if some Einsum has too many."""
        found: dict[EinsumClass, list[Choices] | None] = {}
        for i, sig in enumerate(self.signatures):
            self.watcher.stage("comparing choices", i, len(self.signatures))
            if sig not in found:
                found[sig] = self._keys.choices(Floors(self.setting, self.classes[sig], self.checkpoint))
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

    def sharpen(self) -> None:
        """Raise the least costs to those of every Einsum with its backing stores, their room and fused loops, alone."""
        for column, objective in enumerate(self.objectives):
            setting = replace(
                self.setting,
                objective=objective,
                columns=columns(self.problem.machine, objective),
                tracked=self.tracked,
            )
            found: dict[EinsumClass, float] = {}
            for i, sig in enumerate(self.signatures):
                self.watcher.stage(f"bounding {objective} with shared room", i, len(self.signatures))
                if sig not in found:
                    found[sig] = alone_bound(setting, self.classes[sig], self.least[i, column], self.checkpoint)
                self.least[i, column] = found[sig]
                if not np.isfinite(found[sig]):
                    raise self._unmapped(i)
        self.agreed = max(self.agreed, self._agree())

    def _agreement(self, cutoff: Cutoff) -> Agreement:
        return Agreement(self.problem.workload, self._keys, self.least, cutoff, self.counts, self.together)

    def _agreed(self) -> tuple[dict[EinsumClass, Wanted], FloatArray | None]:
        """The choices that can be part of a cascade within the cutoff, and per Einsum the most of each settled column
        that is of use; empty and None where that is not known."""
        if not self.options.consistency or not self.cutoff.finite or self._choices is None:
            return {}, None
        agreement = self._agreement(self.cutoff)
        choices = agreement.filter(self._at_least(self._choices))
        if not all(choices):
            raise Infeasible("no combination of mappings stays within the limit")
        most = agreement.most(choices) if self._uneven else None
        if self.left is not None:
            most = self.left.most if most is None else np.minimum(most, self.left.most)
        return wanted([self.classes[sig] for sig in self.signatures], choices), most

    def _least_of(self, setting: Setting, sig: EinsumClass) -> float:
        """What an Einsum costs at least in every row that this pass knows of it."""
        return einsum_bound(setting, self.classes[sig], self.checkpoint)

    @property
    def bound(self) -> float:
        """What `lower_bound` has found."""
        return max(self.agreed, float(self.cutoff.value(self.least.sum(axis=0, keepdims=True))[0]))

    def first_limit(self) -> float | None:
        """A limit to try before all others, if one is worth it."""
        return None

    def _setting(self) -> Setting:
        workload, machine = self.problem.workload, self.problem.machine
        capacities: list[int | None] = []
        for i, memory in enumerate(machine.memories):
            widest: dict[str, int] = {}
            for sig, e in zip(self.signatures, workload.einsums, strict=True):
                for t, name in zip(sig.tensors, e.tensors, strict=True):
                    widest[name] = max(widest.get(name, 0), t.bits[i])
            copies = {t.name: workload.repeat if t.persistent else 1 for t in workload.tensors}
            everything = sum(t.size * copies[t.name] * widest[t.name] for t in workload.tensors)
            everything *= memory.capacity_share()
            capacities.append(None if memory.size is None or everything <= memory.size else memory.size)
        for i, bits in self.set_aside.items():
            room = capacities[i]
            capacities[i] = None if room is None else room - bits
        inner = range(1, len(capacities))  # own stores stand above the split of a backing store further in, too
        backing = any(self.may_back(sig, m) for sig in dict.fromkeys(self.signatures) for m in inner)
        tracked = [i for i, c in enumerate(capacities) if c is not None and (i == 0 or backing)]
        return Setting.of(
            machine,
            self.problem.objective,
            tuple(tracked),
            tuple(capacities),
            self.problem.mapspace.max_fused_loops,
            self.options.rules,
        )

    @cached_property
    def set_aside(self) -> dict[int, int]:
        """Bits per memory that persistent inputs and outputs of the cascade take there for the whole run, once per
        repeat. (Where others of them stand is for each mapping to say.)"""
        workload, total = self.problem.workload, dict[int, int]()
        for tensor in workload.tensors:
            first = self.users.first(tensor.name)
            home = self.users.homes[first].get(tensor.name)
            if tensor.persistent and home is not None:
                memory = self.problem.machine.memories[home]
                bits = self.users.span(tensor.name) * memory.bits(workload, first, tensor.name) * workload.repeat
                total[home] = total.get(home, 0) + bits * memory.capacity_share()
        return total

    def may_back(self, sig: EinsumClass, memory: int) -> bool:
        """True if in some choice of stores `memory` backs what several Einsums share."""
        fusable = [t for t, tensor in enumerate(sig.tensors) if tensor.fusable]
        return any(
            memory < len(held) and any(t in held[memory] and not any(t in h for h in held[:memory]) for t in fusable)
            for option in sig.units
            for held in option.held
        )

    def run(self, limit: float) -> Solution:
        """The best cascade whose value is at most `limit` (others may come out too), or Infeasible."""
        return self.towards(replace(self.cutoff, limit=limit * (1 + TIE)))

    def towards_least(self, limit: float, bounded: tuple[Attempt, ...] = ()) -> float:
        """The least value of a relaxation if it is at most `limit`, or Infeasible. bounded: attempts of which it is the
        relaxation; they may know its rows."""
        cutoff = replace(self.cutoff, limit=limit * (1 + TIE))
        blocks = self._rows(cutoff)
        for other in bounded if self.consistency is not None and type(self) is Attempt else ():
            other.relaxed = RelaxedRows(self.problem.workload, cutoff.limit, self.least, blocks, self.together)
        partials = self.joined(self._ready(blocks), blocks, cutoff)
        return min(float(self.cutoff.value(partial.cost).min()) for partial in partials)

    def towards(self, cutoff: Cutoff) -> Solution:
        """The best cascade that is not beyond `cutoff` (others may come out too), or Infeasible."""
        blocks = self._rows(cutoff)
        joiner = self._ready(blocks)
        for nearer in self._nearer(joiner.completions, cutoff):
            try:
                return self.best(self.joined(joiner, blocks, nearer))
            except Infeasible:
                continue
        return self.best(self.joined(joiner, blocks, cutoff))

    def complete(self, cutoff: Cutoff) -> list[Partial]:
        """All undominated complete cascades that are not beyond `cutoff`, or Infeasible."""
        blocks = self._rows(cutoff)
        return self.joined(self._ready(blocks), blocks, cutoff)

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
            self.consistency = Consistency(
                self.problem.workload, self.least, cutoff, self.counts, together=self.together
            )
            blocks = self.consistency.filter(blocks)
            if not all(blocks):
                raise Infeasible("no combination of mappings stays within the limit")
        return blocks

    def _followed(self, wanted: dict[EinsumClass, Wanted]) -> tuple[int, ...]:
        """The memories whose room is followed along the cascade: of `tracked` not those further in than all that back
        something, where no own store within the cutoff outlives its Einsum."""
        if not wanted or self.problem.mapspace.stores != "own" or type(self) is not Attempt:
            return self.tracked
        every = dict.fromkeys(self.signatures)
        innermost = max(
            (m for m in range(1, len(self.setting.capacities)) if any(self.may_back(sig, m) for sig in every)),
            default=0,
        )
        return tuple(
            m
            for m in self.tracked
            if m <= innermost or any(keeps(self.classes[sig], m, wanted.get(sig, {})) for sig in every)
        )

    def _ready(self, blocks: list[list[PmappingGroup]]) -> Joiner:
        """A joiner for these blocks, with what it costs at least to complete each state where that is worth knowing."""
        joiner = self.join_of(blocks)
        rows = sum(len(block) for mine in {id(mine): mine for mine in blocks}.values() for block in mine)
        if self.completes and self.consistency is not None and rows >= WORTH:
            self.watcher.stage("joining without rooms")
            joiner.completions = Completions.of(joiner, self.consistency.lines, blocks, self.layers)
        return joiner

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
        return Joiner(
            self.users,
            self.setting,
            tuple(axis.name for fanout in self.problem.machine.fanouts for axis in fanout.axes),
            self._hopeless,
            self.counts,
            self.checkpoint,
        )

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
            if len(total) == 1:
                limits.append(column_limits(self.setting, mine[0]))
            else:
                limits.append(np.array([mine[0] if c.kind == "energy" else mine[1] for c in self.setting.columns]))
        return limits

    def _beside(self, together: NeighbourBounds) -> FloatArray:
        """Per Einsum the most of each settled column that is of use beside what is known of all others together."""
        lines = Lines.of(self.cutoff, self.least)
        rests = together.before(lines, self.least)[:-1] + together.after(lines, self.least)[1:]
        return lines.most(rests, lines.extend(self.least))

    def neighbouring(self, together: NeighbourBounds) -> None:
        """Take what neighbours cost at least together into the bound."""
        self.together = together
        lines = Lines.of(self.cutoff, self.least, MANY_RATIOS)
        self.agreed = max(self.agreed, float(lines.value(together.before(lines, self.least)[-1:])[0]))

    def _blocks(self, limits: list[FloatArray], wanted: dict[EinsumClass, Wanted]) -> list[list[PmappingGroup]]:
        cache: dict[EinsumClass, list[PmappingGroup]] = {}
        found: list[list[PmappingGroup]] = [[] for _ in self.signatures]
        uses = Counter(self.signatures)
        order, loosest = self._order(limits), self._loosest(limits)
        for done, i in enumerate(order):
            sig = self.signatures[i]
            self.watcher.stage("exploring Einsums", done, len(order))
            if sig not in cache:
                if self.narrows and done:
                    found, limits = self._narrowed(found, limits)
                    loosest = self._loosest(limits)
                explorer = Explorer(self.setting, self.classes[sig], loosest[sig], self.counts, self.checkpoint)
                explorer.wanted = wanted.get(sig, {})
                if self.left is not None:
                    explorer.counterparts = self.left.keys(sig, [j for j, s in enumerate(self.signatures) if s == sig])
                if self.options.consistency and uses[sig] == 1:
                    explorer.allowed = self._allowed(i, found)
                cache[sig] = self._explored_by(explorer)
            else:
                self.counts["isomorphic"] = self.counts.get("isomorphic", 0) + 1
            if not cache[sig] and not self._grouped(i):
                raise self._unmapped(i)
            found[i] = cache[sig]
        return found

    def _explored_by(self, explorer: Explorer) -> list[PmappingGroup]:
        """The blocks of one kind of Einsum; a segment may have them already."""
        return explorer.blocks()

    def _loosest(self, limits: list[FloatArray]) -> dict[EinsumClass, FloatArray]:
        """Per signature the loosest limits of its Einsums."""
        loosest: dict[EinsumClass, FloatArray] = {}
        for sig, limit in zip(self.signatures, limits, strict=True):
            loosest[sig] = np.maximum(loosest.get(sig, limit), limit)
        return loosest

    @cached_property
    def _uneven(self) -> bool:
        """True if tiles need not divide, so that rows are many, and the kinds of Einsums are not."""
        return any(sig.uneven for sig in self.signatures) and len(set(self.signatures)) <= MANY_KINDS

    @property
    def narrows(self) -> bool:
        """True if what is explored narrows down what is explored next."""
        return self._uneven and self.options.consistency and self.cutoff.finite

    def _order(self, limits: list[FloatArray]) -> list[int]:
        """The Einsums, those with most tensors first; where they narrow each other down, of these the ones with few
        spatial choices and little to spare."""
        settled = [0 if column.kind == "energy" else -1 for column in self.setting.columns]

        def effort(i: int) -> float:
            spreads = sum(len(self.classes[self.signatures[i]].spreads(option)) for option in self.signatures[i].units)
            least = self.least[i][settled]
            return float(spreads * (limits[i] / least).max()) if least.all() else np.inf

        rank = effort if self.narrows else lambda i: 0.0
        return sorted(range(len(self.signatures)), key=lambda i: (-len(self.signatures[i].tensors), rank(i)))

    def _narrowed(
        self, found: list[list[PmappingGroup]], limits: list[FloatArray]
    ) -> tuple[list[list[PmappingGroup]], list[FloatArray]]:
        """The rows so far that can be part of a cascade within the cutoff, and what they leave to each Einsum."""
        known = frozenset(i for i, blocks in enumerate(found) if blocks)
        consistency = Consistency(self.problem.workload, self.least, self.cutoff, self.counts, known, self.together)
        rows = consistency.filter(consistency.filled(found))
        if not all(rows):
            raise Infeasible("no combination of mappings stays within the limit")
        tighter = self._column_limits(consistency.most(rows))
        return [mine if i in known else [] for i, mine in enumerate(rows)], [
            np.minimum(*both) for both in zip(limits, tighter, strict=True)
        ]

    def _grouped(self, position: int) -> bool:
        """True if the Einsum may also run at the same time as others, by rows of another kind."""
        return False

    def _unmapped(self, position: int) -> Infeasible:
        name = self.problem.workload.einsums[position].name
        return Infeasible(f"Einsum {name} has no mapping on its own: " + self._blame(), name)

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

    def _blame(self) -> str:
        """What may stand in the way, as far as this search can tell; `explain` finds out which of it does."""
        memories = self.problem.machine.memories
        sizes = [m.name for m, room in zip(memories, self.setting.capacities, strict=True) if room is not None]
        parts = [f"{name} holds {self.problem.machine.memory(name).size} bits" for name in sizes]
        parts = ["; ".join(parts) + " and what must stay there is larger"] if parts else []
        if self.problem.mapspace.limits:
            parts.append(f"the mapspace asks: {self.problem.mapspace.limits}")
        return ", or ".join(parts) or "the constraints contradict"

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
        slides = any(tensor.slides for signature in self.signatures for tensor in signature.tensors)
        quick = self.tiled("coarse")
        return [quick.hurried(False), quick.hurried()] if slides else [quick.hurried()]

    def hurried(self, sliding: bool = True) -> Attempt:
        """A pass over part of the space with coarser dominance: feasible mappings, fast.

        sliding: False for the smaller part in which nothing is followed along the loop that slides or keeps it.
        """
        rules = replace(self.options.rules, heuristic=True)
        if not sliding:
            rules = replace(rules, sliding=False, deferral=False)
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
        return tree(self.problem.workload, self.problem.machine, self._pieces(parts), shared, away=self.users.away)

    def _pieces(self, parts: list[ChosenRow]) -> list[Piece]:
        workload, machine = self.problem.workload, self.problem.machine
        return [piece(workload, machine, part.position, part.block, part.row) for part in parts]
