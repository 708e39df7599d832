"""Which ranges a variable really takes at each depth of a tree: found by running the loops alone.

Places that some loop binds together form a group; the loops of one group never influence another, so the distinct range
tuples of each group are few.
"""

from __future__ import annotations

from ..mapping.tree import Loop, Nest, every_node
from .plan import LoopPlan, Range


class Contexts:
    """The distinct ranges of every group of places at one node of the tree."""

    def __init__(self, nest: Nest, place: dict[tuple[str, str], int], ranges: list[Range]) -> None:
        self.group = list(range(len(ranges)))
        for node in every_node(nest):
            places = [place[pair] for pair in node.binds if pair in place] if isinstance(node, Loop) else []
            for other in places[1:]:
                first, second = self.group[places[0]], self.group[other]
                self.group = [first if g == second else g for g in self.group]
        self.size = len(ranges)
        self.choices: dict[int, set[tuple[tuple[int, Range], ...]]] = {
            g: {tuple((p, ranges[p]) for p in range(self.size) if self.group[p] == g)} for g in set(self.group)
        }

    def copy(self) -> Contexts:
        """A copy for one branch of a split."""
        twin = object.__new__(Contexts)
        twin.group, twin.size, twin.choices = self.group, self.size, dict(self.choices)
        return twin

    def extent(self, place: int) -> int:
        """The largest extent that `place` takes here."""
        chosen = self.choices[self.group[place]]
        return max(high - low for choice in chosen for p, (low, high) in choice if p == place)

    def advance(self, loop: LoopPlan) -> None:
        """Go below `loop`."""
        if not loop.cuts:
            return
        group = self.group[loop.cuts[0].place]
        found = set()
        for choice in self.choices[group]:
            ranges: list[Range] = [(0, 0)] * self.size
            for place, side in choice:
                ranges[place] = side
            for i in range(loop.trips):
                after = dict(choice)
                after.update({cut.place: side for cut, side in loop.step(ranges, i)})
                found.add(tuple(sorted(after.items())))
        self.choices[group] = found
