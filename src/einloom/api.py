"""The public verbs as functions; `einloom` and the command line call these and nothing further in.

Workloads, machines and mappings may be given as objects, as the names of the zoo, or as files.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from collections.abc import Mapping as Table
from dataclasses import replace
from math import prod
from os.path import isfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from .certify.verdict import Check, Verdict
from .cost.breakdown import Cost
from .cost.evaluate import evaluate as _evaluate
from .dataclass import dataclass
from .defects import saved
from .errors import Defect, EinloomWarning, Ended, IllegalMapping, Infeasible, SpecError, combined, nearest, unknown
from .machine.checked import checked as checked_machine
from .machine.levels import Machine
from .mapping.legality.reason import lines_of
from .mapping.text import LocatedMapping, begins_mapping, parse_located, parse_mapping
from .mapping.tree import Mapping
from .mapspace.files import check_mapspace, located_limit, read_mapspace, with_splits
from .mapspace.space import Mapspace, Order, Stores, known_space
from .problem import Budget, Objective, Problem, free_of_charge, known_rule, objective
from .problem.budgets import read_budget, read_seed
from .problem.selections import machine_selectors, unused_selectors
from .reading.located import file_text
from .reporting import reported
from .result import Result
from .result.unmapped import Unmapped, read_answer
from .search.door import chosen
from .search.method import Method, Recorder, Watcher
from .search.several import Labelled, best_of
from .search.starts import misfits, refusal
from .search.watcher import interruptible
from .stops import interrupts
from .workload.checked import checked as checked_workload
from .workload.einsum import Workload
from .workload.selectors import KEYWORDS, unknown_names
from .zoo.catalogue import looks_like_path, pathless
from .zoo.machine_by_name import load_machine, located_key
from .zoo.workload_by_name import load_workload

if TYPE_CHECKING:
    from .codegen.run import MappingRun
    from .dataflows.rules import Dataflow
    from .diagnose import Explanation
    from .oracle.simulate import Simulation
    from .result.sweep import Sweep

RELAXATIONS = ("integer",)
SIMULATED_POINTS = 2_000_000
Known = Mapping | Result | str | Path
Flows: TypeAlias = "Dataflow | str | Sequence[Dataflow | str]"
Goal: TypeAlias = Objective | str
LIMITS = (
    "max_fused_loops",
    "mapspace",
    "dataflow",
    "full_use",
    "space",
    "order",
    "stores",
    "max_fused_loops_per_rank_variable",
)
"""What `problem` takes besides workload, machine and objective, by its names."""


def problem(
    workload: Workload | str | Path,
    machine: Machine | str | Path,
    goal: Goal = "energy",
    max_fused_loops: int | None = None,
    mapspace: Mapspace | str | Path | None = None,
    dataflow: Flows | None = None,
    full_use: bool = False,
    space: str | None = None,
    order: Order | None = None,
    stores: Stores | None = None,
    max_fused_loops_per_rank_variable: int | None = None,
    *,
    quiet: bool = False,
    named: bool = True,
) -> Problem:
    """The mapping problem; names and files are read. Raises SpecError for whatever does not fit together.

    mapspace: an object or a file; `max_fused_loops` replaces its limit. dataflow: instead, an object, a name or a
    file, or several, whose limits all hold. full_use: every Einsum uses as many instances of the axes as it can.
    space: the named space (``ffm``, ``ragged``) that `mapspace` or `dataflow` limits, instead of the one that they
    name. order: of the Einsums, ``program`` or ``free``, stores, ``own`` or ``shared``,
    max_fused_loops_per_rank_variable: likewise. Warns (EinloomWarning), unless `quiet`, of selectors that select none
    of the workload's tensors, and of a goal, if one is `named`, in which every mapping costs nothing.
    """
    machine, mapspace = pathless(machine), pathless(mapspace)
    cascade, hardware = _cascade(workload), _hardware(machine)
    if full_use not in (True, False):
        raise SpecError(f"full_use is True or False, not {full_use!r:.80}")
    hardware = hardware.in_full_use() if full_use else hardware
    check_names(cascade, hardware, machine if isinstance(machine, str) else None)
    if flows := _flows(dataflow):
        from .dataflows.rules import together

        if mapspace is not None:
            raise SpecError("a dataflow is a mapspace already; give one of the two")
        cascade = _only_choice(flows[0], cascade, pathless(workload))
        mapspace = together(flows, cascade, hardware)
    limited = Mapspace() if mapspace is None else mapspace
    limited = read_mapspace(limited, hardware, cascade) if isinstance(limited, str) else limited
    if not isinstance(limited, Mapspace):
        raise SpecError(f"a mapspace is an object of that class, or a file, not {limited!r:.80}")
    check_mapspace(cascade, limited)
    instead: dict[str, object] = {
        "max_fused_loops": max_fused_loops,
        "max_fused_loops_per_rank_variable": max_fused_loops_per_rank_variable,
        "order": order,
        "stores": stores,
    }
    limited = with_splits(limited, instead)
    limited = limited if space is None else replace(limited, name=known_space(space))
    asked = Problem(cascade, hardware, limited, objective(goal, hardware))
    if not quiet:
        _warn(asked, machine, mapspace, named)
    return asked


def problems(
    workload: Workload | str | Path,
    machine: Machine | str | Path,
    goal: Goal = "energy",
    max_fused_loops: int | None = None,
    mapspace: Mapspace | str | Path | None = None,
    dataflow: Flows | None = None,
    full_use: bool = False,
    space: str | None = None,
    order: Order | None = None,
    stores: Stores | None = None,
    max_fused_loops_per_rank_variable: int | None = None,
    *,
    named: bool = True,
) -> tuple[Labelled, ...]:
    """The mapping problems whose best answer is wanted: one, or one per number of tiles of a dataflow that rewrites.

    Of several dataflows the first rewrites. Raises SpecError as `problem`, and for a Pareto set of several.
    """
    flows = _flows(dataflow)
    again = max_fused_loops_per_rank_variable
    rest = (machine, goal, max_fused_loops, mapspace, flows, full_use, space, order, stores, again)
    if not flows or flows[0].rewrite is None:
        return (Labelled("", problem(workload, *rest, named=named)),)
    choices = flows[0].choices(_cascade(workload))
    found = tuple(Labelled(choice.label, problem(choice.workload, *rest, quiet=True)) for choice in choices)
    if found[0].problem.objective.name == "pareto":
        refuse_several(found, pathless(workload), flows, "a Pareto set is made of mappings of one workload")
    _warn(found[0].problem, machine, mapspace, named)  # the others differ in numbers of tiles alone
    return found


def problem_or_traffic(
    workload: Workload | str | Path, machine: Machine | str | Path, goal: Goal | None, **limits: Any
) -> Problem:
    """As `problem`; without a goal that of the least traffic of the outermost memory."""
    asked = problem(workload, machine, goal or "energy", named=goal is not None, **limits)
    outer = asked.machine.memories[0].name
    return asked if goal is not None else replace(asked, objective=objective(f"traffic:{outer}", asked.machine))


def problems_or_traffic(
    workload: Workload | str | Path, machine: Machine | str | Path, goal: Goal | None, **limits: Any
) -> tuple[Labelled, ...]:
    """As `problems`; without a goal that of the least traffic of the outermost memory."""
    found = problems(workload, machine, goal or "energy", **limits, named=goal is not None)
    if goal is not None:
        return found
    hardware = found[0].problem.machine
    least = objective(f"traffic:{hardware.memories[0].name}", hardware)
    return tuple(replace(each, problem=replace(each.problem, objective=least)) for each in found)


def _one_number(flow: Dataflow, workload: object, label: str) -> str:
    """How to ask about one number of tiles of a dataflow that rewrites, as commands."""
    assert flow.rewrite is not None
    named = workload if isinstance(workload, str) else "WORKLOAD"
    command = f"einloom rewrite {named} {flow.rewrite.name}:{label.replace(', ', ',')} > one.yaml"
    return f"take one of them: `{command}`, then the same command with one.yaml instead of {named}"


def _cascade(workload: object) -> Workload:
    """The workload meant; names and files are read."""
    if isinstance(workload, Workload | str | Path):
        return load_workload(workload) if isinstance(workload, str | Path) else checked_workload(workload)
    what = "a machine, which comes second" if isinstance(workload, Machine) else f"{workload!r:.80}"
    raise SpecError(f"the first argument is a workload, its name or its file, not {what}")


def _hardware(machine: object) -> Machine:
    """The machine meant; names and files are read."""
    if isinstance(machine, Machine | str | Path):
        return load_machine(machine) if isinstance(machine, str | Path) else checked_machine(machine)
    what = "a workload, which comes first" if isinstance(machine, Workload) else f"{machine!r:.80}"
    raise SpecError(f"the second argument is a machine, its name or its file, not {what}")


def refuse_several(asked: Sequence[Labelled], workload: object, dataflow: Flows | None, what: str) -> None:
    """Raise SpecError for several problems; `what` says why one is needed."""
    if len(asked) > 1:
        (flow, *_) = _flows(dataflow)
        told = f"{what}, and {flow.name} makes {len(asked)}"
        raise SpecError(f"{told}; {_one_number(flow, workload, asked[len(asked) // 2].label)}")


def _flows(dataflow: Flows | None) -> tuple[Dataflow, ...]:
    """The dataflows meant; names and files are read."""
    if dataflow is None or dataflow == ():
        return ()
    from .dataflows.files import dataflow as named
    from .dataflows.rules import Dataflow

    several = _listed("dataflow", dataflow, (Dataflow, str))
    return tuple(named(flow) if isinstance(flow, str) else flow for flow in several)


def _only_choice(flow: Dataflow, cascade: Workload, given: object) -> Workload:
    """The one workload that a dataflow makes of this one. Raises SpecError where it makes several."""
    found = flow.choices(cascade)
    if len(found) > 1:
        told = f"{flow.name} makes {len(found)} workloads of this one, and one is asked about"
        raise SpecError(f"{told}; {_one_number(flow, given, found[len(found) // 2].label)}")
    return found[0].workload


def _listed(what: str, given: Any, kinds: tuple[type, ...]) -> tuple[Any, ...]:
    """What is given of these classes: one, or several of them. Raises SpecError for anything else."""
    several = (given,) if isinstance(given, kinds) or not isinstance(given, Iterable) else tuple(given)
    several = tuple(pathless(one) for one in several)
    for one in several:
        if not isinstance(one, kinds):
            known = ", ".join(kind.__name__ for kind in kinds if kind is not str)
            raise SpecError(f"{what}: {one!r:.80} is none of {known}, or a text")
    return several


def _warn(
    asked: Problem, machine: Machine | str | Path, mapspace: Mapspace | str | Path | None, named: bool = True
) -> None:
    """Warn of what the problem says to no effect; with a place where machine and mapspace came from files."""
    space = asked.mapspace
    if named and (free := free_of_charge(asked.objective, asked.machine)):
        warnings.warn(free, EinloomWarning, stacklevel=_outside())
    for unused in unused_selectors(asked.workload, asked.machine, space.limits, space.name):
        view = None
        if unused.key is not None and isinstance(machine, str):
            view = located_key(machine, unused.key)
        elif unused.limit is not None and isinstance(mapspace, str):
            view = located_limit(mapspace, asked.machine, unused.limit)
        told = unused.message if view is None else str(view.error(unused.message))
        warnings.warn(told, EinloomWarning, stacklevel=_outside())


def _outside() -> int:
    """How many frames up the caller of the package stands, counted from the caller of this function."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and str(frame.f_globals.get("__name__")).partition(".")[0] == __package__:
        frame, level = frame.f_back, level + 1
    return level


