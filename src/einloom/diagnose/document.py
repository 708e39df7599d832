"""Explanations as JSON, both ways. The schema is ``explanation/1``; the digest seals everything else, as in a result.

Every record is written field by field under its own names, and read back by the types of its fields.
"""

from __future__ import annotations

from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from ..errors import SpecError
from ..reading.located import Located, file_text, from_data
from ..result import document
from ..result.asked import goal_data, input_data, problem_from
from .record import Explanation

VERSION = 1
_ASIDE = ("problem", "recorded_digest", "found_digest")  # not written, or written in another way
T = TypeVar("T")


def explanation_data(found: Explanation) -> dict[str, Any]:
    """The explanation as plain data, as the file holds it."""
    data: dict[str, Any] = {
        "schema": f"explanation/{VERSION}",
        **goal_data(found.problem),
        **{name: _plain(getattr(found, name)) for name in _written(Explanation) if name != "held" or found.held},
        **input_data(found.problem),
    }
    data["digest"] = document.digest(data)
    return data


def explanation_text(found: Explanation) -> str:
    """The explanation as JSON."""
    return document.text(explanation_data(found))


def read_explanation(path: str | Path) -> Explanation:
    """The explanation in a file. Raises SpecError with the place of whatever is wrong."""
    return parse_explanation(file_text(path), str(path))


def parse_explanation(text: str, file: str = "<explanation>") -> Explanation:
    """The explanation that a JSON text holds. Raises SpecError, also for a run that is named and not there."""
    with document.shallow(file):
        data = document.parse(text, file)
        view = from_data(data, file, text=text)
        view.schema("explanation", VERSION)
        problem = problem_from(view)
        named = _fields(view, Explanation)
        sealed = view.require("digest").text()
        view.finish()
        found = Explanation(problem, **named, recorded_digest=sealed, found_digest=document.digest(data))
        _whole(view, found)
    for number in sorted(_named_runs(data)):
        if not 1 <= number <= len(found.runs) or found.runs[number - 1].number != number:
            raise SpecError(f"run {number} is named, but the file has {len(found.runs)} runs in order", file=file)
    return found


def _whole(view: Located, found: Explanation) -> None:
    """Refuse an alternative that has a value and not all that goes with it."""
    listed = view.get("alternatives")
    for place, one in zip([] if listed is None else listed.items(), found.alternatives, strict=True):
        for name in ("energy", "latency", "traffic", "loss"):
            if one.value is not None and not one.note and getattr(one, name) is None:
                raise place.error(f"a value without {name!r}")


def _written(kind: type) -> tuple[str, ...]:
    return tuple(f.name for f in fields(kind) if f.name not in _ASIDE)


def _plain(value: Any) -> Any:
    if is_dataclass(value):
        named = {name: _plain(getattr(value, name)) for name in _written(type(value))}
        return {name: plain for name, plain in named.items() if plain != ""}
    return [_plain(item) for item in value] if isinstance(value, tuple) else value


def _fields(view: Located, kind: type) -> dict[str, Any]:
    """The fields of a record by name, those with a default where the file says nothing."""
    types = get_type_hints(kind)
    found = {}
    for field in fields(kind):
        if field.name in _ASIDE:
            continue
        child = view.get(field.name)
        if child is not None:
            found[field.name] = _read(child, types[field.name])
        elif NoneType in get_args(types[field.name]):
            found[field.name] = None
        elif field.default is MISSING:
            view.require(field.name)
    return found


def _read(view: Located, kind: Any) -> Any:
    """A value of the type `kind`. Raises SpecError if the file holds another one."""
    origin, parts = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return _read(view, next(part for part in parts if part is not NoneType))
    if origin is tuple:
        return tuple(_read(item, parts[0]) for item in view.items())
    if origin is Literal:
        return view.choice(parts)
    if is_dataclass(kind) and isinstance(kind, type):
        found = _fields(view, kind)
        view.finish()
        return kind(**found)
    if kind is str:
        return view.text()
    if kind is bool:
        return view.boolean()
    return view.integer() if kind is int else float(view.number("energy"))


def _named_runs(data: Any) -> set[int]:
    """All numbers of runs that the document names as witnesses."""
    if isinstance(data, list):
        return set().union(*map(_named_runs, data))
    if not isinstance(data, dict):
        return set()
    mine = {data[key] for key in ("run", "shown", "without", "refused", "solved", "base") if key in data}
    return {n for n in mine if type(n) is int}.union(*map(_named_runs, data.values()))
