"""Has a problem any legal mapping? The exact search without prices, one numbered run per question.

Where every mapping costs the same, only room counts: the tables keep one row where prices would keep many. A mapping
that comes back is held against the rules of legality and the definition of the space, which share nothing with the
search; that there is none rests on the search being exact.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from ..cost.evaluate import legality
from ..dataclass import dataclass
from ..errors import BudgetExhausted, Ended, Infeasible, SpecError
from ..machine.levels import ComputeUnit, Level, Memory, Toll
from ..mapping.tree import Mapping
from ..mapspace.registry import space_for
from ..problem import MOMENT, Budget, Guarantee, Objective, Problem
from ..result import Result
from ..search.exact import Exact, ExactOptions
from ..search.exact.attempt import Attempt
from ..search.exact.stops import StopsOnly
from ..search.method import Watcher
from ..search.several import Labelled, best_of
from ..search.starts import fitting
from .easier import easier, spreads
from .record import Outcome, SearchRun

EXISTS = "a legal mapping of the space exists"
UNDECIDED = "not known: too many spatial choices to list"
MAX_STEPS = 5_000_000  # points evaluated for one question of feasibility
MAX_SPREADS = 50_000  # spatial choices of one Einsum, likewise
MAX_SPREADS_SOLVED = 2_000_000  # the same for an optimum
MOST_NAMED = 5  # unanswered questions


class Unfinished(Exception):
    """The budget ended, or the watcher asked to stop, before a question was answered.

    best: the best mapping by then.
    """

    def __init__(self, words: str, best: Result | None = None) -> None:
        super().__init__(words)
        self.best = best


class Undecided(Exception):
    """This question is not answered: too many spatial choices or points, or the search and the definition of the space
    contradict each other. Others may still be answered."""


@dataclass(frozen=True, slots=True)
class Answer:
    """mapping: a legal one, or None if there is none, for the `reason` that the search gives; run: who says so.

    Neither mapping nor reason: the question was not answered.
    """

    run: int
    mapping: Mapping | None
    reason: str = ""

    @property
    def feasible(self) -> bool:
        return self.mapping is not None


class Asker:
    """Runs the exact search and keeps a record of every run. seconds: budget of wall time for all runs together.

    unmapped: the Einsum that had no mapping by itself in the last infeasible run, if there was one. ended: what ended
    the runs, if anything did. unanswered: the numbers of those that were left open for another reason.
    """

    def __init__(self, watch: Watcher, seconds: float | None = None) -> None:
        self.watch = watch
        self.runs: list[SearchRun] = []
        self.unmapped: str | None = None
        self.ended: Ended | None = None
        self.unanswered: list[int] = []
        self._end = None if seconds is None else time.monotonic() + seconds

    @property
    def timed(self) -> bool:
        """True if there is a budget of seconds."""
        return self._end is not None

    @contextmanager
    def within(self, share: float) -> Iterator[None]:
        """A ``with`` block whose runs have this share of what is left of the budget."""
        end, rest = self._end, self._rest()
        self._end = None if end is None or rest is None else end - (1 - share) * rest
        try:
            yield
        finally:
            self._end = end

    @property
    def left(self) -> str | None:
        """What left something open, in words: a budget, an interruption or questions that are not answered."""
        cut = [run.number for run in self.runs if run.outcome == "unfinished" and run.number not in self.unanswered]
        said = [] if self.ended is None else [self.ended.words + (f" [{cut[-1]}]" if cut else "")]
        if self.unanswered:
            named = ", ".join(f"[{number}]" for number in self.unanswered[:MOST_NAMED])
            more = len(self.unanswered) - MOST_NAMED
            said.append(f"not answered: {named}{f' and {more} more' if more > 0 else ''}")
        return "; ".join(said) or None

    def feasible(self, problem: Problem, question: str) -> Answer:
        """Whether `problem` has a legal mapping. Raises Unfinished, Undecided."""
        with self._run(question) as note:
            found = self._any(unpriced(problem))
            if isinstance(found, Infeasible):
                note("infeasible", found.witness)
                self.unmapped = found.einsum
                return Answer(len(self.runs) + 1, None, found.witness)
            wrong = objections(problem, found)
            if wrong:
                raise Undecided(f"the search gave a mapping that is not one: {'; '.join(wrong)}")
            note("feasible", EXISTS)
            return Answer(len(self.runs) + 1, found)

    def remark(self, number: int, words: str) -> None:
        """Add to the record of a run."""
        self.runs[number - 1] = replace(self.runs[number - 1], detail=words)

    def optimum(
        self, problem: Problem, question: str, patient: bool = False, starts: Sequence[Mapping] = ()
    ) -> Result | Infeasible:
        """The optimum of `problem`, or why it has none. Raises Unfinished, also if only a bound is known, Undecided.

        patient: the rest of a budget is spent on it, however many spatial choices there are. starts: mappings that the
        search starts from, those that are of the problem.
        """
        with self._run(question) as note:
            if not (patient and self.timed):
                _listable(problem, MAX_SPREADS_SOLVED)
            search = Exact(ExactOptions(start=fitting(problem, starts)))
            return self._solved(lambda: search.search(problem, self._budget(), StopsOnly(self.watch)), note)

    def best(self, asked: Sequence[Labelled], question: str) -> Result | Infeasible:
        """The best optimum of several problems, or why they have none. Raises Unfinished as `optimum`."""
        with self._run(question) as note:
            return self._solved(lambda: best_of(asked, "exact", self._budget(), StopsOnly(self.watch)), note)

    def _solved(self, search: Callable[[], Result], note: Callable[[Outcome, str], None]) -> Result | Infeasible:
        """What a search finds, noted. Raises Unfinished if it is not an optimum."""
        try:
            found = search()
        except Infeasible as error:
            note("infeasible", error.witness)
            return error
        except BudgetExhausted as error:
            self.ended = error.ended or Ended.SECONDS
            raise Unfinished(self.ended.words) from None
        certificate = found.certificate
        assert certificate is not None
        if certificate.guarantee is not Guarantee.OPTIMAL:
            self.ended = found.ended or Ended.SECONDS
            known = f"between {certificate.bound:.8g} and {certificate.value:.8g}"
            raise Unfinished(f"{known} when {self.ended.words}", found)
        note("solved", f"{found.objective}: {found.value:.8g} {found.objective.unit}")
        return found

    @contextmanager
    def _run(self, question: str) -> Iterator[Callable[[Outcome, str], None]]:
        """A ``with`` block that records what it notes, or why it had nothing to note."""
        self._late()
        self.watch.stage(question, len(self.runs))
        self.watch.count("runs")
        start = time.monotonic()
        noted: tuple[Outcome, str] = ("unfinished", Ended.STOPPED.words)

        def note(outcome: Outcome, detail: str) -> None:
            nonlocal noted
            noted = (outcome, detail)

        try:
            yield note
        except (Unfinished, Undecided) as error:
            note("unfinished", str(error))
            if isinstance(error, Undecided):
                self.unanswered.append(len(self.runs) + 1)
            raise
        except MemoryError:
            note("unfinished", Ended.NO_MEMORY.words)
            self.unanswered.append(len(self.runs) + 1)
            raise Undecided(Ended.NO_MEMORY.words) from None
        finally:
            self.runs.append(SearchRun(len(self.runs) + 1, question, *noted, time.monotonic() - start))

    def _rest(self) -> float | None:
        return None if self._end is None else self._end - time.monotonic()

    def _budget(self, steps: int | None = None) -> Budget:
        """What is left for one search: a moment in any case."""
        rest = self._rest()
        return Budget(None if rest is None else max(rest, MOMENT), steps)

    # -- any mapping at all -------------------------------------------------------------------------------------------

    def _any(self, problem: Problem) -> Mapping | Infeasible:
        """A mapping of an unpriced problem: first where it is found quickly, at last wherever it could be."""
        same = easier(problem)
        for tame in same.tame:
            try:
                found = self._look(tame)
            except Undecided:
                continue
            if isinstance(found, Mapping) or tame == same.proof:
                return found
        return self._alone(same.bare) or self._look(same.proof)

    def _look(self, problem: Problem) -> Mapping | Infeasible:
        """A mapping, or the search's word that there is none."""
        _listable(problem, MAX_SPREADS)
        method = Exact(ExactOptions(limit=_operations(problem)))
        try:
            budget = self._budget(MAX_STEPS)
            return method.search(problem, budget, StopsOnly(self.watch)).mapping
        except Infeasible as error:
            return error
        except BudgetExhausted:
            self._late()
            raise Undecided(f"more than {MAX_STEPS:,} points to evaluate") from None

    def _alone(self, problem: Problem) -> Infeasible | None:
        """Why some Einsum has no mapping by itself, whatever is fused and however instances are used; or None."""
        _listable(problem, MAX_SPREADS)
        try:
            Attempt(problem, ExactOptions(), StopsOnly(self.watch), {}, self._late).lower_bound()
        except Infeasible as error:
            return error
        return None

    def _late(self) -> None:
        """Raise Unfinished if the budget is spent or the watcher asks to stop."""
        rest = self._rest()
        stopped = self.watch.stopped()
        if stopped or (rest is not None and rest <= 0):
            self.ended = Ended.STOPPED if stopped else Ended.SECONDS
            raise Unfinished(self.ended.words)


