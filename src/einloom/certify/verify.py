"""Is a result true? Everything that it claims is checked again, from its own inputs.

A result comes in; a `Verdict` goes out with every check, every reason to reject, and what nobody can check. The value
is priced again, capacities are compared in integers, the mapping is held against the definition of its space, the
certificate against the result, and the problem is solved again by a route without the pruning that the proof rests on.
What the file says of how it was found is not in the mapping, so it is only asked whether it can be (`recorded`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise
from math import isclose, isfinite

from ..cost.breakdown import Cost
from ..cost.evaluate import evaluate, legality, views
from ..cost.event import event_seconds
from ..errors import BudgetExhausted, EinloomError, Ended, Infeasible, SpecError
from ..mapspace.registry import space_for
from ..mapspace.space import FUSED_ONCE
from ..problem import MODEL_VERSION, Budget, Certificate, Guarantee
from ..problem.any_tiles import any_tiles
from ..result import Provenance, Result
from .again import SecondSolution, below_integer, solve_again
from .likeness import machine_likeness, title_likeness, workload_likeness
from .recorded import contradictions, recorded
from .verdict import Check, Verdict

SAME_NUMBER = 1e-12  # recomputed sums may differ in the last place
SAME_OPTIMUM = 1e-9
STEADY = ("roofline", "floor", "tile", "einsum")  # the views of latency that the tree alone decides
EARLIER = (
    "certified for fused loops that may cut a rank more than once, as answers said until 28 November 2026; they were "
    "searched where fused loops cut it once, and this is what is checked"
)
Solver = Callable[[Result, Budget], SecondSolution]
Points = tuple[tuple[float, float], ...]
Table = list[tuple[tuple[object, ...], float]]


def verify(result: Result, quick: bool = False, solver: Solver = solve_again, budget: Budget | None = None) -> Verdict:
    """Check every claim of `result`; `quick` leaves out the second solution, and so does the end of `budget`'s seconds.

    The later checks are made only if the earlier ones leave them a meaning: no price for an illegal mapping. Raises
    SpecError for a certificate under a latency rule other than ``einsum``: there is no second solution for it.
    """
    return Verdict(tuple(checks(result, quick, solver, budget)))


def checks(
    result: Result, quick: bool = False, solver: Solver = solve_again, budget: Budget | None = None
) -> Iterator[Check]:
    """The checks of `verify`, each as soon as it is made. Raises as it does."""
    budget, began = budget or Budget(), time.monotonic()
    if result.certificate is not None and result.latency_rule != "einsum":
        raise SpecError(
            f"a certificate under latency rule {result.latency_rule!r} cannot be verified: optima are proven under "
            "rule 'einsum'",
            suggestion="einsum",
        )
    accepted = True
    for check in _claims(result):
        accepted = accepted and check.passed is not False
        yield check
    if not accepted:
        return
    yield from _likeness(result)
    yield recorded(result)
    if result.certificate is not None:
        if quick:
            yield Check("again", None, "not solved a second time")
        else:
            yield _solved_again(result, result.certificate, solver, budget.after(time.monotonic() - began))
            if result.certificate.integer is not None:
                left = budget.after(time.monotonic() - began)
                yield _bounded_again(result, result.certificate.integer, left)


def _claims(result: Result) -> Iterator[Check]:
    """Everything that the file alone decides."""
    yield _digest(result)
    yield _versions(result)
    legal = _legal(result)
    yield legal
    if legal.passed:
        cost = evaluate(result.workload, result.machine, result.mapping, result.latency_rule)
        yield _capacity(result, cost)
        yield from _prices(result, cost)
        yield _views(result, cost)
        yield _provenance(result)
        yield from _notes(result)
        yield _member(result)
        yield from _front(result)
        yield from _certificate(result, cost)
        yield from contradictions(result)


def _digest(result: Result) -> Check:
    if result.recorded_digest is None:
        return Check("digest", True, "not from a file")
    same = result.recorded_digest == result.found_digest
    return _told("digest", same, "as recorded", "the file was changed after it was written")


def _told(name: str, passed: bool, good: str, bad: str) -> Check:
    """The check, in the words for how it went."""
    return Check(name, passed, good if passed else bad)


def _versions(result: Result) -> Check:
    found = result.provenance.model_version
    bad = f"made with model {found}, this is {MODEL_VERSION}"
    return _told("model", found == MODEL_VERSION, f"version {found}", bad)


def _legal(result: Result) -> Check:
    try:
        reasons: tuple[str, ...] = legality(result.workload, result.machine, result.mapping)
    except EinloomError as error:
        reasons = (str(error),)
    return Check("legality", not reasons, "; ".join(reasons) or "legal")


def _capacity(result: Result, cost: Cost) -> Check:
    if cost.occupancy != result.cost.occupancy:
        return Check("capacity", False, "the occupancy in the file is not that of the mapping")
    limits = {memory.name: memory.size for memory in result.machine.memories}
    over = [o for o in cost.occupancy if (size := limits[o.memory]) is not None and o.bits > size]
    detail = "; ".join(f"{o.memory} needs {o.bits} of {limits[o.memory]} bits" for o in over)
    return Check("capacity", not over, detail or "every memory holds what is alive in it")


def _prices(result: Result, cost: Cost) -> Iterator[Check]:
    claimed = result.cost
    for name in ("energy", "latency", "roofline"):
        mine, theirs = getattr(cost, name), getattr(claimed, name)
        same = isclose(mine, theirs, rel_tol=SAME_NUMBER)
        yield _told(name, same, f"{mine!r}", f"the file says {theirs!r}, the mapping costs {mine!r}")
    parts = all(_same_rows(mine, theirs) for mine, theirs in zip(_tables(cost), _tables(claimed), strict=True))
    yield _told("breakdown", parts, "as priced again", "the breakdown in the file is not the mapping's")


def _views(result: Result, cost: Cost) -> Check:
    """The views of latency, the time in events only where the file has one: it is the dearest to tell."""
    claimed = result.latencies
    if claimed is None:
        return Check("views", None, "the file has none but the latency")
    seen = views(result.workload, result.machine, result.mapping, cost)
    if claimed.event is not None:
        seen = replace(seen, event=event_seconds(result.workload, result.machine, result.mapping))
        if seen.event is None:
            return Check("views", False, f"the file says {claimed.event!r} s in events, which cannot be told")
    pairs = [(getattr(seen, view), getattr(claimed, view)) for view in (*STEADY, "event")]
    same = all(mine == theirs or isclose(mine, theirs, rel_tol=SAME_NUMBER) for mine, theirs in pairs)
    words = "of latency, as priced again" + ("" if seen.event is not None else "; the file has no time in events")
    return _told("views", same, words, f"the mapping's latencies are {seen}")


def _tables(cost: Cost) -> tuple[Table, Table, Table]:
    """All tables of a cost as (row without its number, number) pairs."""
    actions: Table = [
        ((a.einsum, a.component, a.tensor, a.action, a.count, a.bits, a.busiest), a.energy) for a in cost.actions
    ]
    busy: Table = [((einsum, component), seconds) for einsum, component, seconds in cost.busy]
    return actions, busy, [((einsum,), seconds) for einsum, seconds in cost.einsum_latency]


def _same_rows(mine: Table, theirs: Table) -> bool:
    """True if two tables have the same rows in the same order, numbers up to the last place."""
    return len(mine) == len(theirs) and all(
        row == other and isclose(number, claimed, rel_tol=SAME_NUMBER)
        for (row, number), (other, claimed) in zip(mine, theirs, strict=True)
    )


def _provenance(result: Result) -> Check:
    counted = Provenance.of(result.workload, result.machine)
    same = (counted.facts, counted.assumed) == (result.provenance.facts, result.provenance.assumed)
    words = f"{counted.assumed} of {counted.facts} assumed"
    return _told("sources", same, words, f"{words}, not as the file says")


def _notes(result: Result) -> Iterator[Check]:
    """What the file notes of its problem, against what the problem gives."""
    said = result.recorded_notes
    if said is not None and said != result.notes:
        wrong = next((one for one in said if one not in result.notes), None)
        words = "a note of the problem is gone" if wrong is None else f"the problem does not give {wrong!r:.200}"
        yield Check("notes", False, words)


def _member(result: Result) -> Check:
    if result.certificate is None:
        return Check("space", True, "no claim about a space")
    space = space_for(result.workload, result.machine, result.mapspace)
    reasons = space.outside(result.mapping)
    return Check("space", not reasons, "; ".join(reasons) or f"in {result.mapspace.name}")


def _front(result: Result) -> Iterator[Check]:
    """Every point of a Pareto set: legal, in the space, priced as it says, and none beats another."""
    points = result.front
    if result.objective.name != "pareto":
        if points:
            yield Check("front", False, f"objective {result.objective} has no Pareto set")
        return
    space = space_for(result.workload, result.machine, result.mapspace)
    proven = result.optimal
    if proven and not points:
        yield Check("front", False, "the certificate speaks of a Pareto set; it is gone")
    for number, point in enumerate(points, 1):
        reasons: list[str] = [*legality(result.workload, result.machine, point.mapping)]
        if not reasons:
            reasons += space.outside(point.mapping)
            cost = evaluate(result.workload, result.machine, point.mapping, result.latency_rule)
            for name in ("energy", "latency"):
                mine, theirs = getattr(cost, name), getattr(point, name)
                if not isclose(mine, theirs, rel_tol=SAME_NUMBER):
                    reasons.append(f"{name} is {mine!r}, the file says {theirs!r}")
        yield Check("front", not reasons, "; ".join(reasons) or f"point {number} of {len(points)} is as it says")
    least = min((point.energy * point.latency for point in points), default=result.cost.edp)
    if not isclose(least, result.cost.edp, rel_tol=SAME_OPTIMUM):
        yield Check("front", False, f"its least EDP is {least!r} J s, that of the mapping {result.cost.edp!r} J s")
    for first, second in pairwise(points):
        if first.energy >= second.energy or first.latency <= second.latency:
            yield Check("front", False, f"{first.energy!r} J, {first.latency!r} s and the next point beat one another")


def _likeness(result: Result) -> Iterator[Check]:
    """Whether what bears a name of the zoo is the zoo's. It need not be, but a reader should know."""
    for name, found in (
        ("workload", workload_likeness(result.workload)),
        ("machine", machine_likeness(result.machine)),
        ("title", title_likeness(result.problem)),
    ):
        if found is not None:
            yield Check(name, True if found.same else None, found.words)


