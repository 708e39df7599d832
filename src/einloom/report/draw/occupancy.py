"""How full one instance of every memory is while each Einsum runs, by tensor, with the capacity as a line.

Each column is one leaf of the tree in program order and shows the worst moment within it; the highest column is the
occupancy that the capacity is checked against.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...cost.room.occupancy import peak
from ...dataclass import dataclass
from ...errors import SpecError
from ...machine.levels import Memory
from ...result import Result
from .drawing import Bar, Line, Plot, Plots, Ruler
from .palette import COLOURS
from .scene import size
from .subject import Subject

HEIGHT, LOW = 168.0, 0.2
MANY = 40
"""Leaves beyond which there is no room for names and textures."""


@dataclass(frozen=True, slots=True)
class Band:
    """A tensor's bits in one memory over leaves `start` to `stop` (exclusive), stacked from `base` bits on."""

    tensor: str
    start: int
    stop: int
    base: int
    bits: int


def columns(subject: Subject, memory: str) -> list[dict[str, int]]:
    """For each leaf the bits of every tensor alive in one instance of `memory` at the worst moment of that leaf."""
    mine = tuple(tile for tile in subject.tiles if tile.store.memory == memory)
    found = []
    for path in subject.paths:
        near = tuple(tile for tile in mine if tile.stays or path.order in tile.below)
        _, alive = peak(near, (path,), memory)
        table: dict[str, int] = {}
        for tensor, bits in alive:
            if bits:
                table[tensor] = table.get(tensor, 0) + int(bits)
        found.append(table)
    return found


def bands(subject: Subject, table: list[dict[str, int]]) -> list[Band]:
    """The columns as bands: equal neighbours joined, tensors stacked in a fixed order."""
    found: list[Band] = []
    open_: dict[str, Band] = {}
    for leaf, column in enumerate(table):
        base, now = 0, {}
        for tensor in sorted(column, key=lambda name: subject.number[name]):
            bits, last = column[tensor], open_.get(tensor)
            if last is not None and (last.base, last.bits) == (base, bits):
                now[tensor] = Band(tensor, last.start, leaf + 1, base, bits)
            else:
                now[tensor] = Band(tensor, leaf, leaf + 1, base, bits)
            base += bits
        found += [band for tensor, band in open_.items() if tensor not in now or now[tensor].start != band.start]
        open_ = now
    return [*found, *open_.values()]


@dataclass(frozen=True, slots=True)
class Filling:
    """One memory over the leaves: its most bits at once, and the tensors that fill it."""

    memory: Memory
    highest: int
    instances: int
    leaves: tuple[str, ...]
    number: dict[str, int]
    bands: tuple[Band, ...]


@dataclass(frozen=True)
class OccupancyPlot:
    """Live bits of one instance at the worst moment of each Einsum, of all memories that hold something or the named.

    The outermost memory comes last: it has no capacity to speak of.
    """

    memory: str | None = None
    name, title, several = "occupancy", "Occupancy", False

    def data(self, results: Sequence[Result], labels: Sequence[str]) -> list[Filling]:
        """What fills each memory."""
        subject = Subject(results[0])
        stored = {tile.store.memory for tile in subject.tiles}
        held = [memory for memory in subject.machine.memories if memory.name in stored]
        if self.memory not in (None, *(memory.name for memory in held)):
            listed = ", ".join(memory.name for memory in held)
            raise SpecError(f"{self.memory!r} holds nothing here; memories that do are {listed}")
        wanted = [memory for memory in (*held[1:], *held[:1]) if self.memory in (None, memory.name)]
        return [_filling(subject, memory) for memory in wanted]

    def draw(self, data: Sequence[Filling]) -> Plots:
        """A plot for each memory."""
        label = f"Occupancy of {', '.join(one.memory.name for one in data)} over {len(data[0].leaves)} Einsums"
        return Plots(label, tuple(map(_plot, data)))


def _filling(subject: Subject, memory: Memory) -> Filling:
    filled = tuple(bands(subject, columns(subject, memory.name)))
    number = {band.tensor: subject.number[band.tensor] for band in filled}
    highest, instances = subject.result.cost.occupancy_of(memory.name), subject.machine.instances(memory.name)
    return Filling(memory, highest, instances, subject.leaves, number, filled)


def _plot(data: Filling) -> Plot:
    seen = max((band.base + band.bits for band in data.bands), default=0)
    highest, capacity, leaves = max(seen, data.highest), data.memory.size, data.leaves
    near = capacity is not None and highest >= LOW * capacity
    top = max(1.0, float(capacity) * 1.08 if near and capacity is not None else highest * 1.15)
    share = f" of {size(capacity)}, {highest / capacity:.1%}" if capacity else ""
    each = f", each of {data.instances:,} instances" if data.instances > 1 else ""
    notes = ["; unlimited"] if capacity is None else [] if near else ["; the capacity lies above the picture"]
    if seen < highest:
        notes.append("; branches that run at the same time add up, each column shows one of them")
    few = len(leaves) <= MANY
    if not few:
        notes.append(f"; of more than {MANY} Einsums, so tensors have no legend and share colours")
    title = f"{data.memory.name}: peak {size(highest)}{share}{each}{''.join(notes)}"
    ticks = [(0.0, "0")]
    lines = []
    if near and capacity is not None:
        lines.append(Line(((0.0, float(capacity)), (float(len(leaves)), float(capacity))), "capacity"))
        ticks.append((float(capacity), size(capacity)))
    if not lines or (float(capacity or 0) - highest) / top > 0.09:
        ticks.append((float(highest), size(highest)))
    names = tuple((i + 0.5, name) for i, name in enumerate(leaves)) if few else ()
    across = Ruler("" if few else f"Einsums 1 to {len(leaves)}", 0.0, float(len(leaves)), _bits, ticks=names)
    up = Ruler("", 0.0, top, _bits, ticks=tuple(ticks))
    paper = max(3.6, min(11.0, 1.8 + 0.42 * len(leaves)))
    bars = tuple(_bar(data, band) for band in data.bands)
    return Plot(f"Occupancy of {title}", across, up, tuple(lines), (), HEIGHT, bars, title, paper)


def _bits(value: float, digits: int) -> str:
    return size(int(value))


def _bar(data: Filling, band: Band) -> Bar:
    last, number = data.leaves[band.stop - 1], data.number[band.tensor]
    during = data.leaves[band.start] + (f" to {last}" if band.stop - band.start > 1 else "")
    tip, ends = f"{band.tensor}: {size(band.bits)} during {during}", (float(band.start), float(band.stop))
    high, few = float(band.base + band.bits), len(data.leaves) <= MANY
    look, label = (number, band.tensor) if few else (number % len(COLOURS), "")
    return Bar(ends[0], float(band.base), ends[1], high, look, tip, label, (number,), label)
