"""The smallest relaxations that help, each shown by a run on the relaxed problem.

A single constraint helps only if it belongs to every conflict; where none does, pairs are tried, and where no pair
does, one set of constraints that cannot be reduced. Each is then relaxed no further than needed.
"""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from dataclasses import replace
from itertools import chain, combinations, islice
from math import gcd, isqrt

from ..cost.room.occupancy import occupancy
from ..cost.traffic.paths import paths
from ..dataclass import dataclass
from ..errors import Infeasible
from ..mapping.extents import addressed_paths
from ..mapping.text import print_mapping
from ..mapping.tree import Loop, Mapping
from ..problem import Problem
from . import edits as steps
from .conflict import Blame, Choice
from .constraints import Constraint, FusedLoops, OfMachine, without
from .edits import RelaxationStep
from .feasibility import Answer, Asker, Undecided
from .record import Change, Relaxation

MAX_TENSORS = 8
MAX_PAIRS = 6


def relaxations(blame: Blame, conflict: Choice) -> Iterator[Relaxation]:
    """Every smallest relaxation, in the order of the constraints. Raises Unfinished when the budget ends."""
    everything = blame.everything
    helpful: list[tuple[int, ...]] = [(i,) for i in sorted(conflict) if _helps(blame, {i})]
    if not helpful:
        helpful = list(_pairs(blame, conflict))
    if not helpful and blame.known:
        helpful = [_irreducible(blame)]
    for numbers in helpful:
        known = blame.mapped(everything - set(numbers))
        assert known is not None, "giving all of them up helps"
        together = tuple(blame.candidates[i] for i in numbers)
        yield from relaxed(blame.asker, blame.problem, together, Answer(known.run, known.mapping))


def _helps(blame: Blame, given_up: AbstractSet[int]) -> bool:
    """True if the problem without these constraints is known to have a mapping. Raises Unfinished."""
    try:
        return blame.mapped(blame.everything - given_up) is not None
    except Undecided:
        return False


def _pairs(blame: Blame, conflict: Choice) -> Iterator[tuple[int, ...]]:
    """Pairs that help: one of them is in the conflict."""
    pairs = combinations(sorted(blame.everything), 2)
    yield from islice((pair for pair in pairs if conflict & set(pair) and _helps(blame, set(pair))), MAX_PAIRS)


def _irreducible(blame: Blame) -> tuple[int, ...]:
    """Constraints that help when all are given up, and none of which may be kept."""
    best = max(blame.known, key=lambda known: len(known.kept))
    kept = best.kept
    for i in sorted(blame.everything - kept):
        if i not in kept and _helps(blame, blame.everything - kept - {i}):
            known = blame.mapped(kept | {i})
            kept = kept if known is None else known.kept
    return tuple(sorted(blame.everything - kept))


def relaxed(asker: Asker, problem: Problem, together: tuple[Constraint, ...], known: Answer) -> Iterator[Relaxation]:
    """The ways to relax the constraints, which help if all of them are given up (`known`), no further than needed.

    One after the other, the later ones still given up; of the first ones the nearest way counts, of the last one each.
    """
    done: tuple[Change, ...] = ()
    for n, constraint in enumerate(together):
        rest = together[n + 1 :]
        ways = _Ways(asker, problem, constraint, rest)
        if n + 1 < len(together):
            first, known, _ = next(ways.least(known))
            done, problem = (*done, *first.changes), first.problem
            continue
        for step, answer, refused in ways.least(known):
            assert answer.mapping is not None
            text = print_mapping(answer.mapping, problem.workload)
            yield Relaxation((*done, *step.changes), answer.run, refused, mapping=text, problem=step.problem)


Found = tuple[RelaxationStep, Answer, int | None]


