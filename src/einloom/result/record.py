"""What a search or an evaluation found: problem, mapping, cost, certificate, trace and where it came from.

Searches and verbs make `Result`s, reports and `verify` read them; `files` makes their plain data and reads it back.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field
from typing import TYPE_CHECKING, Any

from ..cost.breakdown import Cost, Latencies
from ..cost.evaluate import evaluate, views
from ..dataclass import dataclass
from ..errors import Ended
from ..machine.levels import Machine
from ..mapping.text import print_mapping
from ..mapping.tree import Mapping
from ..mapspace.space import Mapspace
from ..problem import MODEL_VERSION, Certificate, Guarantee, LatencyRule, Objective, Problem
from ..problem.read_outputs import read_outputs
from ..problem.whole_rows import cut_rows
from ..reading import writing
from ..reading.located import file_text
from ..reporting import Drawn, reported
from ..version import VERSION
from ..workload.einsum import Workload
from . import document

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class TracePoint:
    """The best value and the proven bound known `seconds` after the start; None where nothing was known."""

    seconds: float
    best: float | None
    bound: float | None


@dataclass(frozen=True, slots=True)
class Provenance:
    """Which einloom made a result, on which version of the model, and how many of its numbers are assumed.

    facts: numbers of workload and machine that name a source; assumed: those among them that are assumptions.
    """

    version: str
    model_version: str
    facts: int
    assumed: int

    @property
    def assumed_share(self) -> float:
        return self.assumed / self.facts if self.facts else 0.0

    @staticmethod
    def of(workload: Workload, machine: Machine) -> Provenance:
        kinds = [fact.kind for fact in (*workload.facts, *machine.facts)]
        return Provenance(VERSION, MODEL_VERSION, len(kinds), kinds.count("assumed"))


@dataclass(frozen=True, slots=True)
class FrontPoint:
    """One point of an energy-latency Pareto set: joules, seconds, and a mapping that reaches them."""

    energy: float
    latency: float
    mapping: Mapping


class Answered(Drawn):
    """What an answer says of its problem."""

    problem: Problem

    @property
    def workload(self) -> Workload:
        return self.problem.workload

    @property
    def machine(self) -> Machine:
        return self.problem.machine

    @property
    def mapspace(self) -> Mapspace:
        return self.problem.mapspace

    @property
    def objective(self) -> Objective:
        return self.problem.objective

    @property
    def latency_rule(self) -> LatencyRule:
        return self.problem.latency_rule

    @property
    def notes(self) -> tuple[str, ...]:
        """What the problem says to no effect: selectors that select none of its tensors."""
        return self.problem.notes

    def to_data(self) -> dict[str, Any]:
        """Plain data, as the JSON file holds it, digest included."""
        raise NotImplementedError

    def to_json(self) -> str:
        return document.text(self.to_data())

    def write(self, path: str | Path) -> None:
        """Write the answer as JSON, whole or not at all."""
        writing.write(self.to_json(), path)


@dataclass(frozen=True, repr=False)
class Result(Answered):
    """One mapping of one problem, with its price and what is proven of it.

    certificate: None if nothing was searched. recorded_digest, found_digest: of a result that was read from a file,
    what the file says of itself and what its content gives. recorded_notes: what that file notes of its problem.
    latencies: how long it takes, seen in several ways; None in a file that does not say. front: the Pareto set,
    ascending in energy, if that was the objective; where it is not proven, what is known of it. ended: what ended the
    search before it was done, if anything did.
    """

    problem: Problem
    mapping: Mapping
    cost: Cost
    certificate: Certificate | None = None
    method: str = "evaluate"
    seconds: float = 0.0
    trace: tuple[TracePoint, ...] = ()
    provenance: Provenance = field(default=Provenance(VERSION, MODEL_VERSION, 0, 0))
    recorded_digest: str | None = field(default=None, compare=False)
    found_digest: str | None = field(default=None, compare=False)
    latencies: Latencies | None = None
    front: tuple[FrontPoint, ...] = ()
    ended: Ended | None = None
    recorded_notes: tuple[str, ...] | None = field(default=None, compare=False)

    @staticmethod
    def of(
        problem: Problem,
        mapping: Mapping,
        cost: Cost | None = None,
        *,
        certificate: Certificate | None = None,
        method: str = "evaluate",
        seconds: float = 0.0,
        trace: Iterable[TracePoint] = (),
    ) -> Result:
        """The result of `mapping`; evaluated here if `cost` is not given. Raises IllegalMapping."""
        if cost is None:
            cost = evaluate(problem.workload, problem.machine, mapping, problem.latency_rule)
        provenance = Provenance.of(problem.workload, problem.machine)
        seen = views(problem.workload, problem.machine, mapping, cost)
        return Result(problem, mapping, cost, certificate, method, seconds, tuple(trace), provenance, latencies=seen)

    @property
    def notes(self) -> tuple[str, ...]:
        """What the problem says to no effect, outputs that are read, and where rows of a softmax are cut."""
        found = (*self.problem.notes, *read_outputs(self.workload, self.machine))
        return (*found, *cut_rows(self.workload, self.machine, self.mapping))

    @property
    def optimal(self) -> bool:
        """True if its certificate says that nothing of the space is better; of a front, that it is all of it."""
        return self.certificate is not None and self.certificate.guarantee is Guarantee.OPTIMAL

    def __repr__(self) -> str:
        """One line: what was mapped onto what, the value, and what is proven of it."""
        found = f"{self.objective} {self.value:.8g} {self.objective.unit}"
        if self.front:
            some = "a front" if self.optimal else "part of a front"
            found = f"{some} of {len(self.front)} mappings, least EDP {self.value:.8g} J s"
        proven = "evaluated"
        if self.certificate is not None:
            gap = f", gap {self.certificate.gap:.3%}" if self.certificate.guarantee is Guarantee.BOUNDED else ""
            proven = f"{self.certificate.guarantee.value}{gap}"
        return f"<Result: {self.workload.name} on {self.machine.name}, {found}, {proven}>"

    @property
    def energy(self) -> float:
        """Joules."""
        return self.cost.energy

    @property
    def latency(self) -> float:
        """Seconds."""
        return self.cost.latency

    @property
    def edp(self) -> float:
        """Energy-delay product, J s."""
        return self.cost.edp

    @property
    def value(self) -> float:
        """The objective's value."""
        return self.objective.value(self.cost)

    @property
    def mapping_text(self) -> str:
        """The mapping as text; `parse_mapping` reads it back."""
        return print_mapping(self.mapping, self.workload)

    def to_data(self) -> dict[str, Any]:
        data: dict[str, Any] = reported("result_data", self)
        return data

    def report(self, path: str | Path) -> None:
        """Draw the result as one HTML file that needs no network. Raises SpecError if it cannot be written."""
        reported("page", self, path)

    def to_frame(self, what: str = "actions") -> Any:
        """A pandas DataFrame of `what`: actions, energy, traffic, latency, occupancy, trace or front.

        Raises SpecError for anything else, MissingExtra without pandas.
        """
        return reported("frame", self, what)

    @staticmethod
    def from_json(text: str, file: str = "<result>") -> Result:
        """The result that a JSON text holds. Raises SpecError with the place of whatever is wrong."""
        found: Result = reported("parse_result", text, file)
        return found

    @staticmethod
    def read(path: str | Path) -> Result:
        """The result in a file. Raises SpecError with the place of whatever is wrong."""
        return Result.from_json(file_text(path), str(path))
