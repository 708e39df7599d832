"""Skeletons where the mapspace demands that intermediates are backed in inner memories, such as FlashAttention's.

Comes in: the tables of a problem. Goes out: a state that backs them there, below loops that the limits allow and that
make all shared tiles fit. Tensor by tensor, as other draws fuse, so many tensors rarely agree.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from math import gcd, log, prod
from random import Random

from ....dataclass import dataclass
from ...divisors import divisors
from .facts import Facts
from .privates import drawn
from .rooms import overflow
from .skeletons import NoProposal, SkeletonDraft, unfused_state
from .spreads import spreads
from .state import SharedLoop, State

SKELETONS = 10  # that are tried in a draw, each with smaller shared tiles
OUTER = 0.7  # of them back all tensors in the outermost memories that may
LESS, EQUAL = 1 / 32, 1e-9  # weight of a rank beside the one before it; below any difference of two weighed choices
FURNISHED = 2  # privates that are tried for each Einsum below a skeleton that fits
Bound = dict[int, str]  # a rank that tensors pass on: Einsum -> its variable


@dataclass(frozen=True, slots=True)
class _Run:
    """Neighbouring Einsums, and the floating tensors between them that go below one more loop that they share."""

    first: int
    last: int
    numbers: tuple[int, ...]


def demanded(facts: Facts, rng: Random) -> State | None:
    """A state that backs in inner memories what has to be there, and fits; None if some tries gave none."""
    slack = rng.random()
    for _ in range(SKELETONS):
        with suppress(NoProposal):
            state = _Skeleton(facts, 1 - slack, rng).settled()
            if overflow(facts, state) is None:
                return _furnished(facts, state, rng)
        slack = slack / 2 if slack > 0.1 else 0.0
    return None


def _furnished(facts: Facts, state: State, rng: Random) -> State:
    """The state with other privates at random for most Einsums, wherever these fit."""
    keen = rng.random()
    for i in rng.sample(range(facts.count), facts.count):
        for _ in range(FURNISHED):
            near = drawn(facts, state, i, rng) if rng.random() < keen else None
            if near is not None and overflow(facts, near) is None:
                state = near
                break
    return state


class _Skeleton:
    """A skeleton that is made from the outside in: loops over ranks that many tensors have, then over those of fewer.

    eager: from 0 to 1; how small its tiles become. left: extents that temporal loops may cut, less what spatial loops
    take. stored: where spatial loops are to be put in, the Einsums that have a store on their path so far.
    """

    def __init__(self, facts: Facts, eager: float, rng: Random) -> None:
        self.facts, self.eager, self.rng = facts, eager, rng
        self.homes = [min(one.homes, default=0) for one in facts.floating]
        inner = 0.0 if eager == 1 or rng.random() < OUTER else rng.random()
        for number in facts.demanded:
            if rng.random() < inner:
                self.homes[number] = rng.choice(facts.floating[number].homes)
        self.depths = [0] * len(self.homes)
        self.loops: list[list[SharedLoop]] = [[] for _ in range(facts.count)]
        self.left = [dict(full) for full in facts.full]
        self.classes = _classes(facts)
        self.stored: set[int] | None = None
        for run in self._connected(self._movable(facts.demanded)):
            spatial = self._spatial(run)
            self._reserve(run, spatial)
            self.stored = set() if spatial else None
            self._cut(run, 0, ())
            self._insert(run, spatial)

    def settled(self) -> State:
        """The state with privates that take as little room as may be. Raises NoProposal."""
        facts = self.facts
        draft = SkeletonDraft(facts, unfused_state(facts), sound=False)
        draft.homes, draft.depths = self.homes, self.depths
        draft.wanted = {i: loops for i, loops in enumerate(self.loops) if loops}
        return draft.settled(self.rng)

    def _movable(self, numbers: Iterable[int]) -> list[int]:
        """The tensors that may stand below a loop."""
        floating = self.facts.floating
        return [n for n in numbers if not floating[n].persistent and len(floating[n].users) > 1]

    def _connected(self, numbers: Iterable[int]) -> list[_Run]:
        """Runs of Einsums that tensors join, directly or not."""
        found: list[_Run] = []
        for number in sorted(numbers, key=lambda n: self.facts.floating[n].users):
            users = self.facts.floating[number].users
            if found and users[0] <= found[-1].last:
                before = found.pop()
                found.append(_Run(before.first, max(before.last, users[-1]), (*before.numbers, number)))
            else:
                found.append(_Run(users[0], users[-1], (number,)))
        return found

    # -- temporal loops ----------------------------------------------------------------------------------------------

    def _cut(self, run: _Run, level: int, used: tuple[int, ...]) -> None:
        """Loops over the run's Einsums at this level and below, until luck or the ranks end."""
        most = self.facts.mapspace.max_fused_loops
        if most is not None and level >= most:
            return
        options = {c: runs for c in range(len(self.classes)) if c not in used and (runs := self._runs(run, c))}
        needed = [c for c, runs in options.items() if any(1 not in self._trips(one, c, 1) for one in runs)]
        if not options or (not needed and self.rng.random() > self.eager ** (1 / (level + 1))):
            return
        among = needed or list(options)
        weights = [sum(len(one.numbers) for one in options[c]) ** (1 + 4 * self.eager) for c in among]
        chosen = self.rng.choices(among, weights)[0]
        if self.stored is not None:
            self.stored |= self._stored(run, options[chosen])
        for one in options[chosen]:
            trips = self._some(self._trips(one, chosen, 2))
            for i in range(one.first, one.last + 1):
                v = self.classes[chosen][i]
                self.loops[i] = [*self.loops[i][:level], (v, trips, None)]
                self.left[i][v] //= trips
            for number in one.numbers:
                self.depths[number] = level + 1
            self._cut(one, level + 1, (*used, chosen))
        inside = {i for one in options[chosen] for i in range(one.first, one.last + 1)}
        floating = self.facts.floating
        rest = [n for n in run.numbers if inside.isdisjoint(range(floating[n].users[0], floating[n].users[-1] + 1))]
        for one in self._connected(rest) if self.stored is None else ():
            self._cut(one, level, used)

    def _stored(self, run: _Run, runs: list[_Run]) -> set[int]:
        """The Einsums of a run that have a store above a loop over some runs in it."""
        below = {n for one in runs for n in one.numbers}
        return {i for n in run.numbers if n not in below for i in self.facts.floating[n].users}

    def _in_order(self, run: _Run, runs: list[_Run]) -> bool:
        """True if no loop over the runs would stand between a spatial loop, directly above the outermost store of all
        Einsums together, and the first store of one."""
        if self.stored is None:
            return True
        stored = self.stored | self._stored(run, runs)
        return not stored or all(i in stored for one in runs for i in range(one.first, one.last + 1))

    def _some(self, options: list[int]) -> int:
        return options[-1] if self.rng.random() < self.eager else self.rng.choice(options)

    def _runs(self, run: _Run, c: int) -> list[_Run]:
        """The parts of a run that may share a loop over the rank: each of their Einsums and ties has it."""
        floating, stays = self.facts.floating, 0.0 if self.rng.random() < self.eager else 0.2
        numbers = {n for n in run.numbers if self._carries(n, c) and (not stays or self.rng.random() > stays)}
        while numbers:
            found = self._connected(numbers)
            gap = next((gap for one in found if (gap := self._gap(one, c)) is not None), None)
            if gap is None:
                found = [one for one in found if self._trips(one, c, 2)]
                return found if self._in_order(run, found) else []
            first, last = gap  # one of the boundaries from `first` to `last` has to have no tensor below the loop
            boundary = self.rng.randint(first, last)
            numbers -= {n for n in numbers if floating[n].users[0] <= boundary < floating[n].users[-1]}
        return []

    def _carries(self, number: int, c: int) -> bool:
        """True if all Einsums of a tensor have the rank, each as the same one of the tensor's."""
        tensor, bound = self.facts.floating[number], self.classes[c]
        ranks = {self.facts.simple_rank(i, tensor.name, bound[i]) if i in bound else None for i in tensor.users}
        return len(ranks) == 1 and None not in ranks

    def _cuts(self, number: int, c: int) -> bool:
        """True if some loop over the rank may stand above a tensor."""
        users = self.facts.floating[number].users
        return self._carries(number, c) and bool(self._trips(_Run(users[0], users[0], (number,)), c, 2))

    def _gap(self, run: _Run, c: int) -> tuple[int, int] | None:
        """First and last boundary between which a loop over the rank has to end inside the run; None if nowhere."""
        facts, bound = self.facts, self.classes[c]
        users = {i for n in run.numbers for i in facts.floating[n].users}
        for i in range(run.first, run.last + 1):
            if i not in users:
                return (i - 1, i)
        for producer, consumer, tensor in facts.ties:
            if run.first <= producer and consumer <= run.last:
                rank = facts.simple_rank(producer, tensor, bound[producer])
                if rank is None or facts.simple_rank(consumer, tensor, bound[consumer]) != rank:
                    return (producer, consumer - 1)
        return None

    def _trips(self, run: _Run, c: int, least: int) -> list[int]:
        """The numbers of trips, ascending, that the extents and the limits allow a loop over the rank."""
        facts, bound = self.facts, self.classes[c]
        options = divisors(gcd(*(self.left[i][bound[i]] for i in range(run.first, run.last + 1))))
        tensors = [(i, facts.floating[n].name) for n in run.numbers for i in facts.floating[n].users]
        return [n for n in options if n >= least and all(facts.loop_allowed(i, t, bound[i], n) for i, t in tensors)]

    # -- spatial loops -----------------------------------------------------------------------------------------------

    def _spatial(self, run: _Run) -> list[tuple[int, int, str]]:
        """(rank, instances, axis) of shared loops over the axes above the memories of the run's tensors."""
        facts, found = self.facts, list[tuple[int, int, str]]()
        place = min(facts.place[self.homes[n]] for n in run.numbers)
        members = range(run.first, run.last + 1)
        whole = [c for c in range(len(self.classes)) if all(self._carries(n, c) for n in run.numbers)]
        whole = [c for c in whole if self._gap(run, c) is None]
        for axis in (axis for axis in facts.axes if facts.axis_place[axis.name] < place):
            room = axis.size
            for c in self.rng.sample(whole, len(whole)):
                bound = self.classes[c]
                options = divisors(gcd(*(self.left[i][bound[i]] for i in members)))
                taken = [facts.takes(i, axis.name, bound[i]) for i in members if facts.einsums[i].kind != "copy"]
                options = tuple(n for n in options if n <= room and all(n in takes for takes in taken))
                n = 1 if not options else options[-1] if self.rng.random() < 0.7 else self.rng.choice(options)
                if n > 1:
                    found.append((c, n, axis.name))
                    room //= n
                    for i in members:
                        self.left[i][bound[i]] //= n
        return found

    def _reserve(self, run: _Run, spatial: list[tuple[int, int, str]]) -> None:
        """Keep extents for a choice of each Einsum on the axes in full use. Raises NoProposal where there is none.

        The choices agree: in an order at random they leave as much of one rank as they can, then of the next.
        """
        facts, weight = self.facts, dict[tuple[int, str], float]()
        cut = [c for c in range(len(self.classes)) if any(self._cuts(n, c) for n in run.numbers)]
        for place, c in enumerate(self.rng.sample(cut, len(cut))):
            weight |= dict.fromkeys(self.classes[c].items(), LESS**place)
        for i in range(run.first, run.last + 1):
            unit = self.rng.choice(facts.units[i])
            full = [] if unit is None else [a for a in facts.axes_of(i, unit) if facts.machine.axes[a].use == "full"]
            if unit is None or not full:
                continue
            place = max(facts.place[self.homes[n]] for n in run.numbers if i in facts.floating[n].users)
            outer = {axis for axis in full if facts.axis_place[axis] < place}
            shared = {(axis, self.classes[c][i], n) for c, n, axis in spatial if axis in full}
            fitting = [one for one in spreads(facts, i, unit) if shared == {loop for loop in one if loop[0] in outer}]
            if not fitting:
                raise NoProposal("full use")
            costs = [sum(weight.get((i, v), 0.0) * log(n) for _, v, n in one) for one in fitting]
            least = min(costs)
            fitting = [one for one, cost in zip(fitting, costs, strict=True) if cost <= least + EQUAL]
            own = [loop for loop in self.rng.choice(fitting) if loop not in shared]
            for v in self.left[i]:
                taken = prod(n for _, w, n in own if w == v)
                self.left[i][v] = self.left[i][v] // taken if self.left[i][v] % taken == 0 else 1

    def _insert(self, run: _Run, spatial: list[tuple[int, int, str]]) -> None:
        """Put spatial loops above the outermost store of the run, which has to stand below them."""
        level = min(self.depths[n] for n in run.numbers)
        for i in range(run.first, run.last + 1) if spatial else ():
            mine: list[SharedLoop] = [(self.classes[c][i], n, axis) for c, n, axis in spatial]
            self.loops[i][level:level] = mine
        for number in run.numbers if spatial else ():
            self.depths[number] += len(spatial)


def _classes(facts: Facts) -> list[Bound]:
    """The ranks that tensors pass from Einsum to Einsum: for each the variable of every Einsum that has it."""
    near: dict[tuple[int, str], list[tuple[int, str]]] = {}
    for one, other in _passed(facts):
        near.setdefault(one, []).append(other)
        near.setdefault(other, []).append(one)
    found, seen = list[Bound](), set[tuple[int, str]]()
    for start in near:
        if start in seen:
            continue
        bound, todo = Bound(), [start]
        while todo:
            i, v = todo.pop()
            if (i, v) not in seen:
                seen.add((i, v))
                bound.setdefault(i, v)
                todo += near[i, v]
        found.append(bound)
    return found


def _passed(facts: Facts) -> Iterator[tuple[tuple[int, str], tuple[int, str]]]:
    """Pairs of (Einsum, variable) that index one rank of a tensor that the two Einsums pass on."""
    for producer, consumer, tensor in facts.ties:
        for v in facts.einsums[producer].variables:
            rank = facts.simple_rank(producer, tensor, v)
            theirs = None if rank is None else facts.variable_at(consumer, tensor, rank)
            if theirs is not None and facts.extents[theirs] == facts.extents[v] > 1:
                yield (producer, v), (consumer, theirs)