def _certificate(result: Result, cost: Cost) -> Iterator[Check]:
    certificate = result.certificate
    if certificate is None:
        gone = f"method {result.method!r} leaves one; it is gone"
        yield _told("certificate", result.method == "evaluate", "none claimed", gone)
        return
    value = result.objective.value(cost)
    same = isclose(certificate.value, value, rel_tol=SAME_NUMBER)
    yield _told("value", same, f"{value!r}", f"certified {certificate.value!r}, the mapping gives {value!r}")
    yield _bound(certificate)
    if certificate.integer is not None:
        yield _integer(result, certificate, certificate.integer)
    yield from _alternatives(certificate)
    described = result.mapspace.describe()
    if certificate.mapspace == described.replace(FUSED_ONCE, "") != described:
        yield Check("mapspace", None, EARLIER)
        return
    other = f"certified for {certificate.mapspace!r}, asked {described!r}"
    yield _told("mapspace", certificate.mapspace == described, "as described", other)


def _bound(certificate: Certificate) -> Check:
    value, bound = certificate.value, certificate.bound
    if not isfinite(bound) or bound > value * (1 + SAME_OPTIMUM):
        return Check("bound", False, f"bound {bound!r} is above the value {value!r}")
    if certificate.guarantee is Guarantee.OPTIMAL and not isclose(value, bound, rel_tol=SAME_OPTIMUM):
        return Check("bound", False, f"said to be optimal, but bound {bound!r} is below the value {value!r}")
    return Check("bound", True, f"{certificate.guarantee.value}, {bound!r}")


