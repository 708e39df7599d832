"""The value of states: path by path, each priced once.

Energy, latency and traffic add over Einsums, and what an Einsum costs depends on its path alone; so a move that changes
one Einsum prices one path. Whatever is kept is priced by `evaluate` as a whole.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import cached_property
from math import exp, log, sqrt
from random import Random
from typing import TYPE_CHECKING

from ...cost.evaluate import evaluate, price
from ...cost.traffic.even import EvenPaths
from ...cost.traffic.paths import paths
from ...cost.traffic.windowed import WindowPaths
from ...errors import SpecError
from ...mapping.tree import Mapping
from ...mapspace.ffm.encoding import SHARED, Encoding, NoProposal, State
from ...mapspace.ffm.encoding.group_rules import whole_fault
from ...mapspace.ffm.encoding.state import KnownPath, path_of
from ...mapspace.ffm.encoding.trees import nodes_of
from ...mapspace.ffm.space import Ffm
from ...mapspace.space import Space
from ...problem import Problem
from ..evaluator import Evaluator
from ..resources import growth_left, unlimited

if TYPE_CHECKING:
    from .bursts import Bursts

LARGEST = 400_000  # paths whose price is remembered
FROM = 10  # proposals at once for which machine code is worth it
LARGEST_BURST = 1000
MACHINE_CODE = 128 << 20  # bytes of room before machine code is loaded, which asks for 115 MB with its libraries
COMPILES = 10.0  # seconds of a search in which there is time to compile
A_SECOND = 100_000  # points that a second is worth, for the size of bursts
HOPELESS = 100  # draws in a row without a legal state before a method gives up
INFINITE = float("inf")


Valued = tuple[float, State]
Sums = tuple[float, float, float]  # joules, seconds, bits through the objective's memory


def accepted(new: float, old: float, heat: float, rng: Random) -> bool:
    """True if a step from `old` to `new` is taken at this temperature."""
    if new <= old:
        return True
    return old > 0 and heat > 0 and rng.random() < exp(-log(new / old) / heat)


def changed_paths(old: State, new: State) -> list[int]:
    """The Einsums whose path differs."""
    if old.sequence == new.sequence:
        return [i for i in range(len(new.owns)) if (old.owns[i], old.shared[i]) != (new.owns[i], new.shared[i])]
    known = {label: (old.owns[i], old.shared[i]) for i, label in enumerate(old.sequence or range(len(old.owns)))}
    labels = enumerate(new.sequence or range(len(new.owns)))
    return [i for i, label in labels if known[label] != (new.owns[i], new.shared[i])]


class Points:
    """Values of states for one search; every point is counted by its `Evaluator`."""

    def __init__(self, problem: Problem, space: Space, evaluator: Evaluator) -> None:
        if not isinstance(space, Ffm):
            raise SpecError(f"the mapspace {problem.mapspace.name!r} has no encoding to move in", suggestion="ffm")
        self.problem, self.evaluator = problem, evaluator
        self.encoding: Encoding = space.encoding
        self.facts = self.encoding.facts
        self.additive = problem.latency_rule == "einsum" and problem.objective.name != "pareto"
        workload, machine = problem.workload, problem.machine
        self.even = [
            EvenPaths(workload, machine, name) if EvenPaths.able(workload, machine, name) else None
            for name in workload.names
        ]
        self.plain = None not in self.even  # every index is one variable
        self.closed = [
            WindowPaths(workload, machine, name) if even is None and WindowPaths.able(workload, machine, name) else even
            for name, even in zip(workload.names, self.even, strict=True)
        ]
        self._costs: dict[KnownPath, tuple[float, float, int]] = {}
        self.best: Valued | None = None  # of all states met
        self.machine_code = False  # known to be compiled
        self.known: tuple[State, ...] = ()  # to begin from, beside the starts of the evaluator

    def value(self, state: State) -> float:
        """The objective of a state that keeps the rules, infinite if it does not fit."""
        why = whole_fault(self.encoding.of(state), state)
        if why is not None:
            return self.evaluator.refuse(why)
        if not self.encoding.fits(state):
            return self.evaluator.refuse("capacity")
        if not self.additive or state.groups:
            value = self.evaluator.of(self.encoding.decode(state)).value
        else:
            value = self.evaluator.offer(self._value(state), lambda: self.encoding.decode(state))
        self._met(value, state)
        return value

    def _met(self, value: float, state: State) -> None:
        if value < (self.best[0] if self.best else INFINITE):
            self.best = value, state

    def apart(self, state: State) -> float:
        """As `value`, but by its Einsums alone: nothing is counted, checked by `evaluate` or kept, if that can be."""
        if not self.additive:
            return self.value(state)
        if whole_fault(self.encoding.of(state), state) is not None:
            return INFINITE
        return INFINITE if not self.encoding.fits(state) else self._value(state)

    def _value(self, state: State) -> float:
        return self.of(*self.sums(state))

    def sums(self, state: State, without: Collection[int] = ()) -> Sums:
        """(joules, seconds, bits through the objective's memory) of all Einsums, but for some; of the whole tree where
        some run at the same time, because their seconds do not add."""
        if state.groups:
            return self._whole(state)
        energy = latency = traffic = 0.0
        for i in range(self.facts.count):
            if i not in without:
                one = self.cost(state, i)
                energy, latency, traffic = energy + one[0], latency + one[1], traffic + one[2]
        return energy, latency, traffic

    def with_more(self, rest: Sums, one: Sums, times: int = 1) -> float:
        """The objective of sums and so many times those of one Einsum more."""
        return self.of(rest[0] + times * one[0], rest[1] + times * one[1], rest[2] + times * one[2])

    def part_of(self, state: State, einsums: Collection[int]) -> float:
        """The part of the objective that goes with these Einsums, from 0 to 1."""
        every = self._value(state)
        return 1 - self.of(*self.sums(state, einsums)) / every if every > 0 else 0.0

    def of(self, energy: float, latency: float, traffic: float) -> float:
        """The objective of these sums."""
        goal = self.problem.objective
        if goal.name == "energy":
            return energy
        if goal.name == "latency":
            return latency
        if goal.name == "traffic":
            return float(traffic)
        powers = goal.powers if goal.name == "product" else (1.0, 1.0)
        found: float = energy ** powers[0] * latency ** powers[1]
        return found

    def cost(self, state: State, i: int) -> tuple[float, float, int]:
        """(joules, seconds, bits through the objective's memory) of Einsum i."""
        facts = self.encoding.of(state)
        mine = path_of(facts, state, i)
        found = self._costs.get(mine)
        if found is None:
            if len(self._costs) >= LARGEST:
                self._costs.clear()
            label = facts.label[i]
            whole = mine.filled and not self.in_closed_form(label, mine)
            found = self._costs[mine] = self._in_tree(state, i) if whole else self._path_cost(label, mine)
        return found

    def in_closed_form(self, i: int, path: KnownPath) -> EvenPaths | None:
        """What prices a path of Einsum i of the program without a walk of the tree, if that is known."""
        closed = self.closed[i]
        return closed if closed is not None and closed.takes(path.word, path.filled) else None

    def forget(self) -> None:
        """Forget what was found of all paths."""
        self._costs.clear()
        self.facts.forget()

    def _whole(self, state: State) -> Sums:
        """What the whole tree of a state costs."""
        workload, machine, memory = self.problem.workload, self.problem.machine, self.problem.objective.memory
        found = evaluate(workload, machine, self.encoding.decode(state))
        return found.energy, found.latency, found.traffic(memory) if memory else 0

    def _in_tree(self, state: State, i: int) -> tuple[float, float, int]:
        """What Einsum i costs in the tree of the state: windows in stores that an Einsum before it fills."""
        workload, machine, memory = self.problem.workload, self.problem.machine, self.problem.objective.memory
        name, tree = self.encoding.of(state).einsums[i].name, self.encoding.decode(state)
        found = price(workload, machine, paths(workload, tree), "einsum", ())
        mine = [action for action in found.actions if action.einsum == name]
        bits = sum(action.bits for action in mine if action.component == memory)
        return sum(action.energy for action in mine), dict(found.einsum_latency)[name], bits

    def _path_cost(self, i: int, path: KnownPath) -> tuple[float, float, int]:
        """What Einsum i of the program costs on its path."""
        mine = path.word
        workload, machine, memory = self.problem.workload, self.problem.machine, self.problem.objective.memory
        if "bursts" in self.__dict__ and not path.filled and self.bursts.prices(i):  # loaded
            energy, latency, traffic = self.bursts.price(i, mine)
            return energy, latency, int(traffic)
        closed = self.in_closed_form(i, path)
        if closed is not None:
            one = closed.cost(mine, path.filled)
            return one.energy, one.latency, one.traffic[self.facts.number[memory]] if memory else 0
        found = price(workload, machine, paths(workload, Mapping(nodes_of(self.facts, i, mine))), "einsum", ())
        return found.energy, found.latency, found.traffic(memory) if memory else 0

    # -- what methods have in common --------------------------------------------------------------------------------

    def begin(self) -> list[State]:
        """The known mappings, priced, as far as they have a state, and the known states."""
        self.evaluator.begin()
        found = (self.encoding.encode(start) for start in self.evaluator.starts)
        legal = [state for state in found if state is not None and self.encoding.fault(state) is None]
        return [*legal, *self.known]

    def draw(self, rng: Random, fuse: float | None = None) -> Valued | None:
        """A legal state at random with its value; None if `HOPELESS` draws gave none."""
        state = self.drawn(rng, fuse)
        return None if state is None else (self.value(state), state)

    def drawn(self, rng: Random, fuse: float | None = None) -> State | None:
        """As `draw`, without a value: no point is counted."""
        for _ in range(HOPELESS):
            self.evaluator.checkpoint()
            state = self.encoding.sample(rng, fuse)
            if state is not None:
                return state
        return None

    def fitted(self, state: State, rng: Random, steps: int | None = None) -> Valued | None:
        """The state changed until all its tiles fit, with its value; None if so many steps did not do."""
        found = self.encoding.fitted(state, rng, steps)
        if found is None:
            self.evaluator.refuse("capacity")
            return None
        return self.value(found), found

    def near(self, state: State, rng: Random, shared: float = SHARED, einsum: int | None = None) -> Valued | None:
        """A state one move away with its value; None if the move was refused, which is counted."""
        try:
            found = self.encoding.propose(state, rng, shared, einsum)
        except NoProposal as rule:
            self.note(str(rule))
            return None
        return self.value(found), found

    def reshaped(self, found: Valued, rng: Random, tries: int) -> Valued | None:
        """A state with another skeleton, after so many proposals for the privates of each Einsum that it touched."""
        near = self.near(found[1], rng, 1.0)
        if near is None or near[0] == INFINITE:
            return None
        return self.polished(near, rng, tries, changed_paths(found[1], near[1]))

    def polished(self, found: Valued, rng: Random, tries: int, einsums: Iterable[int] | None = None) -> Valued:
        """The state after so many proposals for the privates of each of these Einsums; worse ones are not taken."""
        for i in range(self.facts.count) if einsums is None else einsums:
            found = self.burst(found, i, tries, 0.0, rng)
        return found

    # -- machine code -------------------------------------------------------------------------------------------------

    def burst_size(self, points: int | None) -> int:
        """Proposals for one Einsum's privates at a time: few in a short search, at most `LARGEST_BURST`.

        points: of a search whose budget names neither steps nor seconds.
        """
        budget = self.evaluator.budget
        hurried = budget.seconds is not None and budget.seconds < COMPILES
        if not self.additive or (hurried and not self.machine_code):
            return 1
        known = [budget.steps] if budget.steps else []
        known += [int(budget.seconds * A_SECOND)] if budget.seconds else []
        return min(max(1, int(sqrt(min(known, default=points or 1)) / 10)), LARGEST_BURST)

    def burst(self, found: Valued, i: int, tries: int, heat: float, rng: Random) -> Valued:
        """The state after so many proposals for the privates of Einsum i, annealed at this temperature.

        By machine code for `FROM` proposals and more, if it speaks of the Einsum. heat: 0 takes no worse state.
        """
        if tries >= FROM and self.additive and found[0] < INFINITE and self.bursts.able(found[1], i):
            return self._in_machine_code(found[1], i, tries, heat, rng)
        value, state = found
        for _ in range(tries):
            near = self.near(state, rng, 0.0, i)
            if near is not None and near[0] < INFINITE and accepted(near[0], value, heat, rng):
                value, state = near
        return value, state

    def load(self) -> bool:
        """Load machine code, if it has been compiled before and memory allows; False if not."""
        if growth_left() < MACHINE_CODE:
            return False
        with unlimited():
            from . import kernel, uneven_kernel
            from .machine_code import compiled

            self.machine_code = compiled(uneven_kernel.anneal if self.facts.ragged else kernel.anneal)
        return self.machine_code

    @cached_property
    def bursts(self) -> Bursts:
        with unlimited():  # this loads Numba, and only where it is worth it
            from .bursts import Bursts

        return Bursts(self.problem, self.facts)

    def _in_machine_code(self, state: State, i: int, tries: int, heat: float, rng: Random) -> Valued:
        evaluator = self.evaluator
        evaluator.checkpoint()
        rest = self.sums(state, {i})
        left = tries
        if evaluator.budget.steps is not None:
            left = min(tries, evaluator.budget.steps - evaluator.evaluated - evaluator.illegal)
        done = self.bursts.run(state, i, rest, tries, left, heat, rng)
        self.note("machine code", done.refused)
        if done.overfull:
            evaluator.refuse("capacity", done.overfull)
        if done.legal:
            evaluator.offer(done.best_value, lambda: self.encoding.decode(done.best), done.legal)
            self._met(done.best_value, done.best)
        return done.value, done.state

    def note(self, rule: str, proposals: int = 1) -> None:
        """Count refused proposals, which are no points of the budget."""
        self.evaluator.checkpoint()
        name = f"proposal: {rule}"
        self.evaluator.refused[name] = self.evaluator.refused.get(name, 0) + proposals
        self.evaluator.watch.count(name, proposals)

    def part(self, points: int | None) -> float:
        """The part of a search that is over, from 0 to 1: of its budget, or of `points` if that has no steps."""
        if points is None or self.evaluator.budget.steps:
            return self.evaluator.spent
        return max((self.evaluator.evaluated + self.evaluator.illegal) / points, self.evaluator.spent)
