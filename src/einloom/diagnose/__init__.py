"""`explain`: why a problem has no mapping, or why its best mapping is what it is.

A problem or a result comes in; an `Explanation` goes out, in which every claim names the run of the exact search that
shows it. The work is in `conflict` (what to blame), `relaxation` (what would help), `influence` (what binds) and
`alternatives` (why fused or not); `feasible` runs the search, `document` writes and reads the JSON file.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..errors import Ended, Infeasible, SpecError
from ..mapping.tree import Mapping
from ..problem import Guarantee, Problem
from ..problem.any_tiles import any_tiles
from ..result import Result
from ..search.method import Watcher
from ..search.several import Labelled
from .alternatives import alternatives
from .conflict import Blame
from .constraints import constraints
from .document import parse_explanation, read_explanation
from .feasibility import Asker, Undecided, Unfinished
from .record import Conflict, Explanation, FusionAlternative, Gain, Relaxation
from .relaxations import relaxations, valued
from .sensitivity import gains, shares

FEASIBILITY = 0.5  # of a budget, for whether there is any mapping; the best one has the rest if that stays open

__all__ = [
    "Explanation",
    "explain_best",
    "explain_problem",
    "explain_result",
    "parse_explanation",
    "read_explanation",
]


def explain_best(
    asked: Sequence[Labelled], quick: bool = False, seconds: float | None = None, watch: Watcher | None = None
) -> Explanation:
    """As `explain_problem`, of the best of several problems, such as a cascade rewritten with every number of tiles.

    What is explained is the problem that has the best mapping. Its number of tiles is held by the runs that follow. If
    none has a mapping, the last one is explained.
    """
    (*_, last) = asked
    asker = Asker(watch or Watcher(), seconds)
    if len(asked) == 1:
        return _of_problem(asker, last.problem, quick)
    try:
        solved = asker.best(asked, "optimum over all numbers of tiles")
    except Unfinished as error:
        if error.best is None:
            return _unknown(asker, last.problem)
        return _of_result(asker, error.best, error.best.value, None, quick=True, complete=False)
    if isinstance(solved, Infeasible):
        found = _of_problem(asker, last.problem, quick)
        return replace(found, held=last.label, reason=f"with {last.label}, as with the others: {found.reason}")
    return _of_result(asker, solved, solved.value, len(asker.runs), quick)


def explain_problem(
    problem: Problem, quick: bool = False, seconds: float | None = None, watch: Watcher | None = None
) -> Explanation:
    """Why `problem` has no legal mapping, and what would give it one; what binds its optimum if it has.

    quick: no optima are searched for, neither of relaxed problems nor of larger machines. seconds: budget of wall time;
    what is known by then comes back, and so it does when `watch` asks to stop.
    """
    return _of_problem(Asker(watch or Watcher(), seconds), problem, quick)


def _of_problem(asker: Asker, problem: Problem, quick: bool) -> Explanation:
    conflicts: list[Conflict] = []
    helpful: list[Relaxation] = []
    try:
        with asker.within(FEASIBILITY):
            first = asker.feasible(problem, "all constraints")
    except (Unfinished, Undecided):
        return _mapped(asker, problem, quick) if asker.timed else _unknown(asker, problem)
    if first.feasible:
        return _mapped(asker, problem, quick)
    blame = Blame(asker, problem, constraints(problem))
    blame.infeasible[blame.everything] = first.run
    complete = True
    try:
        _explain(blame, quick, conflicts, helpful)
    except Unfinished:
        complete = False
    complete = complete and all(run.outcome != "unfinished" for run in asker.runs)
    return Explanation(
        problem,
        "infeasible",
        first.reason,
        tuple(asker.runs),
        complete,
        tuple(conflicts),
        tuple(helpful),
        left=None if complete else asker.left,
    )


def _explain(blame: Blame, quick: bool, conflicts: list[Conflict], helpful: list[Relaxation]) -> None:
    """Fill the lists as far as the budget reaches, the most useful first. Raises Unfinished; what is known stays."""
    first = blame.first()
    if first is None:
        return
    conflicts.append(blame.conflict(first))
    if blame.left:
        raise Unfinished("some questions are left")
    if first:
        for relaxation in relaxations(blame, first):
            helpful.append(relaxation)
    if not quick and blame.problem.latency_rule == "einsum":
        for i, relaxation in enumerate(helpful):
            helpful[i] = valued(blame.asker, relaxation)
    choice, proven = blame.smallest(first)
    conflicts[0] = blame.conflict(choice, proven)
    for other in blame.others(choice):
        conflicts.append(blame.conflict(other))


def _unknown(asker: Asker, problem: Problem) -> Explanation:
    """That not even a mapping is known, and why."""
    ended = asker.ended or Ended.SECONDS
    reason = asker.runs[-1].detail if asker.runs else f"{ended.words} before anything was known"
    return Explanation(problem, "unfinished", reason, tuple(asker.runs), False, left=asker.left)


def _mapped(asker: Asker, problem: Problem, quick: bool) -> Explanation:
    """What binds the optimum of a problem; if that is not found in time, what the best mapping takes."""
    try:
        solved = asker.optimum(problem, "optimum", patient=True)
    except (Unfinished, Undecided) as error:
        if not isinstance(error, Unfinished) or error.best is None:
            return _unknown(asker, problem)
        return _of_result(asker, error.best, error.best.value, None, quick=True, complete=False)
    if isinstance(solved, Infeasible):
        if len(asker.runs) > 1 and asker.runs[-2].outcome == "feasible":
            raise AssertionError(
                f"run {len(asker.runs) - 1} has a mapping, the search for the optimum has none: {solved}"
            )
        return Explanation(problem, "infeasible", solved.witness, tuple(asker.runs), False, left=asker.left)
    return _of_result(asker, solved, solved.value, len(asker.runs), quick)


def explain_result(
    result: Result, quick: bool = False, seconds: float | None = None, watch: Watcher | None = None
) -> Explanation:
    """What binds a mapping, what a larger machine would bring, and why each intermediate is fused or not.

    quick: only shares of the given mapping, without any search. Raises SpecError for a latency rule that `exact` does
    not follow, unless quick.
    """
    asker = Asker(watch or Watcher(), seconds)
    certificate = result.certificate
    if quick:
        return _of_result(asker, result, result.value, None, quick)
    if result.latency_rule != "einsum":
        raise SpecError(
            f"explain solves under latency rule 'einsum', not {result.latency_rule!r}; quick looks at the mapping",
            suggestion="quick",
        )
    value, base, known = result.value, None, result.mapping
    if certificate is None or certificate.guarantee is not Guarantee.OPTIMAL:
        try:
            solved = asker.optimum(result.problem, "optimum", patient=True)
        except (Unfinished, Undecided):
            return _of_result(asker, result, result.value, None, quick=True, complete=False)
        if isinstance(solved, Infeasible):
            reason = f"the mapping is legal but not of the space: {solved.witness}"
            return Explanation(result.problem, "mapped", reason, tuple(asker.runs), True, shares=shares(result))
        value, base, known = solved.value, len(asker.runs), solved.mapping
    return _of_result(asker, result, value, base, quick, known=known)


def _of_result(
    asker: Asker,
    result: Result,
    value: float,
    base: int | None,
    quick: bool,
    complete: bool = True,
    known: Mapping | None = None,
) -> Explanation:
    """known: a mapping of the optimum `value`; by default that of the result."""
    brought: list[Gain] = []
    others: list[FusionAlternative] = []
    try:
        if not quick:
            for alternative in alternatives(asker, result, value):
                others.append(alternative)  # one by one: what is known stays when the budget ends
            for gain in gains(asker, result.problem, value, known or result.mapping):
                brought.append(gain)
    except Unfinished:
        complete = False
    return Explanation(
        result.problem,
        "mapped",
        _words(result, value, base),
        tuple(asker.runs),
        complete,
        value=value,
        base=base,
        shares=shares(result),
        gains=tuple(brought),
        alternatives=tuple(others),
        of=result.recorded_digest,
        left=None if complete else asker.left,
        held=_held(result),
    )


def _held(result: Result) -> str | None:
    """The numbers of tiles of a result that is the best of several; None for any other."""
    certificate = result.certificate
    if certificate is None or len(certificate.alternatives) < 2:
        return None
    labels = (one.label for one in certificate.alternatives if one.value == certificate.value)
    return next(labels, result.workload.name)


def _words(result: Result, value: float, base: int | None) -> str:
    objective = result.objective
    found = f"{objective} {result.value:.8g} {objective.unit}"
    if base is None:
        proven = result.optimal
        gap = None if result.certificate is None else result.certificate.integer_gap
        near = "" if gap is None else f", within {gap:.3%} of {any_tiles(result.workload)}"
        bound = 0.0 if proven or result.certificate is None else result.certificate.bound
        least = f"; no mapping is below {bound:.8g} {objective.unit}" if bound > 0 else ""
        return f"{found}, {'an optimum by its certificate' if proven else 'not known to be an optimum'}{least}{near}"
    above = 0.0 if value == 0 else (result.value - value) / value
    held = _held(result)
    alone = "" if held is None or result.optimal else f" with {held}"
    if above > 1e-9:
        return f"{found}, {above:.3%} above the optimum{alone} {value:.8g} {objective.unit}"
    return f"{found}, optimal{alone}"
