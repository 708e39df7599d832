"""TileFlow behind the importer door: `read` and `export` as one object."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from ..bundle import Bundle
from .read import read
from .write import export


class TileflowImporter:
    """Reads and writes TileFlow's YAML. clock: cycles per second; TileFlow counts words per cycle."""

    name = "tileflow"
    suffixes: tuple[str, ...] = ()

    def __init__(self, clock: float = 1.0) -> None:
        if not 0 < clock < 1e18:
            raise ValueError("clock: cycles per second must be greater than zero")
        self.clock = clock

    def read(self, files: Sequence[str | Path], parameters: Mapping[str, str]) -> Bundle:
        """Workload, machine and mapping, as far as the files hold them."""
        return read(files, parameters, self.clock)

    def write(self, bundle: Bundle) -> Mapping[str, str]:
        """The files of a problem. Raises SpecError where workload or machine are missing."""
        return export(*bundle.problem("TileFlow"), bundle.mapping, self.clock).files
