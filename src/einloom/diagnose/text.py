"""An explanation as text of at most 100 columns. A number in brackets is the run that shows what stands before."""

from __future__ import annotations

from textwrap import wrap

from ..problem import Objective, Problem
from ..problem.few_divisors import few_divisors
from ..reading.units import format as with_unit
from ..workload.views import called
from .constraints import bits
from .feasibility import EXISTS
from .record import Conflict, Explanation, FusionAlternative, Gain, Relaxation, SearchRun

WIDTH = 100
OPEN = "a budget, an interruption or an unanswered question left something open"  # in files that do not say which
HEADS = {"infeasible": "infeasible: no mapping of the space is legal", "mapped": "mapped", "unfinished": "unfinished"}


def explained(found: Explanation) -> str:
    """The whole explanation."""
    problem = found.problem
    lines = [f"{problem.workload.name} on {problem.machine.name}: {HEADS[found.status]}", *_folded(found.reason)]
    if note := few_divisors(problem, found.value):
        lines += _folded(f"note: {note}")
    if kept := held_text(found):
        lines += _folded(f"note: {kept}")
    if found.status == "infeasible":
        lines += ["", *_conflicts(found), *_relaxations(found)]
    takes = [(f"{s.component} {s.resource}", f"{s.share:7.2%}  {s.detail}") for s in found.shares]
    others = [
        (f"{called(problem.workload, one.tensor)} in {one.memory}", alternative_text(one, problem))
        for one in found.alternatives
    ]
    more = [(gain.place, gain_text(gain, problem.objective)) for gain in found.gains]
    for head, rows in (
        ("what the mapping takes", takes),
        (fusing_head(found), others),
        (more_head(found), more),
    ):
        if rows:
            lines += ["", head, *(line for label, text in rows for line in _row(label, text))]
    if not found.complete:
        lines += ["", f"not finished: {found.left or OPEN}"]
    body = "\n".join(lines)
    return "\n".join([body, *_runs(found, body), ""])


def held_text(found: Explanation) -> str:
    """That all runs kept the number of tiles, where the answer is the best of several; else nothing."""
    if found.held is None or not (found.gains or found.alternatives or found.conflicts):
        return ""
    better = "" if found.status == "infeasible" else ", which may be better"
    return f"what follows holds with {found.held}; it was not asked with other numbers of tiles{better}"


def fusing_head(found: Explanation) -> str:
    """What the table of fusion alternatives shows."""
    return f"why fused, why not{_with(found)}: the best with one tensor on the other side"


def more_head(found: Explanation) -> str:
    """What the table of gains shows."""
    return f"what more would bring{_with(found)}"


def _with(found: Explanation) -> str:
    return "" if found.held is None else f" with {found.held}"


def _runs(found: Explanation, body: str) -> list[str]:
    """The runs that `body` names."""
    if not found.runs:
        return []
    seconds = sum(run.seconds for run in found.runs)
    count = "1 run" if len(found.runs) == 1 else f"{len(found.runs)} runs"
    named = [run for run in found.runs if f"[{run.number}]" in body]
    lines = ["", f"{count} of the exact search, {seconds:.3g} s; those that are named above asked for"]
    return [*lines, *(line for run in named for line in _row(f"[{run.number}]", ran(run), 6))]


def ran(run: SearchRun) -> str:
    """What a run was asked, and what came of it."""
    more = "" if run.outcome == "infeasible" or run.detail == EXISTS else f"; {run.detail}"
    return f"{run.question}: {run.outcome}{more}"


def _folded(text: str, margin: int = 2) -> list[str]:
    return [" " * margin + line for line in wrap(text, WIDTH - margin, break_long_words=True)]


def _row(label: str, text: str, width: int = 24) -> list[str]:
    """A label and its text, folded beside it."""
    if len(label) > width:
        return [*_folded(label), *_folded(text, width + 4)]
    lead = f"  {label:<{width}}  "
    return wrap(text, WIDTH, initial_indent=lead, subsequent_indent=" " * len(lead)) or [lead.rstrip()]


