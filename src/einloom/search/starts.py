"""Known mappings that a search may begin from: whether they are mappings of the problem.

Comes in: a problem and trees from anywhere, such as an expert, a smaller space or an interrupted search. Goes out:
those that are legal and in the space, in normal form; or why one of them is not.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..cost.evaluate import legality
from ..errors import SpecError
from ..mapping.normal import normal_form
from ..mapping.tree import Mapping
from ..mapspace.registry import space_for
from ..problem import Problem


def misfits(problem: Problem, mapping: Mapping) -> tuple[str, ...]:
    """Every reason why `mapping` is none of the problem's: another workload's, illegal, or outside the space."""
    workload, machine = problem.workload, problem.machine
    names = {einsum.name for einsum in workload.einsums}
    if set(mapping.einsums) != names:
        others = [f"lacks {name}" for name in sorted(names - {*mapping.einsums})]
        others += [f"has {name}" for name in sorted({*mapping.einsums} - names)]
        return (f"it is no mapping of {workload.name}: it {', '.join(others[:6])}",)
    reasons = legality(workload, machine, mapping)
    if reasons:
        return tuple(reason.within("it is illegal: ") for reason in reasons)
    outside = space_for(workload, machine, problem.mapspace).outside(normal_form(mapping, workload))
    return tuple(f"it is outside the space: {reason}" for reason in outside)


def fitting(problem: Problem, mappings: Iterable[Mapping]) -> tuple[Mapping, ...]:
    """Those of `mappings` that are mappings of the problem, in normal form, each once; the others are left out."""
    fits = (normal_form(one, problem.workload) for one in mappings if not misfits(problem, one))
    return tuple(dict.fromkeys(fits))


def admitted(problem: Problem, mappings: Iterable[Mapping]) -> tuple[Mapping, ...]:
    """All of `mappings`, in normal form. Raises SpecError with the reasons if one is none of the problem's."""
    found = []
    for mapping in mappings:
        reasons = misfits(problem, mapping)
        if reasons:
            raise refusal(reasons)
        found.append(normal_form(mapping, problem.workload))
    return tuple(found)


def refusal(reasons: tuple[str, ...], file: str | None = None, line: int | None = None) -> SpecError:
    """The error for a start that has such reasons. line: that the first of them is about."""
    more = f" (and {len(reasons) - 1} more reasons)" if len(reasons) > 1 else ""
    return SpecError(f"a search cannot start from this mapping: {reasons[0]}{more}", file=file, line=line)
