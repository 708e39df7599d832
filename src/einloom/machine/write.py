"""Machines as YAML and as plain data: the way back from `files`, with units and sources."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..reading import writing
from ..reading.facts import ORIGIN, Fact, fact_table, noted
from ..reading.keys import Each, Number, Record, Shape, Table, Written
from ..reading.units import Quantity, format
from ..reading.yamltree import dump_yaml
from .components import COMPONENT
from .files import AXIS, LEVELS, TYPES, VERSION
from .levels import Axis, ComputeUnit, Fanout, Level, Machine, Memory, Toll

Part = Memory | Toll | ComputeUnit | Axis


def machine_data(machine: Machine, *, units: bool = True) -> dict[str, object]:
    """The machine as plain data that `machine_from_data` reads back to an equal one, facts included.

    units: numbers have the unit that reads best; without, they are SI, as they stand in the machine.
    """
    facts = fact_table(machine.facts)
    data: dict[str, object] = {"schema": f"machine/{VERSION}", "name": machine.name}
    if machine.partial_sums != "read-modify-write":
        data["partial_sums"] = machine.partial_sums
    if machine.startup or "startup" in facts:
        data["startup"] = noted(_number(machine.startup, "time", units), "startup", facts)
    data["levels"] = [_level_data(level, facts, units) for level in machine.levels]
    return data


def machine_text(machine: Machine) -> str:
    """The machine as YAML; `parse_machine` reads it back to an equal one."""
    return dump_yaml(machine_data(machine))


def write_machine(machine: Machine, path: str | Path) -> None:
    """Write the machine as a YAML file."""
    writing.write(machine_text(machine), path)


def _level_data(level: Level, facts: Mapping[str, Fact], units: bool) -> dict[str, object]:
    if isinstance(level, Fanout):
        axes = [_written(AXIS, axis, Axis(axis.name, 0), facts, units) for axis in level.axes]
        return {"fanout": level.name, "axes": axes}
    record = next(one for one in LEVELS if TYPES[one.label] is type(level))
    return _written(record, level, type(level)(level.name), facts, units)


def _written(record: Record, level: Part, plain: Part, facts: Mapping[str, Fact], units: bool) -> dict[str, object]:
    """The keys that must be there, or whose values differ from those of a `plain` one, or have a source."""
    data: dict[str, object] = {record.label: level.name}
    for key in record.keys:
        if key.name == record.label or key in (*ORIGIN, COMPONENT):
            continue
        value, path = getattr(level, key.name), f"{level.name}.{key.name}"
        if key.required or value != getattr(plain, key.name) or path in facts:
            data[key.name] = noted(_value(key.shape, value, path, facts, units), path, facts)
    return data


def _number(value: int | float, quantity: Quantity, units: bool) -> object:
    return format(value, quantity) if units and quantity != "count" else value


def _value(shape: Shape, value: Any, path: str, facts: Mapping[str, Fact], units: bool) -> object:
    match shape:
        case Number(quantity=quantity):
            if value is None:
                return "unlimited"
            return _number(value, quantity, units)
        case Written():
            return str(value)
        case Each():
            return list(value)
        case Table():
            return {str(which): noted(bits, f"{path}.{which}", facts) for which, bits in value}
        case _:
            return value
