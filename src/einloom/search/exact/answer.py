"""The method `exact`: a problem in, its optimum with a certificate out.

Comes in: a problem and a budget. Goes out: a result, every value of it priced again by `evaluate`; the best so far with
the bound so far if the budget ends first.
"""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np

from ...errors import BudgetExhausted, Defect, Ended, Infeasible, SpecError
from ...mapspace.space import SPACES
from ...problem import Budget, Certificate, Guarantee, Problem, refuse_timeless
from ...result import FrontPoint, Result
from ...workload.parts import not_whole
from ..checked import certified, priced, sound
from ..first import FirstMappings
from ..method import Watcher
from ..resources import at_most, rarely_collected
from ..starts import fitting
from ..watcher import trace_of
from .attempt import Solution
from .branch_and_bound import Run
from .drawing import AtTheBound, Drawer
from .einsums.orders import layers, refuse_first_readers
from .front import undominated
from .options import ExactOptions
from .stops import Stopped


class Exact:
    """The optimal fused mapping in the stated mapspace, with its certificate.

    drawing: makes what draws mappings until the search has one of its own.
    """

    name = "exact"
    guarantee = Guarantee.OPTIMAL

    def __init__(self, options: ExactOptions | None = None, drawing: Drawer = FirstMappings) -> None:
        self.options, self.drawing = options or ExactOptions(), drawing

    def search(self, problem: Problem, budget: Budget | None = None, watch: Watcher | None = None) -> Result:
        """The optimum of `problem`; if the budget ends first, the best so far with the bound proven so far.

        Raises Infeasible with the limit that stands in the way, BudgetExhausted if the budget ended before any legal
        mapping was found, SpecError for a latency rule other than ``einsum``: the tables add Einsums up; for an
        objective that needs time where nothing takes any; and for a start that is illegal or outside the space. What is
        found is checked: Defect if the tree is not what the tables said.
        """
        refuse_timeless(problem.objective, problem.machine)
        refuse_uncarried(problem)
        if problem.latency_rule != "einsum":
            raise SpecError(
                f"exact proves optima under latency rule 'einsum', not {problem.latency_rule!r}", suggestion="einsum"
            )
        with sound(self.name, problem) as known, rarely_collected():
            run = Run(problem, self.options, budget or Budget(), watch or Watcher(), self.drawing)
            known.best = lambda: None if run.incumbent.best is None else run.incumbent.best.mapping
            run.incumbent.begin(self.options.start)
            try:
                return self._answer(run)
            except Infeasible as error:
                if run.incumbent.best is not None and self.options.limit is None:
                    raise Defect(f"a mapping is known, but the search finds that none is: {error.witness}") from error
                raise

    def _answer(self, run: Run) -> Result:
        pareto = run.problem.objective.name == "pareto"
        solutions: list[Solution] = []
        ended = None
        try:
            with at_most(run.budget.memory), run.drawing.where_none_fit():
                solutions = run.solve_front() if pareto else [run.solve()]
            solution = min(solutions, key=lambda found: found.value)
            guarantee, bound = Guarantee.OPTIMAL, None
        except AtTheBound as met:
            solution, guarantee, bound = met.solution, Guarantee.OPTIMAL, None
        except (Stopped, MemoryError) as error:
            ended = error.ended if isinstance(error, Stopped) else run.budget.without_memory
        if ended is not None:  # out here, where the error keeps no tables alive
            known = run.drawing.best()
            if known is None:
                raise BudgetExhausted(run.incumbent.bound, ended=ended)
            solutions = known_front(run, known) if pareto else []
            solution = min(solutions, key=lambda found: found.value, default=known)
            guarantee, bound = Guarantee.BOUNDED, run.incumbent.bound
        points = front_points(run.problem, solutions) if pareto else ()
        return result(run, solution, guarantee, bound, points, ended)


def refuse_uncarried(problem: Problem) -> None:
    """Raise SpecError for other spaces, and for what the search of uneven tiles or of any order does not carry yet."""
    name, places, order = problem.mapspace.name, problem.mapspace.places, problem.mapspace.order
    if name not in SPACES:
        raise SpecError(f"exact searches the mapspaces ffm and ragged, not {name!r}", suggestion="ffm")
    for tensor in problem.workload.parted if places else ():
        message = f"tensor {tensor} {not_whole(problem.workload, tensor)}: exact searches no groups of Einsums then"
        raise SpecError(message, suggestion="concurrent: none")
    if order == "free":
        refuse_first_readers(problem.workload, problem.machine)
        layers(problem.workload, free=True)


def known_front(run: Run, best: Solution) -> list[Solution]:
    """The points of a Pareto set that a search knew when it was cut off, none beaten by another; best: one of them."""
    found = fitting(run.problem, tuple(dict.fromkeys(point.mapping for point in run.points)))
    return undominated([best, *run.incumbent.starts, *map(run.incumbent.solution, found)])


def front_points(problem: Problem, solutions: list[Solution]) -> tuple[FrontPoint, ...]:
    """The points of a Pareto set, priced again by `evaluate`."""
    points, repeats = [], problem.workload.repeat
    for solution in solutions:
        cost = priced(problem, solution.mapping, solution.value * repeats**problem.objective.degree)
        if not np.allclose(solution.cost * repeats, [cost.energy, cost.latency], rtol=1e-9, atol=0.0):
            raise Defect(f"the tables say {solution.cost!r}, the tree costs {cost.energy, cost.latency}")
        points.append(FrontPoint(cost.energy, cost.latency, solution.mapping))
    return tuple(points)


def result(
    run: Run,
    solution: Solution,
    guarantee: Guarantee,
    bound: float | None,
    points: tuple[FrontPoint, ...] = (),
    ended: Ended | None = None,
) -> Result:
    """The solution priced again by `evaluate`, with its certificate.

    A dive that follows no window prices it too high: what such a dive has found may cost less, if it is no optimum.
    """
    problem, watcher, counted = run.problem, run.watcher, run.stops.counts
    said = solution.value * problem.workload.repeat**problem.objective.degree
    cost = priced(problem, solution.mapping, said, or_less=guarantee is Guarantee.BOUNDED)
    value = problem.objective.value(cost)
    watcher.incumbent(value, solution.mapping)
    proven = value if bound is None else bound
    described, tree = problem.mapspace.describe(), solution.mapping
    certified(Certificate(Guarantee.BOUNDED, value, run.incumbent.bound, described), problem, tree)
    certificate = certified(Certificate(guarantee, value, proven, described, counted), problem, tree)
    watcher.bound(certificate.bound)
    for rule, number in counted.items():
        watcher.count(rule, number)
    trace = trace_of(watcher)
    seconds = time.monotonic() - run.stops.started
    found = Result.of(
        problem, solution.mapping, cost, certificate=certificate, method=Exact.name, seconds=seconds, trace=trace
    )
    return replace(found, front=points, ended=ended)
