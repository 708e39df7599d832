"""Every number of a machine and a workload, with its value, source and kind, in the order of their files."""

from __future__ import annotations

from collections.abc import Iterator

from ...dataclass import dataclass
from ...machine.files import LEVELS
from ...machine.levels import Machine
from ...machine.write import machine_data
from ...workload.einsum import Workload
from ...workload.files import workload_data

_NAMES = tuple(level.label for level in LEVELS)


@dataclass(frozen=True, slots=True)
class Given:
    """One number of a workload or machine file; kind is ``none`` where it names no source."""

    path: str
    value: str
    source: str
    kind: str


def given(workload: Workload, machine: Machine | None) -> list[Given]:
    """Every number of machine and workload, in the order of their files."""
    hardware = _machine(machine_data(machine)) if machine else ()
    found = (_entry(path, value) for path, value in (*hardware, *_workload(workload_data(workload))))
    return [one for one in found if one is not None]


def _entry(path: str, value: object) -> Given | None:
    if isinstance(value, dict) and "value" in value:
        return Given(path, _shown(value["value"]), str(value.get("source", "")), str(value.get("kind", "assumed")))
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    return Given(path, _shown(value), "", "none") if str(value)[:1].isdigit() or value == "unlimited" else None


def _shown(value: object) -> str:
    return " × ".join(map(str, value)) if isinstance(value, list) else str(value)


def _machine(data: dict[str, object]) -> Iterator[tuple[str, object]]:
    levels = data["levels"]
    assert isinstance(levels, list)
    for level in levels:
        name = next(str(level[key]) for key in _NAMES if key in level)
        for key, value in level.items():
            if key == "axes":
                yield from ((f"{axis['axis']}.size", axis["size"]) for axis in value)
            elif key == "widths":
                yield from ((f"{name}.widths.{which}", width) for which, width in value.items())
            elif key not in _NAMES:
                yield f"{name}.{key}", value


def _workload(data: dict[str, object]) -> Iterator[tuple[str, object]]:
    for key in ("ranks", "bits", "shapes"):
        table = data.get(key)
        if isinstance(table, dict) and "value" not in table:
            yield from ((f"{key}.{name}", value) for name, value in table.items())
        elif table is not None:
            yield f"{key}.default", table
    if "repeat" in data:
        yield "repeat", data["repeat"]
