"""The page of a problem for which no mapping was found: what was in the way, and what the machine can and must hold."""

from __future__ import annotations

from collections.abc import Iterator

from ...diagnose import Explanation
from ...result.unmapped import Unmapped
from ..draw import cascade
from ..draw.markup import Html, el, table_of
from ..draw.origins import why
from ..draw.scene import Scene, size
from ..text.limits import limits
from ..text.results import objective_value
from . import explained, progress, sources, summary
from .shell import PagePart, paged, part, windowed

MAX_CHIPS = 24


def nothing_page(found: Unmapped, why: Explanation | None = None) -> str:
    """The report of a problem without a known mapping, as HTML."""
    scene = Scene(found.workload, found.machine, found.provenance)
    title = f"{found.workload.name} on {found.machine.name}"
    parts = [*_parts(scene, found), *([explained.panel(why)] if why else [])]
    data = {"tensor": list(scene.tensors)}
    return paged(title, header(found), parts, data, summary.chips(scene), found.provenance)


def header(found: Unmapped, tag: str = "h1") -> Html:
    """Title and the answer in one line."""
    words = {
        "infeasible": "✗ infeasible: no mapping of the space is legal",
        "unfinished": "… unfinished: no legal mapping was found in time",
    }[found.status]
    title = el(tag, found.workload.name, el("span", " on "), found.machine.name)
    badge = el("span", words, class_=f"badge {found.status}")
    line = el("p", "minimises ", el("b", str(found.problem.objective)), " · ", badge)
    return el("header", title, line, id="top" if tag == "h1" else None)


def _parts(scene: Scene, found: Unmapped) -> Iterator[PagePart]:
    yield part("why", "Why", reason(found), el("div", _facts(found), sources.share(scene), class_="two"))
    yield part("limits", "Limits", limit_table(scene, found), how=why("occupancy"))
    yield part("cascade", "Cascade", windowed(scene, cascade.drawings(scene), "The cascade"))
    yield part("search", "Search", el("div", progress.picture(found), progress.counts(found.counts), class_="two"))
    yield part("tensors", "Tensors", summary.shared(scene))
    yield part("sources", "Assumptions and sources", *sources.panel(scene, found.problem.latency_rule))


def reason(found: Unmapped) -> Html:
    """What was in the way."""
    parts = [el("li", part) for part in found.reason.split("; ")]
    words = el("ul", *parts) if len(parts) > 1 else el("p", found.reason)
    head, more = "What ended the search", None
    if found.status == "infeasible":
        head = "What was in the way"
        verb = el("code", "einloom explain")
        more = el("p", verb, " finds the smallest set of limits to blame, and what would help.", class_="note")
    return el("div", el("h3", head), words, more, class_="obstacle", role="note")


def _facts(found: Unmapped) -> Html:
    problem = found.problem
    proven = "that the space holds no legal mapping" if found.status == "infeasible" else "nothing of its existence"
    rows = [
        ("proven", proven),
        ("mapspace", problem.mapspace.shown),
        ("searched by", f"method '{found.method}', {found.seconds:.3g} s"),
    ]
    if found.bound:
        rows.append(("bound", f"no mapping has less than {objective_value(problem.objective, found.bound, 10)}"))
    listed = [(el("dt", name), el("dd", text)) for name, text in (*rows, *summary.made(found))]
    return el("div", summary.altered(found), el("dl", *listed, class_="facts"))


def limit_table(scene: Scene, found: Unmapped) -> Html:
    """What every memory can, must and may hold; a tensor that is larger than the memory is marked."""
    rows = []
    for limit in limits(found.problem):
        room = "unlimited" if limit.size is None else size(limit.size)
        cells = (
            el("th", limit.memory, scope="row"),
            el("td", room, class_="num"),
            el("td", f"{limit.instances:,}", class_="num"),
            el("td", _chips(scene, limit.must, limit.size)),
            el("td", _chips(scene, limit.may, limit.size)),
        )
        rows.append(el("tr", *cells))
    names = ("memory", "size", "instances", "must hold a tile of", "may hold a tile of")
    table = table_of(names, rows, numbers=(1, 2), class_="limits")
    words = (
        "Each tensor is shown with its whole size; where that is more than the memory holds it has a red rim: only a "
        "tile of it can be kept there, below a loop. What must be held decides which loops may stand above."
    )
    return el("div", el("div", table, class_="scroll"), el("p", words, class_="note"))


def _chips(scene: Scene, tensors: tuple[str, ...], room: int | None) -> Html:
    if not tensors:
        return Html("–")
    drawn = []
    for name in tensors[:MAX_CHIPS]:
        tensor = scene.workload.tensor(name)
        whole = tensor.size * tensor.bits
        over = room is not None and whole > room
        tip = f"{name}: {size(whole)} in all" + (
            f", more than the {size(room)} of this memory" if over and room else ""
        )
        look = "chip over" if over else "chip"
        drawn.append(scene.chip(name, el("small", size(whole)), class_=look, data_tip=tip))
    more = [el("span", f"and {len(tensors) - MAX_CHIPS} more")] if len(tensors) > MAX_CHIPS else []
    return el("div", *drawn, *more, class_="chiplist")
