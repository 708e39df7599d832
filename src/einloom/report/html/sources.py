"""Where every number comes from: machine and workload with source and kind, and what the model assumes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ...machine.write import machine_data
from ...result import Result
from ...workload.files import workload_data
from .assumptions import ASSUMPTIONS, NOT_MODELLED
from .markup import Html, el, link
from .subject import Subject

KINDS = {
    "printed": "printed in a publication or data sheet",
    "code": "taken from published code",
    "derived": "computed from other numbers",
    "assumed": "assumed",
    "none": "given without a source",
}
_NAMES = ("memory", "compute", "fanout")
MAX_ROWS = 600


@dataclass(frozen=True, slots=True)
class Given:
    """One number of a workload or machine file; kind is ``none`` where it names no source."""

    path: str
    value: str
    source: str
    kind: str


def given(result: Result) -> list[Given]:
    """Every number of machine and workload, in the order of their files."""
    return [*_machine(machine_data(result.machine)), *_workload(workload_data(result.workload))]


def anchor(path: str) -> str:
    """The place on the page of a number's row."""
    return "fact-" + "".join(c if c.isalnum() or c in "._-" else "_" for c in path)


def _entry(path: str, value: object) -> Given | None:
    if isinstance(value, dict) and "value" in value:
        return Given(path, _shown(value["value"]), str(value.get("source", "")), str(value.get("kind", "assumed")))
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    return Given(path, _shown(value), "", "none") if str(value)[:1].isdigit() or value == "unlimited" else None


def _shown(value: object) -> str:
    return " × ".join(map(str, value)) if isinstance(value, list) else str(value)


def _machine(data: dict[str, object]) -> Iterator[Given]:
    levels = data["levels"]
    assert isinstance(levels, list)
    for level in levels:
        name = next(str(level[key]) for key in _NAMES if key in level)
        for key, value in level.items():
            if key in _NAMES:
                continue
            if key == "axes":
                for axis in value:
                    yield from _entries([(f"{axis['axis']}.size", axis["size"])])
            elif key == "widths":
                yield from _entries([(f"{name}.widths.{which}", width) for which, width in value.items()])
            else:
                yield from _entries([(f"{name}.{key}", value)])


def _workload(data: dict[str, object]) -> Iterator[Given]:
    for key in ("ranks", "bits", "shapes"):
        table = data.get(key)
        if isinstance(table, dict) and "value" not in table:
            yield from _entries([(f"{key}.{name}", value) for name, value in table.items()])
        elif table is not None:
            yield from _entries([(f"{key}.default", table)])
    yield from _entries([("repeat", data["repeat"])] if "repeat" in data else [])


def _entries(pairs: list[tuple[str, object]]) -> Iterator[Given]:
    for path, value in pairs:
        found = _entry(path, value)
        if found is not None:
            yield found


def share(result: Result) -> Html:
    """How much of what the result stands on is assumed: a bar and a sentence."""
    kinds = dict.fromkeys(KINDS, 0)
    for one in given(result):
        kinds[one.kind] += 1
    total = sum(kinds.values()) or 1
    parts = [
        el("span", class_=f"part {kind}", style=f"flex-grow:{count}", data_tip=f"{count} of {total} {KINDS[kind]}")
        for kind, count in kinds.items()
        if count
    ]
    legend = [
        el("span", el("i", class_=f"part {kind}"), f"{count} {KINDS[kind]}") for kind, count in kinds.items() if count
    ]
    known = result.provenance
    words = f"{known.assumed} of {known.facts} sourced numbers are assumptions ({known.assumed_share:.0%})"
    bar = el("div", *parts, class_="sharebar", role="img", aria_label=words)
    return el("div", el("p", el("b", words), "."), bar, el("p", *legend, class_="legend"))


def facts(result: Result) -> Html:
    """The table of all numbers."""
    rows = []
    listed = given(result)
    for one in listed[:MAX_ROWS]:
        badge = el("span", one.kind if one.kind != "none" else "no source", class_=f"kind {one.kind}")
        cells = (el("th", one.path, scope="row"), el("td", one.value), el("td", badge), el("td", one.source or "–"))
        rows.append(el("tr", *cells, id=anchor(one.path), tabindex=-1))
    heads = [el("th", name, scope="col") for name in ("number", "value", "kind", "source")]
    left = len(listed) - MAX_ROWS
    more = el("p", f"{left} more numbers stand in the result file.") if left > 0 else None
    table = el("table", el("thead", el("tr", *heads)), el("tbody", *rows), class_="facttable")
    return el("div", el("div", table, class_="scroll", tabindex=0, role="region", aria_label="all numbers"), more)


def model(result: Result) -> Html:
    """The model's assumptions as cards that links open."""
    cards = []
    for one in ASSUMPTIONS:
        body: list[Html] = [el("p", one.text + ("" if one.text.endswith(".") else "."))]
        if one.page == "not-modelled":
            body.append(el("ul", *(el("li", item) for item in NOT_MODELLED)))
        body.append(el("p", el("small", f"docs/model/{one.page}.md, with a worked example")))
        cards.append(el("details", el("summary", one.title), *body, id=f"model-{one.page}", class_="card"))
    rule = f"Model version {result.provenance.model_version}, latency rule '{result.latency_rule}', partial sums "
    return el("div", el("p", rule, f"'{result.machine.partial_sums}'."), el("div", *cards, class_="cards"))


def why(page: str, words: str = "how is this counted?") -> Html:
    """A link to an assumption."""
    return link(f"model-{page}", words, class_="why")


def energy_sources(subject: Subject) -> dict[tuple[str, str], str]:
    """(component, action) -> path of the number that prices it, where the machine gives one."""
    names = {"read": "read_energy", "write": "write_energy", "compute": "energy", "leak": "leakage"}
    paths = {one.path for one in given(subject.result)}
    pairs = {(a.component, str(a.action)) for a in subject.result.cost.actions}
    return {(c, a): f"{c}.{names[a]}" for c, a in pairs if f"{c}.{names[a]}" in paths}
