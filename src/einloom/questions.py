"""What the arguments of a verb mean: names, files and objects become problems, known mappings, and a problem with its
mapping.

Comes in: what a caller in Python, or the command line, gives. Goes out: a `Problem`, or several of which the best
answer is wanted; mappings with the lines of their files. Whatever does not fit together is a SpecError.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import replace
from os.path import isfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from .errors import EinloomWarning, SpecError, combined, nearest
from .machine.checked import checked as checked_machine
from .machine.levels import Machine
from .mapping.legality.reason import lines_of
from .mapping.text import LocatedMapping, begins_mapping, parse_located, parse_mapping
from .mapping.tree import Mapping
from .mapspace.files import check_mapspace, located_limit, read_mapspace, with_splits
from .mapspace.space import Mapspace, Order, Stores, known_space
from .problem import Objective, Problem, free_of_charge, objective
from .problem.selections import machine_selectors, unused_selectors
from .reading.located import file_text
from .result import Result
from .result.unmapped import Unmapped, read_answer
from .search.several import Labelled
from .search.starts import misfits, refusal
from .workload.checked import checked as checked_workload
from .workload.einsum import Workload
from .workload.selectors import KEYWORDS, unknown_names
from .zoo.catalogue import looks_like_path, pathless
from .zoo.machine_by_name import load_machine, located_key
from .zoo.workload_by_name import load_workload

if TYPE_CHECKING:
    from .dataflows.rules import Dataflow

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
    machine, mapspace, flows = pathless(machine), pathless(mapspace), _flows(dataflow)
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
    return asked if goal is not None else replace(asked, objective=_outer_traffic(asked.machine))


def problems_or_traffic(
    workload: Workload | str | Path, machine: Machine | str | Path, goal: Goal | None, **limits: Any
) -> tuple[Labelled, ...]:
    """As `problems`; without a goal that of the least traffic of the outermost memory."""
    found = problems(workload, machine, goal or "energy", **limits, named=goal is not None)
    if goal is not None:
        return found
    traffic = _outer_traffic(found[0].problem.machine)
    return tuple(replace(each, problem=replace(each.problem, objective=traffic)) for each in found)


def _outer_traffic(machine: Machine) -> Objective:
    return objective(f"traffic:{machine.memories[0].name}", machine)


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

    several = listed("dataflow", dataflow, (Dataflow, str))
    return tuple(named(flow) if isinstance(flow, str) else flow for flow in several)


def _only_choice(flow: Dataflow, cascade: Workload, given: object) -> Workload:
    """The one workload that a dataflow makes of this one. Raises SpecError where it makes several."""
    found = flow.choices(cascade)
    if len(found) > 1:
        told = f"{flow.name} makes {len(found)} workloads of this one, and one is asked about"
        raise SpecError(f"{told}; {_one_number(flow, given, found[len(found) // 2].label)}")
    return found[0].workload


def listed(what: str, given: Any, kinds: tuple[type, ...]) -> tuple[Any, ...]:
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


def refuse_alone(given: object, missing: str) -> None:
    """Raise SpecError for a name that stands where a saved answer alone may stand, as the file that it is not."""
    if isinstance(given, str) and not looks_like_path(given):
        raise SpecError(f"{missing} missing after {given!r:.80}, which is not the file of a saved answer")
