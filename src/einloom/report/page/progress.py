"""How the search went: best value and proven bound against time, and how many points each rule dropped."""

from __future__ import annotations

from collections.abc import Mapping

from ...result import Result
from ...result.unmapped import Unmapped
from ..draw.markup import Html, el
from ..draw.plot import Curve, Scale, mark, plot
from ..draw.scene import energy, time
from ..text.results import objective_value

MAX_POINTS = 400


def steps(pairs: list[tuple[float, float]], end: float) -> list[tuple[float, float]]:
    """A staircase through (seconds, value) pairs, level until `end`."""
    found: list[tuple[float, float]] = []
    for at, value in pairs:
        if found:
            found.append((at, found[-1][1]))
        found.append((at, value))
    return [*found, (max(end, found[-1][0]), found[-1][1])] if found else []


def picture(result: Result | Unmapped) -> Html:
    """Best and bound over time, or a sentence if nothing was searched or found."""
    best = [(p.seconds, p.best) for p in result.trace if p.best is not None]
    bound = [(p.seconds, p.bound) for p in result.trace if p.bound is not None and p.bound > 0]
    if not best and isinstance(result, Unmapped):
        return el("p", f"No mapping was found in {result.seconds:.3g} s: there is no progress to show.")
    if not best:
        return el("p", "This mapping was given, not searched for: there is no progress to show.")
    best, bound = _thinned(best), _thinned(bound)
    values = [value for _, value in (*best, *bound)]
    end = max(result.seconds, best[-1][0], bound[-1][0] if bound else 0.0) or 1.0
    low, high = min(values), max(values)
    margin = (high - low) * 0.12 or abs(high) * 0.05 or 1.0
    across, up = Scale(0.0, end), Scale(low - margin, high + margin)
    curves = [Curve(steps(best, end), "best"), Curve(steps(bound, end), "bound")]
    marks = [
        mark(across, up, (at, value), which, f"{which} {_value(result, value)} after {at:.3g} s")
        for which, pairs in (("bound", bound), ("best", best))
        for at, value in pairs
    ]
    x_ticks = [(v, f"{v:g} s") for v in across.ticks()]
    y_ticks = [(v, _short(result, v)) for v in up.ticks(4)]
    label = f"Best value and bound over {end:.3g} seconds of search, as recorded"
    drawn = plot(
        [curve for curve in curves if curve.points],
        marks,
        (across, x_ticks, "time"),
        (up, y_ticks, str(result.problem.objective)),
        label,
        230,
    )
    legend = (
        el("span", el("i", class_="dash best"), "best so far"),
        el("span", el("i", class_="dash bound"), "bound, as recorded"),
    )
    return el("div", drawn, el("p", *legend, class_="legend"))


def _value(result: Result | Unmapped, value: float) -> str:
    return objective_value(result.problem.objective, value, 6)


def _short(result: Result | Unmapped, value: float) -> str:
    known = {"energy": energy, "latency": time}
    shown = known.get(result.problem.objective.name)
    return shown(value, 4) if shown else objective_value(result.problem.objective, value, 4)


def _thinned(pairs: list[tuple[float, float]]) -> list[tuple[float, float]]:
    if len(pairs) <= MAX_POINTS:
        return pairs
    step = -(-len(pairs) // MAX_POINTS)
    return [*pairs[::step], pairs[-1]]


def counts(found: Mapping[str, int]) -> Html:
    """Points seen and dropped, by rule, with bars on a logarithmic scale."""
    if not found:
        return el("p", "No points were counted.")
    largest = max(found.values())
    rows = []
    for name, count in found.items():
        share = len(f"{count}") / len(f"{largest}") if count else 0
        bar = el("i", class_="countbar", style=f"width:{100 * share:.0f}%")
        rows.append(el("tr", el("th", name, scope="row"), el("td", f"{count:,}", class_="num"), el("td", bar)))
    head = el(
        "tr",
        el("th", "rule", scope="col"),
        el("th", "points", scope="col", class_="num"),
        el("th", "(by digits)", scope="col"),
    )
    return el(
        "table", el("caption", "Points seen, kept and dropped"), el("thead", head), el("tbody", *rows), class_="counts"
    )
