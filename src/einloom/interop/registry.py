"""The importers by name: those that ship, and those that installed packages bring.

A package names its importers as entry points of the group ``einloom.importers``; each refers to a class (or a function)
whose keyword arguments are the importer's options. How to write one: docs/how-to/my-importer.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Protocol

from ..errors import SpecError
from ..reading.plugins import MISTAKES, built, known, loaded, names_of
from .bundle import Bundle

GROUP = "einloom.importers"
SHIPPED: Mapping[str, tuple[str, ...]] = MappingProxyType({"accelforge": (), "tileflow": (), "onnx": (".onnx",)})
"""The importers that ship, each with its suffixes."""
OWN = (".yaml", ".yml", ".json")
"""Suffixes of einloom's own files, which no importer may claim."""


class Importer(Protocol):
    """A reader of another tool's files.

    suffixes: of the files that name a workload by themselves, as in ``einloom map model.xyz:batch=8 simple``; mostly
    empty. An importer that can also write has a function ``write(bundle)`` that returns the text of each file by name.
    """

    @property
    def name(self) -> str: ...

    @property
    def suffixes(self) -> tuple[str, ...]: ...

    def read(self, files: Sequence[str | Path], parameters: Mapping[str, str]) -> Bundle:
        """What the files hold. parameters: values that the user sets in them, as text.

        Executes nothing of a file, and opens no file that the user did not name. Raises SpecError with file and line.
        """
        ...


def importers() -> tuple[str, ...]:
    """The names of all importers, those that ship first."""
    return names_of(GROUP, SHIPPED)


def importer(name: str, options: Mapping[str, object] | None = None) -> Importer:
    """The importer called `name`, made with these options, whose texts are read as the options' types.

    Raises SpecError with a suggestion for an unknown name or option, and for a value that the option cannot have.
    """
    made: Importer = built("importer", name, _maker(name), options or {})
    return made


def imported(
    name: str, files: Sequence[str | Path], parameters: Mapping[str, str], options: Mapping[str, object] | None = None
) -> Bundle:
    """What the importer `name` reads from the files. A mistake of a package's importer is a SpecError that names it."""
    chosen = importer(name, options)
    try:
        return chosen.read(files, parameters)
    except MISTAKES as error:
        if name in SHIPPED:
            raise
        listed = ", ".join(str(file) for file in files)
        raise SpecError(f"importer {name!r} failed on {listed}: {type(error).__name__}: {error}") from error


def claimant(file: str) -> str | None:
    """The name of the importer that reads a workload from a file of this suffix; None if there is none."""
    suffix = Path(file).suffix.lower()
    return None if not suffix or suffix in OWN else _suffixes().get(suffix)


@cache
def _suffixes() -> dict[str, str]:
    found = {suffix: name for name, suffixes in SHIPPED.items() for suffix in suffixes}
    for name in importers()[len(SHIPPED) :]:
        for suffix in getattr(_maker(name), "suffixes", ()):
            found.setdefault(suffix, name)
    return found


@cache
def _maker(name: str) -> Callable[..., Importer]:
    if name == "accelforge":
        from .accelforge.importer import AccelforgeImporter

        return AccelforgeImporter
    if name == "tileflow":
        from .tileflow.importer import TileflowImporter

        return TileflowImporter
    if name == "onnx":
        from .onnx.importer import OnnxImporter

        return OnnxImporter
    found: Callable[..., Importer] = loaded(GROUP, known(GROUP, "importer", name, SHIPPED))
    return found


def forget() -> None:
    """Look again at what is installed, as `reading.plugins.forget` does."""
    _suffixes.cache_clear()
    _maker.cache_clear()
