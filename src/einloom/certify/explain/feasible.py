"""Has a problem any legal mapping? The exact search without prices, one numbered run per question.

Where every mapping costs the same, only room counts: the tables keep one row where prices would keep many. A mapping
that comes back is held against the rules of legality and the definition of the space, which share nothing with the
search; that there is none rests on the search being exact.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from math import prod

from ...cost.evaluate import legality
from ...errors import BudgetExhausted, Infeasible
from ...machine.levels import ComputeUnit, Level, Memory
from ...mapping.tree import Mapping
from ...mapspace.ffm import outside
from ...problem import Budget, Guarantee, Objective, Problem
from ...result import Result
from ...search.protocol import Watcher
from .record import Outcome, Run

EXISTS = "a legal mapping of the space exists"


class Unfinished(Exception):
    """The budget ended, or the watcher asked to stop, before a question was answered."""


@dataclass(frozen=True, slots=True)
class Answer:
    """mapping: a legal one, or None if there is none, for the `reason` that the search gives; run: who says so."""

    run: int
    mapping: Mapping | None
    reason: str = ""

    @property
    def feasible(self) -> bool:
        return self.mapping is not None


class _Inner(Watcher):
    """Passes on nothing but the wish to stop."""

    def __init__(self, outer: Watcher) -> None:
        self.outer = outer

    def stopped(self) -> bool:
        return self.outer.stopped()


class Asker:
    """Runs the exact search and keeps a record of every run. seconds: budget of wall time for all runs together."""

    def __init__(self, watch: Watcher, seconds: float | None = None) -> None:
        self.watch = watch
        self.runs: list[Run] = []
        self._end = None if seconds is None else time.monotonic() + seconds

    def feasible(self, problem: Problem, question: str) -> Answer:
        """Whether `problem` has a legal mapping. Raises Unfinished."""
        found = self._run(unpriced(problem), question, _operations(problem))
        if isinstance(found, Infeasible):
            return Answer(len(self.runs), None, found.witness)
        mapping = found.mapping
        wrong = objections(problem, mapping)
        if wrong:
            raise AssertionError(f"the search gave a mapping that is not one: {'; '.join(wrong)}")
        return Answer(len(self.runs), mapping)

    def remark(self, number: int, words: str) -> None:
        """Add to the record of a run."""
        self.runs[number - 1] = replace(self.runs[number - 1], detail=words)

    def optimum(self, problem: Problem, question: str) -> Result | Infeasible:
        """The optimum of `problem`, or why it has none. Raises Unfinished also if only a bound is known."""
        return self._run(problem, question)

    def _run(self, problem: Problem, question: str, limit: float | None = None) -> Result | Infeasible:
        """A run for the optimum, or if there is a `limit` for any mapping."""
        from ...search.exact import Exact, ExactOptions

        rest = None if self._end is None else self._end - time.monotonic()
        if self.watch.stopped() or (rest is not None and rest <= 0):
            raise Unfinished
        self.watch.stage(question, len(self.runs))
        self.watch.count("runs")
        start = time.monotonic()

        def note(how: Outcome, detail: str) -> None:
            self.runs.append(Run(len(self.runs) + 1, question, how, detail, time.monotonic() - start))

        try:
            method = Exact(ExactOptions(limit=limit))
            found = method.search(problem, Budget(seconds=rest), _Inner(self.watch))
        except Infeasible as error:
            note("infeasible", error.witness)
            return error
        except BudgetExhausted as error:
            note("unfinished", str(error))
            raise Unfinished from None
        assert found.certificate is not None
        if limit is not None:
            note("feasible", EXISTS)
        elif found.certificate.guarantee is Guarantee.OPTIMAL:
            note("solved", f"{problem.objective}: {found.value:.8g} {problem.objective.unit}")
        else:
            note("unfinished", f"between {found.certificate.bound:.8g} and {found.value:.8g}")
            raise Unfinished
        return found


def objections(problem: Problem, mapping: Mapping) -> tuple[str, ...]:
    """Every reason why `mapping` is no answer to `problem`: illegal, too large, or outside of the space."""
    wrong = legality(problem.workload, problem.machine, mapping)
    return wrong or outside(problem.workload, problem.machine, problem.mapspace, mapping)


def unpriced(problem: Problem) -> Problem:
    """The same mappings, all at the price of one joule per operation."""
    machine = replace(problem.machine, levels=tuple(_free(level) for level in problem.machine.levels))
    return replace(problem, machine=machine, objective=Objective("energy"), latency_rule="einsum")


def _free(level: Level) -> Level:
    if isinstance(level, Memory):
        return replace(
            level, read_energy=0.0, write_energy=0.0, read_throughput=None, write_throughput=None, leakage=0.0
        )
    if isinstance(level, ComputeUnit):
        return replace(level, throughput=None, energy=1.0, leakage=0.0)
    return level


def _operations(problem: Problem) -> float:
    """What every mapping of the unpriced problem costs: the number of operations."""
    workload = problem.workload
    einsums = (e for e in workload.einsums if e.kind != "copy")
    return float(workload.repeat * sum(prod(workload.extents[v] for v in e.variables) for e in einsums))
