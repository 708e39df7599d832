"""Several methods on one problem, each from several seeds: what they reach after how many points, beside the optimum.

Each run is saved as soon as it ends: its answer and a CSV of its improvements. A folder that has a run is not asked for
it again.
"""

from __future__ import annotations

import csv
import io
import json
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from ..dataclass import dataclass
from ..errors import Defect, EinloomError, EinloomWarning, Ended, SpecError
from ..mapping.tree import Mapping
from ..problem import Budget, Guarantee, Problem
from ..reading import writing
from ..report.draw.drawing import Line, Plot, Ruler
from ..report.draw.markup import el
from ..report.draw.svg import html_of
from ..report.page.shell import section, shell
from ..report.text.results import objective_value
from ..report.text.table import columns, csv_text
from ..result import Result
from ..result.unmapped import Unmapped
from ..search.answer import answer
from ..search.door import chosen, refuse
from ..search.method import Recorder
from ..search.registry import SHIPPED, method, takes
from ..search.several import Labelled
from ..stops import interrupts
from .store import kept_answer

HEADS = ("points", "cpu_seconds", "value")
LEAST_GAP = 1e-4  # what the picture draws smaller gaps as
Improvement = tuple[int, float, float]


@dataclass(frozen=True, slots=True)
class MethodRun:
    """One search. points: evaluated trees, legal or not; improvements: (points, CPU seconds, value) of each incumbent.

    value, bound: None where nothing was found, or proven. failed: why the method gave no answer, if it is broken.
    """

    method: str
    seed: int | None
    points: int
    seconds: float
    value: float | None
    bound: float | None
    optimal: bool
    improvements: tuple[Improvement, ...]
    failed: str | None = None


@dataclass(frozen=True, slots=True)
class MethodRuns:
    """All runs on one problem. reference: the proven optimum, else the best bound, else None.

    The word of a method that does not ship counts only where no other proves anything, for it is not checked.
    """

    problem: Problem
    runs: tuple[MethodRun, ...]

    @property
    def reference(self) -> float | None:
        """The optimum if a run has proven it, else the highest bound above zero that one has."""
        ours = [run for run in self.runs if run.method in SHIPPED]
        for runs in (ours, self.runs):
            proven = [run.value for run in runs if run.optimal and run.value is not None]
            bounds = [run.bound for run in runs if run.bound]
            if proven or bounds:
                return min(proven) if proven else max(bounds)
        return None

    @property
    def proven(self) -> bool:
        """True if the reference is the optimum, by a method that ships."""
        return any(run.optimal and run.method in SHIPPED for run in self.runs)

    @property
    def failures(self) -> tuple[str, ...]:
        """Why methods gave no answer, each reason once."""
        return tuple(dict.fromkeys(run.failed for run in self.runs if run.failed is not None))

    @property
    def _reference_is(self) -> str:
        """What the gaps are measured to, in words."""
        if self.proven:
            return "the proven optimum"
        if any(run.bound for run in self.runs if run.method in SHIPPED):
            return "the best bound"
        claimed = any(run.optimal for run in self.runs)
        return (
            "the claimed optimum, which is not checked" if claimed else "the best claimed bound, which is not checked"
        )

    def of(self, name: str) -> tuple[MethodRun, ...]:
        """The runs of one method, by seed."""
        return tuple(run for run in self.runs if run.method == name)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(run.method for run in self.runs))

    def gap(self, value: float | None) -> float | None:
        """How far a value is above the reference, as a part of it."""
        if value is None or not self.reference:
            return None
        return max(0.0, value / self.reference - 1)

    def to_data(self) -> dict[str, object]:
        """Plain data: a record for every method with medians and worst of its runs, and every run."""
        return {
            "schema": "methods/1",
            "objective": str(self.problem.objective),
            "reference": self.reference,
            "proven": self.proven,
            "methods": [self._record(name) for name in self.names],
            "runs": [
                {
                    "method": run.method,
                    "seed": run.seed,
                    "points": run.points,
                    "cpu_seconds": run.seconds,
                    "value": run.value,
                    "bound": run.bound,
                    "gap": self.gap(run.value),
                    "failed": run.failed,
                }
                for run in self.runs
            ],
        }

    def _record(self, name: str) -> dict[str, Any]:
        runs = self.of(name)
        values = [run.value for run in runs if run.value is not None]
        middle = median(values) if values else None
        worst = max(values) if len(values) == len(runs) else None
        return {
            "method": name,
            "runs": len(runs),
            "found": len(values),
            "median": middle,
            "worst": worst,
            "median_gap": self.gap(middle),
            "worst_gap": self.gap(worst),
            "points": int(median(run.points for run in runs)),
            "cpu_seconds": median(run.seconds for run in runs),
            "failed": sum(run.failed is not None for run in runs),
        }

    def to_json(self) -> str:
        return json.dumps(self.to_data(), indent=1) + "\n"

    def to_csv(self) -> str:
        """A line per method, heads first."""
        return csv_text([self._record(name) for name in self.names])

    def __str__(self) -> str:
        """The gap table."""
        known = "" if self.reference is None else f"; gaps to {self._reference_is}, {self._said(self.reference)}"
        rows = [
            [
                record["method"],
                "broken" if record["failed"] == record["runs"] else f"{record['found']} of {record['runs']}",
                "-" if record["median"] is None else self._said(record["median"]),
                _percent(record["median_gap"]),
                _percent(record["worst_gap"]),
                f"{record['points']:,}",
                f"{record['cpu_seconds']:.2f}",
            ]
            for record in map(self._record, self.names)
        ]
        heads = ("method", "found", "median", "gap", "worst gap", "points", "CPU s")
        title = f"{self.problem.workload.name} on {self.problem.machine.name}, {self.problem.objective}{known}"
        return "\n".join([columns(title, heads, rows, left={0}), *self.failures]) + "\n"

    def _said(self, value: float) -> str:
        return objective_value(self.problem.objective, value, 5)

    def to_html(self) -> str:
        """One page: the picture of values against points, and the table."""
        title = f"{self.problem.workload.name} on {self.problem.machine.name}: {self.problem.objective}"
        words = el("p", "A line is the median of a method's runs.")
        body = (
            el("header", el("h1", title)),
            el(
                "main",
                section("table", "Gaps", el("pre", str(self))),
                section("search", "Search", words, html_of(self.picture())),
            ),
        )
        return shell(title, body, {"tensor": []})

    def picture(self) -> Plot:
        """Median value of each method against points, relative to the reference, which is the lowest line."""
        base = self.reference or min((run.value for run in self.runs if run.value), default=1.0)
        most = max((run.points for run in self.runs if run.improvements), default=1)
        lines = []
        for number, name in enumerate(self.names):
            spots = [(at, max(value / base - 1, LEAST_GAP)) for at, value in medians(self.of(name))]
            lines.append(Line(tuple(spots), "best", number, name))
        highest = max((gap for line in lines for _, gap in line.points), default=1.0)
        across = Ruler("points", 1, max(10, most), lambda v, digits: f"{v:.{digits}g}", True)
        up = Ruler("gap", LEAST_GAP, max(2 * highest, 1e-2), lambda v, digits: f"{100 * v:.{digits}g} %", True)
        return Plot(f"Gap of {len(lines)} methods against points", across, up, tuple(lines))


