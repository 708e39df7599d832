"""An exploration as one HTML page: value against cost, the machines that no other beats, and all machines."""

from __future__ import annotations

from collections.abc import Sequence

from ..report.draw.drawing import Line, Mark, Plot, Ruler
from ..report.draw.markup import Html, el, table_of
from ..report.draw.svg import html_of
from ..report.page.shell import paged, part
from ..report.text.results import joules, objective_value, seconds
from ..result import Result
from .record import REASONS, SAID, ExploredFamily, ExploredMachine, How, said_cost

MOST = 2000  # machines in the table
SHORT: dict[How, str] = {"searched": "searched", "neighbour": "from others", "beaten": "beaten", "open": "open"}
LINES = 20  # machines whose fronts are drawn as lines


def exploration_page(done: ExploredFamily) -> str:
    """HTML that refers to nothing outside itself."""
    head = el(
        "header",
        el("h1", f"{done.family.name}: {done.objective}"),
        *(el("p", line.strip()) for line in done.counted.split("\n")),
    )
    doubt = [el("p", f"{done.doubt}.", class_="note")] if done.doubt else []
    title = "Machines that no other beats" + (", so far" if done.doubt else "")
    alike = [el("p", f"{done.alike}.", class_="note")] if done.alike else []
    parts = [part("front", title, _table(done, done.front), *alike, *doubt)]
    if done.pareto and done.front:
        told = "A circle is a mapping that no machine beats at no more cost. Each line is the front of a machine."
        said = el("p", told, class_="note")
        parts.append(part("points", "latency against energy", html_of(ends(done)), said))
    elif done.family.costs and any(done.value(one) is not None for one in done.machines):
        said = el("p", "The line is the front: no value that is known lies below and left of it.", class_="note")
        parts.append(part("trade", f"{done.objective.measured} against {done.family.costs}", html_of(plot(done)), said))
    shown = done.machines[:MOST]
    more = len(done.machines) - len(shown)
    rest = [el("p", f"{more:,} more machines are in the CSV", class_="note")] if more else []
    words = "; ".join(f"{SHORT[how]}: {said}" for how, said in SAID.items() if SHORT[how] != said)
    parts.append(part("machines", "All machines", _table(done, shown), *rest, el("p", f"{words}.", class_="note")))
    asked = (el("tr", el("th", what, scope="row"), el("td", text)) for what, text in done.family.said)
    parts.append(part("asked", "What was asked", el("div", el("table", el("tbody", *asked)), class_="scroll")))
    return paged(f"{done.family.name}: {len(done.machines)} machines", head, tuple(parts), {"tensor": []})


def plot(done: ExploredFamily) -> Plot:
    """The value of every machine with mappings against its cost, and the front."""
    best = {id(one) for one in done.front}
    spots = [(one.member.cost or 0.0, value, one) for one in done.machines if (value := done.value(one)) is not None]
    marks = []
    for cost, value, one in spots:
        on = id(one) in best
        tip = f"{one.member.label}: {objective_value(done.objective, value, 5)}, {said_cost(done.family.costs, cost)}"
        marks.append(Mark((cost, value), "trade on" if on else "trade", 0 if on else 1, tip))
    across = _ruler(done.family.costs, [cost for cost, _, _ in spots], done.family.costs == "area")
    up = _ruler(f"{done.objective.measured} [{done.objective.unit}]", [value for _, value, _ in spots], False)
    stairs: list[tuple[float, float]] = []
    for one in done.front:
        value, cost = done.value(one) or 0.0, one.member.cost or 0.0
        stairs += [(cost, stairs[-1][1] if stairs else up.high), (cost, value)]
    stairs += [(across.high, stairs[-1][1])] if stairs else []
    marks.sort(key=_covering)
    label = f"{done.objective.measured} against {done.family.costs} of {len(marks)} machines, {len(best)} on the front"
    return Plot(label, across, up, (Line(tuple(stairs), "front"),), tuple(marks))


def ends(done: ExploredFamily) -> Plot:
    """Latency and energy of the points of every machine, and lines along those of machines on the common front."""
    on = set(done.front_points)
    marks = list[Mark]()
    for i, one in enumerate(done.machines):
        cost = f", {said_cost(done.family.costs, one.member.cost or 0.0)}" if done.family.costs else ""
        for energy, latency in one.points:
            best = (i, (energy, latency)) in on
            tip = f"{one.member.label}: {joules(energy)}, {seconds(latency)}{cost}"
            marks.append(Mark((energy, latency), "trade on" if best else "trade", 0 if best else 1, tip))
    across = _ruler("energy [J]", [mark.at[0] for mark in marks], False)
    up = _ruler("latency [s]", [mark.at[1] for mark in marks], False)
    lines = tuple(Line(_stairs(one, across.high, up.high), "front") for one in done.front[:LINES])
    marks.sort(key=_covering)
    label = f"latency against energy of {len(marks)} mappings, {len(on)} on the front of {len(done.front)} machines"
    return Plot(label, across, up, lines, tuple(marks))


def _covering(mark: Mark) -> bool:
    """A key by which marks on the front are drawn last."""
    return mark.role == "trade on"


def _stairs(one: ExploredMachine, high: float, top: float) -> tuple[tuple[float, float], ...]:
    """The line above and right of which a machine has mappings."""
    corners: list[tuple[float, float]] = []
    for energy, latency in one.points:
        corners += [(energy, corners[-1][1] if corners else top), (energy, latency)]
    return (*corners, (high, corners[-1][1]))


def _ruler(name: str, values: Sequence[float], area: bool) -> Ruler:
    low, high = min(values), max(values)

    def shown(value: float, digits: int) -> str:
        return f"{value * 1e6:.{digits}g} mm2" if area else f"{value:.{digits}g}"

    if low > 0 and high / low > 10:
        return Ruler(name, low / 1.6, high * 1.6, shown, log=True)
    margin = (high - low) * 0.15 or high * 0.1 or 1.0
    return Ruler(name, max(0.0, low - margin), high + margin, shown)


def _table(done: ExploredFamily, machines: Sequence[ExploredMachine]) -> Html:
    costs = done.family.costs
    measured = ("points on the front", "energy", "latency") if done.pareto else (done.objective.measured,)
    heads = (*done.family.parameters, *([costs] if costs else []), *measured, "gap", *REASONS, "known", "answers")
    numbers = range(len(heads) - 2)
    rows = []
    for one in machines:
        cells = [text for _, text in one.member.values]
        cells += [said_cost(costs, one.member.cost or 0.0)] if costs else []
        cells += [*_said(done, one), "" if one.gap is None else f"{one.gap:.2%}", *one.reasons]
        files = [name for name, answer in zip(one.files, one.answers, strict=True) if isinstance(answer, Result)]
        rows.append(
            el(
                "tr",
                *(el("td", cell, class_="num") for cell in cells),
                el("td", SHORT[one.how] if one.legal else "no mapping"),
                el("td", ", ".join(files)),
            )
        )
    return el("div", table_of(heads, rows, numbers=numbers), class_="scroll")


def _said(done: ExploredFamily, one: ExploredMachine) -> list[str]:
    """What `ExploredFamily.said` says; for a machine without a value what that is at least."""
    bound = done.bound(one)
    if one.points or done.pareto or not one.legal or not bound > 0:
        return done.said(one)
    return [f"at least {objective_value(done.objective, bound, 6)}"]
