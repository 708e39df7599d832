"""Operations per byte of the outermost memory against operations per second: as mapped, and as it must be unfused.

The unfused point moves every operand and every result of every Einsum once through the outermost memory: the least
that any schedule without fusion can do.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...cost.formulas.components import component_time
from ...dataclass import dataclass
from ...errors import SpecError
from ...reading.units import format as with_unit
from ...result import Result
from .drawing import Line, Mark, Plot, Ruler
from .markup import Html, el
from .scene import size, time
from .subject import Subject
from .svg import html_of

MAX_POINTS = 40


@dataclass(frozen=True, slots=True)
class RooflinePoint:
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


def points(result: Result, unfused: bool) -> list[RooflinePoint]:
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
        found.append(RooflinePoint(einsum.name, operations, through, operations / least if least else None, achieved))
    whole = sum(point.operations for point in found)
    least = max([total_bytes / limits.bandwidth if limits.bandwidth else 0.0, *busy.values()])
    achieved = whole / result.latency if result.latency and not unfused else None
    return [*found, RooflinePoint(workload.name, whole, total_bytes, whole / least if least else None, achieved)]


@dataclass(frozen=True, slots=True)
class Side:
    """One result: its points as mapped and unfused, each with the whole cascade at the end, and its latency."""

    label: str
    fused: tuple[RooflinePoint, ...]
    unfused: tuple[RooflinePoint, ...]
    latency: float


@dataclass(frozen=True, slots=True)
class Rates:
    """The roofs, those of the first result's machine and mix of reads and writes, and all sides."""

    name: str
    outermost: str
    roofs: Roofs
    sides: tuple[Side, ...]


class Roofline:
    """Operations per byte of the outermost memory against operations per second, as mapped and unfused at best."""

    name, title, several = "roofline", "Roofline", True

    def data(self, results: Sequence[Result], labels: Sequence[str]) -> Rates:
        """Roofs and points. Raises SpecError where nothing is limited, or nothing is computed."""
        first, limits = results[0], roofs(results[0])
        sides = tuple(
            Side(label, tuple(points(one, False)), tuple(points(one, True)), one.latency)
            for label, one in zip(labels, results, strict=True)
        )
        if not limits.peaks or not any(p.attainable for side in sides for p in (*side.fused, *side.unfused)):
            raise SpecError("this machine has no finite rates, or nothing is computed: there is no roofline to draw")
        return Rates(f"{first.workload.name} on {first.machine.name}", first.machine.memories[0].name, limits, sides)

    def draw(self, data: Rates) -> Plot:
        """Einsums as small points on their roofs, whole cascades as large ones, what is achieved as diamonds."""
        known = [p for side in data.sides for p in (*side.fused, *side.unfused) if p.attainable]
        across, up = _rulers(data, known)
        several = len(data.sides) > 1
        marks = [mark for i, side in enumerate(data.sides) for mark in _marks(side, i if several else None, across, up)]
        for name, peak in data.roofs.peaks:
            marks.append(Mark((across.high / 4, peak), "words above", text=name))
        shown = [
            f"{p.intensity:.3g}" if p.intensity else "no traffic"
            for p in (data.sides[0].fused[-1], data.sides[0].unfused[-1])
        ]
        label = f"Roofline of {data.name}: {shown[0]} operations per byte as mapped, {shown[1]} unfused at best"
        return Plot(label, across, up, _lines(data.roofs, across, up), tuple(marks))


def _rulers(data: Rates, known: list[RooflinePoint]) -> tuple[Ruler, Ruler]:
    limits = data.roofs
    intensities = [point.intensity for point in known if point.intensity]
    rates = [rate for point in known for rate in (point.attainable, point.achieved) if rate]
    peaks = [rate for _, rate in limits.peaks]
    ridges = [rate / limits.bandwidth for rate in peaks] if limits.bandwidth else []
    widths = [*intensities, *ridges] or [1.0]
    name = f"operations per byte of {data.outermost}"
    across = Ruler(name, min(widths) / 4, max(widths) * 6, lambda value, _: f"{value:,g}", True)
    high = max([*rates, *peaks]) * 4
    return across, Ruler("operations per second", min(rates) / 3, high, lambda value, _: _rate(value), True)


