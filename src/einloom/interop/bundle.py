"""What an importer returns, whatever the files of another tool hold as einloom's objects, and what it writes."""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Mapping as Table
from pathlib import Path

from ..dataclass import dataclass
from ..errors import SpecError
from ..machine.levels import ComputeUnit, Level, Machine, Memory
from ..mapping.tree import Mapping
from ..mapspace.space import Mapspace
from ..reading import writing
from ..reading.facts import Fact
from ..workload.einsum import Workload


@dataclass(frozen=True)
class Bundle:
    """What the files hold, None where they hold nothing of the kind.

    objective: the name of what their search minimises. notes: sentences on what was left out or taken differently.
    """

    workload: Workload | None = None
    machine: Machine | None = None
    mapping: Mapping | None = None
    objective: str | None = None
    mapspace: Mapspace | None = None
    notes: tuple[str, ...] = ()

    def problem(self, tool: str) -> tuple[Workload, Machine]:
        """Workload and machine, which the tool's files hold together. Raises SpecError where one is missing."""
        if self.workload is None or self.machine is None:
            raise SpecError(f"{tool}'s files hold a workload and a machine; one is missing")
        return self.workload, self.machine


@dataclass(frozen=True)
class ExportedFiles:
    """The text of each file by name, and what was left out."""

    files: Table[str, str]
    notes: tuple[str, ...] = ()

    def write(self, folder: str | Path) -> tuple[Path, ...]:
        """Write the files into `folder`, which is made if need be; returns their paths. Raises SpecError."""
        place = writing.folder(folder)
        for name, text in self.files.items():
            writing.write(text, place / name)
        return tuple(place / name for name in self.files)


def energy_facts(levels: Iterable[Level], source: str, *more: str) -> tuple[Fact, ...]:
    """Where the energies of memories and units come from; `more`: what else of a memory comes from there."""
    keys = {Memory: (*more, "read_energy", "write_energy"), ComputeUnit: ("energy",)}
    return tuple(Fact(f"{level.name}.{key}", source, "code") for level in levels for key in keys.get(type(level), ()))
