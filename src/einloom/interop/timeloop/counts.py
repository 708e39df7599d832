"""Scalar reads, fills and updates of a mapping, as Timeloop defines them.

Two things differ from einloom's reads and writes (docs/how-to/files.md): a memory that writes results up does not read
its own copy, and a window that slides starts anew if a loop that the data space lacks turns inside the sliding one.
"""

from __future__ import annotations

from collections.abc import Mapping as Table
from dataclasses import fields
from functools import cached_property
from typing import Literal

from ...cost.formulas import terms
from ...cost.formulas.terms import Number
from ...cost.traffic.accesses import StoreLink, links
from ...cost.traffic.paths import paths
from ...dataclass import dataclass
from ...errors import IllegalMapping
from ...machine.levels import Machine
from ...mapping.legality.structure import problems
from ...mapping.tree import Mapping
from ...workload.einsum import Workload

What = Literal["reads", "fills", "updates"]
Counts = Table[tuple[str, str, What], int]
"""Memory, tensor, what: values over all instances."""


@dataclass(eq=False)
class TimeloopLink(StoreLink):
    """A link whose child forgets its window where Timeloop's does."""

    @cached_property
    def retention(self) -> tuple[dict[int, Number], int | None]:
        """As of `StoreLink`, without a sliding loop if kept loops turn inside it."""
        keeps, sliding = super().retention
        trips = {loop.place: loop.trips for loop in self.path.loops}
        turns = any(kept and trips[place] > 1 for place, kept in keeps.items())
        return keeps, None if turns else sliding


def counts(workload: Workload, machine: Machine, mapping: Mapping) -> Counts:
    """What every memory reads, is filled with from above, and gets from below as updates.

    Raises IllegalMapping with every structural reason.
    """
    if reasons := problems(workload, machine, mapping):
        raise IllegalMapping(reasons)
    table: dict[tuple[str, str, What], int] = {}
    for plain in links(workload, machine, paths(workload, mapping)):
        link = TimeloopLink(*(getattr(plain, field.name) for field in fields(StoreLink)))
        _add(table, link.parent.memory, link, "updates" if link.written else "reads", _moved(link, True))
        if link.written:
            _add(table, link.parent.memory, link, "reads", _again(link, True))
        if link.child is not None:
            _add(table, link.child.memory, link, "fills", _again(link, False) if link.written else _moved(link, False))
    return table


def table_text(found: Counts) -> str:
    """The counts as text, a line for each memory and tensor."""
    rows = dict.fromkeys((memory, tensor) for memory, tensor, _ in found)
    lines = [f"{'':32}{'reads':>14}{'fills':>14}{'updates':>14}"]
    for memory, tensor in rows:
        numbers = [found.get((memory, tensor, what), 0) for what in ("reads", "fills", "updates")]
        lines.append(f"{memory + ' ' + tensor:32}" + "".join(f"{number:14,}" for number in numbers))
    return "\n".join(lines) + "\n"


def _moved(link: StoreLink, at_parent: bool) -> Number:
    return link.moved(at_parent=at_parent, picks=None)


def _again(link: StoreLink, at_parent: bool) -> Number:
    """Values of a result that go down again: none was there before the first."""
    return terms.refills(_moved(link, at_parent), link.moved(at_parent=at_parent, picks=None, fresh=True))


def _add(table: dict[tuple[str, str, What], int], memory: str, link: StoreLink, what: What, count: Number) -> None:
    key = (memory, link.tensor, what)
    table[key] = table.get(key, 0) + int(count)
