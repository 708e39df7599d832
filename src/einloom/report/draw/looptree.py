"""The mapping as a picture: every node spans the Einsums that it serves, every stored tile the leaves it lives through.

Columns are Einsums in program order. What spans two columns is shared by two Einsums: that is what fusion looks like.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property

from ...dataclass import dataclass
from ...errors import SpecError
from ...mapping.tree import Compute, Loop, Mapping, Nest, Split, Store, einsums_below
from ...once import once_each
from ...result import Result
from ..text.names import shortened
from .drawing import LETTER, Box, Canvas, Ink, Shape, Words, cut, letters
from .markup import Html, el
from .scene import MEMORIES, energy, size, time
from .subject import Subject

NARROW, WIDE, PAGE = 98.0, 240.0, 1190.0
ROW, SECOND, LABEL, LEAF, MARGIN = 18.0, 13.0, 14.0, 64.0, 1.0
MAX_NAMES, MAX_USERS = 3, 12
BIG, FEW = 11.5, 2
"""Size of the letters on a loop, and how many letters of its name are always left."""


@dataclass(frozen=True)
class LoopTree:
    """The tree of `count` Einsums from number `first` on: stores with the lives of their tiles, loops, splits."""

    first: int = 0
    count: int = 12
    name, title, several = "looptree", "Mapping", False

    def data(self, results: Sequence[Result], labels: Sequence[str]) -> Subject:
        """The result with the live tiles of its mapping."""
        return Subject(results[0])

    def draw(self, data: Subject | Mapping) -> Canvas:
        """The tree with its costs; of a mapping alone, which knows no tiles, each store spans all Einsums below it."""
        mapping, subject = (data.result.mapping, data) if isinstance(data, Subject) else (data, None)
        window = range(self.first, min(self.first + self.count, len(mapping.einsums)))
        if not window:
            raise SpecError(f"there is no Einsum number {self.first + 1}")
        tree = _Tree(mapping, subject, window)
        top = max(shape.y for shape in tree.nest(mapping.nest, 0, 0, MARGIN, MARGIN) if isinstance(shape, Box))
        shapes = tuple(tree.nest(mapping.nest, 0, 0, MARGIN, top + LEAF))
        label = f"The mapping of {len(window)} Einsums, a column each in program order"
        return Canvas(label, tree.column * len(window) + 2 * MARGIN, top + LEAF + MARGIN, shapes)


@dataclass(frozen=True)
class _Tree:
    mapping: Mapping
    subject: Subject | None
    window: range

    @cached_property
    def column(self) -> float:
        """The width of a column: as the page has room for, and wide enough for every number of a loop."""
        needed = max(self.needed(self.mapping.nest, 0), default=0.0)
        return max(min(max(NARROW, PAGE / len(self.window)), WIDE), needed)

    def needed(self, nest: Nest, first: int) -> Iterator[float]:
        """How wide a column must be for the numbers of each loop, with some letters of its name."""
        leaves, shared = self.shown(first, nest), len(einsums_below(nest)) > 1
        for node in nest if leaves else ():
            if isinstance(node, Loop):
                signs = _signs(node, "…", not shared)
                yield (LETTER * BIG * (len(signs) + FEW) + 8) / len(leaves)
            elif isinstance(node, Split):
                for branch in node.branches:
                    yield from self.needed(branch, first)
                    first += len(einsums_below(branch))

    @once_each
    def short(self, room: int) -> dict[str, str]:
        """What each Einsum and tensor is called in so many letters; different names stay different."""
        tensors = tuple(self.subject.number) if self.subject else _stored(self.mapping.nest)
        names = {"e": self.mapping.einsums, "t": tensors}
        pairs = ((k, zip(v, shortened(v, room), strict=True)) for k, v in names.items())
        return {kind + name: text for kind, texts in pairs for name, text in texts}

    @cached_property
    def memories(self) -> dict[str, int]:
        """Memory -> its place; without a machine in the order in which the tree names them."""
        return {m.name: i for i, m in enumerate(self.subject.machine.memories)} if self.subject else {}

    @cached_property
    def energies(self) -> dict[tuple[str | None, ...], float]:
        return dict(self.subject.result.cost.energy_by("einsum")) if self.subject else {}

    def x(self, leaf: int) -> float:
        return MARGIN + self.column * (leaf - self.window.start)

    def shown(self, first: int, nest: Nest) -> range:
        last = first + len(einsums_below(nest))
        return range(max(first, self.window.start), min(last, self.window.stop))

    def band(self, leaves: range, top: float, height: float, fill: Ink, tip: str = "") -> Box:
        return Box(self.x(leaves.start), top, self.column * len(leaves), height, fill, tip, "line")

    def nest(self, nest: Nest, first: int, depth: int, top: float, bottom: float) -> Iterator[Shape]:
        """The nodes of a nest whose first leaf is number `first` and whose first node has `depth` nodes above it."""
        leaves = self.shown(first, nest)
        if not leaves:
            return
        for offset, node in enumerate(nest):
            if isinstance(node, Store):
                lanes = self.lanes(node, first, depth + offset, leaves)
                yield from self.store(node, lanes, leaves, top)
                top += LABEL + ROW * (1 + max(row for *_, row in lanes)) if lanes else 0.0
            elif isinstance(node, Loop):
                shared = len(einsums_below(nest)) > 1
                high = ROW + SECOND if node.axis and not shared else ROW
                last = self.subject.last_tile(first, depth + offset) if self.subject else None
                yield from self.loop(node, leaves, top, high, shared, last)
                top += high
            elif isinstance(node, Split):
                yield from self.split(node, first, leaves, len(einsums_below(nest)), top)
                for branch in node.branches:
                    yield from self.nest(branch, first, depth + offset + 1, top + LABEL, bottom)
                    first += len(einsums_below(branch))
            else:
                yield from self.leaf(node, leaves, top, bottom - top)

    def lanes(self, node: Store, first: int, depth: int, shown: range) -> list[tuple[str, range, str, int]]:
        """(tensor, leaves, words, row) of every tile of a store that lives within the window, each row once a leaf."""
        found, ends = [], list[int]()
        for tensor in node.tensors:
            start, last, tip = shown.start, shown.stop - 1, ""
            if self.subject:
                place = (self.subject.paths[first].addresses[depth], tensor)
                tile = self.subject.tile_at.get(place)
                if tile is None:
                    continue
                alive = self.subject.alive(*place)
                start, last = max(alive[0], start), min(alive[1], last)
                users = [user.einsum.name for user in tile.users]
                used = ", ".join(users[:MAX_USERS]) + (", …" if len(users) > MAX_USERS else "")
                room = size(int(tile.bits({})))
                tip = f"{tensor} in {node.memory}: a tile of {room}, alive while the bar lasts; used by {used}"
            if start > last:
                continue
            row = next((i for i, end in enumerate(ends) if end < start), len(ends))
            ends[row : row + 1] = [last]
            found.append((tensor, range(start, last + 1), tip, row))
        return found

    def store(
        self, node: Store, lanes: list[tuple[str, range, str, int]], leaves: range, top: float
    ) -> Iterator[Shape]:
        if not lanes:
            return
        place = self.memories.setdefault(node.memory, len(self.memories))
        height = LABEL + ROW * (1 + max(row for *_, row in lanes))
        yield self.band(leaves, top, height, MEMORIES[min(place, len(MEMORIES) - 1)])
        slots = f", {node.slots} slots" if node.slots else ""
        room = self.column * len(leaves) - 10
        name = cut(node.memory, room - LETTER * 10.5 * len(slots), 10.5) + slots
        yield Words(self.x(leaves.start) + 6, top + LABEL / 2 + 1, name, 10.5, ink="slate", bold=True)
        for tensor, alive, tip, row in lanes:
            x, y, width = self.x(alive.start) + 3, top + LABEL + ROW * row + 1, self.column * len(alive) - 6
            number = (self.subject.number[tensor],) if self.subject else ()
            yield Box(x, y, width, ROW - 3, "paper", tip, "soft", 3, touches=number)
            if number:
                yield Box(x + 3, y + 3, 9, ROW - 9, number[0], tip, touches=number)
            yield Words(
                x + 16, y + ROW / 2 - 1.5, self.short(letters(width - 18, 11))["t" + tensor], 11, touches=number
            )

    def loop(
        self, node: Loop, leaves: range, top: float, high: float, shared: bool, last: int | None
    ) -> Iterator[Shape]:
        names = list(dict.fromkeys(variable for _, variable in node.binds))
        short = "/".join(names[:MAX_NAMES]) + ("…" if len(names) > MAX_NAMES else "")
        binds = ", ".join(f"{einsum}.{variable}" for einsum, variable in node.binds[:MAX_USERS])
        tile = f" tile {node.tile}" if node.tile is not None else ""
        axis = f" @ {node.axis}" if node.axis else ""
        tip = f"{'spatial' if node.axis else 'temporal'} loop over {binds}: {node.trips} trips"
        tip += (f" on axis {node.axis}" if node.axis else "") + (f",{tile}" if tile else "")
        tip += f", the last of {last}" if last else ""
        tip += "; shared by several Einsums" if shared else ""
        fill: Ink = "warm" if shared else "violet" if node.axis else "paper"
        yield self.band(leaves, top, high, fill, tip)
        x, room = self.x(leaves.start), self.column * len(leaves) - 8
        most = letters(room, BIG) - len(_signs(node, "", not shared))
        text = _signs(node, short if len(short) <= most else short[: max(1, most - 1)] + "…", not shared)
        at = (x + self.x(leaves.stop)) / 2 if shared else x + 6
        yield Words(at, top + ROW / 2, text, BIG, "middle" if shared else "start")
        if high > ROW:
            yield Words(x + 6, top + ROW + 4, cut(axis.strip(), room, 10.5), 10.5, ink="soft")

    def split(self, node: Split, first: int, leaves: range, count: int, top: float) -> Iterator[Shape]:
        where = f" {node.where}" if node.where == "shared" else f" @ {node.where}" if node.where else ""
        part = f"; Einsums {leaves.start + 1} to {leaves.stop} of {first + count}" if len(leaves) < count else ""
        x, words = (self.x(leaves.start) + self.x(leaves.stop)) / 2, f"split {node.kind}{where}{part}"
        yield self.band(leaves, top, LABEL, "slate", words)
        room = self.column * len(leaves) - 8
        words = words if len(words) <= letters(room, 10.5) else f"split {node.kind}{where}"
        yield Words(x, top + LABEL / 2, cut(words, room, 10.5), 10.5, "middle", "paper")

    def leaf(self, node: Compute, leaves: range, top: float, height: float) -> Iterator[Shape]:
        touches, tip, costs = tuple[int, ...](), "", list[str]()
        if self.subject:
            einsum = self.subject.result.workload.einsum(node.einsum)
            touches = tuple(self.subject.number[tensor] for tensor in einsum.tensors)
            latency = dict(self.subject.result.cost.einsum_latency)
            costs = [energy(self.energies.get((node.einsum,), 0.0), 3), time(latency.get(node.einsum, 0.0), 3)]
            how = einsum.kind if einsum.function is None else einsum.function
            tip = f"{einsum.output} = {how}({', '.join(map(str, einsum.inputs))}); {', '.join(costs)}"
        x, room = self.x(leaves.start), self.column - 10
        name = self.short(letters(room, 12.5))["e" + node.einsum]
        yield Box(x, top, self.column, height, "dark", tip, "line", touches=touches)
        yield Words(x + 6, top + 11, name, 12, "start", "paper", True, touches)
        for i, words in enumerate([f"@ {node.unit}" if node.unit else "copy", *costs]):
            yield Words(x + 6, top + 26 + 14 * i, cut(words, room, 11), 11, "start", "pale", touches=touches)


def _signs(node: Loop, name: str, lone: bool) -> str:
    """What stands on a loop; one of a single Einsum names its axis in a line of its own."""
    tile = f" tile {node.tile}" if node.tile is not None else ""
    axis = f" @ {node.axis}" if node.axis and not lone else ""
    return f"{'par' if node.axis else 'for'} {name} × {node.trips}{tile}{axis}"


def _stored(nest: Nest) -> tuple[str, ...]:
    """Every tensor that a tree stores."""
    found = [tensor for node in nest if isinstance(node, Store) for tensor in node.tensors]
    found += [t for node in nest if isinstance(node, Split) for branch in node.branches for t in _stored(branch)]
    return tuple(dict.fromkeys(found))


def key() -> Html:
    """What the boxes mean."""
    items = (
        ("store m1", "store", "a tile in a memory: each tensor's bar covers the Einsums that it is alive for"),
        ("loop for", "for", "loop in time"),
        ("loop par", "par", "loop in space"),
        ("loop for shared", "for", "loop that several Einsums share"),
        ("leaf", "E", "Einsum, with its energy and latency"),
    )
    drawn = [el("span", el("span", sign, class_=f"node {look}"), words) for look, sign, words in items]
    return el("p", *drawn, class_="key")
