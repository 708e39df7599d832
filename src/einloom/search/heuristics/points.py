"""The value of states: path by path, each priced once.

Energy, latency and traffic add over Einsums, and what an Einsum costs depends on its path alone; so a move that changes
one Einsum prices one path. Whatever is kept is priced by `evaluate` as a whole.
"""

from __future__ import annotations

from collections.abc import Iterable
from random import Random

from ...cost.evaluate import price
from ...cost.traffic.even import EvenPaths
from ...cost.traffic.paths import paths
from ...errors import SpecError
from ...mapping.tree import Mapping
from ...mapspace.ffm.encoding import SHARED, Encoding, NoProposal, State
from ...mapspace.ffm.encoding.rooms import overflow
from ...mapspace.ffm.encoding.state import Word, word
from ...mapspace.ffm.encoding.trees import nodes_of
from ...mapspace.ffm.space import Ffm
from ...mapspace.space import Space
from ...problem import Problem
from ..evaluator import Evaluator

LARGEST = 400_000  # paths whose price is remembered
HOPELESS = 100  # draws in a row without a legal state before a method gives up
INFINITE = float("inf")


Valued = tuple[float, State]


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
        self._even = [
            EvenPaths(workload, machine, name) if EvenPaths.able(workload, machine, name) else None
            for name in workload.names
        ]
        self._costs: dict[object, tuple[float, float, int]] = {}

    def value(self, state: State) -> float:
        """The objective of a state that keeps the rules, infinite if it does not fit."""
        if overflow(self.facts, state) is not None:
            return self.evaluator.refuse("capacity")
        if not self.additive:
            return self.evaluator.of(self.encoding.decode(state)).value
        return self.evaluator.offer(self._value(state), lambda: self.encoding.decode(state))

    def apart(self, state: State) -> float:
        """As `value`, but by its Einsums alone: nothing is counted, checked by `evaluate` or kept, if that can be."""
        if not self.additive:
            return self.value(state)
        return INFINITE if overflow(self.facts, state) is not None else self._value(state)

    def _value(self, state: State) -> float:
        energy = latency = 0.0
        traffic = 0
        for i in range(self.facts.count):
            one = self.cost(state, i)
            energy, latency, traffic = energy + one[0], latency + one[1], traffic + one[2]
        return self.of(energy, latency, traffic)

    def of(self, energy: float, latency: float, traffic: int) -> float:
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
        mine = word(self.facts, state, i)
        key = i, mine
        if key not in self._costs:
            if len(self._costs) >= LARGEST:
                self._costs.clear()
            self._costs[key] = self._path_cost(i, mine)
        return self._costs[key]

    def _path_cost(self, i: int, mine: Word) -> tuple[float, float, int]:
        workload, machine, memory = self.problem.workload, self.problem.machine, self.problem.objective.memory
        even = self._even[i]
        if even is not None:
            one = even.cost(mine)
            return one.energy, one.latency, one.traffic[self.facts.number[memory]] if memory else 0
        found = price(workload, machine, paths(workload, Mapping(nodes_of(self.facts, i, mine))), "einsum", ())
        return found.energy, found.latency, found.traffic(memory) if memory else 0

    # -- what methods have in common --------------------------------------------------------------------------------

    def begin(self) -> list[State]:
        """The known mappings, priced, as far as they have a state."""
        self.evaluator.begin()
        found = (self.encoding.encode(start) for start in self.evaluator.starts)
        return [state for state in found if state is not None and self.encoding.fault(state) is None]

    def draw(self, rng: Random, fuse: float | None = None) -> Valued | None:
        """A legal state at random with its value; None if `HOPELESS` draws gave none."""
        for _ in range(HOPELESS):
            self.evaluator.checkpoint()
            state = self.encoding.sample(rng, fuse)
            if state is not None:
                return self.value(state), state
        return None

    def near(self, state: State, rng: Random, shared: float = SHARED, einsum: int | None = None) -> Valued | None:
        """A state one move away with its value; None if the move was refused, which is counted."""
        try:
            found = self.encoding.propose(state, rng, shared, einsum)
        except NoProposal as rule:
            self.note(str(rule))
            return None
        return self.value(found), found

    def polished(self, found: Valued, rng: Random, tries: int, einsums: Iterable[int] | None = None) -> Valued:
        """The state after so many proposals for the privates of each of these Einsums; better ones are taken."""
        value, state = found
        for i in range(self.facts.count) if einsums is None else einsums:
            for _ in range(tries):
                near = self.near(state, rng, 0.0, i)
                if near is not None and near[0] < value:
                    value, state = near
        return value, state

    def note(self, rule: str) -> None:
        """Count a refused proposal, which is no point of the budget."""
        self.evaluator.checkpoint()
        name = f"proposal: {rule}"
        self.evaluator.refused[name] = self.evaluator.refused.get(name, 0) + 1
        self.evaluator.watch.count(name)

    def part(self, points: int) -> float:
        """The part of a search that is over, from 0 to 1: of its budget, or of `points` if that has no steps."""
        done = self.evaluator.evaluated + self.evaluator.illegal
        return self.evaluator.spent if self.evaluator.budget.steps else max(done / points, self.evaluator.spent)
