"""Timeloop's ``mapping`` as a tree: a store for every level, its temporal loops, the spatial ones of the fanouts below.

``permutation`` lists loops innermost first; here they stand outermost first. A level that the list does not name has no
loops and keeps what it may.
"""

from __future__ import annotations

import re
from collections.abc import Mapping as Table
from collections.abc import Sequence
from math import prod

from ...dataclass import dataclass
from ...machine.levels import ComputeUnit, Fanout, Machine, Memory
from ...mapping.tree import Compute, Loop, Mapping, Node, Store
from ...reading.located import Located
from ...workload.einsum import Workload
from ..tileflow.operators import rank_variables
from ..tileflow.sections import known
from .sections import permutation, words

KINDS = ("temporal", "spatial", "datatype", "dataspace", "bypass")
_FACTOR = re.compile(r"\s*([A-Za-z_]\w*?)\s*(?:=\s*)?([0-9]+)(?![0-9A-Za-z_=])(\s*,\s*[0-9]+(?![0-9]*\s*=))?\s*,?")
_INNER = re.compile(r"inter_(.+)_spatial\Z")


@dataclass(frozen=True, slots=True)
class Directive:
    """One entry: loops (dimension, trips) outermost first; along: for a spatial one the axis letter of each."""

    kind: str
    target: str
    place: Located
    loops: tuple[tuple[str, int], ...] = ()
    along: tuple[str, ...] = ()
    keep: tuple[str, ...] = ()
    bypass: tuple[str, ...] = ()


class _Reader:
    def __init__(self, workload: Workload, machine: Machine, dimensions: Sequence[str]) -> None:
        self.workload, self.machine = workload, machine
        self.einsum = workload.einsums[0]
        self.variables = rank_variables(tuple(dimensions))
        self.dimensions = tuple(dimensions)
        self.memories = tuple(memory.name for memory in machine.memories)
        self.fanouts = tuple(fanout.name for fanout in machine.fanouts)
        self.tensors = tuple(tensor.name for tensor in workload.tensors)

    def directive(self, view: Located) -> Directive:
        kind = view.require("type").choice(KINDS)
        place = view.require("target")
        if kind in ("datatype", "dataspace", "bypass"):
            keep, bypass = (
                () if (at := view.get(key)) is None else known(at, words(at), self.tensors, "data space")
                for key in ("keep", "bypass")
            )
            view.finish()
            if _INNER.match(place.name()) and not keep:
                return Directive("nothing", place.name(), place)
            return Directive("dataspace", self.memory(place), place, keep=keep, bypass=bypass)
        order = self.loops(view)
        split = len(order) if (field := view.get("split")) is None else field.integer(minimum=0)
        said = field is not None
        for key, value in (("no_reuse", view.get("no_reuse")), ("rmw_first_update", view.get("rmw_first_update"))):
            if value is not None and words(value):
                raise value.error(f"{key} has no counterpart in einloom")
        view.finish()
        outer_first = tuple((name, trips) for name, trips in reversed(order) if trips > 1)
        if kind == "temporal":
            target = place.name()
            if _INNER.match(target) and not outer_first:
                return Directive("nothing", target, place)
            return Directive(kind, self.memory(place), place, outer_first)
        names = [name for name, _ in order]
        target = self.fanout(place)
        along = tuple("X" if names.index(name) < split else "Y" for name, _ in outer_first)
        return Directive(kind, target, place, outer_first, self.directions(target, along, said))

    def directions(self, fanout: str, along: tuple[str, ...], said: bool) -> tuple[str, ...]:
        """Where only one axis has instances and no split is said, all loops go along it."""
        axes = [axis.name[-1] for level in self.machine.fanouts if level.name == fanout for axis in level.axes]
        return along if said or len(axes) != 1 else tuple(axes[0] for _ in along)

    def memory(self, place: Located) -> str:
        (name,) = known(place, (place.name(),), self.memories, "memory")
        return name

    def fanout(self, place: Located) -> str:
        """The fanout that a spatial directive names: its container, ``inter_NAME_spatial``, or the memory above it."""
        name = place.name()
        inner = _INNER.match(name)
        name = inner[1] if inner else name
        if name in self.memories and name not in self.fanouts:
            levels = self.machine.levels[self.machine.position[name] + 1 :]
            stop = next(i for i, level in enumerate(levels) if not isinstance(level, Fanout))
            if stop != 1:
                raise place.error(f"{stop} meshes stand below {name}, not one; name the container instead")
            return levels[0].name
        known(place, (name,), self.fanouts, "container with a mesh")
        return name

    def loops(self, view: Located) -> list[tuple[str, int]]:
        """(dimension, trips) innermost first, every dimension of the permutation."""
        place = view.require("factors")
        text = " ".join(item.name() for item in place.items()) if place.is_list else place.text()
        found: dict[str, int] = {}
        at = 0
        while text[at:].strip(" ,"):
            match = _FACTOR.match(text, at)
            if match is None:
                raise place.error(f"cannot read the factors from {text[at:].strip()!r:.60}; they are written M=4 C=2")
            name, trips, ragged = match.groups()
            known(place, (name,), self.dimensions, "dimension")
            if name in found:
                raise place.error(f"{name} has two factors here")
            if ragged or len(trips) > 12 or int(trips) == 0:
                raise place.error(f"{match[0].strip()!r:.60}: a factor is one whole number that divides the size")
            found[name] = int(trips)
            at = match.end()
        order = self.order(view.get("permutation"), found, place)
        return [(name, found.get(name, 1)) for name in order]

    def order(self, view: Located | None, factors: Table[str, int], place: Located) -> tuple[str, ...]:
        """Dimensions innermost first."""
        if view is None:
            if sum(trips > 1 for trips in factors.values()) > 1:
                raise place.error("several loops without a permutation; write in which order they stand")
            return tuple(factors)
        names = permutation(view, self.dimensions)
        if len(set(names)) < len(names):
            raise view.error("a dimension stands in the permutation twice")
        missing = [name for name, trips in factors.items() if trips > 1 and name not in names]
        if missing:
            raise view.error(f"the permutation leaves out {', '.join(missing)}")
        return names