def _percent(gap: float | None) -> str:
    return "-" if gap is None else f"{100 * gap:.2f} %"


def medians(runs: Sequence[MethodRun]) -> list[tuple[float, float]]:
    """(points, median of the runs' values) wherever a run improves, once all have a value."""
    marks = sorted({at for run in runs for at, _, _ in run.improvements})
    found: list[tuple[float, float]] = []
    for at in marks:
        values = [value_at(run, at) for run in runs]
        known = [value for value in values if value is not None]
        if len(known) == len(runs):
            if found:
                found.append((max(1, at), found[-1][1]))
            found.append((max(1, at), median(known)))
    if found:
        found.append((max(1, *(run.points for run in runs)), found[-1][1]))
    return found


def value_at(run: MethodRun, points: int) -> float | None:
    """The best value that a run had after so many points; None before its first."""
    return min((value for at, _, value in run.improvements if at <= points), default=None)


class _Curve(Recorder):
    """A recorder that knows at how many points each better value came."""

    def __init__(self, stop: Callable[[], bool], until: float = float("-inf")) -> None:
        super().__init__(stop=lambda: stop() or self.arrived)
        self.until = until
        self.improvements: list[Improvement] = []
        self.points = 0
        self._begun = time.process_time()

    def count(self, rule: str, number: int = 1) -> None:
        super().count(rule, number)
        if not rule.startswith("proposal: "):
            self.points += number

    def incumbent(self, value: float, mapping: Mapping | None = None) -> None:
        if self.best is None or value < self.best:
            self.improvements.append((self.points + 1, self.cpu, value))
        super().incumbent(value, mapping)

    @property
    def arrived(self) -> bool:
        """True once the value is at most the one at which the search is to end."""
        return self.best is not None and self.best <= self.until

    @property
    def cpu(self) -> float:
        """CPU seconds of this process since the search began."""
        return time.process_time() - self._begun


