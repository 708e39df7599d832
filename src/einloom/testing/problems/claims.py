"""What must be true of every problem: `exact` finds what all trees say, and the analysis what the oracle sees.

Each claim is a function that yields a sentence for every difference; `differences` asks all of them. An exception that
no user should meet is a difference too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from itertools import pairwise
from math import isclose, prod
from random import Random

from ...cost.breakdown import Cost
from ...cost.evaluate import evaluate, latencies, legality
from ...dataclass import dataclass
from ...errors import BudgetExhausted, IllegalMapping, Infeasible, SpecError
from ...machine.files import machine_from_data
from ...machine.levels import Machine
from ...machine.write import machine_data
from ...mapping.text import parse_mapping, print_mapping
from ...mapping.tree import Mapping
from ...mapspace.ffm.enumerate import enumerate_trees
from ...mapspace.ffm.rules import outside
from ...mapspace.files import mapspace_data, mapspace_from_data
from ...mapspace.space import Mapspace
from ...oracle import simulate
from ...problem import Guarantee, Objective, Problem, keeps_time
from ...result import Result
from ...search.exact import Exact
from ...workload.einsum import Workload
from ...workload.files import workload_data, workload_from_data
from ..nested import nested_tree
from ..trees import TreeGrower
from .files import Read

SAME = 1e-9
SLACK = 1e-9
SIMULATED = 1
GROWN = 1
REFUSED = (
    "exact follows one tensor with sliding windows per Einsum",
    "exact searches no free order where the first reader",
    "exact searches no free order where the first writer",
)
"""What `exact` refuses by name: the limits of docs/exact.md."""
POWERS = ((2.0, 1.0), (0.5, 3.0))
MOST_POINTS = 600
"""More operations than these are not executed element by element."""


@dataclass(frozen=True)
class ProblemTrees:
    """A workload, a machine and a mapspace, with all trees of the space. seed: of what is chosen by chance."""

    workload: Workload
    machine: Machine
    mapspace: Mapspace
    seed: int

    def problem(self, objective: Objective) -> Problem:
        return Problem(self.workload, self.machine, self.mapspace, objective)

    @property
    def objectives(self) -> tuple[Objective, ...]:
        """Two objectives that the seed chooses; where nothing takes time, those that need none."""
        memory = self.machine.memories[self.seed % len(self.machine.memories)].name
        energy, latency, traffic = Objective("energy"), Objective("latency"), Objective("traffic", memory)
        if not keeps_time(self.machine):
            return energy, traffic
        products = [Objective("product", powers=powers) for powers in POWERS]
        others = (Objective("edp"), latency, *products)
        return (
            (energy, Objective("pareto")),
            (latency, others[self.seed // 4 % len(others)]),
            (energy, latency),
            (Objective("pareto"), traffic),
        )[self.seed % 4]

    @cached_property
    def trees(self) -> tuple[tuple[Mapping, Cost], ...]:
        """Every legal tree of the space with its cost."""
        workload, machine = self.workload, self.machine
        found = []
        for tree in enumerate_trees(workload, machine, self.mapspace):
            try:
                found.append((tree, evaluate(workload, machine, tree)))
            except IllegalMapping:
                continue
        return tuple(found)

    def best(self, objective: Objective) -> float | None:
        return min((objective.value(cost) for _, cost in self.trees), default=None)

    @cached_property
    def front(self) -> list[tuple[float, float]]:
        """(energy, latency) of the costs that no other beats, ascending in energy."""
        return beaten_by_none((cost.energy, cost.latency) for _, cost in self.trees)

    @property
    def large(self) -> bool:
        """True if executing the problem element by element would take long."""
        workload = self.workload
        points = sum(prod(workload.extents[v] for v in e.variables) for e in workload.einsums)
        return points * workload.repeat > MOST_POINTS or any(t.size > MOST_POINTS for t in workload.tensors)

    @cached_property
    def executed(self) -> list[tuple[Mapping, Cost]]:
        """Some of the trees, chosen by chance; none where executing them would take long."""
        if self.large:
            return []
        return Random(self.seed).sample(self.trees, min(SIMULATED, len(self.trees)))


def beaten_by_none(points: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
    """Those of the points (energy, latency) that no other beats, ascending in energy; of equal energies, but for
    rounding, the last."""
    found: list[tuple[float, float]] = []
    for energy, latency in sorted(points):
        if found and same(found[-1][0], energy) and latency < found[-1][1]:
            found[-1] = (energy, latency)
        elif not found or latency < found[-1][1] * (1 - SAME):
            found.append((energy, latency))
    return found


def same(a: float, b: float) -> bool:
    return isclose(a, b, rel_tol=SAME)


Claim = Callable[[ProblemTrees], Iterable[str]]


def optima(subject: ProblemTrees) -> Iterator[str]:
    """`exact` says what all trees say, for each objective: value, front or infeasible; with a tree to show for it."""
    for objective in subject.objectives:
        problem = subject.problem(objective)
        best = subject.best(objective)
        try:
            found = Exact().search(problem)
        except Infeasible:
            if best is not None:
                yield f"{objective}: exact says infeasible, all trees {best!r}"
            continue
        except SpecError as error:
            if not any(reason in error.message for reason in REFUSED):
                yield f"{objective}: exact refuses: {error}"
            continue
        except BudgetExhausted as error:
            yield f"{objective}: exact ends with the bound {error.bound!r}, all trees say {best!r}"
            continue
        if best is None:
            yield f"{objective}: exact says {found.value!r}, no tree is legal"
        elif not same(found.value, best):
            yield f"{objective}: exact says {found.value!r}, all trees {best!r}"
        yield from _sound(problem, found)
        if objective.name == "pareto":
            yield from _same_front([(p.energy, p.latency) for p in found.front], subject.front)


def _sound(problem: Problem, found: Result) -> Iterator[str]:
    """The tree of an answer is legal, in the space, priced as said, and proven."""
    workload, machine, goal = problem.workload, problem.machine, problem.objective
    if found.certificate is None or found.certificate.guarantee is not Guarantee.OPTIMAL:
        yield f"{goal}: the answer is not proven"
    for tree in (found.mapping, *(point.mapping for point in found.front)):
        reasons = legality(workload, machine, tree) or outside(workload, machine, problem.mapspace, tree)
        if reasons:
            yield f"{goal}: the tree of exact is illegal or outside the space: {'; '.join(reasons)}"
            return
        if parse_mapping(print_mapping(tree, workload), workload, machine) != tree:
            yield f"{goal}: the tree of exact does not come back from its text"
    value = goal.value(evaluate(workload, machine, found.mapping))
    if not same(value, found.value):
        yield f"{goal}: exact says {found.value!r}, its tree costs {value!r}"


def _same_front(mine: list[tuple[float, float]], theirs: list[tuple[float, float]]) -> Iterator[str]:
    alike = beaten_by_none(mine)
    agree = len(alike) == len(theirs)
    if not (agree and all(same(a, b) for x, y in zip(alike, theirs, strict=True) for a, b in zip(x, y, strict=True))):
        yield f"pareto: exact has {mine}, all trees {theirs}"


def refusals(subject: ProblemTrees) -> Iterator[str]:
    """Objectives that need time are refused by name where nothing takes any."""
    if not keeps_time(subject.machine):
        for name in ("latency", "edp", "pareto"):
            try:
                Exact().search(subject.problem(Objective(name)))
            except SpecError:
                continue
            yield f"{name}: is answered, though nothing takes time"


def round_trips(subject: ProblemTrees) -> Iterator[str]:
    """What is read from the three files is written and read back as the same."""
    workload, machine, mapspace = subject.workload, subject.machine, subject.mapspace
    again = workload_from_data(workload_data(workload))
    if again != workload or workload_data(again) != workload_data(workload):
        yield "the workload does not come back from its file"
    if machine_from_data(machine_data(machine)) != machine:
        yield "the machine does not come back from its file"
    if mapspace_from_data(mapspace_data(mapspace), machine) != mapspace:
        yield "the mapspace does not come back from its file"


def executions(subject: ProblemTrees) -> Iterator[str]:
    """What the analysis says of a tree is what the oracle counts; nothing is faster than the floor."""
    for tree, cost in subject.executed:
        for text in counted(subject, tree, cost):
            yield f"{text}, in {print_mapping(tree, subject.workload)!r}"


def counted(subject: ProblemTrees, tree: Mapping, cost: Cost) -> Iterator[str]:
    """Counts, operations and occupancy of one tree by the analysis and by the oracle, and the order of the views."""
    workload, machine = subject.workload, subject.machine
    timed = not any(memory.through for memory in machine.memories)
    seen = simulate(workload, machine, tree, timed=timed)
    if seen.reasons or not seen.correct:
        yield f"the oracle says {seen.reasons or 'wrong results'}"
        return
    mine: dict[object, int] = {("occupancy", o.memory): o.bits for o in cost.occupancy if o.bits}
    theirs: dict[object, int] = {("occupancy", memory): bits for memory, bits in seen.occupancy.items() if bits}
    for action in cost.actions:
        if action.count and action.action == "compute":
            mine["operations", action.einsum] = action.count
        elif action.count and action.tensor is not None:
            mine["count", action.einsum, action.component, action.tensor, action.action] = action.count
    theirs.update({("operations", einsum): count for einsum, count in seen.operations.items() if count})
    theirs.update({("count", *key): count for key, count in seen.counts.items() if count})
    for key in sorted(mine.keys() | theirs.keys(), key=str):
        if mine.get(key) != theirs.get(key):
            yield f"{key}: the analysis says {mine.get(key)}, the oracle {theirs.get(key)}"
    views = latencies(workload, machine, tree)
    steps = {"roofline": views.roofline, "floor": views.floor, "tile": views.tile, "einsum": views.einsum}
    for (name, less), (other, more) in pairwise(steps.items()):
        if less > more * (1 + SLACK):
            yield f"{name} {less!r} is above {other} {more!r}"
    if seen.cycles is not None and views.floor > seen.cycles * (1 + SLACK):
        yield f"the floor {views.floor!r} is above what the oracle takes, {seen.cycles!r}"


def random_trees(subject: ProblemTrees) -> Iterator[str]:
    """As `executions`, of a tree outside of any space: uneven tiles, stores anywhere. An illegal one is left out."""
    workload, machine = subject.workload, subject.machine
    if subject.large:
        return
    for number in range(GROWN):
        tree = TreeGrower(Random(f"tree {subject.seed} {number}"), workload, machine).mapping()
        if not legality(workload, machine, tree):
            for text in counted(subject, tree, evaluate(workload, machine, tree)):
                yield f"{text}, in {print_mapping(tree, workload)!r}"


def nested_trees(subject: ProblemTrees) -> Iterator[str]:
    """No split inside of another makes the floor higher than what the oracle takes (one random tree of its own)."""
    workload, machine, tree = nested_tree(subject.seed)
    if legality(workload, machine, tree):
        return
    views = latencies(workload, machine, tree)
    cycles = simulate(workload, machine, tree, timed=True).cycles
    if cycles is not None and max(views.floor, views.roofline) > cycles * (1 + SLACK):
        yield f"nested tree {subject.seed}: the floor {views.floor!r} is above what the oracle takes, {cycles!r}"


CLAIMS: dict[str, Claim] = {
    "exact = all trees": optima,
    "refusals": refusals,
    "files come back": round_trips,
    "analysis = oracle": executions,
    "random trees": random_trees,
    "nested trees": nested_trees,
}


@dataclass(frozen=True)
class Report:
    """What came of a problem. failed: claim -> its first difference. trees: legal ones of the space; -1: not known.
    executed: how many of them the oracle has executed."""

    failed: dict[str, str]
    trees: int
    executed: int


def asked(subject: ProblemTrees, claims: Iterable[str]) -> dict[str, str]:
    """Claim -> its first difference, for those of the claims that fail."""
    failed: dict[str, str] = {}
    for name in claims:
        try:
            said = next(iter(CLAIMS[name](subject)), None)
        except Exception as error:  # noqa: BLE001 (whatever leaves the engine is what is looked for)
            said = f"{type(error).__name__}: {error}"
        if said is not None:
            failed[name] = said
    return failed


def check(read: Read, seed: int, claims: Iterable[str] = tuple(CLAIMS)) -> Report:
    """Ask the claims of a problem. An exception is a difference: no problem that a file can say may end in one.

    seed: of the trees that are executed, and of the objectives that are asked in turn.
    """
    subject = ProblemTrees(*read, seed)
    failed = asked(subject, claims)
    try:
        return Report(failed, len(subject.trees), len(subject.executed))
    except Exception:  # noqa: BLE001 (told above)
        return Report(failed, -1, 0)
