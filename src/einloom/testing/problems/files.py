"""A problem as the plain data of its three files: what is drawn, made smaller, written down and read again."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

from ...dataclass import dataclass
from ...machine.files import machine_from, machine_from_data
from ...machine.levels import Machine
from ...mapspace.files import check_mapspace, mapspace_from, mapspace_from_data
from ...mapspace.space import Mapspace
from ...reading import writing
from ...reading.located import read_file
from ...reading.yamltree import dump_yaml
from ...workload.einsum import Workload
from ...workload.files import workload_from, workload_from_data

Data = dict[str, Any]
NAMES = ("workload", "machine", "mapspace")
Read = tuple[Workload, Machine, Mapspace]


@dataclass(frozen=True)
class Files:
    """The data of a workload, a machine and a mapspace file."""

    workload: Data
    machine: Data
    mapspace: Data

    @cached_property
    def read(self) -> Read:
        """What the files say. Raises SpecError where they do not fit together."""
        workload = workload_from_data(self.workload)
        machine = machine_from_data(self.machine)
        mapspace = mapspace_from_data(self.mapspace, machine)
        check_mapspace(workload, mapspace)
        return workload, machine, mapspace

    def texts(self) -> Iterator[tuple[str, str]]:
        """Name and YAML of each file."""
        for name in NAMES:
            yield f"{name}.yaml", dump_yaml(getattr(self, name))

    def write(self, folder: Path) -> None:
        """Write the three files into a folder, which is made if it is not there."""
        writing.folder(folder)
        for name, text in self.texts():
            writing.write(text, folder / name)


def read_folder(folder: Path) -> Read:
    """What the three files in a folder say. Raises SpecError with the place of whatever is wrong."""
    workload = workload_from(read_file(folder / "workload.yaml"))
    machine = machine_from(read_file(folder / "machine.yaml"))
    return workload, machine, mapspace_from(read_file(folder / "mapspace.yaml"), machine, workload)
