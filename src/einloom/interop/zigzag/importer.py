"""ZigZag behind the importer door: ``einloom import zigzag accelerator.yaml layers.yaml -o DIR``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from ..bundle import Bundle
from ..clocks import HERTZ, cycles_per_second, only
from .read import read
from .write import export


class ZigzagImporter:
    """Reads and writes ZigZag's accelerators and layers, and reads Stream's compute cores."""

    name = "zigzag"
    suffixes: tuple[str, ...] = ()

    def read(self, files: Sequence[str | Path], parameters: Mapping[str, str]) -> Bundle:
        """Workload and machine, as far as the files hold them. parameters: ``clock``, by default 1 Hz."""
        only(("clock",), parameters)
        return read(files, cycles_per_second(parameters.get("clock", HERTZ)))

    def write(self, bundle: Bundle) -> Mapping[str, str]:
        """The files of a problem. Raises SpecError where workload or machine are missing, or cannot be said."""
        return export(*bundle.problem("ZigZag")).files
