"""What a mapping costs: totals and the table of actions behind them, as frozen data."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple

from ..dataclass import dataclass

ActionName = Literal["read", "write", "compute", "leak", "down", "up"]


class Action(NamedTuple):
    """One line of the breakdown.

    component: memory, toll or compute unit. tensor: None for compute and leakage. action: ``down`` and ``up`` are ways
    through a toll. count: values read, written or passed, or operations, over all instances and the whole run. bits:
    count times the tensor's bits there. busiest: bits (or operations) of the busiest instance. energy: joules.
    """

    einsum: str
    component: str
    tensor: str | None
    action: ActionName
    count: int  # type: ignore[assignment]
    bits: int
    busiest: int
    energy: float


@dataclass(frozen=True, slots=True)
class Occupancy:
    """Largest number of bits of live tiles in one instance of a memory; `tensors` says what was alive then."""

    memory: str
    bits: int
    size: int | None
    tensors: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Latencies:
    """Seconds of one mapping, seen in different ways; the first four are each at most the next.

    roofline: the busiest component, as if nothing ever waited. floor: rule ``tile`` without filling and draining of
    pipelines; no execution is faster. tile: with them. einsum: Einsums one after the other. event: operation by
    operation, without contention; None where it was not asked for or cannot be told.
    """

    roofline: float
    floor: float
    tile: float
    einsum: float
    event: float | None = None


@dataclass(frozen=True, slots=True)
class Cost:
    """The price of a mapping: joules, seconds, and where they come from.

    busy: (Einsum, component, seconds) for every component with a finite throughput; the Einsum's latency is their
    maximum under the rule ``einsum``. roofline: the busiest component over the whole run.
    """

    energy: float
    latency: float
    roofline: float
    latency_rule: str
    actions: tuple[Action, ...]
    busy: tuple[tuple[str, str, float], ...]
    einsum_latency: tuple[tuple[str, float], ...]
    occupancy: tuple[Occupancy, ...]

    @property
    def edp(self) -> float:
        """Energy-delay product, J s."""
        return self.energy * self.latency

    def traffic(self, memory: str) -> int:
        """Bits read from and written to `memory`, all instances, whole run."""
        return sum(a.bits for a in self.actions if a.component == memory and a.action in ("read", "write"))

    def count(self, component: str, tensor: str | None, action: ActionName, einsum: str | None = None) -> int:
        """Sum of the counts of all matching lines (any Einsum if none is named)."""
        return sum(
            a.count
            for a in self.actions
            if a.component == component
            and a.tensor == tensor
            and a.action == action
            and (einsum is None or a.einsum == einsum)
        )

    def energy_by(
        self, *keys: Literal["einsum", "component", "tensor", "action"]
    ) -> dict[tuple[str | None, ...], float]:
        """Energy summed by any combination of Einsum, component, tensor and action."""
        table: dict[tuple[str | None, ...], float] = {}
        for action in self.actions:
            key = tuple(getattr(action, k) for k in keys)
            table[key] = table.get(key, 0.0) + action.energy
        return table

    def occupancy_of(self, memory: str) -> int:
        """Peak bits in one instance of `memory` (0 if nothing is stored there)."""
        return next((o.bits for o in self.occupancy if o.memory == memory), 0)

    def __iter__(self) -> Iterator[float]:
        yield self.energy
        yield self.latency
