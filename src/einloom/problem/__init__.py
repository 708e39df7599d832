"""What is asked: workload, machine, mapspace, objective and budget; and what a proof looks like. Frozen data."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import field, replace
from enum import Enum
from math import inf
from numbers import Integral, Real
from typing import Any, Literal, cast, get_args

from ..cost.breakdown import Cost
from ..dataclass import dataclass
from ..errors import Ended, SpecError, nearest
from ..machine.levels import Machine
from ..mapspace.space import Mapspace
from ..workload.einsum import Workload
from .counts import Counts
from .events import uncounted
from .selections import unused_selectors

MODEL_VERSION = "1"
LatencyRule = Literal["einsum", "tile"]
METHODS = (
    "exact",
    "exhaustive",
    "principles",
    "random",
    "anneal",
    "genetic",
    "local",
    "tileflow",
    "dat",
    "gradient",
    "bayes",
    "auto",
)
"""The search methods that ship, by name: what reads a saved answer imports none of them. `search.registry` makes them.
"""
PRICED = ("evaluate", "explore")
"""What stands for the method of an answer that no search made: a mapping that was given, or that another machine has.
"""
OBJECTIVES = ("energy", "latency", "edp", "pareto", "energy^A*latency^B", "traffic")
_FACTOR = re.compile(r"(energy|latency)(?:\^(\d{1,3}(?:\.\d{1,6})?))?")


@dataclass(frozen=True, slots=True)
class Objective:
    """What is minimised.

    ``energy`` (J), ``latency`` (s), ``edp`` (J s), ``product``: energy to the power `powers[0]` times latency to the
    power `powers[1]`, ``traffic`` of a `memory` (bits), or ``pareto``: every mapping that no other beats in energy and
    latency; its value is the least EDP among them.
    """

    name: str
    memory: str | None = None
    powers: tuple[float, float] = (1.0, 1.0)

    def value(self, cost: Cost) -> float:
        if self.name == "energy":
            return cost.energy
        if self.name == "latency":
            return cost.latency
        if self.name in ("edp", "pareto"):
            return cost.edp
        if self.name == "product":
            return float(cost.energy ** self.powers[0] * cost.latency ** self.powers[1])
        assert self.memory is not None
        return float(cost.traffic(self.memory))

    @property
    def measured(self) -> str:
        """What `value` is, in words: the objective, or of a Pareto set the least EDP."""
        return "pareto: least EDP" if self.name == "pareto" else str(self)

    @property
    def degree(self) -> float:
        """The power of a factor by which all energies and latencies (or the traffic) grow."""
        return sum(self.powers) if self.name in ("edp", "product", "pareto") else 1.0

    @property
    def unit(self) -> str:
        if self.name == "product":
            return " ".join(u if p == 1 else f"{u}^{p:.8g}" for u, p in zip("Js", self.powers, strict=True))
        return {"energy": "J", "latency": "s", "edp": "J s", "pareto": "J s", "traffic": "bit"}[self.name]

    def __str__(self) -> str:
        if self.name == "product":
            names = zip(("energy", "latency"), self.powers, strict=True)
            return "*".join(n if p == 1 else f"{n}^{p:.8g}" for n, p in names)
        return f"traffic:{self.memory}" if self.name == "traffic" else self.name


def objective(given: str | Objective, machine: Machine) -> Objective:
    """The objective of this name, or one like that of a result, for this machine.

    Raises SpecError with a suggestion for an unknown objective or memory, and for one that needs time on a machine of
    which nothing has a throughput.
    """
    found = _objective(str(given) if isinstance(given, Objective) else given, machine)
    refuse_timeless(found, machine)
    return found


def refuse_timeless(asked: Objective, machine: Machine) -> None:
    """Raise SpecError for an objective that needs time on a machine of which nothing has a throughput."""
    if asked.name not in ("energy", "traffic") and not keeps_time(machine):
        raise SpecError(
            f"objective {str(asked)!r}: nothing of {machine.name} has a throughput, so every mapping takes 0 s; give a "
            "memory or a compute unit one",
            suggestion="energy",
        )


def free_of_charge(asked: Objective, machine: Machine) -> str | None:
    """A sentence for an objective with energy on a machine of which nothing has an energy or leaks; None for others."""
    keys = ("read_energy", "write_energy", "energy", "leakage")
    if asked.name in ("latency", "traffic"):
        return None
    if any(getattr(component, key, 0) for component in machine.components for key in keys):
        return None
    other = "latency" if keeps_time(machine) else f"traffic:{machine.memories[0].name}"
    return (
        f"objective {str(asked)!r}: nothing of {machine.name} has an energy, so every mapping costs 0 J; give a memory "
        f"a read_energy and a write_energy, or a compute unit an energy; or ask for {other}"
    )


def keeps_time(machine: Machine) -> bool:
    """True if a memory, a toll or a compute unit has a throughput."""
    keys = ("throughput", "read_throughput", "write_throughput")
    return any(getattr(component, key, None) is not None for component in machine.components for key in keys)


def _objective(text: str, machine: Machine) -> Objective:
    name, _, memory = text.partition(":") if isinstance(text, str) else ("", "", "")
    if "*" in name or "^" in name:
        return _product(text)
    plain = [known for known in OBJECTIVES if "^" not in known]
    if name not in plain:
        raise SpecError(
            f"unknown objective {text!r}; known are energy, latency, edp, pareto, energy^A*latency^B and "
            "traffic:MEMORY",
            suggestion=nearest(name, plain),
        )
    if name != "traffic":
        if memory:
            raise SpecError(f"objective {name!r} takes no memory", suggestion=name)
        return Objective(name)
    names = [m.name for m in machine.memories]
    if memory not in names:
        close = nearest(memory, names)
        raise SpecError(
            f"objective {text!r} names no memory of {machine.name} ({', '.join(names)})",
            suggestion=f"traffic:{close or names[0]}",
        )
    return Objective(name, memory)


def _product(text: str) -> Objective:
    """A product such as ``energy^2*latency``; both must occur, each once, with a power above zero."""
    powers: dict[str, float] = {}
    for factor in text.replace(" ", "").split("*"):
        found = _FACTOR.fullmatch(factor)
        if found is None or found[1] in powers:
            raise SpecError(
                f"objective {text!r:.80}: {factor!r:.40} is no factor of energy^A*latency^B",
                suggestion="energy^2*latency",
            )
        powers[found[1]] = float(found[2]) if found[2] else 1.0
    if len(powers) < 2 or not all(0 < power <= 16 for power in powers.values()):
        raise SpecError(
            f"objective {text!r:.80} needs energy and latency, each with a power above 0 and at most 16",
            suggestion="energy^2*latency",
        )
    return Objective("product", powers=(powers["energy"], powers["latency"]))


def known_rule(text: str) -> LatencyRule:
    """The latency rule of this name. Raises SpecError with a suggestion for any other."""
    known = get_args(LatencyRule)
    if text not in known:
        raise SpecError(f"unknown latency rule {text!r}; known: {', '.join(known)}", suggestion=nearest(text, known))
    return cast(LatencyRule, text)


@dataclass(frozen=True, slots=True)
class Problem:
    """One mapping problem."""

    workload: Workload
    machine: Machine
    mapspace: Mapspace
    objective: Objective
    latency_rule: LatencyRule = "einsum"

    @property
    def notes(self) -> tuple[str, ...]:
        """What is said to no effect: a sentence for each selector that selects none of the workload's tensors, and for
        each limit of tiles that no tile has; and one for what of the machine no objective counts."""
        asked = self.mapspace
        unused = unused_selectors(self.workload, self.machine, asked.limits, asked.name)
        return (*(one.message for one in unused), *uncounted(self.machine))


MOMENT = 1e-3  # seconds that a search has at least
_LIMITS: tuple[tuple[str, type, str], ...] = (
    ("seconds", Real, "a number of at least 0"),
    ("steps", Integral, "a whole number of points"),
    ("memory", Integral, "a whole number of bytes"),
)


@dataclass(frozen=True, slots=True)
class Budget:
    """When a search stops by itself: after `seconds` of wall time, after `steps` evaluated points, or when the process
    holds more than `memory` bytes; None means no limit. Only steps give the same answer twice. Raises SpecError for
    what is no such number."""

    seconds: float | None = None
    steps: int | None = None
    memory: int | None = None

    def __post_init__(self) -> None:
        for name, kind, what in _LIMITS:
            value: Any = getattr(self, name)
            if value is None:
                continue
            fits = isinstance(value, kind) and not isinstance(value, bool)
            if not fits or not 0 <= value < inf:
                raise SpecError(f"a budget's {name}: {what} or None, not {value!r:.80}")

    def after(self, seconds: float) -> Budget:
        """What is left for a search when so many seconds are spent: a moment in any case, to draw something."""
        return self if self.seconds is None else replace(self, seconds=max(self.seconds - seconds, MOMENT))

    @property
    def without_memory(self) -> Ended:
        """What ended a search that could get no more memory: this budget, or the machine."""
        return Ended.NO_MEMORY if self.memory is None else Ended.MEMORY


class Guarantee(Enum):
    """What a method promises of its answer."""

    OPTIMAL = "optimal"
    BOUNDED = "bounded"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Alternative:
    """What is proven of one of several problems of which the best is the answer: one number of tiles of a rewrite, say.

    bound: none of its mappings is below; None: it has no legal mapping. value: what was reached, None where nothing
    better than the answer was looked for and found.
    """

    label: str
    bound: float | None
    value: float | None = None


@dataclass(frozen=True)
class Certificate:
    """Proof data of a result: `value` was reached, nothing in `mapspace` is below `bound`.

    mapspace: the space in one line, by its limits alone; `result.mapspace.shown` is the line that the command prints,
    with its title and the order of stores. counts: points seen and points dropped, by pruning rule. alternatives: where
    the answer is the best of several problems, each; `bound` is that of all of them. integer: where it was asked, no
    mapping with any integer tiles has less (docs/model/integer-tiles.md).
    """

    guarantee: Guarantee
    value: float
    bound: float
    mapspace: str
    counts: Mapping[str, int] = field(default_factory=dict)
    alternatives: tuple[Alternative, ...] = ()
    integer: float | None = None

    @property
    def gap(self) -> float:
        """(value - bound) / value; 0 when the value is proven optimal."""
        return self._gap_to(self.bound)

    @property
    def integer_gap(self) -> float | None:
        """(value - integer) / value; 0 when no mapping with any integer tiles is better, None where that was not
        asked."""
        return None if self.integer is None else self._gap_to(self.integer)

    def _gap_to(self, bound: float) -> float:
        return 0.0 if self.value == 0 else max(0.0, (self.value - bound) / self.value)

    def __post_init__(self) -> None:
        object.__setattr__(self, "counts", Counts(self.counts))

    def __hash__(self) -> int:
        return hash((self.guarantee, self.value, self.bound, self.mapspace))