def check_names(workload: Workload, machine: Machine, origin: str | None = None) -> None:
    """Refuse a machine whose limits speak of tensors that the workload does not have, all of them at once.

    origin: what the machine was loaded from; if that is a file, errors have its line.
    """
    known = [*(tensor.name for tensor in workload.tensors), *KEYWORDS]
    wrong = []
    for place, which in machine_selectors(machine):
        for name in unknown_names(which, workload):
            message = f"machine {machine.name}, {place}: {name!r} in {str(which)!r} is no tensor of {workload.name}"
            view = None if origin is None else located_key(origin, place)
            close = nearest(name, known)
            wrong.append(SpecError(message, suggestion=close) if view is None else view.error(message, close))
    if wrong:
        raise combined(wrong)


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
    known = starts(asked, _listed("start", start, (Mapping, Result, str)))
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


def starts(asked: Sequence[Labelled], known: Sequence[Known]) -> tuple[Mapping, ...]:
    """The mappings that a search may start from: of objects, results (every point of a front), texts and files.

    Raises SpecError, with the file, for one that is a legal mapping in the space of none of the problems.
    """
    found: list[Mapping] = []
    texts: list[Mapping | Result | str] = [pathless(one) for one in known]
    for one in texts:
        file = one if isinstance(one, str) and not _is_text(one) else None
        for located in _known(one, file, asked):
            reasons = [misfits(each.problem, located.mapping) for each in asked]
            if all(reasons):
                fewest = min(reasons, key=len)
                raise refusal(fewest, file, lines_of(located, fewest)[0])
            found.append(located.mapping)
    return tuple(found)