def _integer(result: Result, certificate: Certificate, bound: float) -> Check:
    if not isfinite(bound) or bound > certificate.value * (1 + SAME_OPTIMUM):
        return Check("integer", False, f"the bound of any integer tiles {bound!r} is above {certificate.value!r}")
    return Check("integer", True, f"no mapping with {any_tiles(result.workload)} below {bound!r}")


def _alternatives(certificate: Certificate) -> Iterator[Check]:
    """Of the best of several problems: its value is one of theirs, and its bound the least of their bounds.

    The others themselves are not in the file, so that nothing is proven of them.
    """
    if not certificate.alternatives:
        return
    values = [one.value for one in certificate.alternatives if one.value is not None]
    bounds = [one.bound for one in certificate.alternatives if one.bound is not None]
    labels = [one.label for one in certificate.alternatives]
    if len(set(labels)) < max(len(labels), 2):
        yield Check("choices", False, f"the best of several has one label for each, not {', '.join(labels):.200}")
    elif not any(isclose(value, certificate.value, rel_tol=SAME_NUMBER) for value in values):
        yield Check("choices", False, f"none of them has the value {certificate.value!r}")
    elif any(bound < certificate.bound * (1 - SAME_NUMBER) for bound in bounds):
        yield Check("choices", False, f"one of them has the bound {min(bounds)!r}, below {certificate.bound!r}")
    else:
        words = f"the best of {len(labels)}, {'; '.join(labels)}: the file holds only this one, and it alone is checked"
        yield Check("choices", None, words)


