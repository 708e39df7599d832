"""ZigZag behind the importer door: ``einloom import zigzag accelerator.yaml layers.yaml -o DIR``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from ..bundle import Bundle
from ..clocks import HERTZ, cycles_per_second, only
from .read import read


class ZigzagImporter:
    """Reads ZigZag's accelerators and layers, and Stream's compute cores."""

    name = "zigzag"
    suffixes: tuple[str, ...] = ()

    def read(self, files: Sequence[str | Path], parameters: Mapping[str, str]) -> Bundle:
        """Workload and machine, as far as the files hold them. parameters: ``clock``, by default 1 Hz."""
        only(("clock",), parameters)
        return read(files, cycles_per_second(parameters.get("clock", HERTZ)))