def mapping_from(view: Located, workload: Workload, machine: Machine, dimensions: Sequence[str]) -> Mapping:
    """The tree that the section says. SpecError with the place; legality is another question."""
    reader = _Reader(workload, machine, dimensions)
    found: dict[tuple[str, str], Directive] = {}
    for item in view.items():
        with item.gather():
            made = reader.directive(item)
            if made.kind != "nothing":
                if (made.kind, made.target) in found:
                    raise item.error(f"a second {made.kind} entry for {made.target}")
                found[made.kind, made.target] = made
    view.raise_gathered()
    _check_products(view, reader, [loop for directive in found.values() for loop in directive.loops])
    nest: list[Node] = []
    unit = ""
    for level in machine.levels:
        if isinstance(level, Memory):
            if kept := _kept(reader, level, found.get(("dataspace", level.name))):
                nest.append(Store(level.name, kept))
            nest += _loops(reader, found.get(("temporal", level.name)))
        elif isinstance(level, Fanout):
            nest += _loops(reader, found.get(("spatial", level.name)))
        elif isinstance(level, ComputeUnit):
            unit = level.name
    return Mapping((*nest, Compute(reader.einsum.name, unit)))


def _check_products(view: Located, reader: _Reader, loops: Sequence[tuple[str, int]]) -> None:
    """SpecError unless the factors of every dimension multiply to its size."""
    for dimension in reader.dimensions:
        size = reader.workload.extents.get(reader.variables[dimension], 1)
        product = prod(trips for name, trips in loops if name == dimension)
        if product != size:
            raise view.error(f"the factors of {dimension} multiply to {product}, its size is {size}")


def _kept(reader: _Reader, memory: Memory, said: Directive | None) -> tuple[str, ...]:
    """The data spaces that a level keeps: those that it may, as far as its entry does not say otherwise."""
    may = reader.machine.may_hold(memory, reader.workload, reader.einsum.name, ())
    barred = () if said is None else said.bypass
    named = () if said is None else said.keep
    return tuple(t for t in reader.tensors if t in named or (t in may and t not in barred))


def _loops(reader: _Reader, directive: Directive | None) -> list[Node]:
    if directive is None:
        return []
    einsum = reader.einsum.name
    axes: list[str | None] = [f"{directive.target}_{letter}" for letter in directive.along]
    axes = axes or [None] * len(directive.loops)
    for axis in axes:
        if axis is not None and axis not in reader.machine.axes:
            raise directive.place.error(f"{directive.target} has no instances along {axis[-1]}")
    return [
        Loop(((einsum, reader.variables[dimension]),), trips, axis=axis)
        for (dimension, trips), axis in zip(directive.loops, axes, strict=True)
    ]
