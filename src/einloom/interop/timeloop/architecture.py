"""Timeloop's ``architecture`` as a machine: ``nodes`` from the outside in, each inside those before it.

A ``spatial`` mesh of a node is a fanout above it. Nodes of a ``!Parallel`` are memories one after the other, each for
the data spaces that it keeps. The innermost component is the compute unit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace

from ...dataclass import dataclass
from ...machine.files import level_name, structure_problems
from ...machine.levels import ALL, NOTHING, Axis, ComputeUnit, Fanout, Level, Machine, Memory
from ...reading.arithmetic import exact
from ...reading.located import Located
from ...workload.selectors import Selector, selector
from ..accelforge.tagged import TAG
from ..bundle import energy_facts
from ..tileflow.sections import known
from .energies import Energies
from .sections import check_version, words

SIZES = ("depth", "width", "datawidth", "cluster_size", "multiple_buffering")
RATES = ("read_bandwidth", "write_bandwidth", "shared_bandwidth")
CYCLE = "global_cycle_seconds"
NODES = ("Container", "Component", "Parallel", "Nothing")
HOME = selector("~intermediate")
_DEFAULT_BITS = 8


@dataclass
class _Walk:
    """What the nodes met so far have made; inherited: attributes that containers give to what is inside them."""

    energies: Energies
    clock: float
    notes: list[str]
    levels: list[Level] = field(default_factory=list)
    places: dict[str, Located] = field(default_factory=dict)
    inherited: dict[str, Located] = field(default_factory=dict)
    spreads: dict[str, Located] = field(default_factory=dict)
    last: Located | None = None

    def node(self, view: Located) -> None:
        kind = _tag(view)
        if kind == "Parallel":
            self.spatial(view, view.get("name"))
            inner = view.require("nodes").items()
            self.constraints(view)
            view.finish()
            for item in inner:
                self.parallel(item)
        elif kind == "Container":
            name = view.require("name")
            self.spatial(view, name)
            if (attributes := view.get("attributes")) is not None:
                self.inherited |= {key: value for key, _, value in attributes.entries() if key in (*SIZES, *RATES)}
            self.constraints(view)
            view.finish()
        elif kind == "Component":
            self.spatial(view, view.require("name"))
            self.component(view, False)
        else:
            view.finish()

    def parallel(self, view: Located) -> None:
        """One node of a ``!Parallel``."""
        kind = _tag(view)
        if kind == "Nothing":
            view.get("constraints")
            view.finish()
        elif kind == "Component" and view.get("spatial") is None:
            self.component(view, True)
        else:
            raise view.error("a node of !Parallel is a !Component without a mesh of its own, or !Nothing")

    def spatial(self, view: Located, name: Located | None) -> None:
        """The fanout above a node."""
        mesh = view.get("spatial")
        if mesh is None:
            return
        if name is None:
            raise view.error("a node with a mesh needs a name")
        axes = []
        for direction in ("X", "Y"):
            size = mesh.get(f"mesh{direction}")
            count = 1 if size is None else size.integer(minimum=1)
            if count > 1:
                axes.append(Axis(f"{name.name()}_{direction}", count))
        mesh.finish()
        if axes:
            self.named(name)
            self.levels.append(Fanout(name.name(), tuple(axes)))

    def named(self, view: Located) -> str:
        name = view.name()
        with view.placed():
            level_name(name)
        self.places[name] = view
        return name

    def component(self, view: Located, side_by_side: bool) -> None:
        """A component as a memory; the last one becomes the compute unit in `unit`."""
        name = self.named(view.require("name"))
        kind = view.require("class").name()
        view.get("subclass")
        view.get("required_actions")
        for key in ("sparse_optimizations", "enabled"):
            if (said := view.get(key)) is not None and (key != "enabled" or not said.boolean()):
                raise said.error(f"{name}: {key} has no counterpart in einloom")
        attributes = view.get("attributes")
        given = dict(self.inherited)
        if attributes is not None:
            entries = attributes.entries()
            given |= {key: value for key, _, value in entries if key in (*SIZES, *RATES)}
            other = [key for key, _, _ in entries if key not in (*SIZES, *RATES, CYCLE)]
            if other:
                self.notes.append(f"{name}: attributes for Accelergy are left out ({', '.join(other)})")
        keeps = self.constraints(view)
        if side_by_side and keeps is None:
            raise view.error(f"{name} stands in !Parallel; its constraints must say which data spaces it keeps")
        must, may = keeps or (NOTHING, ALL)
        memory = self.memory(name, view, given, kind == "DRAM")
        self.levels.append(replace(memory, must=must, may=must if side_by_side else may))
        view.finish()
        self.last = None if side_by_side else view

    def memory(self, name: str, view: Located, given: Mapping[str, Located], dram: bool) -> Memory:
        sizes = {key: given[key].integer(minimum=1) for key in SIZES if key in given}
        rates = {key: float(given[key].number("energy", positive=True)) for key in RATES if key in given}
        bits = sizes.get("datawidth", _DEFAULT_BITS)
        width = sizes.get("width", bits)
        cluster, copies = sizes.get("cluster_size", 1), sizes.get("multiple_buffering", 1)
        if width % (bits * cluster) and "depth" in sizes:
            raise given["width"].error(f"{name}: width {width} is no multiple of {bits * cluster} bits")
        if copies > 2:
            raise given["multiple_buffering"].error(f"{name}: multiple_buffering is 1 or 2 here, not {copies}")
        shared = rates.get("shared_bandwidth")
        reads, writes = (
            None if rate is None else rate * bits * self.clock
            for rate in (rates.get("read_bandwidth", shared), rates.get("write_bandwidth", shared))
        )
        return Memory(
            name,
            size=None if dram or "depth" not in sizes else sizes["depth"] * width // cluster,
            bits_per_access=max(width, bits),
            read_throughput=reads,
            write_throughput=writes,
            ports="separate" if shared is None else "shared",
            widths=((ALL, bits),),
            double_buffer=copies == 2,
        )

    def constraints(self, view: Located) -> tuple[Selector, Selector] | None:
        """(must, may) of a node's data spaces; what it says of its mesh is kept for `spreads`."""
        limits = view.get("constraints")
        if limits is None:
            return None
        label = view.get("name")
        name = "a node" if label is None else label.name()
        if limits.get("temporal") is not None:
            self.notes.append(f"{name}: constraints on temporal loops are left out; a mapspace file says such")
        if (spread := limits.get("spatial")) is not None:
            self.spreads[name] = spread
        spaces = limits.get("dataspace")
        limits.finish()
        if spaces is None:
            return None
        listed = {key: () if (at := spaces.get(key)) is None else words(at) for key in ("keep", "bypass", "keep_only")}
        spaces.finish()
        must = _set((*listed["keep"], *listed["keep_only"])) or NOTHING
        if listed["keep_only"]:
            return must, must
        barred = _set(listed["bypass"])
        return must, ALL if barred is None else selector(f"~({barred})")

    def unit(self, view: Located) -> None:
        """Make the innermost component the compute unit, and give all others their energies."""
        if self.last is None or not isinstance(self.levels[-1], Memory) or len(self.levels) < 2:
            raise view.error("an architecture needs memories and, as the last !Component, a compute unit")
        for place, level in enumerate(self.levels[:-1]):
            if isinstance(level, Memory):
                read, write = self.energies.of(level.name, ("read", "write"))
                leakage = self.energies.leakage(level.name, self.clock)
                self.levels[place] = replace(level, read_energy=read, write_energy=write, leakage=leakage)
        name = self.levels[-1].name
        (energy,) = self.energies.of(name, ("compute",))
        leakage = self.energies.leakage(name, self.clock)
        self.levels[-1] = ComputeUnit(name, throughput=self.clock, energy=energy, leakage=leakage)


