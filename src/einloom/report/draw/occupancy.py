"""How full one instance of every memory is while each Einsum runs, by tensor, with the capacity as a line.

Each column is one leaf of the tree in program order and shows the worst moment within it; the highest column is the
occupancy that the capacity is checked against.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...cost.room.occupancy import peak
from ...machine.levels import Memory
from .markup import Html, el, number
from .scene import size
from .subject import Subject

HEIGHT = 168.0
LOW = 0.2
LABEL_HEIGHT = 13.0
FEW, MANY = 4, 40
"""Leaves whose names fit side by side on a phone; leaves beyond which there is no room for names and textures."""


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


def pictures(subject: Subject) -> list[Html]:
    """One picture per memory that stores something, outermost last: it has no capacity to speak of."""
    found = []
    stored = {tile.store.memory for tile in subject.tiles}
    memories = [memory for memory in subject.result.machine.memories if memory.name in stored]
    for memory in (*memories[1:], *memories[:1]):
        found.append(_picture(subject, memory, columns(subject, memory.name)))
    return found


def _picture(subject: Subject, memory: Memory, table: list[dict[str, int]]) -> Html:
    seen = max((sum(column.values()) for column in table), default=0)
    highest = max(seen, subject.result.cost.occupancy_of(memory.name))
    capacity = memory.size
    far = capacity is None or highest < LOW * capacity
    top = max(1.0, highest * 1.15 if far or capacity is None else float(capacity) * 1.08)
    leaves = len(table)
    drawn = [_band(subject, band, leaves, top) for band in bands(subject, table)]
    if capacity is not None and not far:
        y = number(HEIGHT * (1 - capacity / top))
        drawn.append(el("line", x1="0", x2="100%", y1=y, y2=y, class_="capacity"))
    share = "" if capacity is None else f" of {size(capacity)}, {highest / capacity:.1%}" if capacity else ""
    note = ""
    if capacity is None:
        note = "unlimited"
    elif far:
        note = "the capacity line lies above the picture"
    if seen < highest:
        note = "branches that run at the same time add up; each column shows one of them"
    instances = subject.result.machine.instances(memory.name)
    each = f", each of {instances:,} instances" if instances > 1 else ""
    title = el("h3", memory.name, el("small", f"peak {size(highest)}{share}{each}", f"; {note}" if note else ""))
    ticks = [_tick(0.0, "0"), _tick(highest / top, size(highest), "peak")]
    if capacity is not None and not far:
        ticks = [_tick(0.0, "0"), _tick(capacity / top, size(capacity), "limit")]
        if (capacity - highest) / top > 0.09:
            ticks.append(_tick(highest / top, size(highest), "peak"))
    label = f"Occupancy of {memory.name} over {leaves} Einsums: peak {size(highest)}{share}"
    svg = el("svg", *drawn, class_="area", role="img", aria_label=label, width="100%", height=number(HEIGHT))
    names = [el("span", name) for name in subject.leaves] if leaves <= MANY else []
    axis = (
        el("div", *names, class_=f"leaves{' few' if leaves <= FEW else ''}")
        if names
        else el("p", "Einsums 1 to ", leaves, class_="leaves far")
    )
    plot = el("div", *ticks, svg, class_="plot", style=f"height:{number(HEIGHT)}px")
    return el("div", title, plot, axis, class_="memory-plot", style=f"--n:{leaves}")


def _tick(at: float, text: str, more: str = "") -> Html:
    return el("span", text, class_=f"ytick {more}", style=f"bottom:{number(100 * at)}%")


def _band(subject: Subject, band: Band, leaves: int, top: float) -> Html:
    x, width = 100 * band.start / leaves, 100 * (band.stop - band.start) / leaves
    height = HEIGHT * band.bits / top
    y = HEIGHT * (1 - band.base / top) - height
    last = subject.leaves[band.stop - 1]
    during = subject.leaves[band.start] + (f" to {last}" if band.stop - band.start > 1 else "")
    tip = f"{band.tensor}: {size(band.bits)} during {during}"
    place = {"x": f"{number(x)}%", "y": number(y), "width": f"{number(width)}%", "height": number(max(height, 0.4))}
    mark = {"data_t": subject.number[band.tensor], "data_tip": tip}
    look = subject.look(band.tensor) if leaves <= MANY else subject.look(band.tensor).split()[0]
    drawn = el("rect", class_=look, **place, **mark)
    if height < LABEL_HEIGHT or width < 6 or leaves > MANY:
        return drawn
    middle = {"x": f"{number(x + width / 2)}%", "y": number(y + height / 2 + 4), "text_anchor": "middle"}
    room = max(3, int(width * 1.4))
    short = band.tensor if len(band.tensor) <= room else band.tensor[: room - 1] + "…"
    return Html(drawn + el("text", short, class_="on", data_t=subject.number[band.tensor], **middle))
