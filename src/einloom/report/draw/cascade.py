"""The cascade as a graph: Einsums as boxes, tensors as pills, what is fused inside coloured hulls."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .layers import Layout, layout
from .markup import Html, el, join, number
from .scene import Scene
from .subject import Subject

COLUMN, ROW, BOX, HIGH, MARGIN = 72.0, 48.0, 60.0, 26.0, 20.0
LETTER, FITS = 6.3, 1420
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
    by_store: dict[tuple[int, ...], list[tuple[str, set[str]]]] = {}
    memory: dict[tuple[int, ...], str] = {}
    depth: dict[tuple[int, ...], int] = {}
    for tile in subject.tiles:
        tensor = tile.store.tensor
        if tile.store.memory == subject.outermost or tensor not in workload.intermediates:
            continue
        users = {user.einsum.name for user in tile.users}
        if subject.backing[tensor] == tile.store.memory and len(users) > 1:
            by_store.setdefault(tile.store.address, []).append((tensor, users))
            memory[tile.store.address], depth[tile.store.address] = tile.store.memory, tile.store.place
    found: list[Group] = []
    position = {m.name: i for i, m in enumerate(subject.machine.memories)}
    for address, shared in by_store.items():
        for tensors, einsums in _components(shared):
            ordered = tuple(name for name in subject.leaves if name in einsums)
            inner = depth[address] > subject.shallowest
            look = "inner" if inner else f"m{min(position[memory[address]], 4)}"
            found.append(Group(memory[address], tuple(tensors), ordered, depth[address], inner, look))
    return sorted(found, key=lambda group: (group.depth, -len(group.einsums)))


def _components(shared: list[tuple[str, set[str]]]) -> list[tuple[list[str], set[str]]]:
    found: list[tuple[list[str], set[str]]] = []
    for tensor, users in shared:
        touching = [part for part in found if part[1] & users]
        rest = [part for part in found if not part[1] & users]
        tensors = [name for part in touching for name in part[0]] + [tensor]
        found = [*rest, (tensors, users.union(*(part[1] for part in touching)))]
    return found


def drawings(scene: Scene, fused: Sequence[Group] | None = None) -> list[Html]:
    """One graph for each window of Einsums, with its fused groups in words; None: nothing is known of fusion."""
    found = []
    for window in scene.windows:
        shown = set(scene.leaves[window.start : window.stop])
        here = [group for group in fused or () if shown & set(group.einsums)]
        words = None if fused is None else _key(scene, here)
        found.append(el("div", drawing(scene, shown, here), words))
    return found


def drawing(scene: Scene, shown: set[str], fused: Sequence[Group] = ()) -> Html:
    """The graph of the Einsums in `shown` and their tensors, as an SVG."""
    nodes, edges = graph(scene, shown)
    placed = layout(nodes, edges)
    width = placed.columns * COLUMN + 2 * MARGIN - (COLUMN - BOX)
    height = placed.rows * ROW + 2 * MARGIN
    middle = height / 2
    points = {name: (MARGIN + BOX / 2 + c * COLUMN, middle + r * ROW) for name, (c, r) in placed.places.items()}
    lines = {edge: _line(points, placed, edge, middle) for edge in edges}
    hulls = [_hull(group, points, lines) for group in fused]
    drawn = [_edge(scene, edge, line) for edge, line in lines.items()]
    drawn += [_node(scene, name, *points[name]) for name in nodes]
    box = {"viewBox": f"0 0 {number(width)} {number(height)}", "width": number(width), "height": number(height)}
    label = f"Graph of {len(shown)} Einsums and their tensors"
    classes = "cascade fit" if width <= FITS and placed.columns > 6 else "cascade"
    return el("svg", *hulls, *drawn, class_=classes, role="img", aria_label=label, **box)


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
        nodes += [f"e:{einsum.name}", f"t:{einsum.output.tensor}"]
        edges.append((f"e:{einsum.name}", f"t:{einsum.output.tensor}"))
    return nodes, edges


def _line(
    points: dict[str, tuple[float, float]], placed: Layout, edge: tuple[str, str], middle: float
) -> list[tuple[float, float]]:
    (x0, y0), (x1, y1) = points[edge[0]], points[edge[1]]
    bends = [(MARGIN + BOX / 2 + c * COLUMN, middle + r * ROW) for c, r in placed.bends[edge]]
    return [(x0 + BOX / 2 - 4, y0), *bends, (x1 - BOX / 2 + 2, y1)]


def _curve(line: list[tuple[float, float]]) -> str:
    x, y = line[0]
    text = f"M{number(x)} {number(y)}"
    for x1, y1 in line[1:]:
        half = (x + x1) / 2
        text += f"C{number(half)} {number(y)} {number(half)} {number(y1)} {number(x1)} {number(y1)}"
        x, y = x1, y1
    return text


def _hull(
    group: Group,
    points: dict[str, tuple[float, float]],
    lines: dict[tuple[str, str], list[tuple[float, float]]],
) -> Html:
    """A hull as the outline of thick strokes around the group's boxes and the edges of its tensors."""
    inside = {f"e:{name}" for name in group.einsums} | {f"t:{tensor}" for tensor in group.tensors}
    shapes = [_outline(*points[name]) for name in inside if name in points]
    shapes += [_curve(line) for (a, b), line in lines.items() if a in inside and b in inside]
    if not shapes:
        return Html("")
    wide = 18 if group.inner else 26
    trail = "".join(sorted(shapes))
    classes = f"hull {group.look}"
    tip = f"fused in {group.memory}: {', '.join(group.einsums[:12])} exchange {', '.join(group.tensors[:12])}"
    rim = el("path", d=trail, class_="rim", stroke_width=wide + 3)
    return el("g", rim, el("path", d=trail, class_="fill", stroke_width=wide), class_=classes, data_tip=tip)


