"""Operations per byte of the outermost memory against operations per second: as mapped, and as it must be unfused.

The unfused point moves every operand and every result of every Einsum once through the outermost memory: the least
that any schedule without fusion can do.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...cost.formulas.components import component_time
from ...reading.units import format as with_unit
from ...result import Result
from .markup import Html, el
from .plot import Curve, Scale, mark, plot
from .scene import size, time
from .subject import Subject

MAX_POINTS = 40


@dataclass(frozen=True, slots=True)
class Point:
    """One Einsum or the whole cascade: operations, bytes through the outermost memory, and rates (1/s).

    attainable: what roofs allow with this traffic. achieved: operations over latency; None for what was not mapped.
    """

    name: str
    operations: int
    bytes: float
    attainable: float | None
    achieved: float | None

    @property
    def intensity(self) -> float | None:
        """Operations per byte; None if nothing passes through the outermost memory."""
        return self.operations / self.bytes if self.bytes else None


@dataclass(frozen=True, slots=True)
class Roofs:
    """What the machine allows: bytes per second of the outermost memory (None: unlimited), (unit, rate) pairs."""

    bandwidth: float | None
    peaks: tuple[tuple[str, float], ...]


def roofs(result: Result) -> Roofs:
    """Roofs for as many reads per write as the mapping has."""
    outer = result.machine.memories[0]
    read, written = (
        sum(a.bits for a in result.cost.actions if a.component == outer.name and a.action == action)
        for action in ("read", "write")
    )
    took = component_time(outer, read or 1, written)
    bandwidth = None if not took else (max(read, 1) + written) / 8 / float(took)
    used = {a.component for a in result.cost.actions if a.action == "compute"}
    peaks = [
        (unit.name, unit.throughput * result.machine.instances(unit.name))
        for unit in result.machine.units
        if unit.throughput is not None and unit.name in used
    ]
    return Roofs(bandwidth, tuple(peaks))


def points(result: Result, unfused: bool) -> list[Point]:
    """A point for every Einsum with operations, and one called after the workload for all of them, at the end."""
    outer, workload = result.machine.memories[0], result.workload
    limits = roofs(result)
    peaks, latency = dict(limits.peaks), dict(result.cost.einsum_latency)
    units = {a.einsum: a.component for a in result.cost.actions if a.action == "compute"}
    moved: dict[str, float] = {}
    for action in result.cost.actions:
        if action.component == outer.name and action.action in ("read", "write"):
            moved[action.einsum] = moved.get(action.einsum, 0.0) + action.bits / 8
    found, busy = [], dict.fromkeys(peaks, 0.0)
    total_bytes = 0.0
    for einsum in workload.einsums:
        operations = workload.operations(einsum.name) * workload.repeat
        through = moved.get(einsum.name, 0.0)
        if unfused:
            widths = ((workload.tensor(t).size, outer.bits(workload, einsum.name, t)) for t in einsum.tensors)
            through = sum(count * bits for count, bits in widths) * workload.repeat / 8 if operations else 0.0
        total_bytes += through
        if not operations:
            continue
        peak = peaks.get(units.get(einsum.name, ""))
        least = max(through / limits.bandwidth if limits.bandwidth else 0.0, operations / peak if peak else 0.0)
        if peak:
            busy[units[einsum.name]] += operations / peak
        took = latency.get(einsum.name)
        achieved = operations / took if took and not unfused else None
        found.append(Point(einsum.name, operations, through, operations / least if least else None, achieved))
    whole = sum(point.operations for point in found)
    least = max([total_bytes / limits.bandwidth if limits.bandwidth else 0.0, *busy.values()])
    achieved = whole / result.latency if result.latency and not unfused else None
    return [*found, Point(workload.name, whole, total_bytes, whole / least if least else None, achieved)]


def picture(subject: Subject) -> Html:
    """The roofline, or a sentence that says why there is none."""
    result = subject.result
    limits, fused, unfused = roofs(result), points(result, unfused=False), points(result, unfused=True)
    known = [point for point in (*fused, *unfused) if point.attainable]
    if not known or not limits.peaks:
        return el("p", "This machine has no finite rates, or nothing is computed: there is no roofline to draw.")
    across, up = _scales(limits, known)
    marks = []
    if 2 < len(fused) <= MAX_POINTS + 1:
        marks += [_mark(across, up, point, "unfused") for point in unfused[:-1] if point.attainable]
        marks += [_mark(across, up, point, "fused") for point in fused[:-1] if point.attainable]
    marks.append(_mark(across, up, unfused[-1], "unfused whole", "unfused, at best"))
    marks.append(_mark(across, up, fused[-1], "fused whole", "this mapping"))
    if fused[-1].achieved:
        at = (fused[-1].intensity or across.high, fused[-1].achieved)
        tip = f"achieved: {_rate(fused[-1].achieved)} over the whole latency of {time(result.latency)}"
        marks.append(mark(across, up, at, "achieved whole", tip))
    x_ticks = [(v, f"{v:,g}") for v in across.ticks()]
    y_ticks = [(v, _rate(v)) for v in up.ticks(4)]
    x_axis, y_axis = (
        (across, x_ticks, f"operations per byte of {subject.outermost}"),
        (up, y_ticks, "operations per second"),
    )
    drawn = plot(_lines(limits, across, up), marks, x_axis, y_axis, _label(result, fused[-1], unfused[-1]))
    return el("div", drawn, _legend(subject), _words(subject, limits, fused[-1], unfused[-1]))


def _scales(limits: Roofs, known: list[Point]) -> tuple[Scale, Scale]:
    intensities = [point.intensity for point in known if point.intensity]
    rates = [rate for point in known for rate in (point.attainable, point.achieved) if rate]
    peaks = [rate for _, rate in limits.peaks]
    ridges = [rate / limits.bandwidth for rate in peaks] if limits.bandwidth else []
    widths = [*intensities, *ridges] or [1.0]
    return Scale(min(widths) / 4, max(widths) * 6, log=True), Scale(min(rates) / 3, max([*rates, *peaks]) * 4, log=True)


def _label(result: Result, fused: Point, unfused: Point) -> str:
    shown = [f"{point.intensity:.3g}" if point.intensity else "no traffic" for point in (fused, unfused)]
    name = f"Roofline of {result.workload.name} on {result.machine.name}"
    return f"{name}: {shown[0]} operations per byte as mapped, {shown[1]} unfused at best"


def _legend(subject: Subject) -> Html:
    items = (
        ("fused", "an Einsum as mapped, on its roof"),
        ("unfused", "an Einsum unfused, at best"),
        ("achieved", "achieved in the mapping's latency"),
    )
    signs = [el("span", el("i", class_=f"mark {look}"), words) for look, words in items]
    edge = el("span", f"at the right edge: no traffic through {subject.outermost}")
    return el("p", *signs, edge, class_="legend")


def _lines(limits: Roofs, across: Scale, up: Scale) -> list[Curve]:
    curves = []
    for i, (_, peak) in enumerate(sorted(limits.peaks, key=lambda pair: -pair[1])):
        left = across.low if not limits.bandwidth else max(across.low, peak / limits.bandwidth)
        curves.append(Curve(((left, peak), (across.high, peak)), f"roof r{i}"))
    if limits.bandwidth:
        highest = max(peak for _, peak in limits.peaks)
        start = max(across.low, up.low / limits.bandwidth)
        curves.append(Curve(((start, start * limits.bandwidth), (highest / limits.bandwidth, highest)), "roof slope"))
    return curves


def _mark(across: Scale, up: Scale, point: Point, classes: str, text: str | None = None) -> Html:
    intensity = point.intensity
    shown = "no traffic" if intensity is None else f"{intensity:.4g} operations per byte"
    tip = f"{point.name}, {text or classes}: {shown}, at most {_rate(point.attainable or 0.0)}"
    beyond = " beyond" if intensity is None else ""
    return mark(across, up, (intensity or across.high, point.attainable or up.low), classes + beyond, tip, text)


def _rate(value: float) -> str:
    return with_unit(float(value), "rate", 4).replace("Hz", "op/s")


def _words(subject: Subject, limits: Roofs, fused: Point, unfused: Point) -> Html:
    roof = ", ".join(f"{name} {_rate(rate)}" for name, rate in limits.peaks)
    flow = "unlimited" if limits.bandwidth is None else f"{with_unit(limits.bandwidth * 8, 'throughput', 4)}"
    less = ""
    if fused.bytes and unfused.bytes > fused.bytes:
        less = f", {unfused.bytes / fused.bytes:.3g} times less"
    elif fused.bytes > unfused.bytes:
        less = ", more than the least: tensors are read several times"
    rows = (
        ("roofs", f"{roof}; {subject.outermost} {flow}"),
        ("this mapping", f"{size(int(fused.bytes * 8))} through {subject.outermost}{less}"),
        ("unfused, at best", f"{size(int(unfused.bytes * 8))}: every operand and result of every Einsum once"),
        ("achieved", _rate(fused.achieved) if fused.achieved else "-"),
    )
    return el("dl", *((el("dt", name), el("dd", text)) for name, text in rows), class_="facts")