def _known(one: Mapping | Result | str, file: str | None, asked: Sequence[Labelled]) -> tuple[LocatedMapping, ...]:
    if isinstance(one, str):
        text = one if file is None else file_text(file)
        if not text.lstrip().startswith("{"):
            return (_parsed(text, file, asked),)
        answer = read_answer(file) if file is not None else Result.from_json(text)
        if isinstance(answer, Unmapped):
            raise SpecError("that search found no mapping, so none can start from it", file=file)
        one = answer
    if isinstance(one, Mapping):
        return (LocatedMapping(one),)
    return tuple(LocatedMapping(tree) for tree in dict.fromkeys((one.mapping, *(point.mapping for point in one.front))))


def _is_text(given: str) -> bool:
    """True for the text of a mapping or of a result, False for the name of a file."""
    return "\n" in given or given.startswith("{") or (begins_mapping(given) and not isfile(given))


def _parsed(text: str, file: str | None, asked: Sequence[Labelled]) -> LocatedMapping:
    """The mapping that a text means for the first problem that it fits, or else for the first that has its names."""
    found, wrong = [], []
    for each in asked:
        try:
            found.append(parse_located(text, each.problem.workload, each.problem.machine, file))
        except SpecError as error:
            wrong.append(error)
        else:
            if not misfits(each.problem, found[-1].mapping):
                return found[-1]
    if not found:
        raise wrong[0]
    return found[0]


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


