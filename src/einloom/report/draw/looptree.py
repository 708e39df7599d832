"""The mapping as a picture: every node spans the Einsums that it serves, every stored tile the leaves it lives through.

Columns are Einsums in program order. What spans two columns is shared by two Einsums: that is what fusion looks like.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...mapping.tree import Compute, Loop, Nest, Split, Store, einsums_below
from .markup import Html, el, join
from .scene import energy, size, time
from .subject import Subject

MAX_NAMES = 3


@dataclass(frozen=True)
class _Drawing:
    subject: Subject
    window: range
    energies: dict[str, float]
    latencies: dict[str, float]

    def nest(self, nest: Nest, first: int, depth: int) -> Html:
        """The nodes of a nest whose first leaf is number `first` and whose first node has `depth` nodes above it."""
        leaves = range(first, first + len(einsums_below(nest)))
        drawn: list[Html] = []
        for offset, node in enumerate(nest):
            if isinstance(node, Store):
                drawn.append(self.store(node, leaves, depth + offset))
            elif isinstance(node, Loop):
                drawn.append(self.loop(node, leaves))
            elif isinstance(node, Split):
                drawn.append(self.split(node, first, depth + offset + 1))
            else:
                drawn.append(self.leaf(node))
        shown = self.shown(leaves)
        return el("div", *drawn, class_="nest", style=f"--n:{len(shown)}")

    def shown(self, leaves: range) -> range:
        return range(max(leaves.start, self.window.start), min(leaves.stop, self.window.stop))

    def store(self, node: Store, leaves: range, depth: int) -> Html:
        shown = self.shown(leaves)
        address = self.subject.paths[leaves.start].addresses[depth]
        lanes = []
        for tensor in node.tensors:
            tile = self.subject.tile_at.get((address, tensor))
            if tile is None:
                continue
            start, last = self.subject.alive(tile)
            start, last = max(start, shown.start), min(last, shown.stop - 1)
            if start > last:
                continue
            users = ", ".join(user.einsum.name for user in tile.users[:12]) + (", …" if len(tile.users) > 12 else "")
            room = int(tile.bits({}))
            tip = f"{tensor} in {node.memory}: a tile of {size(room)}, alive while the bar lasts; used by {users}"
            place = f"grid-column:{start - shown.start + 1}/{last - shown.start + 2}"
            lanes.append(self.subject.chip(tensor, style=place, data_tip=tip))
        if not lanes:
            return Html("")
        slots = f", {node.slots} slots" if node.slots else ""
        name = el("span", node.memory, slots, class_="memory")
        position = [m.name for m in self.subject.result.machine.memories].index(node.memory)
        inner = el("div", *lanes, class_="lanes", style=f"--n:{len(shown)}")
        return el("div", name, inner, class_=f"node store m{min(position, 4)}")

    def loop(self, node: Loop, leaves: range) -> Html:
        names = list(dict.fromkeys(variable for _, variable in node.binds))
        short = "/".join(names[:MAX_NAMES]) + ("…" if len(names) > MAX_NAMES else "")
        binds = ", ".join(f"{einsum}.{variable}" for einsum, variable in node.binds[:12])
        shared = len(leaves) > 1
        kind = "par" if node.axis else "for"
        tip = f"{'spatial' if node.axis else 'temporal'} loop over {binds}: {node.trips} trips" + (
            f" on axis {node.axis}" if node.axis else ""
        )
        tip += f", tile {node.tile}" if node.tile is not None else ""
        tip += "; shared by several Einsums" if shared else ""
        words = (el("b", kind), f" {short} ", el("span", f"× {node.trips}", class_="trips"))
        axis = el("span", f"@ {node.axis}", class_="axis") if node.axis else None
        return el("div", words, axis, class_=f"node loop {kind}{' shared' if shared else ''}", data_tip=tip)

    def split(self, node: Split, first: int, depth: int) -> Html:
        branches, start = [], first
        for branch in node.branches:
            leaves = range(start, start + len(einsums_below(branch)))
            if len(self.shown(leaves)):
                branches.append(self.nest(branch, start, depth))
            start = leaves.stop
        where = f" {node.where}" if node.where == "shared" else f" @ {node.where}" if node.where else ""
        whole = range(first, start)
        shown = self.shown(whole)
        cut = f"; Einsums {shown.start + 1} to {shown.stop} of {whole.stop}" if len(shown) < len(whole) else ""
        title = el("div", f"split {node.kind}{where}{cut}", class_="node split")
        return join((title, el("div", *branches, class_="branches")))

    def leaf(self, node: Compute) -> Html:
        einsum = self.subject.result.workload.einsum(node.einsum)
        touched = " ".join(str(self.subject.number[tensor]) for tensor in einsum.tensors)
        inputs = ", ".join(str(access) for access in einsum.inputs)
        how = einsum.kind if einsum.function is None else einsum.function
        costs = f"{energy(self.energies.get(node.einsum, 0.0), 3)}, {time(self.latencies.get(node.einsum, 0.0), 3)}"
        tip = f"{einsum.output} = {how}({inputs}); {costs}"
        words = (el("b", node.einsum), el("span", f"@ {node.unit}" if node.unit else "copy", class_="axis"))
        prices = [el("small", cost) for cost in costs.split(", ")]
        return el("div", *words, *prices, class_="node leaf", data_t=touched, data_tip=tip)


def drawings(subject: Subject) -> list[Html]:
    """One drawing of the tree for each window of leaves."""
    energies: dict[str, float] = {}
    for action in subject.result.cost.actions:
        energies[action.einsum] = energies.get(action.einsum, 0.0) + action.energy
    latencies = dict(subject.result.cost.einsum_latency)
    found = []
    for window in subject.windows:
        drawn = _Drawing(subject, window, energies, latencies).nest(subject.result.mapping.nest, 0, 0)
        found.append(el("div", drawn, class_="looptree", style=f"--n:{len(window)}"))
    return found


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