def _lines(limits: Roofs, across: Ruler, up: Ruler) -> tuple[Line, ...]:
    lines = []
    for i, (_, peak) in enumerate(sorted(limits.peaks, key=lambda pair: -pair[1])):
        left = across.low if not limits.bandwidth else max(across.low, peak / limits.bandwidth)
        lines.append(Line(((left, peak), (across.high, peak)), "second" if i else "roof"))
    if limits.bandwidth:
        highest = max(peak for _, peak in limits.peaks)
        start = max(across.low, up.low / limits.bandwidth)
        lines.append(Line(((start, start * limits.bandwidth), (highest / limits.bandwidth, highest)), "roof"))
    return tuple(lines)


def _marks(side: Side, number: int | None, across: Ruler, up: Ruler) -> Iterator[Mark]:
    def mark(point: RooflinePoint, role: str, told: str, label: str = "") -> Mark:
        flow = "no traffic" if point.intensity is None else f"{point.intensity:.4g} operations per byte"
        tip = f"{point.name}, {told}: {flow}, at most {_rate(point.attainable or 0.0)}"
        spot = (point.intensity or across.high, point.attainable or up.low)
        return Mark(spot, role + " beyond" * (point.intensity is None), number, tip, label=label)

    alone = number is None
    if 2 < len(side.fused) <= MAX_POINTS + 1:
        yield from (mark(p, "unfused", "unfused, at best") for p in side.unfused[:-1] if p.attainable)
        yield from (mark(p, "fused", "as mapped") for p in side.fused[:-1] if p.attainable)
    words = ("unfused, at best", "this mapping") if alone else (f"{side.label}, unfused", side.label)
    yield mark(side.unfused[-1], "unfused whole", words[0], words[0])
    yield mark(side.fused[-1], "fused whole", words[1], words[1])
    if side.fused[-1].achieved:
        rate = side.fused[-1].achieved
        tip = f"achieved: {_rate(rate)} over the whole latency of {time(side.latency)}"
        spot = (side.fused[-1].intensity or across.high, rate)
        yield Mark(spot, "achieved on", number, tip, label="achieved in the mapping's latency" if alone else "")


def picture(subject: Subject) -> Html:
    """The roofline with its numbers in words, or a sentence that says why there is none."""
    asked = Roofline()
    try:
        data = asked.data([subject.result], [""])
    except SpecError as error:
        return el("p", f"{str(error)[0].upper()}{str(error)[1:]}.")
    edge = el("p", f"At the right edge: no traffic through {data.outermost}.", class_="note")
    return el("div", html_of(asked.draw(data)), edge, _words(data))


def _rate(value: float) -> str:
    return with_unit(float(value), "rate", 4).replace("Hz", "op/s")


def _words(data: Rates) -> Html:
    limits, fused, unfused = data.roofs, data.sides[0].fused[-1], data.sides[0].unfused[-1]
    roof = ", ".join(f"{name} {_rate(rate)}" for name, rate in limits.peaks)
    flow = "unlimited" if limits.bandwidth is None else f"{with_unit(limits.bandwidth * 8, 'throughput', 4)}"
    less = ""
    if fused.bytes and unfused.bytes > fused.bytes:
        less = f", {unfused.bytes / fused.bytes:.3g} times less"
    elif fused.bytes > unfused.bytes:
        less = ", more than the least: tensors are read several times"
    rows = (
        ("roofs", f"{roof}; {data.outermost} {flow}"),
        ("this mapping", f"{size(int(fused.bytes * 8))} through {data.outermost}{less}"),
        ("unfused, at best", f"{size(int(unfused.bytes * 8))}: every operand and result of every Einsum once"),
        ("achieved", _rate(fused.achieved) if fused.achieved else "-"),
    )
    return el("dl", *((el("dt", name), el("dd", text)) for name, text in rows), class_="facts")
