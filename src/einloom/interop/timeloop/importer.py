"""Timeloop behind the importer door: ``einloom import timeloop arch.yaml problem.yaml map.yaml ERT.yaml -o DIR``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from ..bundle import Bundle
from .read import read


class TimeloopImporter:
    """Reads Timeloop's files of version 0.4."""

    name = "timeloop"
    suffixes: tuple[str, ...] = ()

    def read(self, files: Sequence[str | Path], parameters: Mapping[str, str]) -> Bundle:
        """Workload, machine and mapping, as far as the files hold them. parameters: as of `read`."""
        return read(files, parameters)
