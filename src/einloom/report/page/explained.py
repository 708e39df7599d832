"""The panel that shows a saved explanation: what is to blame and would help, or what binds. Nothing is searched."""

from __future__ import annotations

from collections.abc import Sequence

from ...diagnose import Explanation
from ...diagnose import text as words
from ...diagnose.record import Conflict, Relaxation, Share
from ...errors import SpecError
from ...problem import Problem
from ...problem.few_divisors import few_divisors
from ..draw.markup import Child, Html, el, link, table_of
from .shell import PagePart, part


def fits(found: Explanation, problem: Problem, digest: str | None) -> None:
    """Refuse an explanation of another problem, or of another result than the one with this digest."""
    if found.problem != problem:
        raise SpecError(
            f"the explanation is of another problem: {found.problem.workload.name} on {found.problem.machine.name}, or "
            "the same under other limits"
        )
    if found.of is not None and digest is not None and found.of != digest:
        raise SpecError(
            f"the explanation is of another result: its digest is {found.of[:16]}…, this one's {digest[:16]}…"
        )


def panel(found: Explanation) -> PagePart:
    """The part of the page."""
    altered = None
    if found.recorded_digest is not None and found.recorded_digest != found.found_digest:
        altered = el("p", "The explanation was changed after it was written.", class_="obstacle", role="alert")
    open_ends = f"Not finished: {found.left or words.OPEN}."
    left = None if found.complete else el("p", open_ends, class_="note")
    note = few_divisors(found.problem, found.value)
    few = el("p", f"Note: {note}.", class_="note") if note else None
    kept = words.held_text(found)
    held = el("p", f"Note: {kept}.", class_="note") if kept else None
    blamed = [each for i, conflict in enumerate(found.conflicts) for each in _conflict(conflict, i)]
    said = (altered, el("p", found.reason), few, held, *blamed, *_tables(found), left, _runs(found))
    return part("explanation", "Explanation", *said)


def _table(heads: tuple[str, ...], rows: Sequence[Sequence[Child]]) -> Html:
    body = [el("tr", *(el("td", cell) for cell in row)) for row in rows]
    return el("div", table_of(heads, body), class_="scroll", tabindex=0)


def _run(number: int | None) -> Html | None:
    return None if number is None else link(f"run-{number}", f"[{number}]")


def _conflict(conflict: Conflict, number: int) -> list[Html]:
    said = words.heading(conflict, number)
    title = el("h3", said[0].upper() + said[1:])
    if not conflict.members:
        return [title]
    rows: list[list[Child]] = [
        [el("code", member.place), member.text, _run(member.without) or "not known"] for member in conflict.members
    ]
    return [title, _table(("where", "what it says", "without it feasible"), rows)]


def _tables(found: Explanation) -> list[Html]:
    """A table each of what would help, of what the mapping takes, and of what else was found, where there is any."""
    objective = found.problem.objective
    others = [[one.tensor, one.memory, words.alternative_text(one, found.problem)] for one in found.alternatives]
    gains = [[one.place, words.gain_text(one, objective)] for one in found.gains]
    fusing, more = (text[0].upper() + text[1:] for text in (words.fusing_head(found), words.more_head(found)))
    tables: tuple[tuple[str, tuple[str, ...], Sequence[Sequence[Child]]], ...] = (
        ("What would help", ("change", "shown by", "optimum then"), [_relaxation(found, x) for x in found.relaxations]),
        ("What the mapping takes", ("of", "share", "", "that is"), [_share(one) for one in found.shares]),
        (fusing, ("tensor", "now in", "otherwise"), others),
        (more, ("of", "optimum then"), gains),
    )
    return [each for title, heads, rows in tables if rows for each in (el("h3", title), _table(heads, rows))]


def _relaxation(found: Explanation, one: Relaxation) -> list[Child]:
    edits = [el("div", el("code", c.place), f": {c.before} → ", el("b", c.after)) for c in one.changes]
    proof: list[Child] = [_run(one.shown)]
    if one.refused is not None:
        proof += ["; less is not enough ", _run(one.refused)]
    best = "" if one.value is None else words.value_text(found.problem.objective, one.value)
    return [edits, proof, [best, " ", _run(one.solved)]]


def _share(one: Share) -> list[Child]:
    label = f"{one.share:.1%} of {one.component} {one.resource}"
    meter = el("meter", min=0, max=1, value=f"{min(one.share, 1.0):.4f}", aria_label=label)
    return [f"{one.component} {one.resource}", f"{one.share:.1%}", meter, one.detail]


def _runs(found: Explanation) -> Html | None:
    if not found.runs:
        return None
    seconds = sum(run.seconds for run in found.runs)
    items = [el("li", words.ran(run), id=f"run-{run.number}") for run in found.runs]
    title = el("summary", f"What the exact search was asked to show it: {len(items)} runs, {seconds:.3g} s")
    return el("details", title, el("ol", *items))