def compare_methods(
    problem: Problem,
    names: Sequence[str],
    seeds: int = 1,
    budget: Budget | None = None,
    folder: str | Path | None = None,
    stop: Callable[[], bool] = lambda: False,
    said: Callable[[str], None] = lambda _: None,
    until: float = float("-inf"),
) -> MethodRuns:
    """Every method on the problem, those with a seed once for each of the seeds 0, 1, ….

    budget: of each run; its steps do not bound methods without a seed, which prove. folder: where each run is saved,
    and found again. until: a run ends when its value is at most this, say a proven optimum. Raises SpecError for an
    unknown method or one that cannot answer the problem. A method that turns out to be broken is told in its runs, and
    the others go on. After a stop, or Ctrl-C in the main thread, the runs that ended come back, if any did.
    """
    budget = budget or Budget()
    todo: list[tuple[str, int | None]] = []
    for name in dict.fromkeys(names):
        todo += [(name, seed) for seed in range(seeds)] if takes(name, "seed") else [(name, None)]
    if not todo:
        raise SpecError("no method is named, so there is nothing to compare")
    for name, _ in todo:
        refuse(chosen(name), problem)
    where = None if folder is None else writing.folder(folder)
    runs = []
    with interrupts() as heard:
        for name, seed in todo:
            if stop() or heard:
                break
            mine = budget if seed is not None else Budget(budget.seconds, None, budget.memory)
            title = _title(name, seed, mine)
            run = None if where is None else _known(where / title, problem, name, seed)
            if run is None:
                said(f"{name}{'' if seed is None else f' seed {seed}'}")
                curve = _Curve(lambda: stop() or bool(heard), until)
                run = _searched(problem, name, seed, mine, None if where is None else where / title, curve)
            if run is not None:
                runs.append(run)
    return MethodRuns(problem, tuple(runs))


def _title(name: str, seed: int | None, budget: Budget) -> str:
    parts = [name, *([] if seed is None else [str(seed)])]
    parts += [] if budget.steps is None else [f"{budget.steps}points"]
    return "-".join(parts + ([] if budget.seconds is None else [f"{budget.seconds:g}s"]))


def _searched(
    problem: Problem, name: str, seed: int | None, budget: Budget, path: Path | None, curve: _Curve
) -> MethodRun | None:
    """One run, saved; None if it was stopped before its end."""
    try:
        asked = method(name, {} if seed is None else {"seed": seed})
        found = answer((Labelled("", problem),), asked, budget, curve)
    except Defect:
        raise
    except EinloomError as error:
        return MethodRun(name, seed, curve.points, curve.cpu, None, None, False, (), str(error))
    if found.ended is Ended.STOPPED and not curve.arrived:
        return None
    if path is not None:
        found.write(path.with_name(f"{path.name}.json"))
        lines = [",".join(HEADS), *(f"{at},{cpu!r},{value!r}" for at, cpu, value in curve.improvements)]
        writing.write("\n".join([*lines, f"{curve.points},{curve.cpu!r},"]) + "\n", path.with_name(f"{path.name}.csv"))
    return _run(found, name, seed, curve.points, curve.cpu, tuple(curve.improvements))


def _run(
    found: Result | Unmapped, name: str, seed: int | None, points: int, cpu: float, curve: tuple[Improvement, ...]
) -> MethodRun:
    if not isinstance(found, Result):
        return MethodRun(name, seed, points, cpu, None, None, False, curve)
    proof = found.certificate
    bound = None if proof is None or proof.bound <= 0 else proof.bound
    optimal = proof is not None and proof.guarantee is Guarantee.OPTIMAL
    return MethodRun(name, seed, points, cpu, found.value, bound, optimal, curve)


def _known(path: Path, problem: Problem, name: str, seed: int | None) -> MethodRun | None:
    """A run that is saved, of this very problem by this version of the model."""
    result, curve = path.with_name(f"{path.name}.json"), path.with_name(f"{path.name}.csv")
    found = kept_answer(result, problem)
    if found is None or not curve.exists():
        return None
    if found.method != name:
        raise SpecError(f"this answer is by {found.method}, not by {name}; choose another folder", file=str(result))
    try:
        rows = list(csv.reader(io.StringIO(curve.read_text(encoding="utf-8"))))[1:]
        improvements = tuple((int(a), float(b), float(c)) for a, b, c in rows[:-1])
        points, cpu = int(rows[-1][0]), float(rows[-1][1])
    except (ValueError, IndexError, OSError) as error:
        told = f"{curve}: no list of points, CPU seconds and values ({error}); the run is made again"
        warnings.warn(told, EinloomWarning, stacklevel=2)
        return None
    return _run(found, name, seed, points, cpu, improvements)
