"""``name:key=value,…``: how the command line picks something that ships with einloom, and what can be picked."""

from __future__ import annotations

import os
import warnings
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TypeVar

from ..dataclass import dataclass
from ..errors import EinloomWarning, SpecError, nearest

MAX_CALL = 2000
Given = TypeVar("Given")
SUFFIXES = (".yaml", ".yml", ".json")


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a zoo entry: its name, its default as a user would write it, and its meaning."""

    name: str
    default: str
    meaning: str = ""


@dataclass(frozen=True, slots=True)
class Entry:
    """One thing that ships: its name, a line about it, and its parameters."""

    name: str
    description: str
    parameters: tuple[Parameter, ...] = ()

    @property
    def signature(self) -> str:
        """The entry as it is called, with the defaults: ``matmul:m=64,k=64``."""
        listed = ",".join(f"{p.name}={p.default}" for p in self.parameters if p.default)
        return f"{self.name}:{listed}" if listed else self.name


def split_call(text: str) -> tuple[str, dict[str, str]]:
    """The name and the parameters of ``name:key=value,…``; a path may stand in place of the name.

    >>> split_call("gpt3-6.7b:batch=1,tokens=2048")
    ('gpt3-6.7b', {'batch': '1', 'tokens': '2048'})

    Raises SpecError for a part that is not ``key=value`` and for a key that stands twice.
    """
    if len(text) > MAX_CALL:
        raise SpecError(f"a name with parameters may have at most {MAX_CALL} characters")
    name, colon, rest = text.strip().partition(":")
    table: dict[str, str] = {}
    if colon and not rest.strip():
        raise SpecError(f"{text!r}: nothing stands after the colon; write key=value", suggestion=name)
    for part in rest.split(",") if rest else ():
        key, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals or not key or not value:
            raise SpecError(f"{text!r}: {part.strip()!r} is not key=value")
        if key in table:
            raise SpecError(f"{text!r}: key {key!r} stands here twice")
        table[key] = value
    return name.strip(), table


def pathless(given: Given | Path) -> Given | str:
    """What is given, a `Path` as the text that means that file and never an entry of the zoo."""
    return os.path.join(os.curdir, given) if isinstance(given, Path) else given


def looks_like_path(name: str) -> bool:
    """True for something that is meant as a file: a known suffix, a directory in it, or an existing file."""
    return name.lower().endswith(SUFFIXES) or "/" in name or "\\" in name or ("\0" not in name and Path(name).is_file())


def means_file(name: str, shipped: Collection[str]) -> bool:
    """True for something that is meant as a file; what ships goes before a file of its name here, with a warning."""
    if name not in shipped:
        return looks_like_path(name)
    if Path(name).is_file():
        told = f"{name} is the zoo's; the file of that name in this folder is './{name}'"
        warnings.warn(told, EinloomWarning, stacklevel=3)
    return False


def check_keys(given: Mapping[str, str], entry: Entry) -> None:
    """Refuse parameters that the entry does not have."""
    known = [parameter.name for parameter in entry.parameters]
    for key in given:
        if key not in known:
            listed = f"known are {', '.join(known)}" if known else "it has none"
            raise SpecError(f"{entry.name} has no parameter {key!r}; {listed}", suggestion=nearest(key, known))
