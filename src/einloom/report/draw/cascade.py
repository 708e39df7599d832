"""The cascade as a graph: Einsums as boxes, tensors as pills, what is fused inside coloured hulls."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...dataclass import dataclass
from ...errors import SpecError
from ...result import Result
from ..text.names import shortened
from .drawing import LETTER, Box, Canvas, Ink, Shape, Spot, Stroke, Words, letters
from .layers import layout
from .markup import Html, el, join
from .scene import MEMORIES, Scene
from .subject import Subject
from .svg import html_of

COLUMN, ROW, BOX, HIGH, MARGIN = 72.0, 48.0, 60.0, 26.0, 20.0
LARGE, SMALL = 11.5, 9.6
RIMS: dict[str, Ink] = {"m1": "rim1", "m2": "rim2", "m3": "rim3"}
MAX_NAMES = 24


@dataclass(frozen=True, slots=True)
class Group:
    """Einsums that exchange `tensors` through tiles stored in `memory`, `depth` nodes deep in the tree.

    inner: this group lies inside another one. look: the class that colours its hull.
    """

    memory: str
    tensors: tuple[str, ...]
    einsums: tuple[str, ...]
    depth: int
    inner: bool
    look: str


def groups(subject: Subject) -> list[Group]:
    """The fused groups, outer ones first: Einsums joined by intermediates whose backing store is on chip."""
    workload = subject.workload
    by_store: dict[tuple[int, ...], tuple[str, int, list[tuple[str, set[str]]]]] = {}
    for tile in subject.tiles:
        tensor, memory = tile.store.tensor, tile.store.memory
        if memory == subject.outermost or tensor not in workload.intermediates:
            continue
        users = {user.einsum.name for user in tile.users}
        if subject.backing[tensor] == memory and len(users) > 1:
            by_store.setdefault(tile.store.address, (memory, tile.store.place, []))[2].append((tensor, users))
    found: list[Group] = []
    position = {m.name: i for i, m in enumerate(subject.machine.memories)}
    for memory, depth, shared in by_store.values():
        for tensors, einsums in _components(shared):
            ordered = tuple(name for name in subject.leaves if name in einsums)
            inner = depth > subject.shallowest
            look = "inner" if inner else f"m{min(position[memory], 4)}"
            found.append(Group(memory, tuple(tensors), ordered, depth, inner, look))
    return sorted(found, key=lambda group: (group.depth, -len(group.einsums)))


def _components(shared: list[tuple[str, set[str]]]) -> list[tuple[list[str], set[str]]]:
    found: list[tuple[list[str], set[str]]] = []
    for tensor, users in shared:
        touching = [part for part in found if part[1] & users]
        rest = [part for part in found if not part[1] & users]
        tensors = [name for part in touching for name in part[0]] + [tensor]
        found = [*rest, (tensors, users.union(*(part[1] for part in touching)))]
    return found


@dataclass(frozen=True)
class Cascade:
    """`count` Einsums from number `first` on, and their tensors; of a result, what is fused lies inside one hull."""

    first: int = 0
    count: int = 16
    name, title, several = "cascade", "Cascade", False

    def data(self, results: Sequence[Result], labels: Sequence[str]) -> Scene:
        """The result with the backing memories of its mapping."""
        return Subject(results[0])

    def draw(self, data: Scene) -> Canvas:
        """Hulls below, edges on them, boxes and pills on top."""
        shown = set(data.leaves[self.first : self.first + self.count])
        if not shown:
            raise SpecError(f"there is no Einsum number {self.first + 1}")
        nodes, edges = graph(data, shown)
        placed = layout(nodes, edges)
        width = placed.columns * COLUMN + 2 * MARGIN - (COLUMN - BOX)
        height = placed.rows * ROW + 2 * MARGIN

        def at(place: tuple[int, float]) -> Spot:
            return MARGIN + BOX / 2 + place[0] * COLUMN, height / 2 + place[1] * ROW

        points = {name: at(place) for name, place in placed.places.items()}
        lines = {}
        for edge in edges:
            (x0, y0), (x1, y1) = points[edge[0]], points[edge[1]]
            lines[edge] = ((x0 + BOX / 2 - 4, y0), *map(at, placed.bends[edge]), (x1 - BOX / 2 + 2, y1))
        fused = [group for group in groups(data) if shown & set(group.einsums)] if isinstance(data, Subject) else []
        hulls = [shape for group in fused for shape in _hull(group, points, lines)]
        drawn = [_edge(data, edge, line) for edge, line in lines.items()]
        short = _short(nodes)
        boxes = [shape for name in nodes for shape in _node(data, name, short[name], *points[name])]
        label = f"Graph of {len(shown)} Einsums and their tensors"
        return Canvas(label, width, height, (*hulls, *drawn, *boxes))


def drawings(scene: Scene) -> list[Html]:
    """One graph for each window of Einsums, of a result with its fused groups in words."""
    found = []
    for window in scene.windows:
        shown = set(scene.leaves[window.start : window.stop])
        words = None
        if isinstance(scene, Subject):
            words = _key(scene, [group for group in groups(scene) if shown & set(group.einsums)])
        found.append(el("div", html_of(Cascade(window.start, len(window)).draw(scene)), words))
    return found


def graph(scene: Scene, shown: set[str]) -> tuple[list[str], list[tuple[str, str]]]:
    """Nodes in topological order and edges; Einsums are called ``e:NAME``, tensors ``t:NAME``."""
    workload = scene.workload
    nodes: list[str] = []
    edges: list[tuple[str, str]] = []
    for einsum in workload.einsums:
        if einsum.name not in shown:
            continue
        for tensor in dict.fromkeys(access.tensor for access in einsum.inputs):
            if f"t:{tensor}" not in nodes:
                nodes.append(f"t:{tensor}")
            edges.append((f"t:{tensor}", f"e:{einsum.name}"))
        written = f"t:{einsum.output.tensor}"  # behind all who write parts of it
        nodes = [*(node for node in nodes if node != written), f"e:{einsum.name}", written]
        edges.append((f"e:{einsum.name}", f"t:{einsum.output.tensor}"))
    return nodes, edges


def _hull(group: Group, points: dict[str, Spot], lines: dict[tuple[str, str], tuple[Spot, ...]]) -> list[Shape]:
    """A rim and a fill of thick round strokes along the edges of the group's tensors, and boxes around its nodes."""
    inside = {f"e:{name}" for name in group.einsums} | {f"t:{tensor}" for tensor in group.tensors}
    tip = f"fused in {group.memory}: {', '.join(group.einsums[:12])} exchange {', '.join(group.tensors[:12])}"
    wide = 18.0 if group.inner else 26.0
    rim = RIMS.get("m3" if group.inner else group.look, "rim1")
    fill: Ink = "warm" if group.inner else MEMORIES[int(group.look[1:])]
    found: list[Shape] = []
    for ink, width in ((rim, wide + 3), (fill, wide)):
        grown = width / 2 - 6.5
        for edge, line in lines.items():
            if set(edge) <= inside:
                found.append(Stroke(line, ink, width, curved=True, tip=tip))
        for x, y in (points[name] for name in sorted(inside) if name in points):
            corner = (x - BOX / 2 - grown, y - HIGH / 2 - grown)
            found.append(Box(*corner, BOX + 2 * grown, HIGH + 2 * grown, ink, tip, round=width / 2))
    return found


