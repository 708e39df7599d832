"""What every component of an AccelForge architecture says of itself: its actions, factors, leakage and area.

Numbers may be expressions over variables, and over tensors where all Einsums agree. Energies of component models come
from `models`, or are asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from fractions import Fraction
from math import inf, isfinite

from ...dataclass import dataclass
from ...errors import SpecError
from ...reading.arithmetic import exact
from ...reading.located import Located
from ...workload.einsum import Workload
from ...workload.selectors import Selector
from .expressions import Value, evaluate, is_number
from .models import Missing, Modelled
from .scales import Scales, scales_of
from .sets import imported_set

DERIVED = ("total_area", "total_leak_power", "component_modeling_log")


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


@dataclass(frozen=True, slots=True)
class ComponentAction:
    """Joules per action, actions per second, bits per action."""

    energy: float
    throughput: float
    bits: Fraction


class Components:
    """Reads the numbers of components, outermost first; remembers what was asked of models."""

    def __init__(
        self, symbols: Symbols, notes: list[str], models: Mapping[str, Modelled], names: Mapping[str, str]
    ) -> None:
        self.symbols, self.notes, self.models, self.names = symbols, notes, models, names
        self.modelled: set[str] = set()
        self.missing = Missing()
        self.standing = Fraction(1)
        """Physical instances for which one instance stands, below fanouts whose use is scaled."""
        self.written: list[str] = []

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

    def named(self, view: Located, text: str) -> Selector:
        """The set of tensors that an expression at `view` means."""
        with view.placed():
            return imported_set(text, self.written, self.symbols.tensors)

    @property
    def common_widths(self) -> tuple[int, ...]:
        """The bits per value that tensors have by themselves."""
        workload = self.symbols.workload
        return () if workload is None else tuple({tensor.bits for tensor in workload.tensors})

    def agreed(self, view: Located) -> Fraction | float:
        """A number that may depend on the tensors, if all Einsums agree on it."""
        if not view.is_text or not self.symbols.einsums:
            return self.number(view)
        found = {self.number(view, names) for names in self.symbols.einsums.values()}
        if len(found) != 1:
            raise view.error("this number differs from Einsum to Einsum; a component has one here")
        return found.pop()

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

    def actions(self, view: Located, names: tuple[str, ...]) -> dict[str, ComponentAction]:
        """Energy, throughput and width of each action; a component class other than Dummy must give its own numbers."""
        model = view.get("component_class")
        kind = "Dummy" if model is None else model.name()
        extra = view.get("extra_attributes_for_component_model")
        written = view.require("name").name()
        modelled = self.models.get(written, Modelled()) if kind != "Dummy" else Modelled()
        self.modelled |= {written} if kind != "Dummy" else set()
        given = {item.require("name").choice(names): item for item in view.listed("actions")}
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
    ) -> ComponentAction:
        """One action as it is written; `energy` and `speed` stand in for what is not."""
        if view is None:
            return ComponentAction(energy or 0.0, speed or inf, Fraction(1) if width is None else self.bits(width))
        own = view.get("bits_per_action") or width
        for key in ("energy_scale", "latency_scale", "throughput_scale"):
            field = view.get(key)
            if field is not None and self.number(field) != 1:
                raise field.error(f"{key} has no counterpart here; multiply the number instead")
        if (values := view.get("values_per_action")) is not None:
            raise values.error("values_per_action has no counterpart here; say bits_per_action")
        field, latency = view.get("throughput"), view.get("latency")
        throughput = (speed or inf) if field is None else float(self.number(field))
        if field is None and latency is not None and (seconds := self.real(latency)) > 0:
            throughput = 1 / seconds
        if field is not None and throughput <= 0:
            raise field.error("a throughput must be greater than zero")
        joules = self.real(view.get("energy"), energy or 0.0)
        view.finish()
        return ComponentAction(joules, throughput, Fraction(1) if own is None else self.bits(own))

    def bits(self, view: Located) -> Fraction:
        found = self.agreed(view)
        if isinstance(found, float) or found <= 0:
            raise view.error("bits_per_action must be a positive number")
        return found


def speed(throughput: float, bits: int) -> float | None:
    """Bits per second from actions per second; None if unlimited."""
    return None if throughput == inf else throughput * bits
