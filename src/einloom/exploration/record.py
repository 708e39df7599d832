"""What is known of every machine of a family, and which machines no other beats in value and cost."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import Literal

from ..dataclass import dataclass
from ..errors import Ended
from ..once import cached_property
from ..problem import Objective
from ..report.text.results import objective_value
from ..report.text.table import columns, csv_text
from ..result import Result
from ..sweep.tasks import Answer
from .family import FamilyMember, MachineFamily

How = Literal["searched", "neighbour", "beaten", "open"]
"""Where the answer for a machine comes from: a search; the mapping and the bound of other machines; nowhere, because
another machine costs no more and has no larger value than this one has at least; or nowhere yet."""
FEW = 20  # machines that a table prints


@dataclass(frozen=True, slots=True)
class ExploredMachine:
    """What is known of one machine. answers: for each workload, None where there is none. bounds: for each workload
    what its value is at least, 0 where nothing is proven; infinite where no mapping exists. files: where the answers
    are, below the folder."""

    member: FamilyMember
    how: How
    answers: tuple[Answer | None, ...]
    bounds: tuple[float, ...]
    files: tuple[str, ...]

    @property
    def legal(self) -> bool:
        """False if it is proven that a workload has no mapping, here or on a machine that holds more."""
        return max(self.bounds) < inf


@dataclass(frozen=True)
class ExploredFamily:
    """The answers for all machines of a family, in its order."""

    family: MachineFamily
    objective: Objective
    machines: tuple[ExploredMachine, ...]

    def value(self, known: ExploredMachine) -> float | None:
        """The weighted sum of the workloads' values; None if one has no mapping."""
        values = [one.value for one in known.answers if isinstance(one, Result)]
        return _sum(self.family.weights, values) if len(values) == len(self.family.weights) else None

    def bound(self, known: ExploredMachine) -> float:
        """What that sum is at least."""
        return _sum(self.family.weights, known.bounds)

    def gap(self, known: ExploredMachine) -> float | None:
        """(value - bound) / value; None without a value."""
        value = self.value(known)
        return None if value is None else max(0.0, 1 - self.bound(known) / value) if value > 0 else 0.0

    @cached_property
    def front(self) -> tuple[ExploredMachine, ...]:
        """The machines that no other beats: none costs less, or as much, and has a smaller value, or as small a one.
        Without costs, those of the least value. By rising cost."""
        found: list[ExploredMachine] = []
        pairs = [(value, known) for known in self.machines if (value := self.value(known)) is not None]
        for value, known in sorted(pairs, key=lambda pair: (pair[1].member.cost or 0.0, pair[0])):
            if not found or value < (self.value(found[-1]) or 0.0) * (1 - 1e-9):
                found.append(known)
        return tuple(found) if self.family.costs else tuple(found[-1:])

    @property
    def counts(self) -> dict[str, int]:
        """How many machines are known how; ``no mapping``: of those, how many are proven to have none."""
        found: dict[str, int] = {how: sum(one.how == how and one.legal for one in self.machines) for how in _SAID}
        return {**found, "no mapping": sum(not one.legal for one in self.machines)}

    @property
    def unsettled(self) -> int:
        """How many machines are open, or have an answer of a search that was stopped."""
        stopped = [
            any(one is not None and one.ended is Ended.STOPPED for one in known.answers) for known in self.machines
        ]
        return sum(known.how == "open" or ended for known, ended in zip(self.machines, stopped, strict=True))

    @property
    def worst_gap(self) -> float | None:
        """The largest gap of the machines with a mapping."""
        gaps = [gap for one in self.machines if (gap := self.gap(one)) is not None]
        return max(gaps, default=None)

    @property
    def records(self) -> tuple[dict[str, object], ...]:
        """Plain data in SI units: for every machine and workload what is known, None where nothing is."""
        best = set(map(id, self.front))
        return tuple(
            _record(self, known, i, id(known) in best)
            for known in self.machines
            for i in range(len(self.family.workloads))
        )

    def to_csv(self) -> str:
        """A line per machine and workload, heads first."""
        return csv_text(self.records)

    def __str__(self) -> str:
        """How many machines are known how, and those that no other beats."""
        return f"{self.counted}\n\n{self._table}\n"

    @property
    def counted(self) -> str:
        """The family, and how many machines are known how, in two lines."""
        many, works = len(self.machines), len(self.family.workloads)
        counts = self.counts
        parts = [f"{counts[how]} {said}" for how, said in _SAID.items() if counts[how]]
        parts += [f"{counts['no mapping']} without any legal mapping"] if counts["no mapping"] else []
        gap = "" if self.worst_gap is None else f"; largest gap {self.worst_gap:.2%}"
        head = f"{self.family.name}: {many} machine{'s' * (many != 1)}, {works} workload{'s' * (works != 1)}"
        return f"{head}, {self.objective}\n  {', '.join(parts)}{gap}"

    @property
    def _table(self) -> str:
        if not self.front:
            return "no machine has a mapping yet"
        costs = self.family.costs
        heads = (*self.family.parameters, *([costs] if costs else []), self.objective.measured, "gap")
        rows = []
        for known in self.front[:FEW]:
            gap, value = self.gap(known), self.value(known)
            assert gap is not None and value is not None
            cost = [said_cost(costs, known.member.cost or 0.0)] if costs else []
            texts = [text for _, text in known.member.values]
            rows.append([*texts, *cost, objective_value(self.objective, value, 6), f"{gap:.2%}"])
        more = len(self.front) - FEW
        title = f"no other machine has a smaller {self.objective} and costs no more" if costs else "the best machine"
        return columns(title, heads, rows, left=()) + (f"\n  and {more} more" if more > 0 else "")


_SAID: dict[How, str] = {
    "searched": "searched",
    "neighbour": "known from other machines",
    "beaten": "beaten by another machine whatever their mapping",
    "open": "open",
}


def said_cost(costs: str, cost: float) -> str:
    """A cost in words: an area in square millimetres."""
    return f"{cost * 1e6:.4g} mm2" if costs == "area" else f"{cost:.6g}"


def _sum(weights: Sequence[float], values: Sequence[float]) -> float:
    return sum(weight * value for weight, value in zip(weights, values, strict=True))


def _record(all_of: ExploredFamily, known: ExploredMachine, i: int, best: bool) -> dict[str, object]:
    answer = known.answers[i]
    found: dict[str, object] = dict(known.member.values)
    if all_of.family.costs:
        found[all_of.family.costs] = known.member.cost
    found |= {"workload": all_of.family.workloads[i], "objective": all_of.objective.measured, "how": known.how}
    none: dict[str, object] = dict.fromkeys(("value", "energy", "latency", "bound", "gap", "method", "seconds", "file"))
    bound = known.bounds[i] if 0 < known.bounds[i] < inf else None
    status = "found" if isinstance(answer, Result) else "unknown" if answer is None else answer.status
    status = "infeasible" if known.bounds[i] == inf else status
    found |= {"status": status, **none, "bound": bound, "front": best}
    if answer is not None:
        found |= {"method": answer.method, "seconds": answer.seconds, "file": known.files[i]}
    if isinstance(answer, Result):
        found |= {"value": answer.value, "energy": answer.cost.energy, "latency": answer.cost.latency}
        found["gap"] = max(0.0, 1 - known.bounds[i] / answer.value) if answer.value > 0 else 0.0
    return found
