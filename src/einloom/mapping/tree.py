"""ONE schedule: the mapping tree, as immutable data.

A mapping is a nest: a tuple of nodes, outermost first. The last node of a nest is a `Split` or a `Compute`, the
others are `Store` and `Loop`. Grammar: docs/mapping.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from ..dataclass import dataclass
from ..reporting import Drawn

SplitKind = Literal["sequential", "pipelined", "parallel"]


@dataclass(frozen=True, slots=True)
class Store:
    """A tile of each of `tensors` is kept in `memory` for one iteration of the loops above."""

    memory: str
    tensors: tuple[str, ...]
    slots: int | None = None


@dataclass(frozen=True, slots=True)
class Loop:
    """A loop of `trips` iterations; temporal, or spatial over a fanout axis if `axis` is given.

    binds: (Einsum, rank variable) for every Einsum below that the loop iterates, at most one variable per Einsum.
    tile: extent of the variable below the loop; None means ceil(extent / trips).
    """

    binds: tuple[tuple[str, str], ...]
    trips: int
    tile: int | None = None
    axis: str | None = None

    def variable(self, einsum: str) -> str | None:
        """The rank variable of `einsum` that this loop iterates, or None."""
        for name, variable in self.binds:
            if name == einsum:
                return variable
        return None


@dataclass(frozen=True, slots=True)
class Compute:
    """The leaf where `einsum` is executed, on `unit` (None for copies)."""

    einsum: str
    unit: str | None = None


@dataclass(frozen=True, slots=True)
class Split:
    """Where Einsums part ways: each branch is a nest of its own.

    where: for concurrent kinds ``@ AXIS``'s axis name, ``unit`` or ``shared``; shares: instances per branch, if given.
    """

    kind: SplitKind
    branches: tuple[tuple[Node, ...], ...]
    where: str | None = None
    shares: tuple[int, ...] = ()


Node = Store | Loop | Split | Compute
Nest = tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Mapping(Drawn):
    """A complete schedule of a workload on a machine."""

    nest: Nest

    @property
    def einsums(self) -> tuple[str, ...]:
        """Einsum names in program order."""
        return einsums_below(self.nest)

    def __str__(self) -> str:
        """The tree as text, as `parse_mapping` reads it, without a newline at the end."""
        return "\n".join(lines(self.nest))


def einsums_below(nest: Nest) -> tuple[str, ...]:
    """Names of the Einsums computed in `nest`, in program order."""
    return tuple(leaf.einsum for leaf in leaves(nest))


def einsums_behind(nest: Nest) -> list[tuple[str, ...]]:
    """For each node of `nest` the names of the Einsums computed behind it, in program order."""
    found: list[tuple[str, ...]] = []
    behind: tuple[str, ...] = ()
    for node in reversed(nest):
        found.append(behind)
        if isinstance(node, Split | Compute):
            behind = (*einsums_below((node,)), *behind)
    return found[::-1]


def every_node(nest: Nest) -> Iterator[Node]:
    """The nodes of `nest` and of its branches, as its text has them."""
    for node in nest:
        yield node
        if isinstance(node, Split):
            for branch in node.branches:
                yield from every_node(branch)


def leaves(nest: Nest) -> Iterator[Compute]:
    """The compute leaves of `nest`, in program order."""
    for node in nest:
        if isinstance(node, Compute):
            yield node
        elif isinstance(node, Split):
            for branch in node.branches:
                yield from leaves(branch)


def lines(nest: Nest) -> Iterator[str]:
    """The text of a nest, line by line."""
    for node, behind in zip(nest, einsums_behind(nest), strict=True):
        if isinstance(node, Store):
            yield f"store {node.memory}: {' '.join(node.tensors)}" + (f" slots {node.slots}" if node.slots else "")
        elif isinstance(node, Loop):
            yield _loop_line(node, behind)
        elif isinstance(node, Compute):
            yield f"compute {node.einsum}" + (f" @ {node.unit}" if node.unit else "")
        else:
            where = "" if node.where is None else " shared" if node.where == "shared" else f" @ {node.where}"
            shares = f" shares {' '.join(map(str, node.shares))}" if node.shares else ""
            yield f"split {node.kind}{where}{shares}:"
            for branch in node.branches:
                for j, line in enumerate(lines(branch)):
                    yield ("  - " if j == 0 else "    ") + line


def _loop_line(loop: Loop, below: tuple[str, ...]) -> str:
    names = {variable for _, variable in loop.binds}
    short = len(names) == 1 and tuple(einsum for einsum, _ in loop.binds) == below
    binds = names.pop() if short else ", ".join(f"{einsum}.{variable}" for einsum, variable in loop.binds)
    tile = "" if loop.tile is None else f" tile {loop.tile}"
    axis = "" if loop.axis is None else f" @ {loop.axis}"
    return f"{'for' if loop.axis is None else 'par'} {binds} in {loop.trips}{tile}{axis}"


def describe(loop: Loop) -> str:
    """The loop as messages quote it: as `print_mapping` writes it, in the short form wherever all names agree."""
    return _loop_line(loop, tuple(einsum for einsum, _ in loop.binds))