def _listable(problem: Problem, most: int) -> None:
    """Raise Undecided if an Einsum has more than `most` spatial choices, which the search lists one by one."""
    try:
        number = spreads(problem)
    except (Infeasible, SpecError):  # the search will say so
        return
    if number > most:
        raise Undecided(f"{number:,} spatial choices of one Einsum, too many to list")


def objections(problem: Problem, mapping: Mapping) -> tuple[str, ...]:
    """Every reason why `mapping` is no answer to `problem`: illegal, too large, or outside of the space."""
    wrong = legality(problem.workload, problem.machine, mapping)
    return wrong or space_for(problem.workload, problem.machine, problem.mapspace).outside(mapping)


def unpriced(problem: Problem) -> Problem:
    """The same mappings, all at the price of one joule per operation."""
    machine = replace(problem.machine, levels=tuple(_free(level) for level in problem.machine.levels))
    return replace(problem, machine=machine, objective=Objective("energy"), latency_rule="einsum")


def _free(level: Level) -> Level:
    if isinstance(level, Memory):
        return replace(
            level, read_energy=0.0, write_energy=0.0, read_throughput=None, write_throughput=None, leakage=0.0
        )
    if isinstance(level, Toll):
        return replace(level, throughput=None, energy=0.0, leakage=0.0)
    if isinstance(level, ComputeUnit):
        return replace(level, throughput=None, energy=1.0, leakage=0.0)
    return level


def _operations(problem: Problem) -> float:
    """What every mapping of the unpriced problem costs: the number of operations."""
    workload = problem.workload
    return float(workload.repeat * sum(workload.operations(name) for name in workload.names))
