"""Several results on one page: the table, bars, energy against latency, convergence, and what each of them fuses."""

from __future__ import annotations

from collections.abc import Sequence

from ...errors import SpecError
from ...result import Result
from ..compare import Comparison, cells
from ..draw.markup import Html, el, table_of
from ..draw.palette import look
from ..draw.progress import Progress, traced
from ..draw.svg import html_of
from ..pictures import shown
from .shell import paged, part

MAX_TENSORS = 200


def comparison_page(compared: Comparison) -> str:
    """The comparison as HTML that refers to nothing outside itself."""
    names = list(dict.fromkeys(row.result.workload.name for row in compared.rows))
    title = f"{len(compared.rows)} results: {', '.join(names[:3])}{' …' if len(names) > 3 else ''}"
    warned = [el("li", warning) for warning in compared.warnings]
    notes = el("div", el("b", "Not the same question"), el("ul", *warned), class_="warning", role="note")
    head = el("header", el("h1", title), notes if warned else None)
    results, labels = [row.result for row in compared.rows], [row.label for row in compared.rows]
    front = el("p", "The line is the front: no result lies below and left of a point on it.", class_="note")
    parts = (
        part("table", "Side by side", comparison_table(compared)),
        part("bars", "Energy and latency", *_all_bars(results, labels)),
        part("trade", "Trade-off", el("div", shown("pareto", *results, labels=labels), front)),
        part("search", "Search", *_convergence(compared)),
        part("fusion", "What is fused", _fusion(compared)),
    )
    return paged(title, head, parts, {"tensor": []})


def comparison_table(compared: Comparison) -> Html:
    """A line per quantity, a column per result; the best energy, latency and EDP stand out."""
    rows = []
    for name, cell in cells(compared):
        texts = [cell(row) for row in compared.rows]
        label = name.strip()
        best = [text == "best" for text in texts] if name.startswith(" ") else []
        shown = [
            el("td", text, class_="num best" if best and best[i] else "num over" if best else "num")
            for i, text in enumerate(texts)
        ]
        rows.append(el("tr", el("th", label, scope="row", class_="over" if best else None), *shown))
    named = [(el("i", class_=f"swatch {look(i)}"), " ", row.label) for i, row in enumerate(compared.rows)]
    heads = [el("th", *name, scope="col", class_="num") for name in named]
    head = el("thead", el("tr", el("td"), *heads))
    table = el("table", head, el("tbody", *rows), class_="compared")
    return el("div", table, class_="scroll", tabindex=0, role="region", aria_label="results side by side")


def _all_bars(results: Sequence[Result], labels: Sequence[str]) -> list[Html]:
    found = []
    for name, title in (("energy", "Energy, by level"), ("latency", "Busy time of every level, and latency")):
        try:
            found += [el("h3", title), shown(name, *results, labels=labels)]
        except SpecError as error:
            found += [el("h3", title), el("p", str(error))]
    return found


def _convergence(compared: Comparison) -> list[Html]:
    """A plot per objective: best and bound of every result that was searched for."""
    groups: dict[str, list[int]] = {}
    for i, row in enumerate(compared.rows):
        if any(point.best is not None for point in row.result.trace):
            groups.setdefault(str(row.result.objective), []).append(i)
    if not groups:
        return [el("p", "None of these results was searched for: there is no progress to show.")]
    drawn = []
    for objective, members in groups.items():
        if len(groups) > 1:
            drawn.append(el("h3", objective))
        rows = [(i, compared.rows[i]) for i in members]
        drawn.append(html_of(Progress().draw([traced(row.result, row.label, i) for i, row in rows])))
    return drawn


def _fusion(compared: Comparison) -> Html:
    """A line per intermediate, a column per result: the memory that backs it."""
    tensors = compared.intermediates
    if not tensors:
        return el("p", "One Einsum each: there is nothing to fuse.")
    rows = []
    for tensor in tensors[:MAX_TENSORS]:
        drawn = []
        for row in compared.rows:
            memory = row.fused.get(tensor)
            if tensor not in row.result.workload.intermediates:
                drawn.append(el("td", "–"))
            elif memory is None:
                drawn.append(el("td", row.result.machine.memories[0].name, class_="unfusedcell"))
            else:
                position = [m.name for m in row.result.machine.memories].index(memory)
                drawn.append(el("td", memory, class_=f"m{min(position, 4)}"))
        rows.append(el("tr", el("th", tensor, scope="row"), *drawn))
    table = table_of(("tensor", *(row.label for row in compared.rows)), rows, class_="fusiontable")
    more = el("p", f"{len(tensors) - MAX_TENSORS} more.") if len(tensors) > MAX_TENSORS else None
    words = "The memory that backs each intermediate; coloured where it is on chip, so that the Einsums are fused."
    return el("div", el("p", words, class_="note"), el("div", table, class_="scroll"), more)