def value_text(objective: Objective, value: float) -> str:
    """An objective's value with its unit."""
    if objective.name == "energy":
        return with_unit(float(value), "energy", 6)
    if objective.name == "latency":
        return with_unit(float(value), "time", 6)
    return f"{value:.6g} {objective.unit}"


def _conflicts(found: Explanation) -> list[str]:
    if not found.conflicts:
        return ["what is to blame is not known"]
    lines: list[str] = []
    for i, conflict in enumerate(found.conflicts):
        lines += [heading(conflict, i)]
        for member in conflict.members:
            without = "" if member.without is None else f"  (without it feasible [{member.without}])"
            lines += _row(member.place, member.text + without)
    return lines


def heading(conflict: Conflict, number: int) -> str:
    """What the conflict is, in one line."""
    if not conflict.members:
        return f"no constraint is to blame: without all of them there is no mapping either [{conflict.shown}]"
    size = len(conflict.members)
    kind = "the smallest" if conflict.smallest else "a minimal" if conflict.minimal else "a (not minimal)"
    also = "; apart from that," if number else ""
    what = "this alone is" if size == 1 else f"{size} constraints that together are"
    return f"to blame{also} {what} infeasible [{conflict.shown}]: {kind} conflict"


def _relaxations(found: Explanation) -> list[str]:
    if not found.relaxations:
        return []
    lines = ["", "what would help, each enough by itself"]
    return [*lines, *(line for one in found.relaxations for line in _relaxation(one, found.problem.objective))]


def proof_text(one: Relaxation, objective: Objective) -> str:
    """The runs behind a relaxation, and the optimum that it gives."""
    words = f"feasible [{one.shown}]"
    if one.refused is not None:
        words += f", less is not enough [{one.refused}]"
    if one.value is not None:
        words += f"; optimum {value_text(objective, one.value)} [{one.solved}]"
    return words


def _relaxation(one: Relaxation, objective: Objective) -> list[str]:
    lines: list[str] = []
    for i, change in enumerate(one.changes):
        lines += _row(f"{'and ' if i else ''}{change.place}", f"{change.before} -> {change.after}")
    return [*lines, *_folded(proof_text(one, objective), 28)]


def alternative_text(one: FusionAlternative, problem: Problem) -> str:
    """The best mapping on the other side in numbers, or what forbids it."""
    objective = problem.objective
    if one.note:
        return f"{one.side}: {one.note} [{one.run}]"
    if one.value is None:
        blame = one.blame
        if blame is None:
            return f"cannot be {one.side} [{one.run}]"
        if not blame.members:
            return f"cannot be {one.side} [{one.run}]: the space has no such mapping, whatever the constraints"
        words = " and ".join(f"{member.place} {member.text}" for member in blame.members)
        return f"cannot be {one.side} [{one.run}] because of {words} [{blame.shown}]"
    assert one.loss is not None
    assert one.energy is not None
    assert one.latency is not None
    assert one.traffic is not None
    change = "equally good" if one.loss == 0 else f"{one.loss:+.3%}"
    numbers = [f"{bits(one.traffic)} through {problem.machine.memories[0].name}"]
    if objective.name != "latency":
        numbers.insert(0, with_unit(one.latency, "time", 5))
    if objective.name != "energy":
        numbers.insert(0, with_unit(one.energy, "energy", 5))
    return f"{one.side}: {value_text(objective, one.value)}, {change} [{one.run}]; {', '.join(numbers)}"


def gain_text(gain: Gain, objective: Objective) -> str:
    """What was changed, and what it brought."""
    if gain.value is None or gain.gain is None:
        run = "" if gain.run is None else f" [{gain.run}]"
        change = f"{gain.before} -> {gain.after}: " if gain.after else ""
        return f"{change}{gain.note}{run}"
    brought = "nothing" if gain.gain == 0 else f"{gain.gain:.3%} less" if gain.gain > 0 else f"{-gain.gain:.3%} more"
    value = value_text(objective, gain.value)
    return f"{gain.before} -> {gain.after}: {value}, {brought} [{gain.run}]"
