"""The importers by name: those that ship, and those that installed packages bring.

A package names its importers as entry points of the group ``einloom.importers``; each refers to a class (or a function)
whose keyword arguments are the importer's options. How to write one: docs/how-to/my-importer.md.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import Protocol

from ..errors import EinloomWarning, SpecError
from ..reading.located import file_text
from ..reading.plugins import FAILURES, OURS, built, each, known, loaded, names_of, reason_of
from .bundle import Bundle

GROUP = "einloom.importers"
SHIPPED: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {"accelforge": (), "tileflow": (), "onnx": (".onnx",), "zigzag": (), "timeloop": ()}
)
"""The importers that ship, each with its suffixes."""
OWN = (".yaml", ".yml", ".json")
"""Suffixes of einloom's own files, which no importer may claim."""
SIGNS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("zigzag", (r"^memories\s*:", r"^operational_array\s*:")),
    ("timeloop", (r"^architecture\s*:", r"^\s*nodes\s*:", r"!(Component|Container)\b")),
    ("timeloop", (r"^problem\s*:", r"^\s*shape\s*:", r"^\s*data_spaces\s*:")),
    ("zigzag", (r"^\s*-?\s*equation\s*:", r"^\s*-?\s*loop_dims\s*:")),
)
"""By what keys YAML of other tools is known: an importer, and patterns that all stand in the text."""


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
    listed = ", ".join(str(file) for file in files)
    try:
        found = chosen.read(files, parameters)
    except FAILURES as error:
        if name in SHIPPED or isinstance(error, OURS):
            raise
        raise SpecError(f"importer {name!r} failed on {listed}: {reason_of(error)}") from error
    if not isinstance(found, Bundle):
        raise SpecError(f"importer {name!r} failed on {listed}: it returned {type(found).__name__}, not a Bundle")
    return found


def claimant(file: str) -> str | None:
    """The name of the importer that reads such a file: by its suffix, YAML by its first keys; None if there is none."""
    suffix = Path(file).suffix.lower()
    if suffix in OWN:
        return _recognised(file)
    return _suffixes().get(suffix) if suffix else None


def _recognised(file: str) -> str | None:
    """The importer whose format the text has; None for einloom's own files and for what cannot be read."""
    try:
        text = file_text(file)
    except SpecError:
        return None  # the reader that follows says why
    if re.search(r"^schema\s*:", text, re.MULTILINE):
        return None
    return next((name for name, signs in SIGNS if all(re.search(sign, text, re.MULTILINE) for sign in signs)), None)


@cache
def _suffixes() -> dict[str, str]:
    found = {suffix: name for name, suffixes in SHIPPED.items() for suffix in suffixes}
    for name, maker in each(GROUP, "importer", SHIPPED, _maker):
        suffixes = getattr(maker, "suffixes", ())
        if isinstance(suffixes, tuple | list) and all(isinstance(suffix, str) for suffix in suffixes):
            found = dict.fromkeys(suffixes, name) | found
        else:
            told = f"left out: importer {name!r} claims the suffixes {suffixes!r:.80}, which are no tuple of texts"
            warnings.warn(told, EinloomWarning, stacklevel=2)
    return found


def _maker(name: str) -> Callable[..., Importer]:
    if name in SHIPPED:
        shipped: Callable[..., Importer] = getattr(
            import_module(f".{name}.importer", __package__), f"{name.capitalize()}Importer"
        )
        return shipped
    found: Callable[..., Importer] = loaded(GROUP, known(GROUP, "importer", name, SHIPPED))
    return found


def forget() -> None:
    """Look again at what is installed, as `reading.plugins.forget` does."""
    _suffixes.cache_clear()