def _outline(x: float, y: float) -> str:
    left, top = number(x - BOX / 2 + 7), number(y - HIGH / 2 + 6)
    return f"M{left} {top}h{number(BOX - 14)}v{number(HIGH - 12)}h{number(14 - BOX)}z"


def _edge(scene: Scene, edge: tuple[str, str], line: list[tuple[float, float]]) -> Html:
    tensor = edge[0][2:] if edge[0].startswith("t:") else edge[1][2:]
    head = "url(#arrow)" if edge[1].startswith("e:") else None
    return el("path", d=_curve(line), class_="edge", marker_end=head, data_t=scene.number[tensor])


def _node(scene: Scene, name: str, x: float, y: float) -> Html:
    kind, plain = name[0], name[2:]
    frame_at = {"x": number(x - BOX / 2), "y": number(y - HIGH / 2), "width": number(BOX), "height": number(HIGH)}
    workload = scene.workload
    if kind == "e":
        einsum = workload.einsum(plain)
        touched = " ".join(str(scene.number[tensor]) for tensor in einsum.tensors)
        words = _words(plain, BOX - 10, x=number(x), y=number(y + 4), text_anchor="middle")
        tip = f"{plain}: {einsum.output} from {', '.join(str(access) for access in einsum.inputs)}"
        return el("g", el("rect", rx=3, class_="box", **frame_at), words, class_="einsum", data_t=touched, data_tip=tip)
    shape = "×".join(str(extent) for extent in workload.tensor(plain).shape)
    tip = f"{plain}: {shape} of {workload.tensor(plain).bits} bits"
    tip += f", backed by {scene.backing[plain]}" if plain in scene.backing else ""
    spot = {"x": number(x - BOX / 2 + 6), "y": number(y - 5), "width": 9, "height": 10}
    parts = (
        el("rect", rx=13, class_="pill", **frame_at),
        el("rect", rx=2, class_=scene.look(plain), **spot),
        _words(plain, BOX - 22, x=number(x - BOX / 2 + 18), y=number(y + 4)),
    )
    whole = f"tensor{' offchip' if scene.backing.get(plain) == scene.outermost else ''}"
    return el("g", *parts, class_=whole, data_t=scene.number[plain], data_tip=tip)


def _words(text: str, room: float, **where: str) -> Html:
    """A label as large as the room allows, cut where even small letters do not fit."""
    if len(text) * LETTER <= room:
        return el("text", text, **where)
    letters = int(room / (LETTER * 0.84))
    return el("text", text if len(text) <= letters else text[: letters - 1] + "…", class_="small", **where)


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
