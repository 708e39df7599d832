"""An AccelForge architecture as a `Machine`.

``arch.nodes`` comes in as a located view. Every ``spatial`` list of a node becomes a fanout before it; ``keep`` is what
a memory must hold, ``may_keep`` what it may; ``min_usage: 1`` is full use; ``reuse`` allows only ranks that those
tensors lack. Latency is recognised in its two usual forms. What has no counterpart is an error that names it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import inf, isfinite
from types import MappingProxyType
from typing import Literal

from ...arithmetic import exact
from ...constraints import Selector, selector
from ...errors import SpecError, combined
from ...located import Located
from ...machine.files import structure_problems
from ...machine.levels import Axis, ComputeUnit, Fanout, Level, Machine, Memory
from ...mapspace.limits import AxisLimit, Limits
from ...workload.einsum import Workload
from .bounds import axis_limits, same_everywhere
from .expressions import Value, evaluate, is_number
from .formulas import kinds_and_operands, one_value
from .formulas import ports as ports_of
from .models import Missing, Modelled
from .scales import Scales, scales_of, width_of_values
from .scopes import Layered, fanouts
from .sets import always_held_above, imported_set
from .tagged import TAG

REFUSED = {
    "Toll": "it charges what passes through and keeps nothing, while every store here keeps a tile",
    "Network": "it charges what passes through by the way that it takes",
    "Hierarchical": "a machine here is one list of levels",
    "Fork": "a machine here is one list of levels",
    "Array": "a machine here is one list of levels",
}
NODES = ("Memory", "Container", "Compute", *REFUSED)
DERIVED = ("total_area", "total_leak_power", "component_modeling_log")
UNSAID = (
    "tile_shape",
    "no_refetch_from_above",
    "no_resend_to_below",
    "tensor_order_options",
    "back",
    "force_memory_hierarchy_order",
)
ONE_VALUE = 64
"""Bits of a memory that holds one value of any width: every value counts as 64 bit there."""


@dataclass(frozen=True)
class Symbols:
    """What expressions may name: variables, and per Einsum its sets of tensors (empty without a workload)."""

    variables: Mapping[str, Value]
    einsums: Mapping[str, Mapping[str, Value]]
    workload: Workload | None = None
    wanted: Mapping[str, str] = field(default_factory=dict)
    """Variables that were needed and have no value, with the reason; grows while expressions are evaluated."""

    @property
    def tensors(self) -> tuple[str, ...]:
        return () if self.workload is None else tuple(tensor.name for tensor in self.workload.tensors)


def machine_from(
    view: Located,
    symbols: Symbols,
    remainder: Mapping[str, object],
    notes: list[str],
    models: Mapping[str, Modelled] = MappingProxyType({}),
) -> tuple[Machine, Limits]:
    """The machine of the section ``arch``, and what its loop bounds ask of the mapspace.

    models: numbers in place of component models. Raises SpecError that lists all that cannot be read or carried over.
    """
    nodes = view.require("nodes")
    for key in ("variables", "extra_attributes_for_all_component_models"):
        if (field := view.get(key)) is not None and key != "variables":
            notes.append(f"arch.{key} belongs to AccelForge's component models and is left out")
            del field
    view.finish()
    _refuse(nodes)
    answers = fanouts(nodes, symbols.variables)
    symbols = replace(
        symbols,
        variables=Layered(answers, symbols.variables),
        einsums={einsum: Layered(answers, names) for einsum, names in symbols.einsums.items()},
    )
    reader = _Machine(symbols, remainder, notes, models)
    for node in nodes.items():
        with node.gather():
            reader.node(node)
    with nodes.gather():
        reader.missing.check(symbols.wanted)
    view.raise_gathered()
    for place, message in structure_problems(reader.levels):
        where = nodes if place is None else reader.places[place]
        raise where.error(message)
    name = str(remainder.get("machine", "accelforge"))
    for unused in [component for component in models if component not in reader.modelled]:
        notes.append(f"models of {unused}: no component of this name takes numbers from a model")
    limits = Limits(axes=same_everywhere(reader.limits, symbols.workload))
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


class _Machine:
    """Collects levels, outermost first."""

    def __init__(
        self, symbols: Symbols, remainder: Mapping[str, object], notes: list[str], models: Mapping[str, Modelled]
    ) -> None:
        self.symbols, self.notes, self.models = symbols, notes, models
        self.modelled: set[str] = set()
        self.missing = Missing()
        self.standing = Fraction(1)
        """Physical instances for which one instance stands, below fanouts whose use is scaled."""
        self.limits: list[AxisLimit] = []
        self.names = _texts(remainder.get("components"))
        self.axis_names = _texts(remainder.get("axes"))
        self.backs = _texts(remainder.get("backs"))
        doubled = remainder.get("double_buffer")
        self.doubled: Mapping[str, object] = doubled if isinstance(doubled, Mapping) else {}
        self.levels: list[Level] = []
        self.places: list[Located] = []
        self.written: list[str] = []
        self.axes: set[str] = set()

    @property
    def above(self) -> list[Memory]:
        return [level for level in self.levels if isinstance(level, Memory)]

    def add(self, level: Level, place: Located) -> None:
        self.levels.append(level)
        self.places.append(place)

    def node(self, view: Located) -> None:
        tag = view.require(TAG)
        kind = tag.choice(NODES)
        name = view.require("name").name()
        self.fanout(view, name)
        if kind == "Container":
            view.finish()
            return
        if kind == "Memory":
            level: Level = self.memory(view, name)
            self.written.append(name)
        else:
            level = self.compute(view, name)
        view.finish()
        self.add(level, view)

    # Numbers

    def number(self, view: Located, names: Mapping[str, Value] | None = None) -> Fraction | float:
        """A number, plain or as an expression."""
        if not view.is_text:
            return exact(view.number("energy"))
        with view.placed():
            value = evaluate(view.text(), names or self.symbols.variables)
            if not is_number(value):
                raise SpecError(f"expected a number, {view.text()!r:.60} is none")
            assert isinstance(value, Fraction | float)
            return value

    def real(self, view: Located | None, default: float = 0.0) -> float:
        """A finite number that is not negative."""
        if view is None:
            return default
        found = float(self.number(view))
        if not isfinite(found) or found < 0:
            raise view.error(f"{found} is no finite number of at least 0")
        return found

    def scales(self, view: Located) -> Scales:
        """The component's factors; what the other tool derives itself is dropped."""
        for key in DERIVED:
            view.get(key)
        return scales_of(view, self.number)

    def idle(self, view: Located, written: str, scales: Scales) -> tuple[float, float]:
        """Leakage and area of one instance, with those of the instances for which it stands."""
        model = self.models.get(written, Modelled())
        leakage = self.real(view.get("leak_power"), model.leakage or 0.0) * scales.leakage
        area = self.real(view.get("area"), model.area or 0.0) * scales.area
        return leakage * float(self.standing), area * float(self.standing)

    # Levels

    def fanout(self, view: Located, name: str) -> None:
        field = view.get("spatial")
        if field is None:
            return
        axes = tuple(self.axis(item) for item in field.items())
        if axes:
            own = view.require(TAG).text() == "Container"
            label = self.names.get(name, name) if own else axes[0].name if len(axes) == 1 else f"{name}-array"
            self.add(Fanout(label, axes), view)

    def axis(self, view: Located) -> Axis:
        written = view.require("name").name()
        name = self.axis_names.get(written, written)
        if name in self.axes:
            raise view.error(f"two fanouts have an axis called {name}; axes share one set of names here")
        self.axes.add(name)
        size = self.number(view.require("fanout"))
        if isinstance(size, float) or size.denominator != 1 or size < 1:
            raise view.require("fanout").error("a fanout must be a whole number of at least 1")
        if (gated := view.get("power_gateable")) is not None and gated.boolean():
            raise gated.error("power_gateable has no counterpart here")
        size = self.usable(view, size)
        if (bounds := view.get("loop_bounds")) is not None:
            self.limits += axis_limits(bounds, name, self.symbols.workload)
        only = self.set(view.get("reuse"), "nothing")
        reused = self.set(view.get("may_reuse"), only.text if only.text != "nothing" else "all")
        multicast, reduce = _directions(reused)
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
        if view is None:
            return selector(default)
        with view.placed():
            return imported_set(view.text(what="a set expression"), self.written, self.symbols.tensors)

    def memory(self, view: Located, written: str) -> Memory:
        name = self.names.get(written, written)
        actions = self.actions(view, ("read", "write"))
        ports, common = ports_of(view, self.symbols.variables)
        bits = {actions["read"].bits, actions["write"].bits}
        if len(bits) != 1:
            raise view.error(f"reads and writes of {written} have different bits_per_action; here they share one width")
        size, widths = self.capacity(view, actions)
        must, may, backs = self.held(view, name)
        if name in self.doubled:
            doubled = self.doubled[name]
            size = int(doubled) if isinstance(doubled, int) else size
        scales = self.scales(view)
        shape = Memory(
            name, size=size, widths=widths, must=must, may=may, backs=backs, double_buffer=name in self.doubled
        )
        leakage, area = self.idle(view, written, scales)
        width = self.values_width(view, shape) or bits.pop()
        shared = scales.common(common)
        speeds = {
            key: _speed(scales.speed(a.throughput) if shared is None else shared, width) for key, a in actions.items()
        }
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
        counts = []
        for text, key, value in field.entries():
            with key.placed():
                counts.append((imported_set(text, self.written, self.symbols.tensors), self.number(value)))
        return width_of_values(field, counts, memory, self.symbols.workload)

    def held(self, view: Located, name: str) -> tuple[Selector, Selector, Selector]:
        """What the memory must hold, may hold and may back."""
        field = view.get("tensors")
        if field is None:
            must, may = selector("nothing"), selector("all")
        else:
            keep, may_keep = field.get("keep"), field.get("may_keep")
            must = self.set(keep, "nothing")
            may = self.set(may_keep, "all" if keep is None else "nothing")
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

    def capacity(
        self, view: Located, actions: Mapping[str, _Action]
    ) -> tuple[int | None, tuple[tuple[Selector, int], ...]]:
        """Size in bits, and own widths; room for one value becomes 64 bit for values of 64 where that is free."""
        widths = tuple(self.width(key, text, value) for text, key, value in _entries(view.get("bits_per_value")))
        field = view.require("size")
        if not (field.is_text and "bits_per_value" in field.text()):
            size = self.number(field)
            if size == inf:
                return None, widths
            if isinstance(size, float) or size.denominator != 1 or size < 1:
                raise field.error("a size must be a whole number of bits, at least 1, or inf")
            return int(size), widths
        free = all(action.energy == 0 and action.throughput == inf for action in actions.values())
        if one_value(field.text()) and free and not widths:
            self.notes.append(f"{view.require('name').name()}: one value of any width is written as 64 bit of 64")
            return ONE_VALUE, ((selector("all"), ONE_VALUE),)
        return self.common_size(field), widths

    def common_size(self, field: Located) -> int:
        """The one size that an expression over tensors has for all Einsums for which it is not zero."""
        if not self.symbols.einsums:
            raise field.error("this size depends on the tensors; read it together with a workload")
        with field.placed():
            found = {evaluate(field.text(), names) for names in self.symbols.einsums.values()} - {Fraction(0)}
            if len(found) != 1 or not isinstance(size := found.pop(), Fraction) or size.denominator != 1 or size < 1:
                raise SpecError("this size differs from Einsum to Einsum; a memory has one size here")
            return int(size)

    def width(self, key: Located, text: str, value: Located) -> tuple[Selector, int]:
        with key.placed():
            which = imported_set(text, self.written, self.symbols.tensors)
        if not (value.is_text and "bits_per_value" in value.text()):
            bits = self.number(value)
        else:
            bits = Fraction(self.common_size(value))
        if isinstance(bits, float) or bits.denominator != 1 or bits < 1:
            raise value.error("bits per value must be a whole number here")
        return which, int(bits)

    def actions(self, view: Located, names: tuple[str, ...]) -> dict[str, _Action]:
        """Energy, throughput and width of each action; a component class other than Dummy must give its own numbers."""
        model = view.get("component_class")
        kind = "Dummy" if model is None else model.name()
        extra = view.get("extra_attributes_for_component_model")
        written = view.require("name").name()
        modelled = self.models.get(written, Modelled()) if kind != "Dummy" else Modelled()
        self.modelled |= {written} if kind != "Dummy" else set()
        given = {}
        field = view.get("actions")
        for item in field.items() if field is not None else ():
            given[item.require("name").choice(names)] = item
        width = view.get("bits_per_action")
        found = {}
        for name in names:
            action = given.get(name)
            energy = modelled.energies.get(name)
            if kind != "Dummy" and energy is None and (action is None or action.get("energy") is None):
                assert model is not None
                self.missing.add(model, written, kind, name)
            found[name] = self.action(name, action, width, energy, modelled.throughputs.get(name))
        if kind != "Dummy" and any(a.throughput == inf for a in found.values()) and view.get("total_latency") is None:
            self.notes.append(f"{written}: the throughput that {kind} would give is not known, and is unlimited here")
        if extra is not None and kind == "Dummy":
            self.notes.append(f"{view.require('name').name()}: attributes of a component model are left out")
        return found

    def action(
        self, name: str, view: Located | None, width: Located | None, energy: float | None, speed: float | None
    ) -> _Action:
        """One action as it is written; `energy` and `speed` stand in for what is not."""
        if view is None:
            return _Action(energy or 0.0, speed or inf, 1 if width is None else self.bits(width))
        own = view.get("bits_per_action") or width
        for key in ("energy_scale", "latency_scale", "throughput_scale"):
            field = view.get(key)
            if field is not None and self.number(field) != 1:
                raise field.error(f"{key} has no counterpart here; multiply the number instead")
        if (latency := view.get("latency")) is not None and self.number(latency) != 0:
            raise latency.error("an action's latency has no counterpart here; say its throughput")
        if (values := view.get("values_per_action")) is not None:
            raise values.error("values_per_action has no counterpart here; say bits_per_action")
        field = view.get("throughput")
        throughput = (speed or inf) if field is None else float(self.number(field))
        if field is not None and throughput <= 0:
            raise field.error("a throughput must be greater than zero")
        joules = self.real(view.get("energy"), energy or 0.0)
        view.finish()
        return _Action(joules, throughput, 1 if own is None else self.bits(own))

    def bits(self, view: Located) -> int:
        found = self.number(view)
        if isinstance(found, float) or found.denominator != 1 or found < 1:
            raise view.error("bits_per_action must be a whole number here")
        return int(found)

    def compute(self, view: Located, written: str) -> ComputeUnit:
        action = self.actions(view, ("compute",))["compute"]
        _, common = ports_of(view, self.symbols.variables)
        kinds, operands = kinds_and_operands(view.get("enabled"), self.symbols.variables)
        scales = self.scales(view)
        if (values := view.get("values_per_action")) is not None:
            raise values.error("values_per_action has no counterpart in a compute unit")
        leakage, area = self.idle(view, written, scales)
        shared = scales.common(common)
        speed = scales.speed(action.throughput) if shared is None else shared
        return ComputeUnit(
            self.names.get(written, written),
            throughput=None if speed == inf else speed,
            energy=action.energy * scales.energy,
            kinds=kinds,
            operands=operands,
            leakage=leakage,
            area=area,
        )


