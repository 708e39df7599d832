"""The public verbs as functions; `einloom` and the command line call these and nothing further in.

Workloads, machines and mappings may be given as objects, as the names of the zoo, or as files.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from collections.abc import Mapping as Table
from dataclasses import replace
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .certify.verdict import Check, Verdict
from .cost.breakdown import Cost
from .cost.evaluate import evaluate as _evaluate
from .dataclass import dataclass
from .defects import saved
from .errors import Defect, EinloomWarning, Ended, IllegalMapping, Infeasible, SpecError, unknown
from .machine.levels import Machine
from .mapping.legality.reason import lines_of
from .mapping.text import LocatedMapping
from .mapping.tree import Mapping
from .mapspace.space import Mapspace, Order, Stores
from .problem import Budget, Problem, known_rule
from .problem.budgets import read_budget, read_seed
from .questions import (
    LIMITS,
    Flows,
    Goal,
    Known,
    given,
    listed,
    problems,
    problems_or_traffic,
    refuse_alone,
    starts,
)
from .reporting import reported
from .result import Result
from .result.unmapped import Unmapped, read_answer
from .search.door import chosen
from .search.method import Method, Recorder, Watcher
from .search.several import Labelled, best_of
from .search.watcher import interruptible
from .stops import interrupts
from .workload.einsum import Workload
from .zoo.catalogue import pathless

if TYPE_CHECKING:
    from .codegen.run import MappingRun
    from .diagnose import Explanation
    from .exploration.record import ExploredFamily
    from .oracle.simulate import Simulation
    from .result.sweep import Sweep

RELAXATIONS = ("integer",)
SIMULATED_POINTS = 2_000_000


def map(
    workload: Workload | str | Path,
    machine: Machine | str | Path,
    objective: Goal = "energy",
    *,
    max_fused_loops: int | None = None,
    mapspace: Mapspace | str | Path | None = None,
    dataflow: Flows | None = None,
    full_use: bool = False,
    space: str | None = None,
    order: Order | None = None,
    stores: Stores | None = None,
    max_fused_loops_per_rank_variable: int | None = None,
    method: Method | str = "exact",
    method_options: Table[str, object] | None = None,
    seconds: float | None = None,
    steps: int | None = None,
    memory: int | str | None = None,
    start: Known | Sequence[Known] = (),
    watch: Watcher | None = None,
    relax: str | None = None,
) -> Result:
    """The best mapping of a workload onto a machine, with its certificate.

    >>> import einloom as el
    >>> el.map("matmul:m=4,n=4,k=4", "simple", max_fused_loops=1).certificate.gap
    0.0

    objective: ``energy``, ``latency``, ``edp``, ``energy^A*latency^B``, ``traffic:MEMORY`` or ``pareto``, or the
    `objective` of a result. mapspace: limits of the space, an object or a file. dataflow: those of a published
    dataflow, an object, a name or a file (docs/dataflows.md), or of several together. full_use: every Einsum uses as
    many instances of the axes as it can, as if the machine said ``use: full`` of all of them. space: ``ffm``, or
    ``ragged`` with uneven tiles (docs/mapspace.md), instead of the one that mapspace or dataflow name. order:
    ``program``, or ``free``: in any order of the Einsums that their data allows. stores: ``own``, or ``shared``: one
    store may serve several Einsums that read its tensor. max_fused_loops_per_rank_variable: how often fused loops may
    cut one rank. method: an object or a name, with its options (docs/how-to/my-optimizer.md). seconds, steps, memory: a
    budget of wall time, of evaluated points, of bytes that the process may hold (or a size such as ``"2 GiB"``); what
    is found by then comes back with a bound. watch: hears what the search learns, and may end it (docs/answers.md); so
    does Ctrl-C in the main thread. start: known mappings, as objects, results, texts or files; methods that can, such
    as ``exact``, look only below the best of them (docs/exact.md). relax: ``integer`` adds a lower bound over mappings
    with any integer tiles to the certificate (docs/model/integer-tiles.md).

    Raises SpecError, Infeasible, BudgetExhausted; BrokenMethod, if a method of another package is wrong about its
    answer; and Defect, if einloom contradicts itself: every answer is checked once more, and the problem is then saved
    in the working directory, with the best mapping that was known, so that it can be reported.
    """
    again = max_fused_loops_per_rank_variable
    limits = (max_fused_loops, mapspace, dataflow, full_use, space, order, stores, again)
    asked = problems(workload, machine, objective, *limits)
    known = starts(asked, listed("start", start, (Mapping, Result, str)))
    refuse_relaxation(asked, relax)
    budget, how = read_budget(seconds, steps, memory), chosen(method, method_options)
    with interruptible(watch) as heard:
        return relaxed(solve(asked, how, budget, heard, known), relax, budget, heard)


def sweep_capacities(
    workload: Workload | str | Path,
    machine: Machine | str | Path,
    memory: str,
    capacities: str | Sequence[int | str],
    folder: str | Path,
    objective: Goal | None = None,
    *,
    fused: bool = True,
    method: str = "exact",
    seconds: float | None = None,
    jobs: int = 1,
    **limits: Any,
) -> Sweep:
    """The best mapping for each capacity of a memory: bits, or sizes such as ``"64 KiB"``, in a list or with commas.

    Answers are saved in `folder`, and what is there already is not asked again (docs/report.md). objective: by default
    the traffic of the outermost memory. fused: False has every intermediate backed there. limits: those of the mapspace
    and ``full_use``, as `map` takes them; of a dataflow that rewrites, each capacity has its best number of tiles.
    seconds: for each capacity. jobs: processes, each of which imports the script
    that asks for them, so that the call stands below ``if __name__ == "__main__":`` there. Ctrl-C in the main
    thread ends the sweep with what is known. Raises SpecError.
    """
    from .sweep import sizes, sweep_capacity

    if not isinstance(memory, str) or not isinstance(folder, str | Path):
        raise SpecError(f"a memory is named by a text and a folder too, not {memory!r:.80} and {folder!r:.80}")
    if fused not in (True, False) or not isinstance(jobs, int) or jobs < 1:
        raise SpecError(f"fused is True or False, and jobs a number of processes, not {fused!r:.80} and {jobs!r:.80}")
    for name in limits:
        if name not in LIMITS:
            own = ("objective", "fused", "method", "seconds", "jobs", *LIMITS)
            raise unknown("keyword of sweep_capacities", name, own)
    chosen(method)
    asked = problems_or_traffic(workload, machine, objective, **limits)
    seconds = read_budget(seconds).seconds
    listed = sizes(capacities)
    how: dict[str, Any] = {"fused": fused, "method": method, "seconds": seconds, "jobs": jobs}
    with interrupts() as heard:
        done = sweep_capacity(asked, memory, listed, folder, **how, stop=lambda: bool(heard))
    missing = len(set(listed)) - sum(point.answer.ended is not Ended.STOPPED for point in done.points)
    if heard and missing:
        told = f"interrupted: {missing} of {len(set(listed))} capacities are not done; the same call goes on there"
        warnings.warn(told, EinloomWarning, stacklevel=2)
    return done


def explore(
    family: str | Path,
    folder: str | Path,
    *,
    tolerance: float = 0.0,
    method: str = "exact",
    seconds: float | None = None,
    jobs: int = 1,
    share: tuple[int, int] = (1, 1),
    cluster: str | None = None,
    every: bool = False,
) -> ExploredFamily:
    """The best mapping on every machine of a family file, and the machines that no other beats (docs/explore.md).

    folder: of the answers, a file each; what is there is not searched again. tolerance: how far a machine's mapping may
    be above what is proven, as a part of its value. seconds: for each search. jobs: processes, as for
    `sweep_capacities`. share: (k, n), this call settles the k-th of n parts alone. cluster: the address of a Dask
    scheduler, whose workers search. every: machines that others beat are settled, too. Ctrl-C in the main thread ends
    it with what is known. Raises SpecError.
    """
    from .exploration.family import read_family
    from .exploration.study import explore_family

    if not isinstance(family, str | Path) or not isinstance(folder, str | Path):
        raise SpecError(f"a family is a file, and its answers are in a folder, not {family!r:.80} and {folder!r:.80}")
    numbers = isinstance(jobs, int) and jobs >= 1 and isinstance(tolerance, int | float) and 0 <= tolerance < 1
    if not numbers:
        raise SpecError(f"tolerance is from 0 to below 1, and jobs a number of processes, not {tolerance!r}, {jobs!r}")
    if not (len(share) == 2 and 1 <= share[0] <= share[1]):
        raise SpecError(f"a share is (k, n) with k from 1 to n, not {share!r:.80}")
    chosen(method)
    asked, seconds = read_family(family), read_budget(seconds).seconds
    how: dict[str, Any] = {"tolerance": tolerance, "method": method, "seconds": seconds, "jobs": jobs}
    with interrupts() as heard:
        done = explore_family(asked, folder, **how, share=share, cluster=cluster, every=every, stop=lambda: bool(heard))
    if heard and done.unsettled:
        told = f"interrupted: {done.unsettled} machines are not settled; the same call goes on there"
        warnings.warn(told, EinloomWarning, stacklevel=2)
    return done


def refuse_relaxation(asked: Sequence[Labelled], relax: str | None) -> None:
    """Raise SpecError for an unknown relaxation, and where it would be no bound."""
    if relax is None:
        return
    if relax not in RELAXATIONS:
        raise SpecError(f"unknown relaxation {relax!r}; known: {', '.join(RELAXATIONS)}", suggestion=RELAXATIONS[0])
    if len(asked) > 1:
        raise SpecError("no bound over any integer tiles: the answer is the best of several workloads")
    from .search.exact.integer import refuse_unbounded

    refuse_unbounded(asked[0].problem)


def relaxed(found: Result, relax: str | None, budget: Budget, watch: Watcher | None = None) -> Result:
    """A result with the bound of a relaxation in its certificate, if one is asked for."""
    if relax is None:
        return found
    from .search.exact.integer import with_integer_bound

    return with_integer_bound(found, budget, watch)


def solve(
    asked: Problem | tuple[Labelled, ...],
    method: Method | str = "exact",
    budget: Budget | None = None,
    watch: Watcher | None = None,
    start: Sequence[Mapping] = (),
) -> Result:
    """The answer of `method` to a problem, or the best of its answers to several.

    Raises as `map`; Defect if einloom contradicts itself: then the problem is saved where the user works.
    """
    budget, watch = budget or Budget(), Watcher() if watch is None else watch
    labelled = (Labelled("", asked),) if isinstance(asked, Problem) else asked
    began = time.monotonic()
    try:
        return best_of(labelled, method, budget, watch, start)
    except Infeasible as error:
        reason = why_infeasible(labelled, error.witness, budget, time.monotonic() - began, watch.stopped)
        raise Infeasible(reason, error.einsum) from error
    except Defect as defect:
        raise saved(defect) from defect.__cause__


def why_infeasible(
    asked: Sequence[Labelled], witness: str, budget: Budget, spent: float, stopped: Callable[[], bool]
) -> str:
    """The reason of a search that found no problem of these feasible: which limits, and the numbers that would do.

    spent: seconds of the budget. A budget of memory leaves it at the search's own `witness`.
    """
    from .diagnose.reason import SECONDS, named

    left = SECONDS if budget.seconds is None else min(budget.seconds - spent, SECONDS)
    if left <= 0 or budget.memory is not None:
        return witness
    reason = named(asked[-1].problem, witness, left, Recorder(stop=stopped))
    others = f"with {asked[-1].label}, as with the others: "
    return reason if len(asked) == 1 or reason == witness else others + reason


def evaluate(
    workload: Workload | str | Path | Result,
    machine: Machine | str | Path | None = None,
    mapping: Mapping | str | Path | None = None,
    objective: Goal | None = None,
    latency_rule: str | None = None,
) -> Result:
    """The cost of a given mapping (an object, its text, or a file), or of the mapping in a result or result file.

    objective: by default that of the result, or ``energy``. latency_rule: ``einsum`` or ``tile``; by default that of
    the result, or ``einsum``. Raises IllegalMapping with every reason, SpecError for an unknown objective or rule.
    """
    from .cost.event import event_seconds

    asked, located = given(workload, machine, mapping, objective)
    tree = located.mapping
    if latency_rule is not None:
        asked = replace(asked, latency_rule=known_rule(latency_rule))
    found = Result.of(asked, tree, _priced(asked, located))
    assert found.latencies is not None
    event = event_seconds(asked.workload, asked.machine, tree)
    return replace(found, latencies=replace(found.latencies, event=event))


def _priced(asked: Problem, located: LocatedMapping) -> Cost:
    """What a mapping costs. An IllegalMapping says where in its file the reasons are."""
    try:
        return _evaluate(asked.workload, asked.machine, located.mapping, asked.latency_rule)
    except IllegalMapping as error:
        raise IllegalMapping(error.reasons, located.file, lines_of(located, error.reasons)) from error


@dataclass(frozen=True, slots=True)
class Executed:
    """One executed mapping beside its price. differences: counts that are not the same, as text; empty if all are."""

    problem: Problem
    mapping: Mapping
    simulation: Simulation
    cost: Cost
    differences: tuple[str, ...]

    @property
    def ok(self) -> bool:
        return self.simulation.correct and not self.simulation.reasons and not self.differences

    def __bool__(self) -> bool:
        return self.ok

    def __str__(self) -> str:
        """What was counted, and whether it agrees, as text."""
        return str(reported("simulation", self.problem, self.simulation, self.differences))


def simulate(
    workload: Workload | str | Path | Result,
    machine: Machine | str | Path | None = None,
    mapping: Mapping | str | Path | None = None,
    seed: int = 0,
) -> Executed:
    """Execute a mapping with real integers, and hold what was counted against what `evaluate` says.

    For small sizes: raises SpecError beyond two million points of all Einsums together, IllegalMapping as `evaluate`.
    """
    from .oracle.simulate import simulate as execute

    seed = read_seed(seed)
    asked, located = given(workload, machine, mapping)
    tree = located.mapping
    cascade = asked.workload
    points = sum(prod(cascade.extents[variable] for variable in one.variables) for one in cascade.einsums)
    if points > SIMULATED_POINTS:
        raise SpecError(
            f"{asked.workload.name} has {points:,} points; simulate executes at most {SIMULATED_POINTS:,}, one by one; "
            "run executes more, as a program"
        )
    cost = _priced(asked, located)
    simulation = execute(asked.workload, asked.machine, tree, seed)
    return Executed(asked, tree, simulation, cost, _differences(simulation, cost))


def _differences(simulation: Simulation, cost: Cost) -> tuple[str, ...]:
    if simulation.reasons:
        return ()
    found = list(_other_counts(simulation.counts, cost))
    for o in cost.occupancy:
        if (held := simulation.occupancy.get(o.memory, 0)) != o.bits:
            found.append(f"occupancy of {o.memory}: executed {held} bits, priced {o.bits}")
    return tuple(found)


def _other_counts(counts: Table[tuple[str, str, str, str], int], cost: Cost) -> Iterator[str]:
    """Moves of which another number was executed than priced."""
    priced = {
        (a.einsum, a.component, a.tensor, str(a.action)): a.count
        for a in cost.actions
        if a.tensor is not None and a.count
    }
    for key in sorted({*priced, *counts}):
        counted, computed = counts.get(key, 0), priced.get(key, 0)
        if counted != computed:
            yield f"{' '.join(key)}: executed {counted}, priced {computed}"


@dataclass(frozen=True, slots=True)
class RanMapping:
    """A mapping that ran as a C program beside its price. differences: counts of moves and operations that are not the
    same, as text."""

    problem: Problem
    mapping: Mapping
    run: MappingRun
    cost: Cost
    differences: tuple[str, ...]

    @property
    def ok(self) -> bool:
        return self.run.correct and not self.differences

    def __bool__(self) -> bool:
        return self.ok

    def __str__(self) -> str:
        """What the program computed and moved, and whether it agrees, as text."""
        return str(reported("program", self.problem, self.run, self.differences))


def run(
    workload: Workload | str | Path | Result,
    machine: Machine | str | Path | None = None,
    mapping: Mapping | str | Path | None = None,
    seed: int = 0,
    keep: str | Path | None = None,
    said: Callable[[str], object] = str,
) -> RanMapping:
    """Write a mapping as a C program, compile and run it, and hold what it moved against what `evaluate` says.

    Real numbers of this seed go in; the outputs are compared with NumPy's. keep: a folder for the program. said: hears
    what is going on. Raises SpecError if there is no program or no compiler, or it would be too large; IllegalMapping
    as `evaluate`.
    """
    from .codegen.run import run as execute

    seed = read_seed(seed)
    asked, located = given(workload, machine, mapping)
    tree = located.mapping
    cost = _priced(asked, located)
    folder = None if keep is None else Path(keep)
    done = execute(asked.workload, asked.machine, tree, cost, seed, folder, said)
    priced = {a.einsum: a.count for a in cost.actions if a.action == "compute"}
    differences = [*_other_counts(done.counts, cost)]
    for einsum, count in priced.items():
        if done.operations[einsum] != count:
            differences.append(f"operations of {einsum}: executed {done.operations[einsum]}, priced {count}")
    return RanMapping(asked, tree, done, cost, tuple(differences))


def verify(result: Result | str | Path, quick: bool = False, seconds: float | None = None) -> Verdict:
    """Whether everything that a result (or result file) claims is true; `quick` does not solve again.

    seconds: budget of wall time for solving again; where it ends first, a remark says what is not derived again.
    """
    return Verdict(tuple(checks(result, quick, read_budget(seconds))))


def checks(result: Result | str | Path, quick: bool = False, budget: Budget | None = None) -> Iterator[Check]:
    """The checks of `verify`, each as soon as it is made."""
    from .certify import verify as verification

    read = result if isinstance(result, Result) else Result.read(result)
    yield from verification.checks(read, quick, budget=budget)


def explain(
    workload: Workload | str | Path | Result | Unmapped,
    machine: Machine | str | Path | None = None,
    objective: Goal = "energy",
    *,
    max_fused_loops: int | None = None,
    mapspace: Mapspace | str | Path | None = None,
    dataflow: Flows | None = None,
    full_use: bool = False,
    space: str | None = None,
    order: Order | None = None,
    stores: Stores | None = None,
    max_fused_loops_per_rank_variable: int | None = None,
    quick: bool = False,
    seconds: float | None = None,
    watch: Watcher | None = None,
) -> Explanation:
    """Why a problem has no mapping and what would give it one, or what binds a mapping; see docs/explain.md.

    workload: with a machine and the limits of the mapspace, as in `map`; alone, a saved answer (an object or a file),
    of which a result is explained as it is and anything else as the problem that it had. Of a dataflow that rewrites,
    the best of all numbers of tiles is explained. quick: no optima are searched for. seconds: budget of wall
    time; what is known by then comes back, marked as not complete. Raises SpecError.
    """
    from .diagnose import explain_best, explain_problem, explain_result

    workload, seconds = pathless(workload), read_budget(seconds).seconds
    if machine is not None:
        if isinstance(workload, Result | Unmapped):
            raise SpecError("a saved answer brings its own machine")
        again = max_fused_loops_per_rank_variable
        limits = (max_fused_loops, mapspace, dataflow, full_use, space, order, stores, again)
        asked = problems(workload, machine, objective, *limits)
        with interruptible(watch) as heard:
            return explain_best(asked, quick, seconds, heard)
    refuse_alone(workload, "machine is")
    answer = read_answer(workload) if isinstance(workload, str) else workload
    if not isinstance(answer, Result | Unmapped):
        raise SpecError("a workload and a machine are needed, or one saved answer")
    with interruptible(watch) as heard:
        if isinstance(answer, Result):
            return explain_result(answer, quick, seconds, heard)
        return explain_problem(answer.problem, quick, seconds, heard)
