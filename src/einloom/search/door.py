"""The one way in to every method: what it cannot do is refused, what it answers is checked.

Comes in: a method, by name or as an object, and a problem. Goes out: its `Result`, whose mapping is legal, inside the
space and costs what the result says; or a `BrokenMethod` that names the method, if that is not so. The methods that
ship check their own tables as well, and a contradiction there is a `Defect` of einloom.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from collections.abc import Mapping as Table
from contextlib import contextmanager, suppress
from dataclasses import replace

from ..errors import BrokenMethod, Defect, IllegalMapping, SpecError
from ..mapping.tree import Mapping
from ..mapspace.registry import space_for
from ..problem import Budget, Certificate, Guarantee, Problem
from ..reading.plugins import FAILURES, OURS, reason_of
from ..result import Result
from .checked import certified, priced
from .evaluator import Evaluator, Stop
from .method import Capabilities, Method, Refusing, Watcher
from .registry import SHIPPED, flaw, method, ships

_STRENGTH = (Guarantee.NONE, Guarantee.BOUNDED, Guarantee.OPTIMAL)


def chosen(asked: Method | str, options: Table[str, object] | None = None) -> Method:
    """The method meant: an object as it is, or the one of that name with these options.

    Raises SpecError for an unknown name or option, for options of an object, and for an object that is no method.
    """
    if options is not None and not (isinstance(options, Table) and all(isinstance(name, str) for name in options)):
        raise SpecError(f"options of a method are values by their names, not {options!r:.80}")
    if isinstance(asked, str):
        return method(asked, options)
    if options:
        raise SpecError("options are for a method that is named; give an object its options when it is made")
    if (why := flaw(asked)) is not None:
        raise SpecError(f"{asked!r:.80} is no search method: {why}")
    return asked


def refuse(asked: Method, problem: Problem, starts: bool = False) -> None:
    """Raise SpecError if the method is not able to answer such a problem, or to begin from starts."""
    able, name = asked.able, asked.name
    if starts and not able.starts:
        raise _unable(f"method {name!r} cannot start from a known mapping", lambda one: one.starts)
    if problem.objective.name == "pareto" and not able.fronts:
        raise _unable(f"method {name!r} finds one mapping, objective 'pareto' is a front", lambda one: one.fronts)
    if problem.latency_rule not in able.latency_rules:
        known = " and ".join(map(repr, able.latency_rules))
        raise SpecError(
            f"{name} finds optima under latency rule {known}, not {problem.latency_rule!r}",
            suggestion=next(iter(able.latency_rules), None),
        )
    if able.spaces and problem.mapspace.name not in able.spaces:
        known = ", ".join(able.spaces)
        raise SpecError(
            f"{name} searches the mapspace {known}, not {problem.mapspace.name!r}", suggestion=able.spaces[0]
        )
    if isinstance(asked, Refusing):
        with blamed(asked):
            asked.refuse(problem)


@contextmanager
def blamed(asked: Method) -> Iterator[None]:
    """A ``with`` block in which what goes wrong is a BrokenMethod, unless the method ships."""
    try:
        yield
    except FAILURES as error:
        if ships(asked):
            raise
        if isinstance(error, Defect):
            raise BrokenMethod(asked.name, error.difference, error.mapping) from error
        if isinstance(error, OURS) and not isinstance(error, IllegalMapping):
            raise
        raise BrokenMethod(asked.name, f"it ended with {reason_of(error)}") from error


def _unable(message: str, can: Callable[[Capabilities], bool]) -> SpecError:
    """The error, with a method that can."""
    able = [name for name in SHIPPED if can(method(name).able)]
    return SpecError(message, suggestion=able[0] if able else None)


def ask(
    asked: Method,
    problem: Problem,
    budget: Budget | None = None,
    watch: Watcher | None = None,
    starts: Sequence[Mapping] = (),
    cutoff: float | None = None,
) -> Result:
    """The method's answer to a problem, checked.

    cutoff: nothing above it is looked for, by methods that are able to. Raises SpecError for what the method cannot do,
    BrokenMethod for an answer that is wrong, and as the method does: Infeasible, BudgetExhausted.
    """
    refuse(asked, problem, bool(starts))
    with blamed(asked):
        found = searched(asked, problem, budget, watch, starts, cutoff)
        return found if ships(asked) else _checked(asked, found)


def searched(
    asked: Method,
    problem: Problem,
    budget: Budget | None = None,
    watch: Watcher | None = None,
    starts: Sequence[Mapping] = (),
    cutoff: float | None = None,
) -> Result:
    """As `ask`, but as the method says it: nothing is refused and nothing checked. For test kits."""
    budget, watch = budget or Budget(), watch or Watcher()
    space = space_for(problem.workload, problem.machine, problem.mapspace)
    price = Evaluator(problem, space, budget, watch, starts, cutoff if asked.able.cutoff else None)
    with suppress(Stop):
        return asked.search(problem, space, price, budget, watch)
    return price.result(asked.name)


def _checked(asked: Method, found: Result) -> Result:
    """The result with a certificate that claims no more than the method may, and a price by `evaluate`."""
    if not isinstance(found, Result):
        raise Defect(f"it returned {type(found).__name__}, not a Result")
    problem = found.problem
    said = found.certificate or Certificate(Guarantee.NONE, found.value, 0.0, problem.mapspace.describe())
    cost = priced(problem, found.mapping, said.value)
    for point in found.front:
        priced(problem, point.mapping, point.energy * point.latency)
    if _STRENGTH.index(said.guarantee) > _STRENGTH.index(asked.guarantee):
        raise Defect(f"it promises {asked.guarantee.value!r}, and its certificate claims {said.guarantee.value!r}")
    return replace(found, cost=cost, certificate=certified(said, problem, found.mapping))
