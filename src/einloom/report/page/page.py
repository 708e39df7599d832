"""The whole report as one HTML text that needs nothing else: style, script, pictures and data are inside it."""

from __future__ import annotations

from collections.abc import Iterator

from ...diagnose import Explanation
from ...result import Result
from ..draw import bars, cascade, looptree, pareto, roofline
from ..draw.markup import el
from ..draw.origins import why
from ..draw.subject import Subject
from ..draw.svg import html_of
from ..pictures import added, shown
from ..text.results import tree
from . import explained, folded, progress, sources, summary
from .shell import PagePart, paged, part, windowed

FRONT = "No mapping of the space beats one of these in both energy and latency; the page shows the one of least EDP."
PART = (
    "What the search knew of the front when it ended: none of these beats another in both energy and latency, but "
    "other mappings may. The page shows the one of least EDP."
)


def page(result: Result, why: Explanation | None = None) -> str:
    """The report of a result as HTML; nothing is searched, and nothing outside the text is referred to."""
    subject = Subject(result)
    parts = [*_parts(subject), *(part(*brought) for brought in added(result))]
    parts += [explained.panel(why)] if why else []
    title = f"{result.workload.name} on {result.machine.name}"
    return paged(title, summary.header(result), parts, bars.data(subject), summary.chips(subject), result.provenance)


def _parts(subject: Subject) -> Iterator[PagePart]:
    result = subject.result
    share = sources.share(subject)
    yield part("summary", "Summary", summary.tiles(result), el("div", summary.certificate(result), share, class_="two"))
    trees = [html_of(looptree.LoopTree(window.start, len(window)).draw(subject)) for window in subject.windows]
    drawn = windowed(subject, trees, "The mapping, a column per Einsum in program order")
    as_text = el("details", el("summary", "The same as text"), el("pre", tree(result), tabindex=0))
    yield part("mapping", "Mapping", looptree.key(), drawn, as_text, how=why("splits-and-lifetime"))
    yield part("cascade", "Cascade", windowed(subject, cascade.drawings(subject), "The cascade"))
    yield part("occupancy", "Occupancy", shown("occupancy", result), how=why("occupancy"))
    yield part("breakdown", "Energy and time", bars.controls(), bars.table(subject), how=why("energy"))
    if folded.given(result):
        yield part("modules", "Modules", folded.panel(result))
    yield part("roofline", "Roofline", roofline.picture(subject), how=why("latency"))
    if result.front:
        note = el("p", FRONT if result.optimal else PART, class_="note")
        yield part("front", "Pareto front", shown("pareto", result), note, pareto.table(result))
    counted = result.certificate.counts if result.certificate else {}
    yield part("search", "Search", el("div", progress.picture(result), progress.counts(counted), class_="two"))
    yield part("tensors", "Tensors", summary.shared(subject))
    yield part("sources", "Assumptions and sources", share, *sources.panel(subject, result.latency_rule))
