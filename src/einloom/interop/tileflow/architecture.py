"""TileFlow's ``architecture`` (Timeloop's version 0.2) as levels, and levels as a `Machine`.

Instances multiply down the tree of ``subtree`` and inside a ``local`` entry (``PE[0..3]``). ``meshX`` of a ``local``
entry says how many of all its instances stand side by side, that of a ``subtree`` multiplies what is above; the fanout
from one level to the next is the quotient in X and in Y. So TileFlow prints 256 x 4 for Domino's mesh of 1024 below
four cores.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction
from itertools import pairwise
from typing import Literal

from ...dataclass import dataclass
from ...machine.levels import Axis, ComputeUnit, Fanout, Level, Machine, Memory
from ...reading.arithmetic import Number
from ...reading.located import Located
from ...workload.selectors import Selector, selector
from ..bundle import energy_facts
from .sections import real, whole

STORAGE = ("DRAM", "SRAM", "regfile", "smartbuffer_SRAM", "smartbuffer_RF")
COMPUTE = ("intmac", "fpmac", "compute")
INTEGERS = ("word-bits", "block-size", "depth", "width", "datawidth", "instances", "meshX", "meshY")
RATES = ("read_bandwidth", "write_bandwidth", "shared_bandwidth")
SIZES = ("sizeKB",)
IGNORED = ("technology", "num-ports", "num-banks", "cluster-size")
DEFAULT_WORD_BITS = 16
_COUNTED = re.compile(r"(.+?)\[0\.\.(\d{1,9})\]\Z")
_DRAM_ENERGY = 200
ENERGY_SOURCE = "Timeloop's built-in tables (pat): one 16-bit integer multiplication is one unit, written as 1 J"


@dataclass(frozen=True, slots=True)
class Component:
    """One storage level or the multipliers. instances: in the whole machine. words: words of one instance, if bounded.

    block: words of one vector access. read, write, shared: words per cycle and instance, None if unlimited.
    """

    name: str
    storage: bool
    dram: bool
    instances: int
    x: int
    word_bits: int
    block: int = 1
    words: int | None = None
    read: float | None = None
    write: float | None = None
    shared: float | None = None

    @property
    def y(self) -> int:
        return self.instances // self.x


@dataclass(frozen=True, slots=True)
class Architecture:
    """Storage levels from the outside in, then the multipliers."""

    name: str
    storages: tuple[Component, ...]
    compute: Component

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(storage.name for storage in self.storages)

    def inner(self, target: str) -> Component:
        """The level right below `target`."""
        place = self.names.index(target) + 1
        return self.storages[place] if place < len(self.storages) else self.compute


def axis_name(component: str, direction: Literal["X", "Y"]) -> str:
    """The fanout axis through which the instances of `component` are reached."""
    return f"{component}_{direction}"


def architecture_from(view: Located, names: Mapping[str, Number]) -> Architecture:
    """The levels that the section says. SpecError with the place for anything that is not read."""
    version = view.get("version")
    if version is not None and version.number("energy") != 0.2:
        raise version.error("only version 0.2 of the architecture is read")
    found: list[Component] = []
    inner: Located | None = view.require("subtree")
    title, instances, mesh = "", 1, 1
    view.finish()
    while inner is not None:
        branches = inner.items()
        if len(branches) != 1:
            raise inner.error(f"{len(branches)} subtrees side by side; one chain of levels is read")
        (node,) = branches
        name, count = _counted(node.require("name"))
        title, instances = title or name, instances * count
        attributes = node.get("attributes")
        meshed = None if attributes is None else attributes.get("meshX")
        mesh *= count if meshed is None else whole(meshed, names)
        if attributes is not None:
            _ignore(attributes)
        found += [_component(item, instances, mesh, names) for item in node.listed("local")]
        inner = node.get("subtree")
        node.finish()
    return _checked(view, title, found)


def _counted(view: Located) -> tuple[str, int]:
    """Name and number of ``PE[0..3]``."""
    text = view.name()
    match = _COUNTED.match(text)
    name, count = (match.group(1), int(match.group(2)) + 1) if match else (text, 1)
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
        raise view.error(f"{text!r:.80} is no name of a level: letters, digits and underscores, then [0..N] or nothing")
    return name, count


def _ignore(attributes: Located) -> None:
    for key in IGNORED:
        attributes.get(key)
    attributes.finish()


def _component(item: Located, outer: int, mesh: int, names: Mapping[str, Number]) -> Component:
    name, count = _counted(item.require("name"))
    kind = item.require("class").choice((*STORAGE, *COMPUTE))
    values: dict[str, int] = {}
    rates: dict[str, float] = {}
    attributes = item.get("attributes")
    item.finish()
    if attributes is not None:
        for key in INTEGERS:
            field = attributes.get(key) or attributes.get(key.replace("-", "_"))
            if field is not None:
                values[key] = whole(field, names)
        for key in (*RATES, *SIZES):
            field = attributes.get(key) or attributes.get(key.replace("_", "-"))
            if field is not None:
                rates[key] = real(field, names)
        _ignore(attributes)
    instances = outer * values.get("instances", count)
    x = _mesh(item, values, instances, mesh if count == 1 else instances)
    bits = values.get("word-bits", values.get("datawidth", DEFAULT_WORD_BITS))
    if kind in COMPUTE:
        return Component(name, False, False, instances, x, bits)
    block = values.get("block-size", max(1, values.get("width", bits) // bits))
    words = None
    if "sizeKB" in rates:
        words = int(rates["sizeKB"] * 1024 * 8) // bits
    elif "depth" in values:
        words = values["depth"] * (values["width"] // bits if "width" in values else block)
    if words is not None and words < 1:
        raise item.error(f"{name} holds no word of {bits} bits")
    speeds = (rates.get(key) or None for key in RATES)
    return Component(name, True, kind == "DRAM", instances, x, bits, block, words, *speeds)


def _mesh(item: Located, values: Mapping[str, int], instances: int, default: int) -> int:
    """Instances side by side in X, of all instances of the level."""
    x = values.get("meshX", max(1, instances // values["meshY"]) if "meshY" in values else default)
    if instances % (x * values.get("meshY", 1)):
        y = f" x {values['meshY']} in Y" if "meshY" in values else ""
        raise item.error(f"a mesh of {x} in X{y} does not divide {instances} instances")
    return x


def _checked(view: Located, title: str, found: list[Component]) -> Architecture:
    storages = tuple(component for component in found if component.storage)
    units = [component for component in found if not component.storage]
    if not storages or len(units) != 1 or found[-1] is not units[0]:
        raise view.error("an architecture needs storage levels and, innermost, one kind of multiplier")
    names = [component.name for component in found]
    for name in names:
        if names.count(name) > 1:
            raise view.error(f"two levels are called {name}")
    if storages[0].instances != 1:
        raise view.error(f"{storages[0].name} exists {storages[0].instances} times; the outermost level exists once")
    for above, below in pairwise(found):
        if below.x % above.x or below.y % above.y:
            raise view.error(
                f"{below.name} in a mesh of {below.x} x {below.y} does not divide among {above.name}'s "
                f"{above.x} x {above.y}"
            )
    return Architecture(title, storages, units[0])


def machine_from(found: Architecture, multicast: Mapping[str, bool], clock: float) -> Machine:
    """The machine: memories, a fanout with axes X and Y between two levels, the multipliers.

    multicast: for each level, whether the mapping's spatial tiles above it multicast (and add up on the way back).
    clock: cycles per second.
    """
    bits = found.storages[0].word_bits
    levels: list[Level] = []
    above: Component | None = None
    for component in (*found.storages, found.compute):
        if above is not None and (component.instances > above.instances or component.storage):
            which = selector("all" if multicast.get(component.name, True) else "nothing")
            levels.append(_fanout(above, component, which))
        if component.storage:
            levels.append(_memory(component, bits, clock))
        else:
            energy = (component.word_bits / 16) ** 2
            levels.append(ComputeUnit(component.name, throughput=clock, energy=energy))
        above = component
    return Machine(found.name, tuple(levels), facts=energy_facts(levels, ENERGY_SOURCE))


def _fanout(above: Component, below: Component, which: Selector) -> Fanout:
    sizes: dict[Literal["X", "Y"], int] = {"X": below.x // above.x, "Y": below.y // above.y}
    axes = tuple(
        Axis(axis_name(below.name, direction), size, multicast=which, reduce=which) for direction, size in sizes.items()
    )
    return Fanout(f"{below.name}_array", axes)


def _memory(component: Component, common: int, clock: float) -> Memory:
    bits = component.word_bits
    energy = vector_energy(component)
    read, write = (component.read, component.write) if component.shared is None else (component.shared,) * 2
    return Memory(
        component.name,
        size=None if component.words is None else component.words * bits,
        read_energy=energy,
        write_energy=energy,
        bits_per_access=component.block * bits,
        read_throughput=None if read is None else read * bits * clock,
        write_throughput=None if write is None else write * bits * clock,
        ports="separate" if component.shared is None else "shared",
        widths=() if bits == common else ((selector("all"), bits),),
    )


def vector_energy(component: Component) -> float:
    """Energy of one vector access, in 16-bit multiplications: DRAM by width, SRAM and registers also by capacity."""
    width = Fraction(component.block * component.word_bits, 16)
    if component.dram:
        return float(_DRAM_ENERGY * width)
    kibibytes = Fraction((component.words or component.block) * component.word_bits, 8 * 1024)
    return float((1 + Fraction(5 * 2, 199) * (kibibytes - Fraction(1, 2))) * width)
