"""What a search that found no mapping leaves behind, and its JSON file both ways. The schema is ``unmapped/1``.

`reason` is the method's own word for what was in the way: of a proof that there is nothing, or of a budget that ended.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from pathlib import Path
from typing import Any, Literal, get_args

from ..dataclass import dataclass
from ..errors import BudgetExhausted, Ended, Infeasible
from ..problem import Problem
from ..problem.counts import Counts
from ..reading.fields import STATED, read_record
from ..reading.keys import TEXT, Choice, Key, Record, Table
from ..reading.located import Located, file_text, from_data
from . import document
from .asked import goal_data, input_data, notes_data, problem_from
from .record import Answered, Provenance, Result, TracePoint
from .tables import ASKED, FOOT, GOAL, HEAD, POSITIVE, WHOLE, ended_of, must, provenance_of

VERSION = 1
Status = Literal["infeasible", "unfinished"]


@dataclass(frozen=True, repr=False)
class Unmapped(Answered):
    """A problem, and why no mapping of it is known.

    status: ``infeasible`` where it is proven that no mapping of the space is legal, ``unfinished`` where the budget
    ended before one was found. bound: no mapping has an objective below it; None if nothing was proven. counts: points
    seen and dropped, by rule. recorded_digest, found_digest, ended: as of a `Result`.
    """

    problem: Problem
    status: Status
    reason: str
    method: str
    seconds: float = 0.0
    bound: float | None = None
    counts: Mapping[str, int] = Counts({})
    trace: tuple[TracePoint, ...] = ()
    provenance: Provenance = field(default=Provenance("", "", 0, 0))
    recorded_digest: str | None = field(default=None, compare=False)
    found_digest: str | None = field(default=None, compare=False)
    ended: Ended | None = None

    @staticmethod
    def of(
        problem: Problem,
        why: Infeasible | BudgetExhausted,
        method: str,
        seconds: float,
        counts: Mapping[str, int],
        trace: Iterable[TracePoint],
        lower: float | None = None,
    ) -> Unmapped:
        """What the error `why` ended; lower: the bound that the search had told its watcher."""
        return Unmapped(
            problem,
            "infeasible" if isinstance(why, Infeasible) else "unfinished",
            why.witness if isinstance(why, Infeasible) else str(why),
            method,
            seconds,
            None if isinstance(why, Infeasible) else max(lower or 0.0, why.bound),
            Counts(counts),
            tuple(trace),
            Provenance.of(problem.workload, problem.machine),
            ended=why.ended if isinstance(why, BudgetExhausted) else None,
        )

    def __repr__(self) -> str:
        """One line: what has no mapping onto what, and how sure that is."""
        bound = "" if not self.bound else f", {self.problem.objective} above {self.bound:.8g}"
        return f"<Unmapped: {self.workload.name} on {self.machine.name}, {self.status}{bound}>"

    def to_data(self) -> dict[str, Any]:
        data: dict[str, Any] = {
            "schema": f"unmapped/{VERSION}",
            "einloom": self.provenance.version,
            "model_version": self.provenance.model_version,
            "status": self.status,
            "reason": self.reason,
            "method": self.method,
            "seconds": self.seconds,
            **({} if self.ended is None else {"ended": self.ended.value}),
            **goal_data(self.problem),
            "bound": self.bound,
            "counts": dict(self.counts),
            **input_data(self.problem),
            "assumed": {"facts": self.provenance.facts, "assumed": self.provenance.assumed},
            "trace": [{"seconds": p.seconds, "best": p.best, "bound": p.bound} for p in self.trace],
            **notes_data(self.notes),
        }
        data["digest"] = document.digest(data)
        return data


def read_answer(path: str | Path) -> Result | Unmapped:
    """What a search saved: its result, or why there is none. Raises SpecError with the place of whatever is wrong."""
    return parse_answer(file_text(path), str(path))


def parse_answer(text: str, file: str = "<result>") -> Result | Unmapped:
    """What the JSON text of a search's answer holds. Raises SpecError."""
    with document.shallow(file):
        data = document.parse(text, file)
        if str(data.get("schema", "")).partition("/")[0] != "unmapped":
            return Result.from_json(text, file)
        return _unmapped(from_data(data, file, text=text), data)


UNMAPPED = Record(
    "an answer without a mapping",
    (
        *HEAD[:3],
        must("status", Choice(get_args(Status)), "is it proven that there is none, or did the budget end?"),
        must("reason", TEXT, "what is in the way"),
        *HEAD[3:],
        *GOAL,
        Key("bound", POSITIVE, "no mapping has less"),
        must("counts", Table(WHOLE), "points seen and dropped, by rule"),
        *FOOT,
    ),
)


def _unmapped(view: Located, data: dict[str, Any]) -> Unmapped:
    view.schema("unmapped", VERSION)
    problem = problem_from(view)
    found = read_record(view, UNMAPPED, STATED, ignored=("schema", *ASKED))
    view.raise_gathered()
    return Unmapped(
        problem,
        found["status"],
        found["reason"],
        found["method"],
        found["seconds"],
        found.get("bound"),
        Counts(dict(found["counts"])),
        found["trace"],
        provenance_of(found),
        found["digest"],
        document.digest(data),
        ended_of(found),
    )
