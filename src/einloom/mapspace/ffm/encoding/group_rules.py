"""Groups of Einsums that run at the same time: rule 13 of docs/mapspace.md, for states.

Comes in: a state. Goes out: why a group in it is none of the space. What groups ask of privates is asked of the whole
tree, by legality and by the space.
"""

from __future__ import annotations

from ....mapping.legality.concurrency import WHOLE
from ....mapping.legality.structure import problems
from ..rules import outside
from ..shares import least_share
from .facts import Facts
from .state import Frame, Group, SharedLoop, State
from .trees import decode


def group_fault(
    facts: Facts, frame: Frame, shared: tuple[tuple[SharedLoop, ...], ...], group: Group, lone: bool = True
) -> str | None:
    """The rule that a group breaks by where it stands and runs; None if none. lone: no other begins where it does."""
    first, last, where, shares = group
    space, size = facts.mapspace, last - first + 1
    if not lone or not 2 <= size <= space.max_group or (where if where in WHOLE else "axis") not in space.places:
        return "group"
    level = frame.cuts[first]
    if level == 0 or any(cut != level for cut in frame.cuts[first:last]) or frame.run(first, level) != (first, last):
        return "place of a group"
    if any(axis is not None for _, _, axis in shared[first]):
        return "spatial loop above a group"
    if where in WHOLE:
        return "shares" if shares else None
    if where not in facts.machine.axes or len(shares) != size:
        return "shares"
    most = facts.machine.axes[where].size
    unit = least_share(most)
    return None if sum(shares) == most and all(n > 0 and n % unit == 0 for n in shares) else "shares"


def whole_fault(facts: Facts, state: State) -> str | None:
    """The rule that the tree of a state with groups breaks as a whole, capacity excepted; None without groups."""
    if not state.groups:
        return None
    if "whole" not in state.known:
        tree = decode(facts, state)
        broken: tuple[str, ...] = problems(facts.workload, facts.machine, tree)
        broken = broken or outside(facts.workload, facts.machine, facts.mapspace, tree)
        state.known["whole"] = "group" if broken else None
    found = state.known["whole"]
    return found if isinstance(found, str) else None
