"""How searches went: best value and proven bound against time, as recorded."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...dataclass import dataclass
from ...errors import SpecError
from ...problem import Objective
from ...result import Result
from ...result.unmapped import Unmapped
from ..text.results import objective_value
from .drawing import Line, Mark, Plot, Ruler, Spot
from .scene import energy, time

MAX_POINTS = 400
LONG, STEEP = 100, 20
"""An axis whose last value is so many times its first is logarithmic, where several searches are compared."""


@dataclass(frozen=True, slots=True)
class SearchTrace:
    """One search: (seconds, value) pairs of its best and its bound, and when it ended. objective: what it minimised."""

    label: str
    number: int | None
    best: tuple[Spot, ...]
    bound: tuple[Spot, ...]
    end: float
    objective: Objective

    def said(self, value: float, digits: int = 6) -> str:
        """A value of the objective, with its unit."""
        return objective_value(self.objective, value, digits)


def traced(result: Result | Unmapped, label: str = "", number: int | None = None) -> SearchTrace:
    """The trace of one search; without points if nothing was searched or found."""
    best = [(p.seconds, p.best) for p in result.trace if p.best is not None]
    bound = [(p.seconds, p.bound) for p in result.trace if p.bound is not None and p.bound > 0]
    end = max([result.seconds] + [pairs[-1][0] for pairs in (best, bound) if pairs])
    return SearchTrace(label, number, _thinned(best), _thinned(bound), end, result.problem.objective)


def _thinned(pairs: list[Spot]) -> tuple[Spot, ...]:
    step = -(-len(pairs) // MAX_POINTS) or 1
    return tuple(pairs) if step == 1 else (*pairs[::step], pairs[-1])


class Progress:
    """Best (solid) and bound (dashed) of every search against its seconds."""

    name, title, several = "search", "Search", True

    def data(self, results: Sequence[Result], labels: Sequence[str]) -> list[SearchTrace]:
        """A trace per result that was searched for; numbered by its place if there are several results."""
        several = len(results) > 1
        pairs = zip(results, labels, strict=True)
        found = [traced(result, label, i if several else None) for i, (result, label) in enumerate(pairs)]
        known = [one for one in found if one.best]
        if not known:
            raise SpecError("none of these results was searched for: there is no progress to draw")
        return known

    def draw(self, data: Sequence[SearchTrace]) -> Plot:
        """A staircase per best and per bound."""
        every = [spot for one in data for spot in (*one.best, *one.bound)]
        end = max(one.end for one in data) or 1.0
        first = min((at for at, _ in every if at > 0), default=end)
        several = len(data) > 1 or data[0].number is not None
        late = several and end / first > LONG
        goals = {str(one.objective) for one in data}
        known = {"energy": energy, "latency": time}.get(data[0].objective.name) if len(goals) == 1 else None
        start = first / 1.5 if late else 0.0
        across = Ruler("time", start, end * (1.2 if late else 1.02), lambda v, digits: f"{v:.{digits}g} s", late)
        name = str(data[0].objective) if len(goals) == 1 else "value of each objective"
        up = _values([value for _, value in every], several, name, known or (lambda v, digits: f"{v:.{digits}g}"))
        lines, marks = [], []
        for one in data:
            for role, pairs in (("bound", one.bound), ("best", one.best)):
                placed = [(max(at, start), value) for at, value in pairs]
                label = (one.label or role) if role == "best" else "bound" if one is data[-1] else ""
                lines.append(Line(tuple(steps(placed, across.high)), role, one.number, label if placed else ""))
                said = f"{one.label}, {role}: " if several else f"{role} "
                tips = [f"{said}{one.said(value)} after {at:.3g} s" for at, value in pairs]
                marks += [Mark(spot, role, one.number, tip) for spot, tip in zip(placed, tips, strict=True)]
        label = f"Best value and bound of {len(data)} searches" if several else "Best value and bound of the search"
        return Plot(f"{label} over {end:.3g} seconds, as recorded", across, up, tuple(lines), tuple(marks), 230)


def _values(values: Sequence[float], several: bool, name: str, shown: Callable[[float, int], str]) -> Ruler:
    low, high = min(values), max(values)
    steep = several and low > 0 and high / low > STEEP
    margin = (high - low) * 0.12 or abs(high) * 0.05 or 1.0
    ends = (low / 1.5, high * 1.5) if steep else (low - margin, high + margin)
    return Ruler(name, *ends, shown, steep)


def steps(pairs: Sequence[Spot], end: float) -> list[Spot]:
    """A staircase through (seconds, value) pairs, level until `end`."""
    found: list[Spot] = []
    for at, value in pairs:
        if found:
            found.append((at, found[-1][1]))
        found.append((at, value))
    return [*found, (max(end, found[-1][0]), found[-1][1])] if found else []
