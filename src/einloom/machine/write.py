"""Machines as YAML and as plain data: the way back from `files`, with units and sources."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ..units import Quantity, format
from ..workload.einsum import Fact
from ..workload.facts import fact_table, noted
from ..yamltree import dump_yaml
from .files import KINDS, VERSION
from .levels import Axis, ComputeUnit, Fanout, Level, Machine, Memory

_MEMORY: tuple[tuple[str, Quantity], ...] = (
    ("size", "size"),
    ("read_energy", "energy"),
    ("write_energy", "energy"),
    ("bits_per_access", "size"),
    ("read_throughput", "throughput"),
    ("write_throughput", "throughput"),
    ("leakage", "power"),
    ("area", "area"),
    ("setup", "time"),
)
_COMPUTE: tuple[tuple[str, Quantity], ...] = (
    ("throughput", "rate"),
    ("energy", "energy"),
    ("leakage", "power"),
    ("area", "area"),
    ("setup", "time"),
)


def machine_data(machine: Machine) -> dict[str, object]:
    """The machine as plain data that `machine_from_data` reads back to an equal one, facts included."""
    facts = fact_table(machine.facts)
    data: dict[str, object] = {"schema": f"machine/{VERSION}", "name": machine.name}
    if machine.partial_sums != "read-modify-write":
        data["partial_sums"] = machine.partial_sums
    data["levels"] = [_level_data(level, facts) for level in machine.levels]
    return data


def machine_text(machine: Machine) -> str:
    """The machine as YAML; `parse_machine` reads it back to an equal one."""
    return dump_yaml(machine_data(machine))


def write_machine(machine: Machine, path: str | Path) -> None:
    """Write the machine as a YAML file."""
    Path(path).write_text(machine_text(machine), encoding="utf-8")


def _level_data(level: Level, facts: Mapping[str, Fact]) -> dict[str, object]:
    if isinstance(level, Fanout):
        return {"fanout": level.name, "axes": [_axis_data(axis, facts) for axis in level.axes]}
    if isinstance(level, ComputeUnit):
        data: dict[str, object] = {"compute": level.name, **_numbers(level, ComputeUnit(level.name), _COMPUTE, facts)}
        if level.kinds != KINDS:
            data["kinds"] = list(level.kinds)
        if level.operands:
            data["operands"] = list(level.operands)
        return data
    plain = Memory(level.name)
    data = {"memory": level.name, **_numbers(level, plain, _MEMORY, facts)}
    if level.ports != plain.ports:
        data["ports"] = level.ports
    if level.widths:
        data["widths"] = {
            which.text: noted(bits, f"{level.name}.widths.{which.text}", facts) for which, bits in level.widths
        }
    for key in ("must", "may", "backs"):
        if getattr(level, key) != getattr(plain, key):
            data[key] = getattr(level, key).text
    if level.double_buffer:
        data["double_buffer"] = True
    if level.release != plain.release:
        data["release"] = level.release
    if level.prefetch is not None:
        data["prefetch"] = noted(level.prefetch, f"{level.name}.prefetch", facts)
    return data


def _numbers(
    level: Memory | ComputeUnit,
    plain: Memory | ComputeUnit,
    keys: tuple[tuple[str, Quantity], ...],
    facts: Mapping[str, Fact],
) -> dict[str, object]:
    """The numeric fields that differ from the default or have a source."""
    data: dict[str, object] = {}
    for key, quantity in keys:
        value = getattr(level, key)
        path = f"{level.name}.{key}"
        if value != getattr(plain, key) or path in facts:
            data[key] = noted("unlimited" if value is None else format(value, quantity), path, facts)
    return data


def _axis_data(axis: Axis, facts: Mapping[str, Fact]) -> dict[str, object]:
    plain = Axis(axis.name, axis.size)
    data: dict[str, object] = {"axis": axis.name, "size": noted(axis.size, f"{axis.name}.size", facts)}
    for key in ("multicast", "reduce", "only_irrelevant_to"):
        if getattr(axis, key) != getattr(plain, key):
            data[key] = getattr(axis, key).text
    if axis.use != "any":
        data["use"] = axis.use
    return data
