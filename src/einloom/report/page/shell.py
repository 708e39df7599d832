"""The frame of every page: style, script and data inside, and a policy under which nothing else is fetched or run."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable, Sequence
from importlib.resources import files
from typing import NamedTuple

from ...result import Provenance
from ...version import VERSION
from ..draw import palette
from ..draw.markup import Child, Html, el, join, link
from ..draw.scene import Scene


class PagePart(NamedTuple):
    """A section of a page, with its name for links and its title."""

    name: str
    title: str
    drawn: Html


def part(name: str, title: str, *children: Child, how: Html | None = None) -> PagePart:
    """A part of a page, as `section` makes it."""
    return PagePart(name, title, section(name, title, *children, how=how))


def paged(
    title: str,
    head: Html,
    parts: Sequence[PagePart],
    data: object,
    chips: Html | None = None,
    made: Provenance | None = None,
) -> str:
    """A whole page of `parts` under its head, with a bar that leads to each."""
    bar = el("div", navigation(one[:2] for one in parts), chips, class_="bar")
    body = (skip(parts[0].name), head, bar, el("main", *(one.drawn for one in parts)))
    return shell(title, body, data, made)


def shell(title: str, body: Iterable[Child], data: object, made: Provenance | None = None) -> str:
    """A whole page around `body`; `data` is what its script reads, `made` which einloom made what it shows."""
    foot = f"einloom {made.version} · model version {made.model_version}" if made else f"einloom {VERSION}"
    script = files(__package__).joinpath("behaviour.js").read_text(encoding="utf-8")
    inside = el(
        "body",
        palette.patterns(),
        arrow(),
        *body,
        el("footer", foot),
        el("div", id="tip", role="status", aria_live="polite", hidden=True),
        el("script", Html(_as_json(data)), type="application/json", id="data"),
        el("script", Html(script)),
    )
    return "<!doctype html>\n" + el("html", _head(title, script), inside, lang="en") + "\n"


def skip(target: str) -> Html:
    """The first stop of the keyboard."""
    return el("a", f"Skip to the {target}", href=f"#{target}", class_="skip")


def navigation(names: Iterable[tuple[str, str]]) -> Html:
    """Links to the parts of the page."""
    return el("nav", *(link(target, words) for target, words in names), aria_label="parts of the report")


def section(name: str, title: str, *children: Child, how: Html | None = None) -> Html:
    """A part of the page under its title, with a way to how it is counted."""
    return el("section", el("h2", title, " ", how), *children, id=name, aria_label=title)


def windowed(scene: Scene, drawings: list[Html], label: str) -> Html:
    """The first drawing, and the others as templates that the pager swaps in."""
    shown = el("div", drawings[0], class_="window scroll", tabindex=0, role="region", aria_label=label)
    if len(drawings) == 1:
        return el("div", shown, class_="windowed")
    last = len(scene.leaves)
    options = [el("option", f"{window.start + 1} to {window.stop}", value=i) for i, window in enumerate(scene.windows)]
    pager = el(
        "div",
        el("button", "‹ previous", type="button", data_step=-1),
        el("label", "Einsums ", el("select", *options), f" of {last}"),
        el("button", "next ›", type="button", data_step=1),
        class_="pager",
    )
    return el("div", pager, shown, join(el("template", drawing) for drawing in drawings), class_="windowed")


def _head(title: str, script: str) -> Html:
    style = files(__package__).joinpath("style.css").read_text(encoding="utf-8") + palette.style()
    return el(
        "head",
        el("meta", charset="utf-8"),
        el("meta", **{"http-equiv": "Content-Security-Policy", "content": _policy(script)}),
        el("meta", name="viewport", content="width=device-width,initial-scale=1"),
        el("title", title),
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


def arrow() -> Html:
    """An SVG without size that defines the head of an arrow."""
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
