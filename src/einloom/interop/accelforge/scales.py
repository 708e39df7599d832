"""Factors and counts by which an AccelForge component's numbers are multiplied, folded into the numbers themselves.

``actions_scale`` multiplies the actions, so their energy and their time; ``n_parallel_instances`` throughput, leakage
and area. ``values_per_action`` counts actions in values; here accesses have a width in bits, so all tensors of the
memory must have one width there.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import inf

from ...dataclass import dataclass
from ...machine.levels import Memory
from ...reading.located import Located
from ...workload.einsum import Workload
from ...workload.selectors import Selector, select

Number = Fraction | float


@dataclass(frozen=True, slots=True)
class Scales:
    """What multiplies the energy of an action, its throughput, the leakage and the area of a component."""

    energy: float
    throughput: float
    fewer: float
    leakage: float
    area: float

    def speed(self, throughput: float, common: float | None) -> float:
        """Actions per second as the mapping counts them, from those of the component.

        common: what a formula of the latency gives instead, if it does; only the number of actions scales that.
        """
        if common is not None:
            return common / self.fewer
        return throughput if throughput == inf else throughput * self.throughput / self.fewer


def scales_of(view: Located, number: Callable[[Located], Number]) -> Scales:
    """The factors that the component writes. Raises SpecError with the place of one that is not positive."""

    def factor(key: str, minimum: float = 0.0) -> float:
        field = view.get(key)
        if field is None:
            return 1.0
        found = float(number(field))
        if found < minimum or (minimum == 0 and found == inf):
            raise field.error(f"{key} must be {'positive' if minimum else 'a finite number of at least 0'}")
        return found

    tiny = 1e-300
    if (latency := view.get("latency_scale")) is not None and number(latency) != 1:
        raise latency.error("latency_scale has no counterpart here; say throughput_scale")
    actions = factor("actions_scale", tiny)
    if actions == inf:
        raise view.require("actions_scale").error("actions_scale must be finite")
    parallel = factor("n_parallel_instances", tiny)
    return Scales(
        energy=factor("energy_scale") * actions,
        throughput=factor("throughput_scale", tiny) * parallel,
        fewer=actions,
        leakage=factor("leak_power_scale") * parallel,
        area=factor("area_scale") * parallel,
    )


def width_of_values(
    view: Located, counts: list[tuple[Selector, Number]], memory: Memory, workload: Workload | None
) -> int:
    """Bits of one access of a memory that moves so many values of each tensor per action.

    Raises SpecError where tensors that it may hold would have accesses of different widths, or no count.
    """
    if workload is None:
        raise view.error("values_per_action needs the tensors' widths; read it together with a workload")
    found: set[Number] = set()
    for einsum in workload.einsums:
        held = select(memory.must, workload, einsum.name) | select(memory.may, workload, einsum.name)
        for tensor in held & {access.tensor for access in einsum.accesses}:
            count = next((n for which, n in counts if tensor in select(which, workload, einsum.name)), None)
            if count is None:
                raise view.error(f"values_per_action says nothing of {tensor}, which {memory.name} may hold")
            found.add(count * memory.bits(workload, einsum.name, tensor))
    width = found.pop() if len(found) == 1 else None
    if not isinstance(width, Fraction) or width.denominator != 1 or width < 1:
        raise view.error("values_per_action gives accesses of no common whole width; here all accesses share one width")
    return int(width)
