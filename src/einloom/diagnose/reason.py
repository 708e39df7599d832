"""Why nothing is legal, for the answer of a search: which Einsum, which limits, and the numbers that would be enough.

Comes in: a problem that a search found infeasible, and the search's words. Goes out: what `conflict` and `relaxations`
find in a short time, in a sentence each. `explain` says all of it, with the run behind each claim.
"""

from __future__ import annotations

from collections.abc import Iterator
from difflib import SequenceMatcher
from itertools import islice

from ..cost.room.occupancy import occupancy
from ..cost.traffic.paths import paths
from ..errors import SpecError
from ..mapping.text import parse_mapping
from ..problem import Problem
from ..search.method import Watcher
from ..zoo.machine_entries import NAMES, zoo_machine
from .conflict import Blame, Choice
from .constraints import constraints
from .feasibility import Answer, Asker, Undecided, Unfinished
from .record import Relaxation
from .relaxations import grain, relaxations, relaxed, worded

SECONDS = 5.0
SPACES = ("ffm", "ragged")


def named(problem: Problem, witness: str, seconds: float = SECONDS, watch: Watcher | None = None) -> str:
    """What stands in the way, in sentences that ``; `` parts; `witness` where no more is known after the seconds.

    As in ``Z needs at least 24 bits in GLB for tiles of A, B, Z, but GLB holds 20``.
    """
    if any(witness == problem.machine.unexecuted(einsum) for einsum in problem.workload.einsums):
        return f"{witness}; on {', '.join(_machines_with_units(problem))} of the zoo every Einsum has a unit"
    if problem.mapspace.name not in SPACES:
        return witness
    blame = Blame(Asker(watch or Watcher(), seconds), problem, constraints(problem))
    conflict, helpful = obstacles(blame)
    keys = [blame.candidates[i].key for i in conflict]
    if not keys or {"kinds", "operands"} & set(keys):
        return witness  # which names the Einsum that no unit executes, or there is nothing to name
    parts = [_enough(problem, one) for one in helpful]
    if keys != ["size"] or not parts:
        parts.insert(0, _contradiction(blame, conflict))
    return "; ".join(parts)


def _machines_with_units(problem: Problem) -> list[str]:
    """Machines of the zoo that execute all Einsums, three at most, those of similar names first."""
    einsums = problem.workload.einsums
    able = [name for name in NAMES if not any(zoo_machine(name).unexecuted(einsum) for einsum in einsums)]
    return sorted(able, key=lambda name: -SequenceMatcher(None, name, problem.machine.name).ratio())[:3]


def obstacles(blame: Blame) -> tuple[Choice, list[Relaxation]]:
    """The limits that together leave no mapping, and the nearest relaxation of each that is enough by itself.

    Both empty if the budget ends before a minimal conflict is known; relaxations that it leaves unknown are left out.
    """
    conflict: Choice = frozenset()
    helpful: list[Relaxation] = []
    try:
        first = blame.first()
        if first and not blame.left:
            conflict = first
            for one in _nearest(blame, first):
                helpful.append(one)  # one by one: what is known stays when the budget ends
    except (Unfinished, Undecided, SpecError):
        pass
    return conflict, helpful


def _nearest(blame: Blame, conflict: Choice) -> Iterator[Relaxation]:
    """The nearest way to relax each limit of which one is enough, those with a number first; else of all together."""
    alone = False
    for i in sorted(conflict, key=lambda i: (blame.candidates[i].key not in ("size", "max_fused_loops"), i)):
        known = blame.mapped(blame.everything - {i})
        if known is not None:
            alone = True
            yield next(relaxed(blame.asker, blame.problem, (blame.candidates[i],), Answer(known.run, known.mapping)))
    if not alone:
        yield from islice(relaxations(blame, conflict), 1)


def _contradiction(blame: Blame, conflict: Choice) -> str:
    """The limits that leave no mapping, and the Einsum that has none by itself if there is one."""
    listed = " and ".join(blame.label(i) for i in sorted(conflict))
    einsum = blame.asker.unmapped
    return f"{listed} {'leave' if len(conflict) > 1 else 'leaves'} no mapping" + (f" of {einsum}" if einsum else "")


def _enough(problem: Problem, one: Relaxation) -> str:
    """What a relaxation asks for; of a memory the bits, and what fills them."""
    change = one.changes[-1]
    name, _, key = change.place.rpartition(".")
    if len(one.changes) > 1 or key != "size" or one.problem is None:
        return f"{worded(one.changes)} would be enough"
    memory, now = one.problem.machine.memory(name), problem.machine.memory(name).size
    assert memory.size is not None and now is not None
    mapping = parse_mapping(one.mapping, problem.workload, problem.machine)
    filled = occupancy(problem.workload, problem.machine, paths(problem.workload, mapping))
    tensors = next(tuple(name for name, _ in found.tensors) for found in filled if found.memory == name)
    least = one.refused is not None or memory.size - grain(problem, name) <= now
    return (
        f"{_einsums(problem, tensors)} {'needs at least' if least else 'fits in'} {memory.size:,} bits in {name} "
        f"for tiles of {', '.join(tensors)}, but {name} holds {now:,}"
    )


def _einsums(problem: Problem, tensors: tuple[str, ...]) -> str:
    """The first Einsum that has all these tensors, or all that have some."""
    einsums = problem.workload.einsums
    whole = [e.name for e in einsums if set(tensors) <= set(e.tensors)]
    some = [e.name for e in einsums if set(tensors) & set(e.tensors)]
    return whole[0] if whole else f"the cascade of {', '.join(some)}"
