"""AccelForge behind the importer door: `read` and `export` as one object."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from ...problem import objective
from ..bundle import Bundle
from .read import read
from .write import export


class AccelforgeImporter:
    """Reads and writes AccelForge's YAML. include: a folder from which the files may include others, besides theirs."""

    name = "accelforge"
    suffixes: tuple[str, ...] = ()

    def __init__(self, include: str = "") -> None:
        self.folders = (include,) if include else ()

    def read(self, files: Sequence[str | Path], parameters: Mapping[str, str]) -> Bundle:
        """Workload, machine, mapping, objective and mapspace, as far as the files hold them."""
        return read(files, parameters, self.folders)

    def write(self, bundle: Bundle) -> Mapping[str, str]:
        """The files of a problem. Raises SpecError where workload or machine are missing."""
        workload, machine = bundle.problem("AccelForge")
        goal = None if bundle.objective is None else objective(bundle.objective, machine)
        return export(workload, machine, goal, bundle.mapspace).files
