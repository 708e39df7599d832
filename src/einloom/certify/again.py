"""The second solution: the optimum of a result's problem by a route that does not share the pruning under test.

Tiny problems are enumerated. Small ones are solved by `exact` without any rule but dominance. The others, and those
that take longer than some seconds so, are asked "is anything better than this?": one pass of `exact` below the value of
the result (below its bound, if it claims no more than a bound), without the rules that leave out loops, or in `ragged`
with one of them that is checked on the way; no limit in it comes from what the search itself has found. Where there is
nothing the value is the optimum, for its mapping is legal and priced again by other checks.
"""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING

from ..dataclass import dataclass
from ..errors import BudgetExhausted, Infeasible
from ..problem import Budget, Guarantee, Problem
from ..result import Result
from ..search.door import ask
from ..search.method import Watcher
from ..search.registry import method

if TYPE_CHECKING:
    from ..search.exact import Rules

TINY_POINTS, TINY_EINSUMS, TINY_LEVELS, TINY_SECONDS = 16, 2, 4, 10.0
SMALL_TILES, SMALL_EINSUMS, SMALL_INSTANCES, SMALL_SECONDS = 1000, 8, 1 << 16, 5.0  # of CPU time
SLIDING_INSTANCES = 1 << 8  # of axes where windows slide: each way to use them has tables of its own
FIRST_SHARE = 0.5  # of what is left of a budget, for a route that may not end; the last one has the rest
BELOW = 1 - 3e-9
"""Of a value: what is below this is better, and not the same in other rounding."""


@dataclass(frozen=True, slots=True)
class SecondSolution:
    """The optimum that was found, and by which route; front: (energy, latency) of a whole Pareto set.

    value: None where only mappings below the certified bound were looked for, and there are none.
    """

    value: float | None
    method: str
    front: tuple[tuple[float, float], ...] = ()


class _CpuSeconds(Watcher):
    """Stops a search after so many more seconds of CPU time, so that a busy machine takes the same route as an idle
    one."""

    def __init__(self, seconds: float) -> None:
        self.until = time.process_time() + seconds

    def stopped(self) -> bool:
        return time.process_time() > self.until


def solve_again(result: Result, budget: Budget | None = None) -> SecondSolution:
    """The optimum of the result's problem, within a budget of seconds.

    Raises Infeasible, or BudgetExhausted if the solution is not proven: with what `ended` it, if the budget did.
    """
    problem, budget, began = result.problem, budget or Budget(), time.monotonic()

    def left(share: float = 1.0) -> Budget:
        found = budget.after(time.monotonic() - began)
        return found if found.seconds is None else replace(found, seconds=found.seconds * share)

    if problem.mapspace.name == "ragged" and result.method == "principles":
        return _ragged(result)
    if _tiny(problem):
        with suppress(BudgetExhausted):
            found = ask(method("exhaustive"), problem, left(FIRST_SHARE), _CpuSeconds(TINY_SECONDS))
            return _proven(found, "enumeration of all trees")
    from ..search.exact import Exact, ExactOptions, Rules

    if _small(problem):
        options = ExactOptions(Rules(stationary=False, lowering=False, limits=False, settled=False), incumbent=False)
        with suppress(BudgetExhausted):
            found = Exact(options).search(problem, left(FIRST_SHARE), _CpuSeconds(SMALL_SECONDS))
            return _proven(found, "exact, with dominance as its only pruning rule,")
    if problem.objective.name == "pareto":
        options = ExactOptions(Rules(stationary=False, lowering=False, settled=False))
        return _proven(Exact(options).search(problem, left()), "exact, with every loop everywhere,")
    certificate = result.certificate
    if certificate is not None and certificate.guarantee is Guarantee.BOUNDED:
        return _below(problem, certificate.bound, "exact below the bound,", left())
    return _below(problem, result.value * BELOW, "exact below the value,", left())


