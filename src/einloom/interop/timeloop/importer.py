"""Timeloop behind the importer door: ``einloom import timeloop arch.yaml problem.yaml map.yaml ERT.yaml -o DIR``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from ..bundle import Bundle
from .read import read
from .write import export


class TimeloopImporter:
    """Reads and writes Timeloop's files of version 0.4."""

    name = "timeloop"
    suffixes: tuple[str, ...] = ()

    def read(self, files: Sequence[str | Path], parameters: Mapping[str, str]) -> Bundle:
        """Workload, machine and mapping, as far as the files hold them. parameters: as of `read`."""
        return read(files, parameters)

    def write(self, bundle: Bundle) -> Mapping[str, str]:
        """The files of a problem. Raises SpecError where workload or machine are missing, or cannot be said."""
        return export(*bundle.problem("Timeloop"), bundle.mapping).files
