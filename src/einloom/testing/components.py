"""The test kit of a machine component: what is wrong with it, in sentences."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..errors import SpecError
from ..machine.components import COMPONENT, GROUP, MachineComponent, flaws_of, numbers_of, use
from ..machine.files import LEVELS, machine_from_data
from ..machine.levels import Machine
from ..machine.write import machine_data
from ..reading.keys import Record
from ..reading.plugins import FAILURES, entry_faults, reason_of

Values = Mapping[str, Any]
NAME = "Part"
_RECORDS = {record.label: record for record in LEVELS if COMPONENT in record.keys}
_OUTER = {"memory": "DRAM", "read_energy": 1e-11, "write_energy": 1e-11}
_ARRAY = {"fanout": "PE", "axes": [{"axis": "X", "size": 2}]}
_UNIT = {"compute": "MAC", "throughput": 1e9, "energy": 1e-12}


def component_faults(make: Callable[[], MachineComponent], level: Values, own: Values) -> tuple[str, ...]:
    """What is wrong with a component; empty if nothing is.

    level: keys of the level that it is tried in, as a machine file writes them, such as ``{"size": "4 KiB"}``; own: its
    attributes, such as ``{"banks": 2}``. The session knows the component by its name afterwards.
    """
    try:
        part = make()
        if flaws := tuple(flaws_of(part)):
            return flaws
    except FAILURES as error:
        return (f"it cannot be made: {reason_of(error)}",)
    record = _RECORDS[part.level]
    use(part)
    try:
        first, second = (machine_from_data(_data(part, level, own)) for _ in range(2))
        plain = machine_from_data(_data(part, level, None))
    except SpecError as error:
        return (*_declared(part, record), f"a machine file that names it cannot be read: {error}")
    faults = [*_declared(part, record), *entry_faults(GROUP, part, part.name, ())]
    if first != second:
        faults.append("two readings of one file give two machines")
    if machine_from_data(machine_data(first)) != first:
        faults.append("its machine, written to a file, reads back as another one")
    if first == plain:
        faults.append("it gives no number that the file does not state")
    return (*faults, *_alone(part, record, plain))


def _declared(part: MachineComponent, record: Record) -> list[str]:
    names = [key.name for key in part.keys]
    faults = [f"two attributes are called {name!r}" for name in dict.fromkeys(names) if names.count(name) > 1]
    return faults + [f"attribute {name!r} is a key of {record.title}, too" for name in names if name in record.names]


def _alone(part: MachineComponent, record: Record, machine: Machine) -> list[str]:
    """Without any attribute it gives numbers, or says in a SpecError what is missing."""
    try:
        numbers_of(part, machine.levels[1], {}, record)
    except SpecError as error:
        return [f"without attributes: {error}"] if "is broken" in str(error) else []
    return []


def _data(part: MachineComponent, level: Values, own: Values | None) -> dict[str, object]:
    """A machine of a DRAM, the level and a compute unit; own None: without the component."""
    tried = {part.level: NAME, **({"axis": "X"} if part.level == "link" else {}), **level}
    if own is not None:
        tried[COMPONENT.name] = {part.name: dict(own)}
    inner = [tried] if part.level == "compute" else [tried, _ARRAY, _UNIT]
    return {"schema": "machine/1", "name": "kit", "levels": [_OUTER, *inner]}
