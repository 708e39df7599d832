"""What an explanation says, as data. Every claim names the run of a search that shows it, by its number in `runs`."""

from __future__ import annotations

from dataclasses import field
from typing import Literal

from ..dataclass import dataclass
from ..problem import Problem
from ..reading import writing
from ..reporting import reported

Outcome = Literal["feasible", "infeasible", "solved", "unfinished"]
Status = Literal["infeasible", "mapped", "unfinished"]
Resource = Literal["capacity", "time", "energy"]
Side = Literal["fused", "unfused"]


@dataclass(frozen=True, slots=True)
class SearchRun:
    """One run of the exact search: what was asked, and what came of it.

    ``feasible`` or ``infeasible``: it asked only whether a legal mapping exists; ``solved``: for the optimum.
    """

    number: int
    question: str
    outcome: Outcome
    detail: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Member:
    """A constraint in a conflict. place: where it is said; text: what it says.

    without: the run that has a mapping when this one alone of the conflict is given up; None if that is not known.
    """

    place: str
    text: str
    without: int | None


@dataclass(frozen=True, slots=True)
class Conflict:
    """Constraints that contradict each other, whatever becomes of all others. shown: the run that finds no mapping.

    minimal: giving up any one member makes it no conflict. smallest: no conflict has fewer members.
    """

    members: tuple[Member, ...]
    shown: int
    minimal: bool
    smallest: bool


@dataclass(frozen=True, slots=True)
class Change:
    """One edit: what is said at `place` now, and what would be said instead."""

    place: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class Relaxation:
    """Edits that together make the problem feasible, and the run that shows it.

    refused: the run that shows that the next smaller step of the last edit is not enough; None where there is no such
    step or it was not tried. value: optimum of the relaxed problem, found in run `solved`; None if not asked for.
    mapping: a legal mapping of the relaxed problem as text. problem: the relaxed problem (not in files).
    """

    changes: tuple[Change, ...]
    shown: int
    refused: int | None
    value: float | None = None
    solved: int | None = None
    mapping: str = ""
    problem: Problem | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Share:
    """What part of something the given mapping takes; no run, only its price.

    ``capacity``: bits of the fullest moment over the size of the memory. ``time``: seconds during which the component
    is the slowest of its Einsum, over the seconds of all Einsums. ``energy``: over the whole energy.
    """

    component: str
    resource: Resource
    share: float
    detail: str


@dataclass(frozen=True, slots=True)
class Gain:
    """What a larger machine would bring: the optimum with `after` instead of `before`.

    gain: (old - new) / old; negative if it is worse. value, gain and run are None where nothing was run; then `note`
    says why.
    """

    place: str
    value: float | None
    gain: float | None
    run: int | None
    before: str = ""
    after: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True)
class FusionAlternative:
    """The best mapping in which one intermediate is on the other side: `side` says which side that is.

    memory: what backs it now. value, energy (J), latency (s) and traffic (bits of the outermost memory) of that best
    mapping. loss: (new - old) / old. Where there is none, `blame` names what forbids it; where it is not known, `note`
    says why.
    """

    tensor: str
    memory: str
    side: Side
    value: float | None = None
    energy: float | None = None
    latency: float | None = None
    traffic: int | None = None
    loss: float | None = None
    run: int | None = None
    blame: Conflict | None = None
    note: str = ""


@dataclass(frozen=True)
class Explanation:
    """Why a problem has no mapping, or why its best mapping is what it is.

    status: ``infeasible``, ``mapped``, or ``unfinished`` where not even that is known. reason: in one sentence.
    conflicts: the first is the smallest that was found, further ones share no member with it or with each other.
    relaxations: smallest edits that help. value: optimum or value of the result that shares, gains and alternatives
    speak of; base: the run that found it, None if the result itself says so. complete: False if a budget, an
    interruption or an unanswered question left something open; left: which of them. of: digest of the result file that
    is explained. held: the numbers of tiles that every run kept, where the answer is the best of several.
    """

    problem: Problem
    status: Status
    reason: str
    runs: tuple[SearchRun, ...]
    complete: bool
    conflicts: tuple[Conflict, ...] = ()
    relaxations: tuple[Relaxation, ...] = ()
    value: float | None = None
    base: int | None = None
    shares: tuple[Share, ...] = ()
    gains: tuple[Gain, ...] = ()
    alternatives: tuple[FusionAlternative, ...] = ()
    of: str | None = None
    left: str | None = None
    held: str | None = None
    recorded_digest: str | None = field(default=None, compare=False)
    found_digest: str | None = field(default=None, compare=False)

    def run(self, number: int) -> SearchRun:
        """The run of this number."""
        return self.runs[number - 1]

    def to_json(self) -> str:
        """The explanation as a JSON document, sealed by a digest."""
        return str(reported("explanation_text", self))

    def write(self, path: str) -> None:
        """Write it as JSON, whole or not at all."""
        writing.write(self.to_json(), path)

    def __str__(self) -> str:
        """The explanation as text of at most 100 columns."""
        return str(reported("explained", self))
