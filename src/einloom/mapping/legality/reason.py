"""A reason why a tree is no schedule: a sentence, and the node that it is about.

Comes in: what a check finds. Goes out: a `Reason`, which is a text to all who print or count it. `lines_of` looks up
where a mapping file has the nodes of reasons.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..text import LocatedMapping
from ..tree import Node


class Reason(str):
    """The words of a reason, as a text, with the node of the tree that they are about; None if there is none.

    >>> from einloom.mapping.tree import Store
    >>> reason = Reason("the machine has no memory GLB", Store("GLB", ("A",)))
    >>> reason == "the machine has no memory GLB", reason.node.memory
    (True, 'GLB')
    """

    __slots__ = ("node",)

    node: Node | None

    def __new__(cls, words: str, node: Node | None = None) -> Reason:
        """A reason about `node`."""
        made = super().__new__(cls, words)
        made.node = node
        return made

    def within(self, prefix: str) -> Reason:
        """The same reason with words before it."""
        return Reason(prefix + self, self.node)


def lines_of(located: LocatedMapping, reasons: Iterable[str]) -> tuple[int | None, ...]:
    """For each reason against the mapping the line of the node that it is about; None where that is not known."""
    lines = located.line_of_node
    return tuple(lines.get(id(reason.node)) if isinstance(reason, Reason) else None for reason in reasons)
