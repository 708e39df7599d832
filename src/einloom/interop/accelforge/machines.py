"""An AccelForge architecture as a `Machine`.

``arch.nodes`` comes in as a located view. Every ``spatial`` list of a node becomes a fanout before it; ``keep`` is what
a memory must hold, ``may_keep`` what it may; ``min_usage: 1`` is full use; ``reuse`` allows only ranks that those
tensors lack. Latency is recognised in its two usual forms. What has no counterpart is an error that names it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from math import inf
from typing import Literal

from ...errors import SpecError, combined
from ...machine.files import structure_problems
from ...machine.levels import ALL, NOTHING, Axis, ComputeUnit, Fanout, Level, Machine, Memory, Toll
from ...mapspace.limits.data import AxisLimit, HoldLimit, Limits
from ...reading.located import Located
from ...workload.selectors import Selector, select, selector
from .bounds import axis_limits, directions, same_everywhere
from .components import ComponentAction, Symbols, speed
from .expressions import evaluate
from .formulas import kinds_and_operands, one_value
from .formulas import ports as ports_of
from .models import Modelled
from .scales import width_of_values
from .scopes import Layered, fanouts, texts
from .sets import always_held_above
from .tagged import TAG
from .tolls import IN_FRONT, Tolls, in_whole_bits

REFUSED = {
    "Network": "it charges what passes through by the way that it takes",
    "Hierarchical": "a machine here is one list of levels",
    "Fork": "a machine here is one list of levels",
    "Array": "a machine here is one list of levels",
}
NODES = ("Memory", "Toll", "Container", "Compute", *REFUSED)
UNSAID = ("tile_shape", "no_resend_to_below", "tensor_order_options", "back")
ONE_VALUE = 64
"""Bits of a memory that holds one value of any width: every value counts as 64 bit there."""


def machine_from(
    view: Located,
    symbols: Symbols,
    remainder: Mapping[str, object],
    notes: list[str],
    models: Mapping[str, Modelled],
) -> tuple[Machine, Limits]:
    """The machine of the section ``arch``, and what its loop bounds ask of the mapspace.

    models: numbers in place of component models. Raises SpecError that lists all that cannot be read or carried over.
    """
    nodes = view.require("nodes")
    view.get("variables")
    if view.get(key := "extra_attributes_for_all_component_models") is not None:
        notes.append(f"arch.{key} belongs to AccelForge's component models and is left out")
    view.finish()
    _refuse(nodes)
    answers = fanouts(nodes, symbols.variables)
    symbols = replace(
        symbols,
        variables=Layered(answers, symbols.variables),
        einsums={einsum: Layered(answers, names) for einsum, names in symbols.einsums.items()},
    )
    reader = _Machine(symbols, remainder, notes, models)
    reader.put_in_front(remainder.get("main_memory"), nodes)
    for node in nodes.items():
        with node.gather():
            reader.node(node)
    with nodes.gather():
        reader.missing.check(symbols.wanted)
    view.raise_gathered()
    for place, message in structure_problems(reader.levels):
        where = nodes if place is None else reader.places[place]
        raise where.error(f"{message}; {IN_FRONT}" if place == 0 and reader.above[:1] != reader.levels[:1] else message)
    name = str(remainder.get("machine", "accelforge"))
    for unused in [component for component in models if component not in reader.modelled]:
        notes.append(f"models of {unused}: no component of this name takes numbers from a model")
    reader.check_outputs()
    reader.check_gates()
    view.raise_gathered()
    limits = Limits(tuple(reader.once), axes=same_everywhere(reader.limits, symbols.workload))
    return Machine(name, tuple(reader.levels)), limits


def _refuse(nodes: Located) -> None:
    """Refuse all nodes of kinds without a counterpart at once, by name: the rest is not worth reading then."""
    found: dict[str, list[Located]] = {}
    for node in nodes.items():
        tag = node.require(TAG)
        if (kind := tag.choice(NODES)) in REFUSED:
            found.setdefault(kind, []).append(node)
    problems = []
    for kind, places in found.items():
        named = [name.name() for node in places if (name := node.get("name")) is not None]
        what = f"{len(places)} nodes are of the kind {kind}" if len(places) > 1 else f"a node is of the kind {kind}"
        listed = f" ({', '.join(named)})" if named else ""
        problems.append(places[0].error(f"{what}, which has no counterpart here: {REFUSED[kind]}{listed}"))
    if problems:
        raise combined(problems)


class _Machine(Tolls):
    """Collects levels, outermost first."""

    def __init__(
        self, symbols: Symbols, remainder: Mapping[str, object], notes: list[str], models: Mapping[str, Modelled]
    ) -> None:
        super().__init__(symbols, notes, models, texts(remainder, "components"))
        self.limits: list[AxisLimit] = []
        self.once: list[HoldLimit] = []
        self.initial: list[tuple[Located, int]] = []
        """Where results are read before the first is written, and how many levels stand further out."""
        self.gated: list[tuple[Located, int]] = []
        """Fanouts whose unused instances do not leak, and how many levels stand further out."""
        self.axis_names = texts(remainder, "axes")
        self.backs = texts(remainder, "backs")
        doubled = remainder.get("double_buffer")
        self.doubled: Mapping[str, object] = doubled if isinstance(doubled, Mapping) else {}
        self.levels: list[Level] = []
        self.places: list[Located] = []
        self.axes: set[str] = set()

    @property
    def above(self) -> list[Memory]:
        return [level for level in self.levels if isinstance(level, Memory)]

    def add(self, level: Level, place: Located) -> None:
        self.levels.append(level)
        self.places.append(place)

    def put_in_front(self, name: object, place: Located) -> None:
        """A memory without limit and price, outside of everything else, if one is asked for."""
        if isinstance(name, str):
            self.add(Memory(name, must=selector("~intermediate")), place)
            self.written.append(name)
            self.notes.append(
                f"{name}: a memory without limit and price stands in front, and holds what comes and goes"
            )

    def node(self, view: Located) -> None:
        tag = view.require(TAG)
        kind = tag.choice(NODES)
        name = view.require("name").name()
        self.fanout(view, name)
        if kind == "Container":
            view.finish()
            return
        if kind == "Memory" and (resent := self.passing(view)) is not None:
            level: Level = resent
        elif kind == "Memory":
            level = self.memory(view, name)
            self.written.append(name)
        elif kind == "Toll":
            level = self.toll(view, name)
        else:
            level = self.compute(view, name)
        view.finish()
        self.add(level, view)

    # Levels

    def fanout(self, view: Located, name: str) -> None:
        axes = tuple(self.axis(item, name) for item in view.listed("spatial"))
        if axes:
            own = view.require(TAG).text() == "Container"
            label = self.names.get(name, name) if own else axes[0].name if len(axes) == 1 else f"{name}-array"
            self.add(Fanout(label, axes), view)

    def axis(self, view: Located, node: str) -> Axis:
        written = view.require("name").name()
        name = self.axis_names.get(written, written)
        if name in self.axes and f"{node}-{name}" not in self.axes:
            self.notes.append(f"{node}: its axis {name} is called {node}-{name}, as another fanout has a {name}")
            name = f"{node}-{name}"
        if name in self.axes:
            raise view.error(f"two fanouts have an axis called {name}; axes share one set of names here")
        self.axes.add(name)
        size = self.number(view.require("fanout"))
        if isinstance(size, float) or size.denominator != 1 or size < 1:
            raise view.require("fanout").error("a fanout must be a whole number of at least 1")
        if (gated := view.get("power_gateable")) is not None and gated.boolean():
            self.gated.append((gated, len(self.levels)))
        size = self.usable(view, size)
        if (bounds := view.get("loop_bounds")) is not None:
            self.limits += axis_limits(bounds, name, self.symbols.workload)
        only = self.set(view.get("reuse"), "nothing")
        reused = self.set(view.get("may_reuse"), only.text if only.text != "nothing" else "all")
        multicast, reduce = directions(reused)
        usage = view.get("min_usage")
        use: Literal["any", "full"] = "any"
        if usage is not None:
            wanted = self.number(usage)
            if wanted not in (0, 1):
                raise usage.error("min_usage is 0 (any use) or 1 (full use) here; nothing between")
            use = "full" if wanted == 1 else "any"
        view.finish()
        return Axis(name, int(size), multicast, reduce, only, use)

    def usable(self, view: Located, size: Fraction) -> Fraction:
        """How many instances a mapping may use where each of them counts as `usage_scale` physical ones."""
        field = view.get("usage_scale")
        if field is None or (scale := self.number(field)) == 1:
            return size
        if isinstance(scale, float) or scale < 1 or size < scale:
            raise field.error(f"usage_scale must be at least 1 and at most the fanout ({size})")
        usable = Fraction(size // scale)
        self.standing *= size / usable
        return usable

    def set(self, view: Located | None, default: str) -> Selector:
        return selector(default) if view is None else self.named(view, view.text(what="a set expression"))

    def check_outputs(self) -> None:
        """``skip_initial_output_write: False`` is read where reading a result before it is written costs nothing."""
        for place, above in self.initial:
            for level in self.levels[:above]:
                free = isinstance(level, Toll) and not (level.energy or level.throughput)
                if isinstance(level, Fanout | ComputeUnit) or free or not self.holds_outputs(level):
                    continue
                if isinstance(level, Toll) or level.read_energy or level.read_throughput is not None:
                    with place.gather():
                        raise place.error(
                            "skip_initial_output_write: False has no counterpart where first reads of results cost "
                            f"something, as in {level.name}"
                        )
            self.notes.append("skip_initial_output_write: False costs nothing here: first reads of results are free")

    def holds_outputs(self, level: Memory | Toll) -> bool:
        """May results be read there on their way in?"""
        workload = self.symbols.workload
        which = (level.down,) if isinstance(level, Toll) else (level.must, level.may)
        if workload is None:
            return any(one.text not in ("nothing", "input", "weight") for one in which)
        return any(e.output.tensor in select(one, workload, e.name) for e in workload.einsums for one in which)

    def check_gates(self) -> None:
        """``power_gateable`` is read where nothing leaks that it would switch off."""
        for place, above in self.gated:
            leaking = [x.name for x in self.levels[above:] if not isinstance(x, Fanout) and x.leakage]
            if leaking:
                with place.gather():
                    raise place.error(
                        f"power_gateable has no counterpart here, and {', '.join(leaking)} would leak less"
                    )
            self.notes.append("power_gateable is left out: nothing below it leaks")

    def memory(self, view: Located, written: str) -> Memory:
        name = self.names.get(written, written)
        actions = self.actions(view, ("read", "write"))
        ports, common = ports_of(view, self.symbols.variables)
        bits = actions["read"].bits
        if bits != actions["write"].bits:
            raise view.error(f"reads and writes of {written} have different bits_per_action; here they share one width")
        if (initial := view.get("skip_initial_output_write")) is not None and not initial.boolean():
            self.initial.append((initial, len(self.levels)))
        size, widths, parts = self.capacity(view, actions)
        must, may, backs = self.held(view, name)
        if name in self.doubled:
            doubled = self.doubled[name]
            size = int(doubled) if isinstance(doubled, int) else size
        scales = self.scales(view)
        shape = Memory(
            name, size=size, widths=widths, must=must, may=may, backs=backs, double_buffer=name in self.doubled
        )
        leakage, area = self.idle(view, written, scales)
        width = self.values_width(view, shape) or int(bits * parts)
        if width < 1 or (bits * parts).denominator != 1:
            raise view.error(f"bits_per_action of {written} must be a whole number here")
        speeds = {key: speed(scales.speed(a.throughput, common), width) for key, a in actions.items()}
        return replace(
            shape,
            read_energy=actions["read"].energy * scales.energy,
            write_energy=actions["write"].energy * scales.energy,
            bits_per_access=width,
            read_throughput=speeds["read"],
            write_throughput=speeds["write"],
            ports=ports,
            leakage=leakage,
            area=area,
        )

    def values_width(self, view: Located, memory: Memory) -> int | None:
        """Bits per access from ``values_per_action``, None if the memory does not say it."""
        field = view.get("values_per_action")
        if field is None or not field.keys:
            return None
        counts = [(self.named(key, text), self.number(value)) for text, key, value in field.entries()]
        return width_of_values(field, counts, memory, self.symbols.workload)

    def held(self, view: Located, name: str) -> tuple[Selector, Selector, Selector]:
        """What the memory must hold, may hold and may back."""
        field = view.get("tensors")
        if field is None:
            must, may = NOTHING, ALL
        else:
            keep, may_keep = field.get("keep"), field.get("may_keep")
            must = self.set(keep, "nothing")
            may = self.set(may_keep, "all" if keep is None else "nothing")
            self.fetches(field, name)
            for key in UNSAID:
                found = field.get(key)
                if found is not None and not (found.is_list and not found.items()):
                    raise found.error(f"tensors.{key} has no counterpart in a machine")
            field.finish()
        inner = always_held_above(self.above)
        default = "nothing" if inner else "all"
        if inner and name not in self.backs and must.text not in ("nothing", "weight") and "copy" not in must.names:
            must = selector(f"({must.text}) & ~copy" if " " in must.text else f"{must.text} & ~copy")
            self.notes.append(f"{name}: copies pass AccelForge's inner memories for free, so none is held there")
        return must, may, selector(self.backs.get(name, default))

    def fetches(self, field: Located, name: str) -> None:
        """What a memory's order of stores and fetches mean here."""
        if (order := field.get("force_memory_hierarchy_order")) is not None and not order.boolean():
            self.notes.append(
                f"{name}: force_memory_hierarchy_order: False lets AccelForge search more orders of stores than stand "
                "here, where a tile is kept over loops that its tensor lacks"
            )
        if (once := field.get("no_refetch_from_above")) is not None:
            tensors = self.set(once, "nothing")
            if tensors.text != "nothing":
                self.once.append(HoldLimit("once", name, tensors))

    def capacity(
        self, view: Located, actions: Mapping[str, ComponentAction]
    ) -> tuple[int | None, tuple[tuple[Selector, int], ...], int]:
        """Size in bits, own widths, and parts of a bit that both count where a width is no whole number (1: bits).

        Room for one value becomes 64 bit for values of 64 where that is free.
        """
        found = [self.width(key, text, value) for text, key, value in view.table("bits_per_value")]
        whole = in_whole_bits(view, found, Fraction(1), self.common_widths)
        if whole.access > 1:
            name = view.require("name").name()
            self.notes.append(f"{name}: sizes and widths count in parts of a bit, {whole.access} to the bit")
        field = view.require("size")
        if not (field.is_text and "bits_per_value" in field.text()):
            size = self.number(field)
            if size == inf:
                return None, whole.widths, whole.access
            if isinstance(size, float) or (size * whole.access).denominator != 1 or size < 1:
                raise field.error("a size must be a whole number of bits, at least 1, or inf")
            return int(size * whole.access), whole.widths, whole.access
        free = all(action.energy == 0 and action.throughput == inf for action in actions.values())
        if one_value(field.text()) and free and not found:
            self.notes.append(f"{view.require('name').name()}: one value of any width is written as 64 bit of 64")
            return ONE_VALUE, ((ALL, ONE_VALUE),), 1
        return self.common_size(field) * whole.access, whole.widths, whole.access

    def common_size(self, field: Located) -> int:
        """The one size that an expression over tensors has for all Einsums for which it is not zero."""
        if not self.symbols.einsums:
            raise field.error("this size depends on the tensors; read it together with a workload")
        with field.placed():
            found = {evaluate(field.text(), names) for names in self.symbols.einsums.values()} - {Fraction(0)}
            if len(found) != 1 or not isinstance(size := found.pop(), Fraction) or size.denominator != 1 or size < 1:
                raise SpecError("this size differs from Einsum to Einsum; a memory has one size here")
            return int(size)

    def width(self, key: Located, text: str, value: Located) -> tuple[Selector, Fraction]:
        which = self.named(key, text)
        if not (value.is_text and "bits_per_value" in value.text()):
            bits = self.number(value)
        else:
            bits = Fraction(self.common_size(value))
        if isinstance(bits, float) or bits <= 0:
            raise value.error("bits per value must be a positive number here")
        return which, bits

    def compute(self, view: Located, written: str) -> ComputeUnit:
        action = self.actions(view, ("compute",))["compute"]
        _, common = ports_of(view, self.symbols.variables)
        kinds, operands = kinds_and_operands(view.get("enabled"), self.symbols.variables)
        scales = self.scales(view)
        if (values := view.get("values_per_action")) is not None:
            raise values.error("values_per_action has no counterpart in a compute unit")
        if (initial := view.get("skip_initial_output_write")) is not None and not initial.boolean():
            self.initial.append((initial, len(self.levels)))
        leakage, area = self.idle(view, written, scales)
        speed = scales.speed(action.throughput, common)
        return ComputeUnit(
            self.names.get(written, written),
            throughput=None if speed == inf else speed,
            energy=action.energy * scales.energy,
            kinds=kinds,
            operands=operands,
            leakage=leakage,
            area=area,
        )
