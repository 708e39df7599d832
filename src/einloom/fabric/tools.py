"""Programs outside Python that some verbs call, each with the Debian package that brings it."""

from __future__ import annotations

import shutil
from pathlib import Path

from ..errors import SpecError

CELLS = Path("/usr/share/qflow/tech/osu018/osu018_stdcells.lib")
CELLS_PACKAGE = "qflow-tech-osu018"


def missing(*names: str) -> str | None:
    """Why these programs cannot be called, in one line, or None."""
    absent = [name for name in names if shutil.which(name) is None]
    if not absent:
        return None
    packages = " ".join(absent)  # each is called as its program
    return f"{' and '.join(absent)} not found: install Debian's package {packages} (apt-get install {packages})"


def tool(name: str) -> str:
    """The path of a program. Raises SpecError with the name of its Debian package where it is missing."""
    path = shutil.which(name)
    if path is None:
        raise SpecError(str(missing(name)))
    return path


def cells() -> Path:
    """The cell library for areas. Raises SpecError with the name of its Debian package where it is missing."""
    if not CELLS.exists():
        raise SpecError(
            f"the OSU 0.18 um cells are not there: install Debian's package {CELLS_PACKAGE} "
            f"(apt-get install {CELLS_PACKAGE})"
        )
    return CELLS
