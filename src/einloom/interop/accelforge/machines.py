"""An AccelForge architecture as a `Machine`.

``arch.nodes`` comes in as a located view. Every ``spatial`` list of a node becomes a fanout before it; ``keep`` is what
a memory must hold, ``may_keep`` what it may; ``min_usage: 1`` is full use; ``reuse`` allows only ranks that those
tensors lack. Latency is recognised in its two usual forms. What has no counterpart is an error that names it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import inf, isfinite
from types import MappingProxyType
from typing import Literal

from ...arithmetic import exact
from ...constraints import Selector, selector
from ...errors import SpecError
from ...located import Located
from ...machine.files import structure_problems
from ...machine.levels import Axis, ComputeUnit, Fanout, Level, Machine, Memory
from ...mapspace.limits import AxisLimit, Limits
from ...workload.einsum import Workload
from .bounds import axis_limits, same_everywhere
from .expressions import TensorSet, Value, evaluate, is_number
from .formulas import one_value
from .formulas import ports as ports_of
from .models import Modelled
from .sets import COPIED, PRODUCT, always_held_above, imported_set
from .tagged import TAG

NODES = ("Memory", "Container", "Compute", "Toll", "Network", "Hierarchical", "Fork", "Array")
SCALES = (
    "energy_scale",
    "actions_scale",
    "latency_scale",
    "throughput_scale",
    "leak_power_scale",
    "area_scale",
    "n_parallel_instances",
)
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
    reader = _Machine(symbols, remainder, notes, models)
    nodes = view.require("nodes")
    for key in ("variables", "extra_attributes_for_all_component_models"):
        if (field := view.get(key)) is not None and key != "variables":
            notes.append(f"arch.{key} belongs to AccelForge's component models and is left out")
            del field
    view.finish()
    for node in nodes.items():
        with node.gather():
            reader.node(node)
    view.raise_gathered()
    for place, message in structure_problems(reader.levels):
        where = nodes if place is None else reader.places[place]
        raise where.error(message)
    name = str(remainder.get("machine", "accelforge"))
    for unused in [component for component in models if component not in reader.modelled]:
        notes.append(f"models of {unused}: no component of this name takes numbers from a model")
    limits = Limits(axes=same_everywhere(reader.limits, symbols.workload))
    return Machine(name, tuple(reader.levels)), limits


class _Machine:
    """Collects levels, outermost first."""

    def __init__(
        self, symbols: Symbols, remainder: Mapping[str, object], notes: list[str], models: Mapping[str, Modelled]
    ) -> None:
        self.symbols, self.notes, self.models = symbols, notes, models
        self.modelled: set[str] = set()
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
        if kind in ("Toll", "Network"):
            raise tag.error(f"a {kind} (what passes through is charged) has no counterpart here")
        if kind in ("Fork", "Array", "Hierarchical"):
            raise tag.error(f"a {kind} has no counterpart here: a machine is one list of levels")
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

    def scales(self, view: Located) -> None:
        """Refuse factors other than one, and drop what the other tool derives itself."""
        for key in SCALES:
            field = view.get(key)
            if field is not None and self.number(field) != 1:
                raise field.error(f"{key} has no counterpart here; multiply the numbers instead")
        for key in DERIVED:
            view.get(key)

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
        for key, plain in (("usage_scale", 1), ("power_gateable", False)):
            field = view.get(key)
            if field is not None and not (
                field.boolean() is plain if key == "power_gateable" else self.number(field) == plain
            ):
                raise field.error(f"{key} has no counterpart here")
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
        width = bits.pop()
        size, widths = self.capacity(view, actions)
        must, may, backs = self.held(view, name)
        if name in self.doubled:
            doubled = self.doubled[name]
            size = int(doubled) if isinstance(doubled, int) else size
        speeds = {key: _speed(a.throughput if common is None else common, width) for key, a in actions.items()}
        self.scales(view)
        return Memory(
            name,
            size=size,
            read_energy=actions["read"].energy,
            write_energy=actions["write"].energy,
            bits_per_access=width,
            read_throughput=speeds["read"],
            write_throughput=speeds["write"],
            ports=ports,
            widths=widths,
            must=must,
            may=may,
            backs=backs,
            double_buffer=name in self.doubled,
            leakage=self.real(view.get("leak_power"), self.models.get(written, Modelled()).leakage or 0.0),
            area=self.real(view.get("area"), self.models.get(written, Modelled()).area or 0.0),
        )

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
                raise model.error(
                    f"the energy of {name!r} would come from the component model {kind!r}, which is not part of "
                    f"einloom; write it, or give it beside: einloom: {{models: {{{written}: {{{name}: 1 pJ}}}}}}"
                )
            found[name] = self.action(name, action, width, energy, modelled.throughputs.get(name))
        if kind != "Dummy" and any(a.throughput == inf for a in found.values()) and view.get("total_latency") is None:
            self.notes.append(f"{written}: the throughput that {kind} would give is not known, and is unlimited here")
        if extra is not None and kind == "Dummy":
            self.notes.append(f"{view.require('name').name()}: attributes of a component model are left out")
        for key in ("values_per_action",):
            if (values := view.get(key)) is not None:
                raise values.error(f"{key} has no counterpart here; say bits_per_action")
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
        kinds, operands = self.enabled(view.get("enabled"))
        self.scales(view)
        speed = action.throughput if common is None else common
        return ComputeUnit(
            self.names.get(written, written),
            throughput=None if speed == inf else speed,
            energy=action.energy,
            kinds=kinds,
            operands=operands,
            leakage=self.real(view.get("leak_power"), self.models.get(written, Modelled()).leakage or 0.0),
            area=self.real(view.get("area"), self.models.get(written, Modelled()).area or 0.0),
        )

    def enabled(self, view: Located | None) -> tuple[tuple[str, ...], tuple[int, ...]]:
        """Kinds and numbers of operands that a condition over ``len(All)`` admits; copies need no unit here."""
        everything = ("multiply", "map")
        if view is None or (not view.is_text and view.boolean()):
            return everything, ()
        if not view.is_text:
            raise view.error("a component that is never enabled; leave it out")
        with view.placed():
            kept = {
                (kind, count)
                for kind in everything
                for count in range(1, 9)
                if evaluate(view.text(), _typical(kind, count, self.symbols.variables))
            }
            kinds = tuple(kind for kind in everything if any(k == kind for k, _ in kept))
            counts = tuple(count for count in range(1, 9) if any(c == count for _, c in kept))
            if not kept or kept != {(kind, count) for kind in kinds for count in counts}:
                raise SpecError(f"{view.text()!r} is no condition on the number of tensors; no other is carried over")
        return kinds, () if len(counts) == 8 else counts


@dataclass(frozen=True, slots=True)
class _Action:
    """Joules per action, actions per second, bits per action."""

    energy: float
    throughput: float
    bits: int


def _typical(kind: str, operands: int, variables: Mapping[str, Value]) -> dict[str, Value]:
    """The sets of an Einsum of so many operands that is no copy."""
    names = frozenset(f"T{i}" for i in range(operands + 1))
    everything = TensorSet(names, names, {})
    nothing = everything.of(frozenset())
    return {
        **variables,
        "All": everything,
        "Tensors": everything,
        "Nothing": nothing,
        "Inputs": everything.of(frozenset(f"T{i}" for i in range(operands))),
        "Outputs": everything.of(frozenset((f"T{operands}",))),
        COPIED: nothing,
        PRODUCT: everything if kind == "multiply" else nothing,
    }


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
