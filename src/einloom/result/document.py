"""The JSON text of result files, both ways: strict reading, and the digest that seals a document."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

from ..errors import SpecError
from ..mapping.text import begins_mapping
from ..reading.jsonplaces import refuse_oddities
from ..reading.yamltree import MAX_FILE_BYTES

_SCHEMA = re.compile(r"^schema:\s*([\w./-]{1,40})", re.MULTILINE)
_COMMENTS = re.compile(r"^\s*#.*$", re.MULTILINE)
_SURROGATE_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")


def digest(data: dict[str, Any]) -> str:
    """SHA-256 of the data without its ``digest``, with sorted keys and no spaces."""
    import hashlib  # not read or written, a result needs none, and OpenSSL comes with it

    rest = {key: value for key, value in data.items() if key != "digest"}
    text = json.dumps(rest, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def text(data: dict[str, Any]) -> str:
    """The data as JSON, one line per key and per element of a list; ends with a newline."""
    lines = []
    for key, value in data.items():
        if isinstance(value, list) and value:
            items = ",\n  ".join(json.dumps(item, allow_nan=False) for item in value)
            lines.append(f" {json.dumps(key)}: [\n  {items}\n ]")
        else:
            lines.append(f" {json.dumps(key)}: {json.dumps(value, allow_nan=False)}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def parse(content: str, file: str) -> dict[str, Any]:
    """The one JSON object that a text of at most 5 MB holds. Raises SpecError, also for keys that stand twice."""
    if len(content) > MAX_FILE_BYTES:
        raise SpecError(f"larger than {MAX_FILE_BYTES // 10**6} MB; einloom does not read it", file=file, line=1)

    def pairs(found: list[tuple[str, Any]]) -> dict[str, Any]:
        table = dict(found)
        if len(table) < len(found):
            names = [name for name, _ in found]
            twice = next(name for name in names if names.count(name) > 1)
            raise SpecError(f"key {twice!r} stands twice in one object", file=file)
        return table

    def constant(name: str) -> NoReturn:
        raise SpecError(f"{name} is not a number", file=file)

    try:
        data = json.loads(content, object_pairs_hook=pairs, parse_constant=constant)
    except json.JSONDecodeError as error:
        if (other := _other_kind(content)) is not None:
            raise SpecError(f"{other}; expected is the JSON that einloom saves", file=file) from None
        raise SpecError(f"not JSON: {error.msg}", file=file, line=error.lineno, column=error.colno) from None
    except ValueError as error:
        raise SpecError(f"not JSON: {error}", file=file) from None
    except SpecError:
        refuse_oddities(content, file)  # raises the same with its place
        raise
    if _SURROGATE_ESCAPE.search(content):
        refuse_oddities(content, file)
    if not isinstance(data, dict):
        raise SpecError("a result file holds one JSON object", file=file, line=1)
    return data


def _other_kind(content: str) -> str | None:
    """What a text is that is no JSON, by its ``schema:`` line or its first word; None if that says nothing."""
    if (schema := _SCHEMA.search(content)) is not None:
        return f"this file has schema {schema[1]}"
    if begins_mapping(_COMMENTS.sub("", content)):
        return "this reads as a mapping, which stands after its workload and its machine"
    return None


@contextmanager
def shallow(file: str) -> Iterator[None]:
    """A ``with`` block in which a text that is nested too deep is a SpecError."""
    try:
        yield
    except RecursionError:
        raise SpecError("nested too deep", file=file, line=1) from None