def _tag(view: Located) -> str:
    kind = view.get(TAG)
    if kind is None:
        raise view.error(f"a node begins with its kind: {', '.join('!' + known for known in NODES)}")
    return known(kind, (kind.name(),), NODES, "kind of node")[0]


def _set(names: tuple[str, ...]) -> Selector | None:
    return selector(" | ".join(names)) if names else None


def cycle(found: Mapping[str, Located]) -> float | None:
    """Cycles per second, if ``variables`` or a container of the architecture says how long a cycle is."""
    places: list[Located] = []
    if (variables := found.get("variables")) is not None and (place := variables.get(CYCLE)) is not None:
        places.append(place)
    architecture = found.get("architecture")
    for node in architecture.require("nodes").items() if architecture is not None else ():
        attributes = node.get("attributes") if node.is_mapping else None
        if attributes is not None and attributes.is_mapping and (place := attributes.get(CYCLE)) is not None:
            places.append(place)
    if not places:
        return None
    seconds = places[-1].number("time", positive=True)
    if not 1e-18 < seconds < 1e18:
        raise places[-1].error(f"a cycle of {seconds:g} s")
    return float(1 / exact(seconds))


def machine_from(
    view: Located, energies: Energies, clock: float, notes: list[str]
) -> tuple[Machine, Mapping[str, Located]]:
    """The machine, and what the file says of the spatial loops of every fanout.

    clock: cycles per second. SpecError with the place of every mistake.
    """
    check_version(view)
    walk = _Walk(energies, clock, notes)
    nodes = view.require("nodes")
    view.finish()
    title = None
    for item in nodes.items():
        if title is None:
            title = item.get("name") if item.is_mapping else None
        with item.gather():
            walk.node(item)
    view.raise_gathered()
    walk.unit(nodes)
    levels = walk.levels
    if isinstance(levels[0], Memory):
        if levels[0].may is not ALL:
            raise walk.places[levels[0].name].error("the outermost memory keeps all data spaces; it may bypass none")
        levels[0] = replace(levels[0], must=HOME, size=None)
    for index, message in structure_problems(levels):
        raise (nodes if index is None else walk.places[levels[index].name]).error(message)
    energies.check(nodes)
    facts = () if energies.free else energy_facts(levels, "ERT")
    return Machine("timeloop" if title is None else title.name(), tuple(levels), facts=facts), walk.spreads
