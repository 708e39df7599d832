"""Energy, traffic and busy time of every action, as the table that the page's own bars are drawn from, and as numbers.

The page groups and stacks these rows as its reader asks; what it needs is one row per Einsum, component, tensor and
action.
"""

from __future__ import annotations

from ...cost.breakdown import Action
from ...machine.levels import Toll
from ...result import Result
from .markup import Html, el, link
from .origins import anchor, energy_sources, why
from .scene import energy, size
from .subject import Subject

ACTIONS = ("read", "write", "compute", "leak", "down", "up")
MOVES = ("read", "write", "down", "up")
KEYS = (("einsum", "Einsum"), ("component", "level"), ("tensor", "tensor"), ("action", "action"))


def data(subject: Subject) -> dict[str, object]:
    """What the page's script draws bars from: names, and rows of numbers that refer to them."""
    result = subject.result
    machine = result.machine
    components = [component.name for component in machine.components]
    place = {name: i for i, name in enumerate(components)}
    leaf = {name: i for i, name in enumerate(subject.leaves)}
    rows = [
        [
            leaf[a.einsum],
            place[a.component],
            -1 if a.tensor is None else subject.number[a.tensor],
            ACTIONS.index(a.action),
            float(f"{a.energy:.6g}"),
            a.bits if a.action in ("read", "write") else 0,
            float(f"{seconds:.6g}"),
            a.count,
        ]
        for a, seconds in zip(result.cost.actions, busy_seconds(result), strict=True)
        if a.count or a.energy
    ]
    latency = dict(result.cost.einsum_latency)
    return {
        "einsum": list(subject.leaves),
        "component": components,
        "tensor": list(subject.tensors),
        "action": list(ACTIONS),
        "rows": rows,
        "latency": [latency.get(name, 0.0) for name in subject.leaves],
        "totals": [result.energy, sum(row[5] for row in rows), result.latency],
    }


def busy_seconds(result: Result) -> list[float]:
    """For each action the seconds for which it keeps the busiest instance of its component busy.

    Where reads and writes have ports of their own only the slower of the two counts, so that the seconds of an Einsum
    and a component add up to `Cost.busy`.
    """
    alone = [_alone(result, action) for action in result.cost.actions]
    sums: dict[tuple[str, str, str], float] = {}
    for action, seconds in zip(result.cost.actions, alone, strict=True):
        key = (action.einsum, action.component, action.action)
        sums[key] = sums.get(key, 0.0) + seconds
    separate = {memory.name for memory in result.machine.memories if memory.ports == "separate"}

    def counts(action: Action) -> bool:
        if action.component not in separate or action.action not in ("read", "write"):
            return True
        read, written = (sums.get((action.einsum, action.component, way), 0.0) for way in ("read", "write"))
        return (read >= written) == (action.action == "read")

    return [seconds if counts(a) else 0.0 for a, seconds in zip(result.cost.actions, alone, strict=True)]


def _alone(result: Result, action: Action) -> float:
    """Seconds of one action by itself."""
    if action.action == "leak":
        return 0.0
    if action.action == "compute":
        rate = result.machine.unit(action.component).throughput
    elif isinstance(way := result.machine.way(action.component), Toll):
        rate = way.throughput
    else:
        rate = way.read_throughput if action.action == "read" else way.write_throughput
    return action.busiest / rate if rate else 0.0


def controls() -> Html:
    """The switches above the bars, and the place where the script draws them."""
    what = (("0", "energy"), ("2", "busy time"), ("1", "traffic"))
    rows = (*KEYS, ("einsum component", "Einsum and level"))
    parts = (
        _choice("bars-what", "Show", what, "0"),
        _choice("bars-rows", "a bar per", rows, "einsum"),
        _choice("bars-parts", "stacked by", KEYS, "component"),
    )
    note = el("p", id="bars-note", class_="note")
    return el(
        "div",
        el("div", *parts, class_="controls"),
        el("p", id="bars-legend", class_="legend"),
        el("div", id="bars", class_="bars", role="region", aria_label="stacked bars", tabindex=0),
        note,
        el("noscript", el("p", "The bars are drawn by a script; the table below holds the same numbers.")),
    )


def _choice(name: str, label: str, options: tuple[tuple[str, str], ...], chosen: str) -> Html:
    listed = [el("option", text, value=value, selected=value == chosen) for value, text in options]
    return el("label", label, " ", el("select", *listed, id=name))


def table(subject: Subject) -> Html:
    """Energy and traffic by component and action, each with the source of its price; the rest on demand."""
    result = subject.result
    sums: dict[tuple[str, str], list[float]] = {}
    for a in result.cost.actions:
        entry = sums.setdefault((a.component, a.action), [0, 0, 0.0])
        entry[0] += a.count
        entry[1] += a.bits if a.action in MOVES else 0
        entry[2] += a.energy
    priced = energy_sources(subject)
    position = result.machine.position
    rows = []
    for (component, action), (count, moved, joules) in sorted(
        sums.items(), key=lambda item: (position[item[0][0]], item[0][1])
    ):
        if not count and not joules:
            continue
        path = priced.get((component, action))
        price = link(anchor(path), path, class_="why") if path else "no price given"
        share = f"{joules / result.energy:.1%}" if result.energy else "–"
        cells = [f"{int(count):,}", size(int(moved)) if moved else "–", energy(joules), share]
        numbers = [el("td", cell, class_="num") for cell in cells]
        rows.append(el("tr", el("th", component, scope="row"), el("td", action), *numbers, el("td", price)))
    names = ("component", "action", "count", "moved", "energy", "share", "priced by")
    heads = [el("th", name, scope="col", class_="num" if 2 <= i <= 5 else None) for i, name in enumerate(names)]
    inner = el("table", el("thead", el("tr", *heads)), el("tbody", *rows))
    every = el(
        "details",
        el("summary", "Every action: Einsum, component, tensor, action"),
        el("div", id="all-actions", class_="scroll", tabindex=0, role="region", aria_label="every action"),
        id="all-actions-box",
    )
    counted = el("p", "Counts follow from the tree: ", why("moves", "moves"), ", ", why("fanouts", "fanouts"), ", ")
    rest = (why("partial-sums", "partial sums"), ", ", why("copies", "copies"), ".")
    return el("div", el("div", inner, class_="scroll"), el("div", counted, *rest, class_="joined"), every)
