"""A mapping as TileFlow's tiles and scopes: the way back from `trees`, as plain data.

Every store begins a temporal tile of its memory, which takes the temporal loops that follow; levels that the mapping
leaves out become empty tiles that every tensor bypasses. A store right above a split is what the branches hand on or
share, which TileFlow says with the scope alone.
"""

from __future__ import annotations

from collections.abc import Mapping as Table

from ...errors import SpecError
from ...machine.levels import Fanout, Machine
from ...mapping.tree import Compute, Loop, Mapping, Nest, Split, Store, einsums_below
from ...workload.einsum import Workload
from .trees import living, touched

Data = dict[str, object]


def mapping_data(mapping: Mapping, workload: Workload, machine: Machine, letters: Table[tuple[str, str], str]) -> Data:
    """The section ``mapping``; letters: (Einsum, variable) -> dimension. SpecError for what cannot be said."""
    return _Writer(workload, machine, letters).nest(mapping.nest, -1, frozenset())


class _Writer:
    def __init__(self, workload: Workload, machine: Machine, letters: Table[tuple[str, str], str]) -> None:
        self.workload, self.machine, self.letters = workload, machine, letters
        self.memories = [memory.name for memory in machine.memories]

    def nest(self, nest: Nest, level: int, held: frozenset[tuple[str, str]], begin: int | None = None) -> Data:
        """The node that `nest` becomes below a tile of memory number `level` (-1: none).

        held: (memory, tensor) of the stores above. begin: the level that the first tile is of, if a scope demands one.
        """
        head = nest[0]
        if isinstance(head, Store) and not isinstance(nest[1], Split):
            if head.slots is not None:
                raise SpecError(f"TileFlow has no word for slots, which the store in {head.memory} has")
            place = self.memories.index(head.memory)
            if place > level + 1:
                return self.tile(level + 1, (), nest, held)
            held = held | {(head.memory, tensor) for tensor in head.tensors}
            return self.temporal(place, nest[1:], held)
        if begin is not None and begin != level:
            return self.temporal(begin, nest, held)
        if isinstance(head, Loop) and head.axis is None:
            return self.temporal(level, nest, held)
        if isinstance(head, Loop):
            return self.spatial(level, nest, held)
        if isinstance(head, Compute):
            if level < len(self.memories) - 1:
                return self.tile(level + 1, (), nest, held)
            return {"node-type": "Op", "name": head.einsum}
        kept: Store | None = None
        if isinstance(head, Store):
            kept, head = head, nest[1]
        assert isinstance(head, Split)
        return self.scope(head, kept, level, held)

    def temporal(self, place: int, rest: Nest, held: frozenset[tuple[str, str]]) -> Data:
        """A temporal tile with the loops that `rest` begins with; a dimension that comes again begins another tile."""
        loops: list[Loop] = []
        seen: set[str] = set()
        for node in rest:
            if not isinstance(node, Loop) or node.axis is not None or self.dimension(node) in seen:
                break
            seen.add(self.dimension(node))
            loops.append(node)
        return self.tile(place, tuple(loops), rest[len(loops) :], held)

    def tile(self, place: int, loops: tuple[Loop, ...], rest: Nest, held: frozenset[tuple[str, str]]) -> Data:
        memory, below = self.memories[place], einsums_below(rest)
        data: Data = {"node-type": "Tile", "type": "temporal", **self.factors(loops, below), "target": memory}
        bypass = sorted(t for t in living(self.workload, below) if (memory, t) not in held)
        if bypass:
            data["bypass"] = bypass
        data["subtree"] = [self.nest(rest, place, held)]
        return data

    def spatial(self, level: int, nest: Nest, held: frozenset[tuple[str, str]]) -> Data:
        """A spatial tile with the spatial loops over one fanout, those along Y outside."""
        head = nest[0]
        assert isinstance(head, Loop) and head.axis is not None
        fanout = self.fanout(head.axis)
        above = [m for m in self.machine.memories if self.machine.position[m.name] < self.machine.position[fanout.name]]
        if level < len(above) - 1:
            return self.tile(level + 1, (), nest, held)
        count = 0
        while isinstance(node := nest[count], Loop) and node.axis in {axis.name for axis in fanout.axes}:
            count += 1
        loops = [node for node in nest[:count] if isinstance(node, Loop)]
        across = [loop for loop in loops if loop.axis == fanout.axes[0].name]
        down = [loop for loop in loops if loop.axis != fanout.axes[0].name]
        data: Data = {"node-type": "Tile", "type": "spatial", **self.factors((*down, *across), einsums_below(nest))}
        data.update(target=self.memories[level], split=len(across), multicast=self.joined(fanout))
        rest = nest[count:]
        first = rest[0]
        stands = isinstance(first, Split) or (isinstance(first, Store) and len(rest) > 1)
        data["subtree"] = [self.nest(rest, level, held) if stands else self.temporal(level + 1, rest, held)]
        return data

    def scope(self, split: Split, kept: Store | None, level: int, held: frozenset[tuple[str, str]]) -> Data:
        kinds = {"sequential": "Sequential", "pipelined": "Pipeline", "parallel": "Parallel"}
        if split.where in ("unit", "shared"):
            raise SpecError(
                f"TileFlow's branches take instances of their own; 'split {split.kind} {split.where}' does not"
            )
        kind, begin = kinds[split.kind], None
        if kept is not None:
            each = [touched(self.workload, einsums_below(branch)) for branch in split.branches]
            handed = {t for t in kept.tensors if sum(t in one for one in each) > 1}
            if handed != set(kept.tensors):
                kind = "Sharing"
            if split.kind == "sequential":
                begin = self.memories.index(kept.memory)
            held = held | {(kept.memory, tensor) for tensor in kept.tensors}
        wanted = begin if begin is not None and begin > level else None
        children = [self.nest(branch, level, held, wanted) for branch in split.branches]
        if split.kind != "sequential" or len({_target(child) for child in children}) > 1:
            named = zip(children, split.branches, strict=True)
            children = [self.alone(level, child, einsums_below(branch)) for child, branch in named]
        return {"node-type": "Scope", "type": kind, "subtree": children}

    def alone(self, level: int, child: Data, below: tuple[str, ...]) -> Data:
        """The branch; where it begins below the level that the scope is at, on a single instance of it."""
        if _target(child) == self.memories[level]:
            return child
        factors = self.factors((), below)
        target = self.memories[level]
        return {"node-type": "Tile", "type": "spatial", **factors, "target": target, "subtree": [child]}

    def factors(self, loops: tuple[Loop, ...], below: tuple[str, ...]) -> Data:
        for loop in loops:
            if loop.tile is not None:
                raise SpecError(
                    f"TileFlow's factors divide evenly; a loop over {self.dimension(loop)} has a tile of its own"
                )
        if not loops:
            letter = next((self.letters[e, v] for e in below for v in self.workload.einsum(e).variables), None)
            if letter is None:
                raise SpecError(f"TileFlow's tiles name a dimension; {', '.join(below)} has no rank variable")
            return {"factors": f"{letter}=1", "permutation": letter}
        letters = [self.dimension(loop) for loop in loops]
        said = " ".join(f"{letter}={loop.trips}" for letter, loop in zip(letters, loops, strict=True))
        return {"factors": said, "permutation": "".join(reversed(letters))}

    def dimension(self, loop: Loop) -> str:
        letters = {self.letters[bind] for bind in loop.binds}
        if len(letters) > 1:
            raise SpecError(f"a loop over {', '.join(sorted(letters))} at once: TileFlow's loops have one dimension")
        return letters.pop()

    def fanout(self, axis: str) -> Fanout:
        return next(f for f in self.machine.fanouts if any(a.name == axis for a in f.axes))

    def joined(self, fanout: Fanout) -> bool:
        """Whether the fanout multicasts and reduces everything; False if it does neither."""
        words = {word for axis in fanout.axes for word in (axis.multicast.text, axis.reduce.text)}
        if words == {"nothing"}:
            return False
        if words != {"all"}:
            raise SpecError(f"TileFlow multicasts all tensors or none; {fanout.name} says {', '.join(sorted(words))}")
        return True


def _target(node: Data) -> object:
    """The level of the first tile at or below a node."""
    while node["node-type"] == "Scope":
        children = node["subtree"]
        assert isinstance(children, list)
        node = children[0]
    return node["target"]