def below_integer(problem: Problem, bound: float, budget: Budget | None = None) -> bool | None:
    """True if the relaxation of any integer tiles has something below `bound`, looked for without the rules that leave
    out loops; None if the budget ended first. Raises SpecError where there is no such relaxation."""
    from ..search.exact import Rules
    from ..search.exact.integer import is_below

    return is_below(problem, bound, Rules(stationary=False, lowering=False, settled=False), budget)


def _ragged(result: Result) -> SecondSolution:
    """Tile by tile where the space `ragged` has a proof: one multiplication on one buffer, or what every mapping moves.

    Raises BudgetExhausted where there are too many tiles to try.
    """
    from ..search.principles.again import least_moved, least_possible

    certificate = result.certificate
    assert certificate is not None
    possible = least_possible(result.problem)
    if certificate.guarantee is Guarantee.BOUNDED:
        if certificate.bound > possible:
            raise BudgetExhausted(possible)
        return SecondSolution(None, "each operand once,")
    if len(result.workload.einsums) > 1 and certificate.bound <= possible:  # a pair has no tiles to be tried
        return SecondSolution(possible, "each operand once,")
    return SecondSolution(least_moved(result.problem), "every pair of integer tiles")


def below_rules(uneven: bool) -> Rules:
    """What `exact` may leave out below a value. Where tiles divide no loop, but rows for which there are better ones of
    smaller extents. Of uneven tiles, too many for that, the loops of *lowering* where nothing is put off, while stores
    with one of these loops below them are priced too."""
    from ..search.exact import Rules

    return Rules(stationary=False, settled=False, lowering=uneven, checked=uneven, smaller=not uneven)


def _below(problem: Problem, bound: float, route: str, budget: Budget) -> SecondSolution:
    """The optimum if it is below `bound`, else nothing. The problem has a legal mapping: the one that is verified."""
    from ..search.exact import Exact, ExactOptions

    uneven = problem.mapspace.name == "ragged"
    route += " loops that are left out priced," if uneven else " with every loop everywhere,"
    options = ExactOptions(below_rules(uneven), limit=bound, at_once=not uneven)
    try:
        return _proven(Exact(options).search(problem, budget), route)
    except Infeasible:
        return SecondSolution(None, route)


def _tiny(problem: Problem) -> bool:
    einsums = problem.workload.einsums
    points = max(prod(problem.workload.extents[v] for v in einsum.variables) for einsum in einsums)
    return len(einsums) <= TINY_EINSUMS and points <= TINY_POINTS and len(problem.machine.levels) <= TINY_LEVELS


def _small(problem: Problem) -> bool:
    """True if no Einsum has more tile shapes than a table without pruning can bear: a divisor of each extent, and in
    `ragged` any number up to it; nor axes that may be used in more ways than can be listed without pruning."""
    extents = problem.workload.extents
    free = (axis.size for fanout in problem.machine.fanouts for axis in fanout.axes if axis.use != "full")
    accesses = (access for einsum in problem.workload.einsums for access in (einsum.output, *einsum.inputs))
    slides = any(len(index.variables) > 1 for access in accesses for index in access.indices)
    if (
        prod(free) > (SLIDING_INSTANCES if slides else SMALL_INSTANCES)
        or len(problem.workload.einsums) > SMALL_EINSUMS
        or max(extents.values(), default=1) > 2**20
    ):
        return False
    uneven = problem.mapspace.name == "ragged"
    sizes = {n: n if uneven else sum(n % d == 0 for d in range(1, n + 1)) for n in set(extents.values())}
    return all(prod(sizes[extents[v]] for v in e.variables) <= SMALL_TILES for e in problem.workload.einsums)


def _proven(again: Result, route: str) -> SecondSolution:
    if again.certificate is None or again.certificate.guarantee is not Guarantee.OPTIMAL:
        raise BudgetExhausted(0.0 if again.certificate is None else again.certificate.bound, ended=again.ended)
    return SecondSolution(again.value, route, tuple((p.energy, p.latency) for p in again.front))