@dataclass(frozen=True, slots=True)
class _Ways:
    """The least relaxations of one constraint; `rest`: constraints that stay given up meanwhile."""

    asker: Asker
    problem: Problem
    constraint: Constraint
    rest: tuple[Constraint, ...]

    def ask(self, step: RelaxationStep) -> Answer:
        """Whether the problem after the step, without the rest, has a mapping."""
        problem = step.problem
        for constraint in self.rest:
            problem = without(problem, constraint)
        try:
            return self.asker.feasible(problem, worded(step.changes))
        except Undecided:  # not known to help
            return Answer(len(self.asker.runs), None)

    def least(self, answer: Answer) -> Iterator[Found]:
        """(step, answer, run that refuses the next smaller step), at least one.

        answer: of the problem without the constraint and the rest, which has a mapping.
        """
        assert answer.mapping is not None
        if isinstance(self.constraint, OfMachine) and self.constraint.key == "size":
            yield self._size(self.constraint, answer)
            return
        if isinstance(self.constraint, FusedLoops):
            yield self._loops(answer.mapping)
            return
        less = False
        for step, found in chain(self._tensors(), self._numbers()):
            less = True
            yield step, found, None
        if not less:
            yield steps.dropped(self.problem, self.constraint), answer, None

    def _size(self, constraint: OfMachine, answer: Answer) -> Found:
        """The least size that is enough, by bisection between the size now and what a mapping occupies.

        Tiles are whole numbers of values, so only multiples of the grain make a difference.
        """
        name = constraint.name
        memory = self.problem.machine.memory(name)
        assert memory.size is not None
        assert answer.mapping is not None
        step_bits = grain(self.problem, name)
        low, high = memory.size // step_bits, self._filled(name, answer.mapping) // step_bits
        refused: int | None = None
        while high - low > 1:
            middle = min(max(isqrt(low * high), low + 1), high - 1)
            step = steps.sized(self.problem, constraint, middle * step_bits)
            asked = self.ask(step)
            if asked.mapping is None:
                low, refused = middle, asked.run if asked.reason else None
            else:
                high = self._filled(name, asked.mapping) // step_bits
        best = steps.sized(self.problem, constraint, high * step_bits)
        return best, self.ask(best), refused

    def _filled(self, name: str, mapping: Mapping) -> int:
        """Bits of the memory that a mapping fills."""
        workload = self.problem.workload
        filled = occupancy(workload, self.problem.machine, paths(workload, mapping))
        return next((o.bits for o in filled if o.memory == name), 0)

    def _loops(self, mapping: Mapping) -> Found:
        """The least number of fused loops that is enough."""
        now = self.problem.mapspace.max_fused_loops
        assert now is not None
        nests = addressed_paths(mapping.nest).values()
        most = max(sum(isinstance(node, Loop) and node.axis is None for _, node in nest) for nest in nests)
        refused: int | None = None
        for number in range(now + 1, most + 1):
            step = steps.fused_loops(self.problem, number)
            answer = self.ask(step)
            if answer.feasible:
                return step, answer, refused
            refused = answer.run if answer.reason else None
        raise AssertionError("as many fused loops as the mapping has loops are enough")

    def _tensors(self) -> Iterator[tuple[RelaxationStep, Answer]]:
        """Every single tensor whose exemption is enough; if none is, one set of them that cannot be reduced."""
        names = steps.tensors_of(self.problem, self.constraint)
        if len(names) < 2:  # without its only tensor it is given up
            return
        single = False
        for name in names[:MAX_TENSORS]:
            step = steps.for_tensors(self.problem, self.constraint, (name,))
            if (answer := self.ask(step)).feasible:
                single = True
                yield step, answer
        if single or len(names) < 3:
            return
        exempt = names
        last: tuple[RelaxationStep, Answer] | None = None
        for name in names:
            fewer = tuple(t for t in exempt if t != name)
            step = steps.for_tensors(self.problem, self.constraint, fewer)
            if len(fewer) > 1 and (answer := self.ask(step)).feasible:
                exempt, last = fewer, (step, answer)
        if last is not None:
            yield last

    def _numbers(self) -> Iterator[tuple[RelaxationStep, Answer]]:
        """The nearest number whose admission is enough."""
        for step in steps.numbers(self.problem, self.constraint):
            if (answer := self.ask(step)).feasible:
                yield step, answer
                return


def grain(problem: Problem, name: str) -> int:
    """Bits of which every occupancy of the memory is a multiple."""
    workload, memory = problem.workload, problem.machine.memory(name)
    widths = {memory.bits(workload, e.name, t) for e in workload.einsums for t in e.tensors}
    return gcd(*widths) * memory.capacity_share()


def worded(changes: tuple[Change, ...]) -> str:
    """The edits in one phrase."""
    phrases = []
    for change in changes:
        asked = f"'{change.before}' given up" if change.after == "given up" else f"'{change.after}' instead"
        phrases.append(asked if change.place == "mapspace" else f"{change.place} {change.after}")
    return ", ".join(phrases)


def valued(asker: Asker, found: Relaxation) -> Relaxation:
    """The relaxation with the optimum of the relaxed problem, if that can be found. Raises Unfinished."""
    assert found.problem is not None
    try:
        solved = asker.optimum(found.problem, f"optimum with {worded(found.changes)}")
    except Undecided:
        return found
    if isinstance(solved, Infeasible):
        raise AssertionError(f"run {found.shown} has a mapping, the search for the optimum has none: {solved}")
    return replace(found, value=solved.value, solved=len(asker.runs))
