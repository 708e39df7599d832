"""The second solution: the optimum of a result's problem by a route that does not share the pruning under test.

Tiny problems are enumerated. Small ones are solved by `exact` without any rule but dominance. The others are asked "is
anything better than this?": one pass of `exact` below the value of the result (below its bound, if it claims no more
than a bound), without the rules that leave out loops, or in `ragged` with one of them that is checked on the way; no
limit in it comes from what the search itself has found. Where there is nothing the value is the optimum, for its
mapping is legal and priced again by other checks.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from ..dataclass import dataclass
from ..errors import BudgetExhausted, Infeasible
from ..problem import Budget, Guarantee, Problem
from ..result import Result
from ..search.door import ask
from ..search.registry import method

if TYPE_CHECKING:
    from ..search.exact import ExactOptions, Rules

TINY_POINTS, TINY_EINSUMS, TINY_LEVELS, TINY_SECONDS = 16, 2, 4, 10.0
SMALL_TILES, SMALL_EINSUMS, SMALL_INSTANCES = 1000, 8, 1 << 16
SLIDING_INSTANCES = 1 << 8  # of axes where windows slide: each way to use them has tables of its own
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


def solve_again(result: Result) -> SecondSolution:
    """The optimum of the result's problem. Raises Infeasible, or BudgetExhausted if the solution is not proven."""
    problem = result.problem
    if problem.mapspace.name == "ragged" and result.method == "principles":
        return _ragged(result)
    if _tiny(problem):
        try:
            budget, route = Budget(seconds=TINY_SECONDS), "enumeration of all trees"
            return _proven(ask(method("exhaustive"), problem, budget), route)
        except BudgetExhausted:
            pass
    certificate = result.certificate
    if not _small(problem) and problem.objective.name != "pareto":
        if certificate is not None and certificate.guarantee is Guarantee.BOUNDED:
            return _below(problem, certificate.bound, "exact below the bound,")
        return _below(problem, result.value * BELOW, "exact below the value,")
    from ..search.exact import Exact

    options, route = _unpruned(problem)
    return _proven(Exact(options).search(problem), route)


def below_integer(problem: Problem, bound: float) -> bool:
    """True if the relaxation of any integer tiles has something below `bound`, looked for without the rules that leave
    out loops. Raises SpecError where there is no such relaxation."""
    from ..search.exact import Rules
    from ..search.exact.integer import is_below

    return is_below(problem, bound, Rules(stationary=False, lowering=False, settled=False))


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


def _below(problem: Problem, bound: float, route: str) -> SecondSolution:
    """The optimum if it is below `bound`, else nothing. The problem has a legal mapping: the one that is verified."""
    from ..search.exact import Exact, ExactOptions

    uneven = problem.mapspace.name == "ragged"
    route += " loops that are left out priced," if uneven else " with every loop everywhere,"
    options = ExactOptions(below_rules(uneven), limit=bound, at_once=not uneven)
    try:
        return _proven(Exact(options).search(problem), route)
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
        raise BudgetExhausted(0.0 if again.certificate is None else again.certificate.bound)
    return SecondSolution(again.value, route, tuple((p.energy, p.latency) for p in again.front))


def _unpruned(problem: Problem) -> tuple[ExactOptions, str]:
    """The exact search with every pruning rule off that this problem can afford to miss."""
    from ..search.exact import ExactOptions, Rules

    if _small(problem):
        rules = Rules(stationary=False, lowering=False, limits=False, settled=False)
        return ExactOptions(rules, incumbent=False), "exact, with dominance as its only pruning rule,"
    return ExactOptions(Rules(stationary=False, lowering=False, settled=False)), "exact, with every loop everywhere,"
