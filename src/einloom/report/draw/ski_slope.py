"""The least of an objective against the capacity of a memory, from saved sweeps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import ceil, exp, floor, log, log2

from ...errors import SpecError
from ...problem import Objective
from ...result import Result
from ...result.sweep import CapacityPoint, Sweep
from ..text.names import file_labels, numbered
from ..text.results import objective_value
from .drawing import Line, Mark, Plot, Ruler
from .plot import Scale
from .progress import steps
from .scene import energy, size, time

MOST, FEW = 12, 3
"""Names along an axis, and how few are too few."""
ROW = 0.07
"""Height of a row of marks below the curves, as a part of what the curves take."""
Found = Sequence[tuple[float, Result]]


def titles(sweeps: Sequence[Sweep]) -> list[str]:
    """The title of each sweep, with its file where another sweep has the same one."""
    known = [sweep.title for sweep in sweeps]
    files = file_labels([sweep.file or "" for sweep in sweeps])
    again = [
        known.count(sweep.title) > 1 and len({s.file for s in sweeps if s.title == sweep.title}) > 1 for sweep in sweeps
    ]
    pairs = zip(known, files, again, strict=True)
    return numbered([f"{title} ({file})" if more and file else title for title, file, more in pairs])


def ski_slope(sweeps: Sequence[Sweep], labels: Sequence[str]) -> Plot:
    """A curve per sweep; bounds of results that are not proven optimal are dashed.

    Below the curves stand the capacities without a mapping: crosses where none is legal, question marks where the
    search ended before it found one. Between two capacities a curve keeps the value of the smaller one: what fits there
    fits in more room. Raises SpecError if there is no mapping at all, and for sweeps of different objectives or
    memories.
    """
    objective = _the_objective(sweeps, labels)
    found = [[(float(p.capacity), p.answer) for p in s.points if isinstance(p.answer, Result)] for s in sweeps]
    values = [result.value for pairs in found for _, result in pairs]
    if not values:
        raise _nothing(sweeps)
    lines, marks = list[Line](), list[Mark]()
    for i, (label, pairs) in enumerate(zip(labels, found, strict=True)):
        lines += _curves(label, i, pairs, len(sweeps) > 1)
        marks += _spots(label, i, pairs, objective)
    capacities = sorted({float(point.capacity) for sweep in sweeps for point in sweep.points})
    lowest = min(values + [y for line in lines for _, y in line.points])
    empty = [i for i, sweep in enumerate(sweeps) if any(not isinstance(p.answer, Result) for p in sweep.points)]
    up, rows = _up(objective, lowest, max(values), len(empty))
    across = _across(f"capacity of {sweeps[0].memory}", capacities)
    for i, height in zip(empty, rows, strict=False):  # the last height is that of the edge
        marks += _without(labels[i] if len(sweeps) > 1 else "", labels[i], i, height, sweeps[i].points)
    if rows:
        lines.append(Line(((across.low, rows[-1]), (across.high, rows[-1])), "edge"))
    title = f"Least {objective.measured} against capacity, {len(sweeps)} sweeps"
    return Plot(title, across, up, tuple(lines), tuple(marks))


def _the_objective(sweeps: Sequence[Sweep], labels: Sequence[str]) -> Objective:
    """What all answers minimise. Raises SpecError, with its file, for a sweep of another objective or memory."""
    answers = [point.answer for sweep in sweeps for point in sweep.points]
    if not answers:
        raise SpecError("these sweeps hold no capacity: there is no curve to draw")
    first, wanted = sweeps[0], answers[0].problem.objective
    for label, sweep in zip(labels, sweeps, strict=True):
        if sweep.memory != first.memory:
            raise SpecError(
                f"{label}: the capacity of {sweep.memory} varies, in {labels[0]} that of {first.memory}; "
                "draw sweeps of different memories in figures of their own",
                file=sweep.file,
            )
        for point in sweep.points:
            other = point.answer.problem.objective
            if str(other) != str(wanted):
                raise SpecError(
                    f"{label}: the objective is {other}, in {labels[0]} it is {wanted}; draw sweeps of different "
                    "objectives in figures of their own",
                    file=sweep.file,
                )
    return wanted


def _nothing(sweeps: Sequence[Sweep]) -> SpecError:
    """Why there is no curve: what is proven to have no mapping, and where searches ended too early to say."""
    states = [p.answer.status for sweep in sweeps for p in sweep.points if not isinstance(p.answer, Result)]
    proven, open_ = states.count("infeasible"), states.count("unfinished")
    file = sweeps[0].file if len(sweeps) == 1 else None
    if not open_:
        told = "no capacity of these sweeps has a legal mapping: there is no curve to draw"
    else:
        more = f"; the other {proven} have no legal mapping" if proven else ""
        told = f"the searches for {open_} of {open_ + proven} capacities ended before they found a mapping{more}: "
        told += "there is no curve to draw"
    return SpecError(told, file=file)


def _curves(label: str, number: int, pairs: Found, several: bool) -> Iterator[Line]:
    spots = [(capacity, result.value) for capacity, result in pairs]
    yield Line(tuple(steps(spots, spots[-1][0]) if spots else ()), "best", number, label)
    proven = [(capacity, result.certificate.bound if result.certificate else 0.0) for capacity, result in pairs]
    if any(low[1] < spot[1] * (1 - 1e-9) for low, spot in zip(proven, spots, strict=True)):
        known = [spot for spot in proven if spot[1] > 0]
        if known:
            told = f"{label}, bound" if several else "bound"
            yield Line(tuple(steps(known, spots[-1][0])), "bound", number, told)


def _spots(label: str, number: int, pairs: Found, objective: Objective) -> Iterator[Mark]:
    for at, result in pairs:
        tip = f"{label}: {objective_value(objective, result.value)} at {size(int(at))}"
        yield Mark((at, result.value), "best", number, tip)


def _without(lead: str, label: str, number: int, height: float, points: Sequence[CapacityPoint]) -> Iterator[Mark]:
    """A mark for each capacity without a mapping, in the legend once for each reason."""
    words = {
        "infeasible": ("nothing", "no mapping", "no mapping is legal at"),
        "unfinished": ("unfinished", "search unfinished", "the search ended before it found a mapping at"),
    }
    told = set[str]()
    for point in points:
        if not isinstance(point.answer, Result):
            role, short, long = words[point.answer.status]
            name = "" if role in told else f"{lead}, {short}" if lead else short
            told.add(role)
            tip = f"{label}: {long} {size(point.capacity)}"
            yield Mark((float(point.capacity), height), role, number, tip, label=name)


def _across(name: str, values: Sequence[float]) -> Ruler:
    """A logarithmic axis with at most so many names, at powers of two where there are some."""
    powers = [value for value in values if log2(value).is_integer()]
    ticks = _few([(value, size(int(value))) for value in (powers if len(powers) > 1 else values)])
    return Ruler(name, values[0] / 1.3, values[-1] * 1.3, lambda value, _: size(int(value)), True, ticks)


def _up(objective: Objective, lowest: float, highest: float, rows: int) -> tuple[Ruler, tuple[float, ...]]:
    """The axis of the values, and below them the heights of so many rows of marks and of the edge between."""
    shown = energy if objective.name == "energy" else time if objective.name == "latency" else _plain
    plain = objective.name not in ("energy", "latency", "traffic")
    name = f"least {'EDP' if objective.name in ('edp', 'pareto') else objective}{f' [{objective.unit}]' * plain}"
    logarithmic = lowest > 0
    if objective.name == "traffic" and logarithmic:
        powers = [2.0**power for power in range(floor(log2(lowest)), ceil(log2(highest)) + 1)]
        ticks, low, high = [(value, size(int(value))) for value in powers], powers[0] / 1.3, powers[-1] * 1.3
    else:
        low, high = (lowest / 1.5, highest * 1.5) if logarithmic else (0.0, 1.1 * highest or 1.0)
        ticks = [(value, shown(value, 4)) for value in _round(low, high, logarithmic)]
    span = log(high / low) if logarithmic else high - low
    heights = tuple(low * exp(-span * ROW * i) if logarithmic else low - span * ROW * i for i in range(1, rows + 1))
    end = (low * exp(-span * ROW * (rows + 1)) if logarithmic else low - span * ROW * (rows + 1)) if rows else low
    return Ruler(name, end, high, shown, logarithmic, _few(ticks)), (*heights, low) if rows else ()


def _plain(value: float, digits: int) -> str:
    return f"{value:.{digits}g}"


def _round(low: float, high: float, logarithmic: bool) -> list[float]:
    """Round values between the ends: 1, 2 and 5 times powers of ten, or even steps where these are few."""
    powers = range(floor(log(low, 10)) - 1, ceil(log(high, 10)) + 1) if logarithmic else range(0)
    found = [float(f"{factor}e{power}") for power in powers for factor in (1, 2, 5)]
    inside = [value for value in found if low <= value <= high]
    if len(inside) > MOST:
        return [float(f"1e{power}") for power in powers if low <= float(f"1e{power}") <= high]
    return inside if len(inside) >= FEW else [value for value in Scale(low, high).ticks(4) if low <= value <= high]


def _few(ticks: Sequence[tuple[float, str]]) -> tuple[tuple[float, str], ...]:
    return tuple(ticks[:: -(-len(ticks) // MOST) or 1])