def _edge(scene: Scene, edge: tuple[str, str], line: tuple[Spot, ...]) -> Stroke:
    tensor = edge[0][2:] if edge[0].startswith("t:") else edge[1][2:]
    return Stroke(line, "grey", 1.3, edge[1].startswith("e:"), curved=True, touches=(scene.number[tensor],))


def _short(nodes: Sequence[str]) -> dict[str, str]:
    """What each node is called; different ones are called differently, as far as its box has room."""
    found = dict[str, str]()
    for kind, room in (("e", BOX - 6), ("t", BOX - 21)):
        names = [name for name in nodes if name[0] == kind]
        texts = shortened([name[2:] for name in names], letters(room, SMALL))
        found |= dict(zip(names, texts, strict=True))
    return found


def _node(scene: Scene, name: str, short: str, x: float, y: float) -> Iterator[Shape]:
    kind, plain = name[0], name[2:]
    left, top = x - BOX / 2, y - HIGH / 2
    workload = scene.workload
    if kind == "e":
        einsum = workload.einsum(plain)
        touches = tuple(scene.number[tensor] for tensor in einsum.tensors)
        tip = f"{plain}: {einsum.output} from {', '.join(map(str, einsum.inputs))}"
        yield Box(left, top, BOX, HIGH, "dark", tip, round=3, touches=touches)
        size = _fit(short, BOX - 6)
        yield Words(x, y, short, size, "middle", "paper", True, touches)
        return
    shape = "×".join(str(extent) for extent in workload.tensor(plain).shape)
    tip = f"{plain}: {shape} of {workload.tensor(plain).bits} bits"
    tip += f", backed by {scene.backing[plain]}" if plain in scene.backing else ""
    touched = (scene.number[plain],)
    outside = bool(scene.backing) and scene.backing.get(plain) == scene.outermost
    yield Box(left, top, BOX, HIGH, "paper", tip, "soft", HIGH / 2, outside, touched)
    yield Box(left + 6, y - 5, 9, 10, scene.number[plain], tip, touches=touched)
    size = _fit(short, BOX - 21)
    yield Words(left + 18, y, short, size, touches=touched)


def _fit(text: str, room: float) -> float:
    """The size of a label: smaller where it would not fit."""
    return LARGE if len(text) * LARGE * LETTER <= room else SMALL


def _key(scene: Scene, fused: list[Group]) -> Html:
    """The fused groups in words."""
    if len(scene.leaves) == 1:
        return el("p", "One Einsum: there is nothing to fuse.")
    if not fused:
        return el("p", "No two Einsums here are fused: what they share passes through ", scene.outermost, ".")
    lines = [
        el(
            "li",
            el("i", class_=f"hullkey {group.look}"),
            el("b", f"in {group.memory}: "),
            ", ".join(group.einsums[:MAX_NAMES]),
            f", … ({len(group.einsums)} in all)" if len(group.einsums) > MAX_NAMES else "",
            " exchange ",
            join((scene.chip(tensor), " ") for tensor in group.tensors[:MAX_NAMES]),
        )
        for group in fused
    ]
    return el("ul", *lines, class_="groups")
