"""What notebooks show of workloads, machines, mappings and results: pieces of HTML that need no script."""

from __future__ import annotations

from functools import singledispatch

from ..machine.levels import Fanout, Level, Machine, Memory, Toll
from ..mapping.tree import Mapping
from ..reading.units import format as with_unit
from ..result import Result
from ..result.unmapped import Unmapped
from ..workload.einsum import Workload
from .compare import Comparison
from .draw import cascade
from .draw.looptree import LoopTree
from .draw.markup import Html, el, table_of
from .draw.scene import Scene, energy, size
from .draw.subject import Subject
from .draw.svg import html_of
from .page import nothing, summary
from .page.comparison import comparison_table
from .page.snippet import snippet
from .pictures import added, shown

FIRST = 12


@singledispatch
def draw(thing: object) -> str:
    """The thing as HTML; every kind of thing that `reporting.Drawn` is a base of is registered below."""
    raise TypeError(f"nothing draws a {type(thing).__name__}")


@draw.register
def _(workload: Workload) -> str:
    scene = Scene(workload)
    count, most = len(workload.einsums), len(scene.windows[0])
    graph = el("div", html_of(cascade.Cascade(0, most).draw(scene)), class_="scroll")
    more = el("p", f"The first {most} of {count} Einsums.", class_="note") if most < count else None
    ranks = ", ".join(f"{name} = {extent:,}" for name, extent in workload.extents.items())
    repeat = f", {workload.repeat} times" if workload.repeat > 1 else ""
    words = el("p", f"{count} Einsum{'' if count == 1 else 's'}{repeat}; {ranks}", class_="note")
    tensors = el("details", el("summary", f"{len(workload.tensors)} tensors"), summary.shared(scene))
    return snippet(el("h3", workload.name), graph, more, words, tensors)


@draw.register
def _(comparison: Comparison) -> str:
    return snippet(comparison_table(comparison))


@draw.register
def _(machine: Machine) -> str:
    rows = [_level(machine, level) for level in machine.levels]
    names = ("level", "", "instances", "size", "read / write or operation", "throughput", "must hold", "may hold")
    return snippet(el("h3", machine.name), el("div", table_of(names, rows, class_="limits"), class_="scroll"))


def _level(machine: Machine, level: Level) -> Html:
    if isinstance(level, Fanout):
        axes = ", ".join(f"{axis.name} × {axis.size}" for axis in level.axes)
        return _line(level.name, "fanout", f"× {level.instances:,}", axes)
    instances = f"{machine.instances(level.name):,}"
    if isinstance(level, Memory):
        position = [memory.name for memory in machine.memories].index(level.name)
        room = "unlimited" if level.size is None else size(level.size)
        access = "" if level.bits_per_access == 1 else f" per {level.bits_per_access} bit"
        prices = f"{_joules(level.read_energy)} / {_joules(level.write_energy)}{access}"
        rates = " / ".join(dict.fromkeys(_rate(r) for r in (level.read_throughput, level.write_throughput)))
        held = str(level.must), str(level.may)
        return _line(level.name, "memory", instances, room, prices, rates, *held, look=f"m{min(position, 4)}")
    if isinstance(level, Toll):
        access = "" if level.bits_per_access == 1 else f" per {level.bits_per_access} bit"
        ways = f"down: {level.down}, up: {level.up}"
        return _line(level.name, "toll", instances, ways, _joules(level.energy) + access, _rate(level.throughput))
    rate = "unlimited" if level.throughput is None else with_unit(level.throughput, "rate", 4)
    return _line(level.name, "compute", instances, "", _joules(level.energy), rate)


def _line(name: str, kind: str, *cells: str, look: str | None = None) -> Html:
    shown = [*cells, *[""] * (6 - len(cells))]
    return el("tr", el("th", name, scope="row"), el("td", kind), *(el("td", cell) for cell in shown), class_=look)


def _joules(value: float) -> str:
    return energy(value, 4) if value else "0"


def _rate(value: float | None) -> str:
    return "unlimited" if value is None else with_unit(value, "throughput", 4)


@draw.register
def _(mapping: Mapping) -> str:
    return snippet(el("div", html_of(LoopTree(0, FIRST).draw(mapping)), class_="scroll"))


@draw.register
def _(result: Result) -> str:
    subject = Subject(result)
    tree = el("div", html_of(LoopTree(0, FIRST).draw(subject)), class_="scroll")
    front = (
        (el("h3", "Pareto front" if result.optimal else "Part of the Pareto front"), shown("pareto", result))
        if result.front
        else ()
    )
    graph = el("details", el("summary", "cascade"), cascade.drawings(subject)[0])
    proof = el("details", el("summary", "what is proven"), summary.certificate(result))
    more = [el("details", el("summary", title), drawn) for _, title, drawn in added(result)]
    bars = [] if not result.energy else [shown("energy", result, count=FIRST)]
    return snippet(summary.header(result, "h3"), summary.tiles(result), *front, tree, *bars, graph, proof, *more)


@draw.register
def _(found: Unmapped) -> str:
    scene = Scene(found.workload, found.machine, found.provenance)
    return snippet(nothing.header(found, "h3"), nothing.reason(found), nothing.limit_table(scene, found))
