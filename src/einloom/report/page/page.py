"""The whole report as one HTML text that needs nothing else: style, script, pictures and data are inside it."""

from __future__ import annotations

from ...diagnose import Explanation
from ...result import Result
from ..draw import bars, cascade, looptree, pareto, roofline
from ..draw.markup import Child, Html, el
from ..draw.origins import why
from ..draw.subject import Subject
from ..draw.svg import html_of
from ..pictures import added, shown
from ..text.results import tree
from . import explained, folded, progress, sources, summary
from .shell import navigation, section, shell, skip, windowed

PARTS = (
    ("summary", "Summary"),
    ("mapping", "Mapping"),
    ("cascade", "Cascade"),
    ("occupancy", "Occupancy"),
    ("breakdown", "Energy and time"),
    ("modules", "Modules"),
    ("roofline", "Roofline"),
    ("front", "Pareto front"),
    ("search", "Search"),
    ("tensors", "Tensors"),
    ("sources", "Assumptions and sources"),
)


def page(result: Result, why: Explanation | None = None) -> str:
    """The report of a result as HTML; nothing is searched, and nothing outside the text is referred to."""
    subject = Subject(result)
    more = [(name, title, section(name, title, drawn)) for name, title, drawn in added(result)]
    left_out = {"front": not result.front, "modules": not folded.given(result)}
    parts = [part for part in PARTS if not left_out.get(part[0])]
    more += [] if why is None else [(explained.NAME, explained.TITLE, explained.panel(why))]
    body = (
        skip("summary"),
        summary.header(result),
        el("div", navigation([*parts, *(part[:2] for part in more)]), summary.chips(subject), class_="bar"),
        el("main", *_sections(subject), *(part[2] for part in more)),
    )
    title = f"{result.workload.name} on {result.machine.name}"
    foot = f"einloom {result.provenance.version} · model version {result.provenance.model_version}"
    return shell(title, body, bars.data(subject), foot)


def _section(name: str, *children: Child, page: str | None = None) -> Html:
    return section(name, dict(PARTS)[name], *children, how=why(page) if page else None)


def _sections(subject: Subject) -> list[Html]:
    result = subject.result
    counted = result.certificate.counts if result.certificate else {}
    trees = [html_of(looptree.LoopTree(window.start, len(window)).draw(subject)) for window in subject.windows]
    return [
        _section(
            "summary",
            summary.tiles(result),
            el("div", summary.certificate(result), sources.share(subject), class_="two"),
        ),
        _section(
            "mapping",
            looptree.key(),
            windowed(subject, trees, "The mapping, a column per Einsum in program order"),
            el("details", el("summary", "The same as text"), el("pre", tree(result), tabindex=0)),
            page="splits-and-lifetime",
        ),
        _section("cascade", windowed(subject, cascade.drawings(subject), "The cascade")),
        _section("occupancy", shown("occupancy", result), page="occupancy"),
        _section("breakdown", bars.controls(), bars.table(subject), page="energy"),
        *([_section("modules", folded.panel(result))] if folded.given(result) else []),
        _section("roofline", roofline.picture(subject), page="latency"),
        *([_front(result)] if result.front else []),
        _section("search", el("div", progress.picture(result), progress.counts(counted), class_="two")),
        _section("tensors", summary.shared(subject)),
        _section("sources", sources.share(subject), *sources.panel(subject, result.latency_rule)),
    ]


def _front(result: Result) -> Html:
    words = (
        "No mapping of the space beats one of these in both energy and latency; the page shows the one of least EDP."
    )
    note = el("p", words, class_="note")
    return _section("front", shown("pareto", result), note, pareto.table(result))
