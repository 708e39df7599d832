"""ZigZag's mapping files as limits of a mapspace: which rank variables may be spread over which axis.

An entry is for the layer of its name, else for the layers of that operator type; ``default`` is for all others.
``temporal_ordering`` says one order of loops; einloom searches that, or takes a whole tree by hand.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ...dataclass import dataclass
from ...machine.levels import Machine
from ...mapspace.limits.data import AxisLimit, Limits, Numbers
from ...mapspace.space import SPACES, Mapspace
from ...reading.located import Located
from .layers import CascadeOfLayers

_SPREAD = re.compile(r"\s*([A-Za-z]\w*)\s*,\s*([0-9]{1,12})\s*\Z")
_LINKS = {"I": "I1", "W": "I2", "O": "O"}
DEFAULT = "default"


@dataclass(frozen=True, slots=True)
class Spreading:
    """One entry: (axis, ((dimension, instances), ...)) for every axis, dimensions in lower case."""

    name: str
    axes: tuple[tuple[str, tuple[tuple[str, int], ...]], ...]
    ordering: Located | None


def mapspace_from(view: Located, layers: CascadeOfLayers, machine: Machine, notes: list[str]) -> Mapspace:
    """The mapspace that the file asks for. SpecError with the place of every mistake."""
    entries: dict[str, Spreading] = {}
    for item in view.items():
        with item.gather():
            found = _entry(item, tuple(machine.axes), notes)
            if found.name in entries:
                raise item.error(f"two entries are called {found.name}")
            entries[found.name] = found
    view.raise_gathered()
    limits: list[AxisLimit] = []
    met: set[str] = set()
    for einsum, kind in layers.kinds.items():
        name = next((name for name in (einsum, kind, DEFAULT) if name in entries), None)
        if name is None:
            raise view.error(f"no entry for layer {einsum} ({kind}), and none called {DEFAULT}")
        met.add(name)
        if (place := entries[name].ordering) is not None:
            raise place.error("temporal_ordering: einloom searches the order of loops; leave it out")
        limits += _limits(einsum, entries[name], layers)
    if unused := [name for name in entries if name not in met]:
        notes.append(f"mapping entries for no layer are left out: {', '.join(unused)}")
    return Mapspace(SPACES[0], limits=Limits(axes=tuple(limits)))


def _entry(view: Located, axes: Sequence[str], notes: list[str]) -> Spreading:
    name = view.require("name").name()
    spread: list[tuple[str, tuple[tuple[str, int], ...]]] = []
    if (table := view.get("spatial_mapping")) is not None:
        for axis, key, value in table.entries():
            if axis not in axes:
                raise key.unknown("dimension of the array", axis, axes)
            spread.append((axis, tuple(_spread(item) for item in value.items())))
    for letter, key, value in view.table("memory_operand_links"):
        if _LINKS.get(letter) != value.name():
            wanted = ", ".join(f"{letter}: {operand}" for letter, operand in _LINKS.items())
            raise key.error(f"{letter}: {value.name():.40}; only the links {wanted} are read")
    if view.get("spatial_mapping_hint") is not None:
        notes.append(f"{name}: spatial_mapping_hint is left out")
    ordering = view.get("temporal_ordering")
    view.finish()
    return Spreading(name, tuple(spread), ordering)


def _spread(item: Located) -> tuple[str, int]:
    """A dimension and how many instances it takes at most, from ``K, 32``."""
    match = _SPREAD.match(item.text())
    if match is None or int(match[2]) < 1:
        raise item.error(f"an axis is spread over as in 'K, 32', not {item.text()!r:.60}")
    return match[1].lower(), int(match[2])


def _limits(einsum: str, entry: Spreading, layers: CascadeOfLayers) -> list[AxisLimit]:
    """What the entry says of every axis, for one layer: dimensions that it does not name are not spread there."""
    found: list[AxisLimit] = []
    for axis, spread in entry.axes:
        named = {layers.names[einsum, d]: n for d, n in spread if (einsum, d) in layers.names}
        found += [AxisLimit(axis, Numbers(most=number), (variable,), (einsum,)) for variable, number in named.items()]
        others = tuple(v for v in layers.workload.einsum(einsum).variables if v not in named)
        if others:
            found.append(AxisLimit(axis, Numbers(values=(1,)), others, (einsum,)))
    return found
