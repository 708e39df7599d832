"""The whole report as one HTML text that needs nothing else: style, script, pictures and data are inside it."""

from __future__ import annotations

import base64
import hashlib
import json
from importlib.resources import files

from ...result import Result
from ..text import tree
from . import bars, cascade, looptree, occupancy, palette, progress, roofline, sources, summary
from .markup import Child, Html, el, join
from .subject import Subject

PARTS = (
    ("summary", "Summary"),
    ("mapping", "Mapping"),
    ("cascade", "Cascade"),
    ("occupancy", "Occupancy"),
    ("breakdown", "Energy and time"),
    ("roofline", "Roofline"),
    ("search", "Search"),
    ("tensors", "Tensors"),
    ("sources", "Assumptions and sources"),
)


def page(result: Result) -> str:
    """The report of a result as HTML; nothing is searched, and nothing outside the text is referred to."""
    subject = Subject(result)
    script = files(__package__).joinpath("behaviour.js").read_text(encoding="utf-8")
    body = el(
        "body",
        palette.patterns(),
        _arrow(),
        el("a", "Skip to the summary", href="#summary", class_="skip"),
        summary.header(result),
        el("div", summary.navigation(PARTS), summary.chips(subject), class_="bar"),
        el("main", *_sections(subject)),
        el("footer", f"einloom {result.provenance.version} · model version {result.provenance.model_version}"),
        el("div", id="tip", role="status", aria_live="polite", hidden=True),
        el("script", Html(_as_json(bars.data(subject))), type="application/json", id="data"),
        el("script", Html(script)),
    )
    return "<!doctype html>\n" + el("html", _head(result, script), body, lang="en") + "\n"


def _head(result: Result, script: str) -> Html:
    style = files(__package__).joinpath("style.css").read_text(encoding="utf-8") + palette.style()
    return el(
        "head",
        el("meta", charset="utf-8"),
        el("meta", **{"http-equiv": "Content-Security-Policy", "content": _policy(script)}),
        el("meta", name="viewport", content="width=device-width,initial-scale=1"),
        el("title", f"{result.workload.name} on {result.machine.name}"),
        el("style", Html(style)),
    )


def _policy(script: str) -> str:
    """Nothing is fetched, and no script runs but the page's own."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    rules = ("default-src 'none'", "style-src 'unsafe-inline'", f"script-src 'sha256-{digest}'")
    return "; ".join((*rules, "base-uri 'none'", "form-action 'none'"))


def _as_json(data: object) -> str:
    """JSON that is safe between script tags."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False, ensure_ascii=True)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _arrow() -> Html:
    tip = el("path", d="M0 0L8 4L0 8z", fill="#666")
    where = {
        "viewBox": "0 0 8 8",
        "refX": 7,
        "refY": 4,
        "markerWidth": 8,
        "markerHeight": 8,
        "markerUnits": "userSpaceOnUse",
        "orient": "auto",
    }
    marker = el("marker", tip, id="arrow", **where)
    return el("svg", el("defs", marker), class_="defs", aria_hidden="true", width=0, height=0)


def _section(name: str, *children: Child, page: str | None = None) -> Html:
    title = dict(PARTS)[name]
    how = sources.why(page) if page else None
    return el("section", el("h2", title, " ", how), *children, id=name, aria_label=title)


def _sections(subject: Subject) -> list[Html]:
    result = subject.result
    return [
        _section(
            "summary",
            summary.tiles(result),
            el("div", summary.certificate(result), sources.share(subject), class_="two"),
        ),
        _section(
            "mapping",
            looptree.key(),
            _windowed(subject, looptree.drawings(subject), "The mapping, a column per Einsum in program order"),
            el("details", el("summary", "The same as text"), el("pre", tree(result), tabindex=0)),
            page="splits-and-lifetime",
        ),
        _section("cascade", _windowed(subject, cascade.drawings(subject), "The cascade")),
        _section("occupancy", *occupancy.pictures(subject), page="occupancy"),
        _section("breakdown", bars.controls(), bars.table(subject), page="energy"),
        _section("roofline", roofline.picture(subject), page="latency"),
        _section("search", el("div", progress.picture(subject), progress.counts(result), class_="two")),
        _section("tensors", summary.shared(subject)),
        _section(
            "sources", sources.share(subject), sources.facts(subject), el("h3", "The model"), sources.model(result)
        ),
    ]


def _windowed(subject: Subject, drawings: list[Html], label: str) -> Html:
    """The first drawing, and the others as templates that the pager swaps in."""
    shown = el("div", drawings[0], class_="window scroll", tabindex=0, role="region", aria_label=label)
    if len(drawings) == 1:
        return el("div", shown, class_="windowed")
    last = len(subject.leaves)
    options = [
        el("option", f"{window.start + 1} to {window.stop}", value=i) for i, window in enumerate(subject.windows)
    ]
    pager = el(
        "div",
        el("button", "‹ previous", type="button", data_step=-1),
        el("label", "Einsums ", el("select", *options), f" of {last}"),
        el("button", "next ›", type="button", data_step=1),
        class_="pager",
    )
    return el("div", pager, shown, join(el("template", drawing) for drawing in drawings), class_="windowed")
