"""What is known of every machine of a family, and which machines no other beats in value and cost."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf
from typing import Literal

from ..dataclass import dataclass
from ..errors import Ended
from ..once import cached_property
from ..problem import Objective
from ..report.text.results import bounding, joules, objective_value, seconds
from ..report.text.table import columns, csv_text
from ..result import Result
from ..sweep.tasks import Answer
from .family import FamilyMember, MachineFamily
from .regions import EQUAL, Archive, Point, Region, distance, least, scaled, staircase, summed

How = Literal["searched", "neighbour", "beaten", "open"]
"""Where the answer for a machine comes from: a search; the mapping and the bound of other machines; nowhere, because
another machine costs no more and has no larger value than this one has at least; or nowhere yet."""
FEW = 20  # machines that a table prints
TIES = 4  # machines as good as one of those that are named
REASONS = ("energy in", "bound by")


@dataclass(frozen=True)
class ExploredMachine:
    """What is known of one machine. answers: for each workload, None where there is none. regions: for each workload
    where all its mappings lie (`regions`); empty where none exists. files: where the answers are, below the folder.
    weights: of the workloads."""

    member: FamilyMember
    how: How
    answers: tuple[Answer | None, ...]
    regions: tuple[Region, ...]
    files: tuple[str, ...]
    weights: tuple[float, ...]

    @cached_property
    def points(self) -> Region:
        """The weighted sums of the workloads' values, or of energies and of latencies that no other sum beats; none if
        a workload has no mapping."""
        found = [points_of(one) for one in self.answers if isinstance(one, Result)]
        return summed(self.weights, found) if len(found) == len(self.weights) else ()

    @cached_property
    def region(self) -> Region:
        """Where all such sums lie."""
        return summed(self.weights, self.regions)

    @cached_property
    def gap(self) -> float | None:
        """(value - bound) / value; for ``pareto`` by which part energy and latency of some mapping may both be smaller
        than those of all known ones. None without a value."""
        return distance(self.points, self.region) if self.points else None

    @property
    def reasons(self) -> tuple[str, str]:
        """Where most of the energy goes, and what bounds most of the latency, each with its share; of a Pareto set's
        mapping of least EDP. Empty without all answers."""
        energies, latencies = dict[str, float](), dict[str, float]()
        if not self.points:
            return "", ""
        for weight, one in zip(self.weights, self.answers, strict=True):
            assert isinstance(one, Result)
            for (component,), joule in one.cost.energy_by("component").items():
                energies[str(component)] = energies.get(str(component), 0.0) + weight * joule
            for einsum, second in one.cost.einsum_latency:
                component = bounding(one, einsum)
                latencies[component] = latencies.get(component, 0.0) + weight * second
        return _most(energies), _most(latencies)

    @property
    def legal(self) -> bool:
        """False if it is proven that a workload has no mapping, here or on a machine that holds more."""
        return all(self.regions)


@dataclass(frozen=True)
class ExploredFamily:
    """The answers for all machines of a family, in its order."""

    family: MachineFamily
    objective: Objective
    machines: tuple[ExploredMachine, ...]

    @property
    def pareto(self) -> bool:
        """True if every machine has a Pareto set of energy and latency."""
        return self.objective.name == "pareto"

    def value(self, known: ExploredMachine) -> float | None:
        """The weighted sum of the workloads' values; for ``pareto`` the least product of an energy and its latency.
        None if a workload has no mapping."""
        return least(known.points, self.pareto) if known.points else None

    def bound(self, known: ExploredMachine) -> float:
        """What that value is at least; infinite where it is proven that there is none."""
        return least(known.region, self.pareto)

    @cached_property
    def front(self) -> tuple[ExploredMachine, ...]:
        """The machines that no other beats: none costs less, or as much, and has a smaller value, or as small a one.

        For ``pareto`` those with a point that none beats; without costs, those of the least value. By rising cost.
        """
        places = dict.fromkeys(place for place, _ in self.front_points)
        return tuple(self.machines[place] for place in places)

    @cached_property
    def front_points(self) -> tuple[tuple[int, Point], ...]:
        """The place of a machine and a point of it: those that no machine beats that costs no more. By rising cost."""
        costs = [known.member.cost or 0.0 for known in self.machines]
        found = [(costs[i], point, i) for i, known in enumerate(self.machines) for point in known.points]
        archive, kept = Archive(), list[tuple[int, Point]]()
        for cost, point, i in sorted(found):
            if not archive.beats(cost, ((point[0] * (1 + EQUAL), point[1] * (1 + EQUAL)),)):
                archive.add(cost, (point,))
                kept.append((i, point))
        return tuple(kept) if self.family.costs or self.pareto else tuple(kept[-1:])

    @property
    def counts(self) -> dict[str, int]:
        """How many machines are known how; ``no mapping``: of those, how many are proven to have none."""
        found: dict[str, int] = {how: sum(one.how == how and one.legal for one in self.machines) for how in SAID}
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
        return max((one.gap for one in self.machines if one.gap is not None), default=None)

    @cached_property
    def records(self) -> tuple[dict[str, object], ...]:
        """Plain data in SI units: for every machine and workload what is known, None where nothing is. For ``pareto``
        every point of a machine instead, of several workloads the weighted sums."""
        if self.pareto:
            best = set(self.front_points)
            return tuple(one for i, known in enumerate(self.machines) for one in _points(self, known, i, best))
        front = set(map(id, self.front))
        return tuple(
            _record(self, known, i, id(known) in front)
            for known in self.machines
            for i in range(len(self.family.workloads))
        )

    def to_csv(self) -> str:
        """A line per record, heads first."""
        return csv_text(self.records)

    def __str__(self) -> str:
        """How many machines are known how, and those that no other beats."""
        return f"{self.counted}\n\n{self._table}\n"

    @property
    def counted(self) -> str:
        """The family, and how many machines are known how, in two lines."""
        many, works = len(self.machines), len(self.family.workloads)
        counts = self.counts
        parts = [f"{counts[how]} {said}" for how, said in SAID.items() if counts[how]]
        parts += [f"{counts['no mapping']} without any legal mapping"] if counts["no mapping"] else []
        gap = "" if self.worst_gap is None else f"; largest gap {self.worst_gap:.2%}"
        head = f"{self.family.name}: {many} machine{'s' * (many != 1)}, {works} workload{'s' * (works != 1)}"
        weighted = ", with weights " + ", ".join(f"{n:g}" for n in self.family.weights)
        head += weighted if set(self.family.weights) != {1.0} else ""
        return f"{head}, {self.objective}\n  {', '.join(parts)}{gap}"

    @property
    def _table(self) -> str:
        if not self.front:
            return "no machine has a mapping" + (" yet" if any(known.legal for known in self.machines) else "")
        costs = self.family.costs
        measured = ("points", "energy", "latency") if self.pareto else (self.objective.measured,)
        heads = (*self.family.parameters, *([costs] if costs else []), *measured, "gap", *REASONS)
        rows = []
        for known in self.front[:FEW]:
            cost = [said_cost(costs, known.member.cost or 0.0)] if costs else []
            texts = [text for _, text in known.member.values]
            rows.append([*texts, *cost, *self.said(known), f"{known.gap or 0.0:.2%}", *known.reasons])
        more = len(self.front) - FEW
        left = f"\n  {self.alike}" if self.alike else ""
        left += f"\n  {self.doubt}" if self.doubt else ""
        return columns(self._title, heads, rows, left=()) + (f"\n  and {more} more" if more > 0 else "") + left

    @property
    def _title(self) -> str:
        """What the front is, and that it may change where it may."""
        costs = " and costs no more" if self.family.costs else ""
        if self.pareto:
            title = f"no other machine has a mapping with less energy and latency{costs}"
        else:
            title = f"no other machine has a smaller {self.objective}{costs}" if costs else "the best machine"
        return f"so far {title}" if self.doubt else title

    @property
    def ties(self) -> tuple[ExploredMachine, ...]:
        """Other machines that are known to cost and to reach as much as one of the front."""
        shown = set(map(id, self.front))
        best = {(one.member.cost or 0.0 if self.family.costs else 0.0, one.points) for one in self.front}

        def same(one: ExploredMachine) -> bool:
            cost = one.member.cost or 0.0 if self.family.costs else 0.0
            return any(cost == other and _alike(one.points, points) for other, points in best)

        return tuple(one for one in self.machines if one.points and id(one) not in shown and same(one))

    @property
    def alike(self) -> str:
        """Which machines those are, in words; empty if there are none."""
        if not self.ties:
            return ""
        more = len(self.ties) - TIES
        listed = "; ".join(one.member.label for one in self.ties[:TIES])
        return f"as good as one of these: {listed}" + (f"; and {more} more" if more > 0 else "")

    @cached_property
    def doubt(self) -> str:
        """What may still change the front, in words; empty if nothing does: machines without answers or with a gap,
        on the front or not, that may have a point which no known one beats."""
        archive = Archive()
        for i, point in self.front_points:
            archive.add(self.machines[i].member.cost or 0.0, (point,))
        able = sum(
            not archive.beats(known.member.cost or 0.0, scaled(known.region, (1 + EQUAL, 1 + EQUAL)))
            for known in self.machines
            if known.legal
        )
        machines = "1 machine may have a better mapping" if able == 1 else f"{able} machines may have better mappings"
        return f"{machines} than any that is known, and change this front" if able else ""

    def said(self, known: ExploredMachine) -> list[str]:
        """The value of a machine in words; for ``pareto`` how many of its points are on the front, and the energies and
        latencies of these."""
        if not self.pareto:
            value = self.value(known)
            return ["" if value is None else objective_value(self.objective, value, 6)]
        best = {point for i, point in self.front_points if self.machines[i] is known}
        points = sorted(best) or known.points
        if not points:
            return ["", "", ""]
        (energy, slow), (most, fast) = points[0], points[-1]
        return [str(len(best)), _between(joules(energy), joules(most)), _between(seconds(slow), seconds(fast))]


SAID: dict[How, str] = {
    "searched": "searched",
    "neighbour": "known from other machines",
    "beaten": "beaten by another machine whatever their mapping",
    "open": "open",
}


def _between(one: str, other: str) -> str:
    """Two values with units as a range, a common unit once.

    >>> _between("1.5 mJ", "2 mJ"), _between("1.5 mJ", "2 J"), _between("2 J", "2 J")
    ('1.5 to 2 mJ', '1.5 mJ to 2 J', '2 J')
    """
    value, _, unit = one.partition(" ")
    if one == other:
        return one
    return f"{value if other.endswith(f' {unit}') else one} to {other}"


def _how(known: ExploredMachine) -> str:
    return known.how if known.legal else "no mapping"


def _alike(points: Region, others: Region) -> bool:
    """True if two machines have the same points, but for rounding."""
    if len(points) != len(others):
        return False
    pairs = zip(points, others, strict=True)
    return all(abs(a - b) <= EQUAL * max(a, b) for one, other in pairs for a, b in zip(one, other, strict=True))


def _most(found: dict[str, float]) -> str:
    """The largest part with its share."""
    total = sum(found.values())
    if not total:
        return "-"
    name = max(found, key=lambda one: found[one])
    return f"{name} {found[name] / total:.0%}"


def said_cost(costs: str, cost: float) -> str:
    """A cost in words: an area in square millimetres."""
    return f"{cost * 1e6:.4g} mm2" if costs == "area" else f"{cost:.6g}"


def points_of(one: Result) -> Region:
    """The value of an answer, and 0; the energies and latencies of a Pareto set."""
    return staircase((point.energy, point.latency) for point in one.front) or ((one.value, 0.0),)


def _points(
    all_of: ExploredFamily, known: ExploredMachine, i: int, best: set[tuple[int, Point]]
) -> Iterator[dict[str, object]]:
    """A record for each point of the machine at place i, or one without numbers."""
    found: dict[str, object] = dict(known.member.values)
    if all_of.family.costs:
        found[all_of.family.costs] = known.member.cost
    status = "found" if known.points else "infeasible" if not known.legal else "unknown"
    found |= {"workload": " + ".join(all_of.family.workloads), "how": _how(known), "status": status}
    files = [name for name, one in zip(known.files, known.answers, strict=True) if one is not None]
    for point in known.points or (None,):
        energy, latency = point or (None, None)
        more = {"gap": known.gap, "front": (i, point) in best, "file": " ".join(files)}
        yield {**found, "energy": energy, "latency": latency, **more}


def _record(all_of: ExploredFamily, known: ExploredMachine, i: int, best: bool) -> dict[str, object]:
    answer = known.answers[i]
    found: dict[str, object] = dict(known.member.values)
    if all_of.family.costs:
        found[all_of.family.costs] = known.member.cost
    found |= {"workload": all_of.family.workloads[i], "objective": all_of.objective.measured, "how": _how(known)}
    none: dict[str, object] = dict.fromkeys(("value", "energy", "latency", "bound", "gap", "method", "seconds", "file"))
    low = least(known.regions[i], False)
    bound = low if 0 < low < inf else None
    status = "found" if isinstance(answer, Result) else "unknown" if answer is None else answer.status
    status = "infeasible" if low == inf else status
    found |= {"status": status, **none, "bound": bound, "front": best}
    if answer is not None:
        found |= {"method": answer.method, "seconds": answer.seconds, "file": known.files[i]}
    if isinstance(answer, Result):
        found |= {"value": answer.value, "energy": answer.cost.energy, "latency": answer.cost.latency}
        found["gap"] = max(0.0, 1 - low / answer.value) if answer.value > 0 else 0.0
    return found