def _same_points(mine: Points, theirs: Points) -> bool:
    return len(mine) == len(theirs) and all(
        isclose(a, b, rel_tol=SAME_OPTIMUM)
        for one, other in zip(mine, theirs, strict=True)
        for a, b in zip(one, other, strict=True)
    )


def _bounded_again(result: Result, bound: float, budget: Budget) -> Check:
    """Look for something below the bound of any integer tiles, with every loop everywhere."""
    try:
        below = below_integer(result.problem, bound, budget)
    except SpecError as error:
        return Check("any tiles", False, error.message)
    if below is None:
        return Check("any tiles", None, f"the bound is not derived again: {Ended.SECONDS.words}")
    words = f"the relaxation has {'something' if below else 'nothing'} below {bound!r}"
    return Check("any tiles", not below, words)


def _solved_again(result: Result, certificate: Certificate, solver: Solver, budget: Budget) -> Check:
    """Solve the problem once more and compare with the certified bound, if it says anything."""
    if certificate.guarantee is not Guarantee.OPTIMAL and certificate.bound <= 0:
        return Check("again", None, "no bound is claimed, so nothing is solved a second time")
    try:
        answer = solver(result, budget)
    except Infeasible as error:
        return Check("again", False, f"the second solution finds no legal mapping at all: {error}")
    except BudgetExhausted as error:
        if error.ended is Ended.SECONDS:
            claim = "optimum" if certificate.guarantee is Guarantee.OPTIMAL else "bound"
            return Check("again", None, f"the {claim} is not derived again: {error.ended.words}")
        return Check("again", False, f"the second solution was not finished: {error}")
    except SpecError as error:
        return Check("again", False, f"there is no second solution: {error.message}")
    if answer.value is None:
        return Check("again", True, f"{answer.method} finds nothing")
    found = f"{answer.method} finds {answer.value!r}"
    mine = tuple((p.energy, p.latency) for p in result.front)
    if certificate.guarantee is Guarantee.OPTIMAL and not _same_points(mine, answer.front):
        return Check("again", False, f"{answer.method} finds another Pareto set, of {len(answer.front)} points")
    if certificate.guarantee is Guarantee.OPTIMAL:
        same = isclose(answer.value, certificate.bound, rel_tol=SAME_OPTIMUM)
        return _told("again", same, found, f"{found}, certified was {certificate.bound!r}")
    above = answer.value >= certificate.bound * (1 - SAME_OPTIMUM)
    return _told("again", above, found, f"{found}, below the certified bound {certificate.bound!r}")