@dataclass(frozen=True, slots=True)
class _Action:
    """Joules per action, actions per second, bits per action."""

    energy: float
    throughput: float
    bits: int


def _directions(reused: Selector) -> tuple[Selector, Selector]:
    """What an axis multicasts and what it reduces, of the tensors that it may reuse."""
    nothing = selector("nothing")
    match reused.tree:
        case ("name", "input" | "weight" | "cascade_input"):
            return reused, nothing
        case ("name", "output" | "cascade_output"):
            return nothing, reused
        case ("or", ("and", first, ("not", ("name", "output"))), ("and", second, ("name", "output"))):
            parts = reused.text.split(" | ")
            if len(parts) == 2:
                return tuple(selector(_bare(part.rpartition(" & ")[0])) for part in parts)  # type: ignore[return-value]
            del first, second
    return reused, reused


def _bare(text: str) -> str:
    return text[1:-1] if text.startswith("(") and text.endswith(")") else text


def _entries(view: Located | None) -> list[tuple[str, Located, Located]]:
    return [] if view is None else view.entries()


def _texts(data: object) -> dict[str, str]:
    return {str(key): str(value) for key, value in data.items()} if isinstance(data, Mapping) else {}


def _speed(throughput: float, bits: int) -> float | None:
    return None if throughput == inf else throughput * bits
