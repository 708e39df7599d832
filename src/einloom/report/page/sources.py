"""Where every number comes from: machine and workload with source and kind, and what the model assumes."""

from __future__ import annotations

from collections import Counter

from ...problem import MODEL_VERSION
from ..data.given import Given
from ..draw.markup import Html, el, table_of
from ..draw.origins import anchor
from ..draw.scene import Scene
from .assumptions import ASSUMPTIONS, NOT_MODELLED

KINDS = {
    "printed": "printed in a publication or data sheet",
    "code": "taken from published code",
    "derived": "computed from other numbers",
    "assumed": "assumed",
    "none": "given without a source",
}
FIRST_ROWS = 60


def share(subject: Scene) -> Html:
    """How much of what the result stands on is assumed: a bar and a sentence."""
    counted = Counter(one.kind for one in subject.given)
    kinds = {kind: counted[kind] for kind in KINDS if counted[kind]}
    total = counted.total()
    parts = [
        el("span", class_=f"part {kind}", style=f"flex-grow:{count}", data_tip=f"{count} of {total} {KINDS[kind]}")
        for kind, count in kinds.items()
    ]
    legend = [el("span", el("i", class_=f"part {kind}"), f"{count} {KINDS[kind]}") for kind, count in kinds.items()]
    known = subject.provenance
    if known is None:
        return Html("")
    words = f"{known.assumed} of {known.facts} sourced numbers are assumptions ({known.assumed_share:.0%})"
    bar = el("div", *parts, class_="sharebar", role="img", aria_label=words)
    return el("div", el("p", el("b", words), "."), bar, el("p", *legend, class_="legend"))


def panel(subject: Scene, rule: str) -> tuple[Html, ...]:
    """All numbers with their sources, and what the model assumes."""
    return facts(subject), el("h3", "The model"), model(subject, rule)


def facts(subject: Scene) -> Html:
    """The table of all numbers; what one screen does not hold opens on demand."""
    listed = subject.given
    first, others = listed[:FIRST_ROWS], listed[FIRST_ROWS:]
    if not others:
        return _table(first)
    words = el("summary", f"{len(others)} more numbers")
    return el("div", _table(first), el("details", words, _table(others)))


def _table(listed: tuple[Given, ...]) -> Html:
    rows = []
    for one in listed:
        badge = el("span", one.kind if one.kind != "none" else "no source", class_=f"kind {one.kind}")
        cells = (el("th", one.path, scope="row"), el("td", one.value), el("td", badge), el("td", one.source or "–"))
        rows.append(el("tr", *cells, id=anchor(one.path), tabindex=-1))
    table = table_of(("number", "value", "kind", "source"), rows, class_="facttable")
    return el("div", table, class_="scroll", tabindex=0, role="region", aria_label="numbers with their sources")


def model(subject: Scene, rule: str) -> Html:
    """The model's assumptions as cards that links open."""
    cards = []
    for one in ASSUMPTIONS:
        body: list[Html] = [el("p", one.text + ("" if one.text.endswith(".") else "."))]
        if one.page == "not-modelled":
            body.append(el("ul", *(el("li", item) for item in NOT_MODELLED)))
        body.append(el("p", el("small", f"docs/model/{one.page}.md, with a worked example")))
        cards.append(el("details", el("summary", one.title), *body, id=f"model-{one.page}", class_="card"))
    known, machine = subject.provenance, subject.machine
    version = known.model_version if known else MODEL_VERSION
    sums = f", partial sums '{machine.partial_sums}'" if machine else ""
    words = el("p", f"Model version {version}, latency rule '{rule}'{sums}.")
    return el("div", words, el("div", *cards, class_="cards"))
