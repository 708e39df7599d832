"""What may stand in the way of a problem without a mapping, as far as the search can tell; `explain` finds out more.

Comes in: a problem, the kinds of its Einsums, the rooms that count. Goes out: a sentence for `Infeasible`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...mapspace.divisors import divisors
from ...mapspace.limits.data import Numbers, concerns
from ...problem import Problem
from ...workload.einsum import Einsum
from .einsums.classes import EinsumClass


def blame(
    problem: Problem, signatures: Sequence[EinsumClass], rooms: Sequence[int | None], position: int | None = None
) -> str:
    """A limit that no divisor keeps; else memories in which something must stay, and all limits. position: of the
    Einsum that has no mapping; None: all may be to blame."""
    einsums = problem.workload.einsums
    at = range(len(einsums)) if position is None else (position,)
    if undivided := next((said for i in at for said in _undivided(problem, einsums[i])), None):
        return f"the mapspace asks: {undivided}"
    asked = {m for i in at for m in _asked(signatures[i])}
    small = [m for m, room in enumerate(rooms) if room is not None]
    named = [m for m in small if m in asked] or small
    memories = problem.machine.memories
    parts = ["; ".join(f"{memories[m].name} holds {memories[m].size} bits" for m in named)] if named else []
    why = (
        "and what must stay there is larger"
        if asked.intersection(named)
        else "and what must stay in one of them is larger"
    )
    parts = [f"{part} {why}" for part in parts]
    if problem.mapspace.limits:
        parts.append(f"the mapspace asks: {problem.mapspace.limits}")
    return ", or ".join(parts) or "the constraints contradict"


def _asked(signature: EinsumClass) -> set[int]:
    """The memories that hold something in every choice of stores."""
    every = [held for option in signature.units for held in option.held]
    return {m for m in range(len(every[0])) if all(held[m] for held in every)} if every else set()


def _undivided(problem: Problem, einsum: Einsum) -> Iterator[str]:
    """Limits on perfect tiles of an Einsum that no divisor of an extent keeps."""
    limits, extents = problem.mapspace.limits, problem.workload.extents
    numbered = [(one, one.instances) for one in limits.axes] + [(one, one.trips) for one in limits.loops]
    for limit, numbers in numbered if problem.mapspace.name == "ffm" else ():
        for variable in limit.variables if concerns(limit.einsums, einsum.name) else ():
            if variable in einsum.variables and not any(map(numbers.allow, divisors(extents[variable]))):
                yield f"{limit}, but {_none_of(numbers)} {variable} = {extents[variable]}"


def _none_of(numbers: Numbers) -> str:
    """``3 does not divide``, ``no number from 3 to 5 divides``."""
    if len(numbers.values) == 1:
        return f"{numbers} does not divide"
    return f"no number that is {numbers} divides"
