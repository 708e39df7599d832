"""No answer leaves a search unchecked: its mapping is legal, in the space and costs what the search says.

Comes in: what a method believes that it has found. Goes out: the price by `evaluate`, which the result carries; or a
`Defect`, because a method that is wrong about its own mapping is a mistake in einloom and nothing that a user can mend.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from math import isclose, isfinite

from ..cost.breakdown import Cost
from ..cost.evaluate import evaluate
from ..dataclass import dataclass
from ..errors import Defect, IllegalMapping
from ..mapping.text import print_mapping
from ..mapping.tree import Mapping
from ..mapspace.registry import space_for
from ..problem import Certificate, Guarantee, Problem

SAME = 1e-9  # relative: sums of equal parts in another order
MISTAKES = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    IllegalMapping,
    LookupError,
    RuntimeError,
    StopIteration,
    TypeError,
    ValueError,
)
ABOVE = 1e-8  # a bound may be above the value by what the search takes for equal, added up


def priced(problem: Problem, mapping: Mapping, said: float, or_less: bool = False) -> Cost:
    """The cost of a mapping that a search has found.

    said: the objective's value by the search. or_less: it may cost less than that. Raises Defect if the mapping is
    illegal, outside the space, or costs something else.
    """
    workload, machine = problem.workload, problem.machine
    try:
        cost = evaluate(workload, machine, mapping, problem.latency_rule)
    except IllegalMapping as error:
        raise Defect(f"the mapping found is illegal: {error}", print_mapping(mapping, workload)) from error
    reasons = space_for(workload, machine, problem.mapspace).outside(mapping)
    if reasons:
        raise Defect(f"the mapping found is outside the space: {'; '.join(reasons)}", print_mapping(mapping, workload))
    value = problem.objective.value(cost)
    if not isclose(value, said, rel_tol=SAME) and not (or_less and value < said):
        raise Defect(
            f"the search says {problem.objective} {said!r}, the mapping found has {value!r}",
            print_mapping(mapping, workload),
        )
    return cost


def certified(certificate: Certificate, problem: Problem, mapping: Mapping) -> Certificate:
    """The certificate of this mapping, its bound no higher than its value.

    Raises Defect, which keeps the mapping, if the bound is not one, or if it is said to be the optimum and is not.
    """
    value, bound = certificate.value, certificate.bound
    if not isfinite(bound) or bound > value * (1 + ABOVE):
        raise _kept(Defect(f"the proven bound {bound!r} is above the value {value!r}"), problem, mapping)
    if certificate.guarantee is Guarantee.OPTIMAL and not isclose(value, bound, rel_tol=ABOVE):
        wrong = Defect(f"{value!r} is said to be optimal, but what is proven is {bound!r}")
        raise _kept(wrong, problem, mapping)
    return replace(certificate, bound=min(bound, value))


def _kept(defect: Defect, problem: Problem, mapping: Mapping | None) -> Defect:
    """The defect, which keeps a mapping that is known, if it keeps none yet."""
    if defect.known is None and mapping is not None:
        defect.known = print_mapping(mapping, problem.workload)
    return defect


def _nothing() -> None:
    return None


@dataclass
class BestKnown:
    """Tells the best mapping that a search knows, once it has said how."""

    best: Callable[[], Mapping | None] = _nothing


@contextmanager
def sound(method: str, problem: Problem) -> Iterator[BestKnown]:
    """Whatever goes wrong inside in ways that only a mistake in einloom explains leaves as a Defect of the problem,
    which keeps the best mapping that the search knew."""
    known = BestKnown()
    try:
        yield known
    except Defect as defect:
        defect.problem = defect.problem or problem
        _kept(defect, problem, known.best())
        raise
    except MISTAKES as error:
        said = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        found = Defect(f"{method} ended with {said}")
        found.problem = problem
        raise _kept(found, problem, known.best()) from error