def given(
    workload: Workload | str | Path | Result,
    machine: Machine | str | Path | None = None,
    mapping: object = None,
    goal: Goal | None = None,
) -> tuple[Problem, LocatedMapping]:
    """The problem and the mapping that three arguments, or a single result, speak of. goal: replaces a result's."""
    workload, mapping = pathless(workload), pathless(mapping)
    if machine is None or mapping is None:
        if machine is None and mapping is None:
            refuse_alone(workload, "machine and mapping are")
        result = Result.read(workload) if isinstance(workload, str) and machine is None else workload
        if machine is not None or mapping is not None or not isinstance(result, Result):
            raise SpecError("a workload, a machine and a mapping are needed, or one result")
        asked = result.problem
        asked = asked if goal is None else replace(asked, objective=objective(goal, asked.machine))
        return asked, LocatedMapping(result.mapping, workload if isinstance(workload, str) else None)
    if isinstance(workload, Result):
        raise SpecError("a result brings its own machine and mapping")
    asked = problem(workload, machine, goal or "energy", named=goal is not None)
    if isinstance(mapping, Mapping):
        return asked, LocatedMapping(mapping)
    if not isinstance(mapping, str):
        raise SpecError(f"a mapping is an object of that class, its text or its file, not {mapping!r:.80}")
    if _is_text(mapping):
        return asked, parse_located(mapping, asked.workload, asked.machine)
    return asked, mapping_in(mapping, asked.workload, asked.machine)


def mapping_in(file: str, workload: Workload, machine: Machine) -> LocatedMapping:
    """The mapping in a file: its text, or that of a saved result. Raises SpecError, also where that is of others."""
    text = file_text(file)
    if not text.lstrip().startswith("{"):
        return parse_located(text, workload, machine, file)
    result = Result.from_json(text, file)
    try:
        return LocatedMapping(parse_mapping(result.mapping_text, workload, machine), file)
    except SpecError as error:
        whose, mine = (f"{w.name} on {m.name}" for w, m in ((result.workload, result.machine), (workload, machine)))
        message = f"this result is of {whose}; its mapping is none of {mine}: {error.message}"
        raise SpecError(message, file=file) from error


def _priced(asked: Problem, located: LocatedMapping) -> Cost:
    """What a mapping costs. An IllegalMapping says where in its file the reasons are."""
    try:
        return _evaluate(asked.workload, asked.machine, located.mapping, asked.latency_rule)
    except IllegalMapping as error:
        raise IllegalMapping(error.reasons, located.file, lines_of(located, error.reasons)) from error


def refuse_alone(given: object, missing: str) -> None:
    """Raise SpecError for a name that stands where a saved answer alone may stand, as the file that it is not."""
    if isinstance(given, str) and not looks_like_path(given):
        raise SpecError(f"{missing} missing after {given!r:.80}, which is not the file of a saved answer")


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
