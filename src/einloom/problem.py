"""What is asked: workload, machine, mapspace, objective and budget; and what a proof looks like. Frozen data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from types import MappingProxyType
from typing import Literal, cast, get_args

from .cost.record import Cost
from .errors import SpecError, nearest
from .machine.levels import Machine
from .mapspace.space import Mapspace
from .workload.einsum import Workload

MODEL_VERSION = "1"
LatencyRule = Literal["einsum", "tile"]
OBJECTIVES = ("energy", "latency", "edp", "traffic")


@dataclass(frozen=True, slots=True)
class Objective:
    """What is minimised: ``energy`` (J), ``latency`` (s), ``edp`` (J s) or ``traffic:MEMORY`` (bits)."""

    name: str
    memory: str | None = None

    def value(self, cost: Cost) -> float:
        if self.name == "energy":
            return cost.energy
        if self.name == "latency":
            return cost.latency
        if self.name == "edp":
            return cost.edp
        assert self.memory is not None
        return float(cost.traffic(self.memory))

    @property
    def unit(self) -> str:
        return {"energy": "J", "latency": "s", "edp": "J s", "traffic": "bit"}[self.name]

    def __str__(self) -> str:
        return f"traffic:{self.memory}" if self.name == "traffic" else self.name


def objective(text: str, machine: Machine) -> Objective:
    """Read an objective's name.

    Raises SpecError with a suggestion for an unknown objective or memory.
    """
    from difflib import get_close_matches

    name, _, memory = text.partition(":")
    if name not in OBJECTIVES:
        close = get_close_matches(name, OBJECTIVES, 1)
        raise SpecError(
            f"unknown objective {text!r}; known are energy, latency, edp and traffic:MEMORY",
            suggestion=close[0] if close else None,
        )
    if name != "traffic":
        if memory:
            raise SpecError(f"objective {name!r} takes no memory", suggestion=name)
        return Objective(name)
    names = [m.name for m in machine.memories]
    if memory not in names:
        close = get_close_matches(memory, names, 1)
        raise SpecError(
            f"objective {text!r} names no memory of {machine.name} ({', '.join(names)})",
            suggestion=f"traffic:{close[0]}" if close else f"traffic:{names[0]}",
        )
    return Objective(name, memory)


def known_rule(text: str) -> LatencyRule:
    """The latency rule of this name. Raises SpecError with a suggestion for any other."""
    for name in get_args(LatencyRule):
        if name == text:
            return cast(LatencyRule, name)
    known = get_args(LatencyRule)
    raise SpecError(f"unknown latency rule {text!r}; known: {', '.join(known)}", suggestion=nearest(text, known))


@dataclass(frozen=True, slots=True)
class Problem:
    """One mapping problem."""

    workload: Workload
    machine: Machine
    mapspace: Mapspace
    objective: Objective
    latency_rule: LatencyRule = "einsum"


@dataclass(frozen=True, slots=True)
class Budget:
    """When a search stops by itself: after `seconds` of wall time or `steps` evaluated points; None means no limit."""

    seconds: float | None = None
    steps: int | None = None


class Guarantee(Enum):
    """What a method promises of its answer."""

    OPTIMAL = "optimal"
    BOUNDED = "bounded"
    NONE = "none"


@dataclass(frozen=True)
class Certificate:
    """Proof data of a result: `value` was reached, nothing in `mapspace` is below `bound`.

    counts: points seen and points dropped, by pruning rule.
    """

    guarantee: Guarantee
    value: float
    bound: float
    mapspace: str
    counts: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def gap(self) -> float:
        """(value - bound) / value; 0 when the value is proven optimal."""
        return 0.0 if self.value == 0 else max(0.0, (self.value - self.bound) / self.value)

    def __reduce__(self) -> tuple[object, ...]:
        return (_rebuild, (self.guarantee, self.value, self.bound, self.mapspace, dict(self.counts)))


def _rebuild(guarantee: Guarantee, value: float, bound: float, mapspace: str, counts: dict[str, int]) -> Certificate:
    return Certificate(guarantee, value, bound, mapspace, MappingProxyType(counts))
