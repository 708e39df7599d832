"""The top of the page: what was asked, what was found, and what is proven of it."""

from __future__ import annotations

from ...problem import Guarantee
from ...problem.any_tiles import any_tiles
from ...result import Result
from ...result.unmapped import Unmapped
from ..data.use import idle
from ..data.views import latency_rows
from ..draw.markup import Html, el, link, table_of
from ..draw.origins import why
from ..draw.scene import Scene, energy, size, time
from ..text.results import certificate_lines, claimed, objective_value

MAX_CHIPS, MAX_ROWS = 60, 30


def header(result: Result, tag: str = "h1") -> Html:
    """Title and the promise in one line."""
    certificate = result.certificate
    words, classes = "evaluated: nothing was searched", "none"
    if certificate is not None:
        words, classes = {
            Guarantee.OPTIMAL: ("✓ optimal in its mapspace", "optimal"),
            Guarantee.BOUNDED: (f"within {certificate.gap:.2%} of the bound", "bounded"),
            Guarantee.NONE: ("no guarantee", "none"),
        }[certificate.guarantee]
        if whose := claimed(result):
            words, classes = f"{whose}{words.removeprefix('✓ ')}", "none"
        if certificate.integer_gap is not None:
            words += f", within {certificate.integer_gap:.2%} of {any_tiles(result.workload)}"
    title = el(tag, result.workload.name, el("span", " on "), result.machine.name)
    line = el("p", "minimises ", el("b", str(result.objective)), " · ", el("span", words, class_=f"badge {classes}"))
    return el("header", title, line, id="top" if tag == "h1" else None)


def tiles(result: Result) -> Html:
    """The totals, each with a way to how it is counted."""
    memory = result.objective.memory or result.machine.memories[0].name
    moved = result.cost.traffic(memory)
    cells = [
        ("energy", energy(result.energy, 5), f"{result.energy:.8g} J", why("energy")),
        ("latency", time(result.latency, 5), f"{result.latency:.8g} s", why("latency")),
        ("energy-delay product", f"{result.edp:.5g} J s", "energy × latency", why("energy")),
        (f"traffic of {memory}", size(moved), f"{moved:,} bits", why("moves")),
        ("roofline", time(result.cost.roofline, 5), "busiest component over the run", why("latency")),
    ]
    wanted = {"energy": 0, "latency": 1, "traffic": 3}.get(result.objective.name, 2)
    return el(
        "div",
        *(
            el("div", el("h3", name), el("b", value), el("small", exact), how, class_="tile" + " aim" * (i == wanted))
            for i, (name, value, exact, how) in enumerate(cells)
        ),
        class_="tiles",
    )


def certificate(result: Result) -> Html:
    """What is proven, of which space, and how."""
    found = result.certificate
    rows: list[tuple[str, str | Html]] = [
        ("mapspace" if name == "space" else name, text.split("; ")[0] if name == "found by" else text)
        for name, text in certificate_lines(result)
    ]
    if found is not None:
        rows[:0] = [
            ("guarantee", found.guarantee.value),
            ("value", objective_value(result.objective, found.value, 10)),
            ("bound", objective_value(result.objective, found.bound, 10)),
            ("gap", f"{100 * found.gap:.6g} %"),
            ("counts", link("search", f"points seen and dropped, by {len(found.counts)} rules")),
        ]
    seen = "; ".join(" ".join(text.split()) for _, text in latency_rows(result.latencies))
    rows += [("latency seen as", seen)] if seen else []
    rows += [("idle", without)] if (without := idle(result)) else []
    rows += [("absorbed", ", ".join(result.workload.absorbed))] if result.workload.absorbed else []
    listed: list[Html] = [part for name, text in (*rows, *made(result)) for part in (el("dt", name), el("dd", text))]
    states = el(
        "p",
        "This page shows what the result file says; ",
        el("code", "einloom verify"),
        " checks it, but for how it was found (method, seconds, counts, progress, version) and other choices.",
    )
    return el("div", altered(result), el("dl", *listed, class_="facts"), states)


def made(answer: Result | Unmapped) -> tuple[tuple[str, str], ...]:
    """Which einloom made the answer, and the digest of its file."""
    known, digest = answer.provenance, answer.recorded_digest
    return (
        ("made with", f"einloom {known.version}, model version {known.model_version}"),
        ("digest", "not saved" if digest is None else f"{digest[:16]}…"),
    )


def altered(answer: Result | Unmapped) -> Html | None:
    """The warning above a file whose digest does not match."""
    if answer.recorded_digest is None or answer.recorded_digest == answer.found_digest:
        return None
    words = "The file was changed after it was written: its digest does not match."
    return el("p", words, class_="warning", role="alert")


def chips(subject: Scene) -> Html:
    """A button per tensor: focus or hover lights the tensor up in all pictures, a click holds it."""
    shown = subject.tensors[:MAX_CHIPS]
    buttons = [subject.chip(tensor, tag="button", type="button", aria_pressed="false") for tensor in shown]
    search = None
    if len(subject.tensors) > len(shown):
        options = [el("option", value=tensor) for tensor in subject.tensors]
        field = {"id": "find-tensor", "list": "tensor-names", "placeholder": "find a tensor"}
        search = el(
            "span", el("input", aria_label="find a tensor", **field), el("datalist", *options, id="tensor-names")
        )
    words = el("span", f"{len(subject.tensors)} tensors", class_="count")
    return el("div", words, search, *buttons, class_="chips", id="chips", role="toolbar", aria_label="tensors")


def shape_text(shape: tuple[int, ...]) -> str:
    """The sizes of ranks, as in 4 × 1,024."""
    return " × ".join(f"{extent:,}" for extent in shape)


def shared(subject: Scene) -> Html:
    """Where every tensor that Einsums share is kept, in a table."""
    workload = subject.workload
    rows: list[Html] = []
    for name in subject.tensors[:MAX_ROWS]:
        tensor = workload.tensor(name)
        views = [f"{view.name}: {shape_text(view.shape)}" for view in workload.views if view.tensor == name]
        shape = ", ".join([shape_text(tensor.shape), *views])
        makers = ", ".join(workload.writers.get(name, ("given",))[:6])
        users = ", ".join(workload.consumers[name][:6]) or "the cascade's output"
        place = subject.backing.get(name, "–")
        fused = name in workload.intermediates and place != subject.outermost
        cells = (
            shape,
            str(tensor.bits),
            size(tensor.size * tensor.bits),
            makers,
            users,
            *([place + (" (fused)" if fused else "")] if subject.backing else []),
        )
        row = [el("th", subject.chip(name), scope="row"), *(el("td", cell) for cell in cells)]
        rows.append(el("tr", *row, data_t=subject.number[name]))
    names = ("tensor", "shape", "bits", "size", "from", "to", *(["backed by"] if subject.backing else []))
    more = el("p", f"{len(subject.tensors) - len(rows)} more.") if len(subject.tensors) > len(rows) else None
    table = table_of(names, rows, class_="tensortable")
    return el("div", el("div", table, class_="scroll", tabindex=0, role="region", aria_label="tensors"), more)
