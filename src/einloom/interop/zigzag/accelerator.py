"""ZigZag's accelerators, and Stream's compute cores, as machines.

``memories`` stand innermost first, each with the operands that it keeps and the dimensions of the array that one
instance of it serves. So a memory exists once for each place along the dimensions that it does not serve: those are the
fanouts above it. Served dimensions must nest, else the memories have no order of levels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

from ...dataclass import dataclass
from ...machine.files import level_name, structure_problems
from ...machine.levels import ALL, Axis, ComputeUnit, Fanout, Level, Machine, Memory
from ...reading.arithmetic import exact
from ...reading.located import Located
from ...workload.selectors import Selector, selector
from ..bundle import energy_facts
from ..tileflow.sections import known, truth

ROLES = {"I1": "input", "I2": "weight", "O": "output"}
READS, WRITES = ("tl", "th"), ("fh", "fl")
_DIRECTIONS = {"read": READS, "write": WRITES, "read_write": (*READS, *WRITES)}
CORES = ("compute", "zigzag.compute")
_CACTI = "auto_cost_extraction takes costs from CACTI, which einloom does not run; write r_cost and w_cost"
_IMC = "an array that computes in memory (is_imc); its energies come from ZigZag's own formulas"
_PICO = 10**12
HOME = selector("~intermediate")


@dataclass(frozen=True, slots=True)
class Place:
    """One entry of ``memories``: its operands and served dimensions, and the memory that it makes."""

    memory: Memory
    operands: tuple[str, ...]
    served: frozenset[str]
    view: Located


def accelerator_from(view: Located, clock: float, notes: list[str]) -> Machine:
    """The machine that the file describes; `clock`: cycles per second. SpecError with the place of every mistake."""
    name = view.require("name").name()
    kind = view.get("type")
    if kind is not None and kind.name() not in CORES:
        raise kind.error(f"a core of type {kind.name()!r:.60}; those of type {CORES[-1]} are read")
    dimensions, unit = _array(view.require("operational_array"), clock, notes)
    places: list[Place] = []
    for memory, key, entry in view.require("memories").entries():
        with entry.gather():
            with key.placed():
                level_name(memory)
            places.append(_place(memory, entry, dimensions, clock, notes))
    for ignored in ("operator_types", "operand_precision", "dataflows"):
        if view.get(ignored) is not None:
            notes.append(f"{ignored} is left out")
    with view.gather():
        view.finish()
    view.raise_gathered()
    memories = view.require("memories")
    levels = [*_levels(memories, _ordered(memories, places, dimensions), dimensions), unit]
    for index, message in structure_problems(levels):
        level = None if index is None else levels[index]
        raise next((place.view for place in places if place.memory is level), memories).error(message)
    return Machine(name, tuple(levels), facts=energy_facts(levels, f"ZigZag's {name}", "size"))


def _array(view: Located, clock: float, notes: list[str]) -> tuple[dict[str, int], ComputeUnit]:
    """The dimensions of the array with their sizes, and its multipliers."""
    imc = view.get("is_imc")
    if imc is not None and truth(imc):
        raise imc.error(_IMC)
    for key in ("imc_type", "adc_resolution", "bit_serial_precision"):
        if (field := view.get(key)) is not None:
            raise field.error(_IMC)
    names = view.require("dimensions").names()
    sizes = view.require("sizes")
    counts = [item.integer(minimum=1) for item in sizes.items()]
    if len(counts) != len(names):
        raise sizes.error(f"{len(counts)} sizes for {len(names)} dimensions")
    systolic = view.get("systolic_dimensions")
    if systolic is not None and systolic.items():
        notes.append("systolic_dimensions: the cycles in which an array fills and drains are not counted")
    view.get("input_precision")
    if (area := view.get("unit_area")) is not None and decimal(area):
        notes.append("areas have no unit in ZigZag and are left out")
    energy = picojoules(view.require("unit_energy"))
    view.finish()
    return dict(zip(names, counts, strict=True)), ComputeUnit("MAC", throughput=clock, energy=energy)


def _place(name: str, view: Located, dimensions: dict[str, int], clock: float, notes: list[str]) -> Place:
    if (flag := view.get("auto_cost_extraction")) is not None and truth(flag):
        raise flag.error(f"{name}: {_CACTI}")
    operands = known(at := view.require("operands"), at.names(), tuple(ROLES), "operand")
    if not operands:
        raise view.error(f"{name} keeps no operand")
    served = known(at := view.require("served_dimensions"), at.names(), tuple(dimensions), "dimension")
    reads, writes, shared = _rates(name, view.require("ports"), operands, notes)
    if (area := view.get("area")) is not None and decimal(area):
        notes.append("areas have no unit in ZigZag and are left out")
    if (latency := view.get("latency")) is not None and latency.integer(minimum=0) > 1:
        notes.append(f"{name}: its latency of {latency.integer()} cycles is left out")
    view.get("mem_type")
    double = view.get("force_double_buffering")
    which = role_set(operands)  # an operand passes through all its memories: what may stand in one must stand there
    width = reads or writes
    memory = Memory(
        name,
        size=view.require("size").integer(minimum=1),
        read_energy=picojoules(view.require("r_cost")),
        write_energy=picojoules(view.require("w_cost"), Fraction(width, writes or width)),
        bits_per_access=width,
        read_throughput=width * clock,
        write_throughput=(writes or width) * clock,
        ports="shared" if shared else "separate",
        must=which,
        may=which,
        double_buffer=double is not None and truth(double),
    )
    view.finish()
    return Place(memory, operands, frozenset(served), view)


def _rates(name: str, view: Located, operands: tuple[str, ...], notes: list[str]) -> tuple[int, int, bool]:
    """Bits per cycle of the ports that read and that write, the least of each, 0 for none; and do they take turns?"""
    widths: dict[str, list[int]] = {"read": [], "write": []}
    shared = False
    for port in view.items():
        port.require("name").name()
        kind = port.require("type").choice(tuple(_DIRECTIONS))
        low, high = port.get("bandwidth_min"), port.require("bandwidth_max")
        width = high.integer(minimum=1)
        if low is not None and low.integer(minimum=0) > width:
            raise low.error(f"bandwidth_min is above bandwidth_max {width}")
        directions = [_allocated(item, operands, kind) for item in port.require("allocation").items()]
        port.finish()
        shared = shared or kind == "read_write"
        for what, ways in (("read", READS), ("write", WRITES)):
            if any(direction in ways for direction in directions):
                widths[what].append(width)
    if not any(widths.values()):
        raise view.error(f"{name} has no port that moves anything")
    for what, found in widths.items():
        if len(set(found)) > 1:
            notes.append(f"{name}: {what} ports of {', '.join(map(str, found))} bits; the least counts for all")
    if shared and len(view.items()) > 1:
        notes.append(f"{name}: ports that read and write at the same time take turns here")
    return min(widths["read"], default=0), min(widths["write"], default=0), shared


def _allocated(item: Located, operands: tuple[str, ...], kind: str) -> str:
    """The direction of an entry such as ``I1, tl``."""
    operand, _, direction = (part.strip() for part in item.name().partition(","))
    if operand not in operands:
        raise item.unknown("operand of this memory", operand, operands)
    if direction not in _DIRECTIONS[kind]:
        raise item.unknown(f"direction of a {kind} port", direction, _DIRECTIONS[kind])
    return direction


def _ordered(view: Located, places: Sequence[Place], dimensions: dict[str, int]) -> list[Place]:
    """The memories outermost first. SpecError where they have no such order."""
    inner_first = sorted(places, key=lambda place: len(place.served))
    for inner, outer in pairwise(inner_first):
        if not inner.served <= outer.served:
            raise outer.view.require("served_dimensions").error(
                f"{outer.memory.name} serves {_listed(outer.served)} and {inner.memory.name} {_listed(inner.served)}; "
                "served dimensions that do not nest leave these memories without an order of levels"
            )
    for operand in ROLES:
        chain = [place for place in places if operand in place.operands]
        for inner, outer in pairwise(chain):
            if len(outer.served) < len(inner.served):
                raise outer.view.require("served_dimensions").error(
                    f"{outer.memory.name} is listed outside {inner.memory.name}, but serves fewer dimensions"
                )
    if not inner_first:
        raise view.error("a machine needs at least one memory")
    outermost = inner_first[-1]
    missing = [operand for operand in ROLES if operand not in outermost.operands]
    if missing:
        raise outermost.view.require("operands").error(
            f"{outermost.memory.name} is the outermost memory and does not keep {', '.join(missing)}; einloom wants "
            "one memory that everything comes from (for a core of Stream: add the memory off chip)"
        )
    several = [name for name in dimensions if name not in outermost.served and dimensions[name] > 1]
    if several:
        raise outermost.view.require("served_dimensions").error(
            f"{outermost.memory.name} is the outermost memory and exists several times, along {', '.join(several)}"
        )
    return inner_first[::-1]


def _levels(view: Located, places: Sequence[Place], dimensions: dict[str, int]) -> list[Level]:
    """Memories with the fanouts between them, down to the array."""
    levels: list[Level] = []
    left = dict(dimensions)
    for place in places:
        served = frozenset(dimensions) if place is places[0] else place.served
        levels += _fanout({name: left.pop(name) for name in dimensions if name in left and name not in served})
        levels.append(replace(place.memory, must=HOME, may=ALL) if place is places[0] else place.memory)
    return [*levels, *_fanout(left)]


def _fanout(sizes: dict[str, int]) -> list[Level]:
    axes = tuple(Axis(name, size) for name, size in sizes.items())
    return [Fanout("_".join(sizes), axes)] if axes else []


def role_set(operands: Sequence[str]) -> Selector:
    """The tensors of these operands: ``input | weight``."""
    return ALL if len(operands) == len(ROLES) else selector(" | ".join(ROLES[operand] for operand in operands))


def _listed(names: frozenset[str]) -> str:
    return ", ".join(sorted(names)) or "no dimension"


def picojoules(view: Located, factor: Fraction = Fraction(1)) -> float:
    """A number of pJ, times `factor`, in joules."""
    number = decimal(view)
    if number > 10**30:
        raise view.error(f"{float(number):g} pJ is too large")
    return float(number * factor / _PICO)


def decimal(view: Located) -> Fraction:
    """A plain number of at least zero, exactly as it is written."""
    if view.is_text:
        raise view.error(f"expected a plain number, found {view.text()!r:.60}")
    return exact(view.number("energy", minimum=0))
