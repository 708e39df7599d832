"""The least of an objective against the capacity of a memory, from saved sweeps."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, floor, log2

from ...errors import SpecError
from ...result import Result
from ...result.sweep import Sweep
from ..text.results import objective_value
from .drawing import Line, Mark, Plot, Ruler
from .progress import steps
from .scene import size

MOST = 12


def ski_slope(sweeps: Sequence[Sweep], labels: Sequence[str]) -> Plot:
    """A curve per sweep, crosses where nothing is legal; bounds of results that are not proven optimal are dashed.

    Between two capacities a curve keeps the value of the smaller one: what fits there fits in more room. Raises
    SpecError if nothing is legal at all.
    """
    found = [[(float(p.capacity), p.answer) for p in s.points if isinstance(p.answer, Result)] for s in sweeps]
    values = [result.value for pairs in found for _, result in pairs]
    if not values:
        raise SpecError("no capacity of these sweeps has a legal mapping: there is no curve to draw")
    every = sorted({point.capacity for sweep in sweeps for point in sweep.points})
    lowest, objective = min(values), next(result.objective for pairs in found for _, result in pairs)
    lines, marks = list[Line](), list[Mark]()
    for i, (label, sweep, pairs) in enumerate(zip(labels, sweeps, found, strict=True)):
        spots = [(capacity, result.value) for capacity, result in pairs]
        lines.append(Line(tuple(steps(spots, spots[-1][0]) if spots else ()), "best", i, label))
        proven = [(capacity, result.certificate.bound if result.certificate else 0.0) for capacity, result in pairs]
        if any(low[1] < spot[1] * (1 - 1e-9) for low, spot in zip(proven, spots, strict=True)):
            known = [spot for spot in proven if spot[1] > 0]
            lines.append(Line(tuple(steps(known, spots[-1][0])), "bound", i))
        for at, value in spots:
            marks.append(
                Mark((at, value), "best", i, f"{label}: {objective_value(objective, value)} at {size(int(at))}")
            )
        for point in sweep.points:
            if not isinstance(point.answer, Result):
                tip = f"{label}: nothing is legal at {size(point.capacity)}"
                marks.append(Mark((float(point.capacity), lowest), "nothing", i, tip))
    lowest = min([lowest] + [y for line in lines for _, y in line.points])
    powers = [2.0**power for power in range(floor(log2(lowest)), ceil(log2(max(values))) + 1)]
    bits = objective.name == "traffic"
    across = _ruler(f"capacity of {sweeps[0].memory}", [float(capacity) for capacity in every], True)
    up = _ruler(f"least {objective}", powers, bits)
    title = f"Least {objective} against capacity, {len(sweeps)} sweeps"
    return Plot(title, across, up, tuple(lines), tuple(marks))


def _ruler(name: str, values: Sequence[float], bits: bool) -> Ruler:
    """A logarithmic axis with at most so many names, at powers of two where there are some."""
    powers = [value for value in values if log2(value).is_integer()]
    named = powers if len(powers) > 1 else values

    def shown(value: float, digits: int) -> str:
        return size(int(value)) if bits else f"{value:.{digits}g}"

    ticks = tuple((value, shown(value, 4)) for value in named[:: -(-len(named) // MOST) or 1])
    return Ruler(name, values[0] / 1.3, values[-1] * 1.3, shown, True, ticks)
