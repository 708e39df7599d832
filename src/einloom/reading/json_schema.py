"""Shapes of `keys` as JSON Schema, 2020-12: what a value may look like, as far as a schema can tell."""

from __future__ import annotations

from typing import Any

from .facts import KINDS as FACT_KINDS
from .keys import Choice, Each, Either, Key, Kind, Later, NameOf, Number, Plain, Record, Shape, Table, Written
from .units import UNIT_NAMES, suffixes

DRAFT = "https://json-schema.org/draft/2020-12/schema"
Schema = dict[str, Any]
_DIGITS = r"(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?"
_UNIT = "|".join(sorted(UNIT_NAMES, key=len, reverse=True))
_ALONE = rf"\s*[-+]?{_DIGITS}\s*[A-Za-zµ]\w*(/\w+)?\s*$"
"""A number with a unit and nothing else; of which units, the quantity says."""
_NO_UNIT = rf"(.*[\s(*/+%-])?\d[\d.]*\s*(?![eE][-+\d])(?!({_UNIT})\b)[A-Za-z]"
_ARITHMETIC = rf"^(?!{_ALONE})(?!{_NO_UNIT}).*[\w.)]\s*(\*\*|//|[-*/+%])\s*[\w.(]"
"""An operator between two operands, and nowhere a number that a word follows which is no unit, as in ``2 * 4 KB``."""
_TEXT: Schema = {"type": "string", "minLength": 1}
_NAME: Schema = {"anyOf": [_TEXT, {"type": "integer"}]}
_PLAIN: dict[Kind, Schema] = {
    "text": _TEXT,
    "long": _TEXT,
    "name": _NAME,
    "names": {"anyOf": [*_NAME["anyOf"], {"type": "array", "items": _NAME, "uniqueItems": True}]},
    "boolean": {"type": "boolean"},
    "anything": {},
}
_SOURCE: Schema = {"source": _TEXT, "kind": {"enum": list(FACT_KINDS)}}


def record_schema(record: Record, version: str) -> Schema:
    """The schema of a file whose content is `record`; `version` is what its key ``schema`` must say."""
    definitions: dict[str, Schema] = {}
    schema = _record(record, definitions)
    schema["properties"]["schema"] = {"const": version, "description": "what this file is, and its version"}
    return {"$schema": DRAFT, "title": f"einloom {version}", **schema, "$defs": definitions}


def _record(record: Record, definitions: dict[str, Schema]) -> Schema:
    return {
        "type": "object",
        "properties": {key.name: _key(key, definitions) for key in record.keys},
        "required": [key.name for key in record.keys if key.required],
        "additionalProperties": False,
    }


def _key(key: Key, definitions: dict[str, Schema]) -> Schema:
    """The schema of a key's value; where the key may be absent, null stands for its absence."""
    shape = _shape(key.shape, definitions)
    if not key.required:
        shape = {"anyOf": [*_alternatives(shape), {"type": "null"}]}
    if key.meaning:
        shape = {**shape, "description": key.meaning}
    return shape if key.default is None else {**shape, "default": key.default}


def _alternatives(schema: Schema) -> list[Schema]:
    return list(schema["anyOf"]) if set(schema) == {"anyOf"} else [schema]


def _shape(shape: Shape, definitions: dict[str, Schema]) -> Schema:
    match shape:
        case Number():
            return _number(shape)
        case Choice(options=options):
            return {"enum": list(options)}
        case Plain(kind=kind):
            return _PLAIN[kind]
        case NameOf(several=several):
            return _PLAIN["names" if several else "name"]
        case Written(pattern=pattern):
            return {"type": "string"} if pattern is None else {"type": "string", "pattern": pattern}
        case Each(item=item, minimum=minimum, sourced=sourced):
            listed: Schema = {"type": "array", "items": _shape(item, definitions)}
            if minimum:
                listed["minItems"] = minimum
            return {"anyOf": [listed, _sourced(listed)]} if sourced else listed
        case Table(value=value, name=name):
            table: Schema = {"type": "object", "additionalProperties": _shape(value, definitions)}
            if isinstance(name, Written) and name.pattern is not None:
                table["propertyNames"] = {"pattern": name.pattern}
            return table
        case Record(title=title):
            place = title.replace(" ", "-")
            if place not in definitions:
                definitions[place] = _record(shape, definitions)
            return {"$ref": f"#/$defs/{place}"}
        case Either(shapes=shapes):
            return {"anyOf": [one for inner in shapes for one in _alternatives(_shape(inner, definitions))]}
        case Later(shape=shape_of):
            return _shape(shape_of(), definitions)


def _number(shape: Number) -> Schema:
    """A plain number in SI, or text: a number with a unit, a parameter's name, or arithmetic."""
    plain: Schema = {"type": "integer" if shape.plain and shape.quantity in ("count", "size") else "number"}
    if shape.positive:
        plain["exclusiveMinimum"] = 0
    elif shape.minimum is not None:
        plain["minimum"] = shape.minimum
    if shape.plain:
        return plain
    sign = "[-+]?" if shape.minimum is None and not shape.positive else r"\+?"
    units = "|".join(sorted(suffixes(shape.quantity), key=len, reverse=True))
    number = rf"^\s*{sign}{_DIGITS}\s*({units})?\s*$" if units else rf"^\s*{sign}{_DIGITS}\s*$"
    text: Schema = {"type": "string", "pattern": rf"{number}|^\s*[A-Za-z_]\w*\s*$|{_ARITHMETIC}"}
    schema: Schema = {"anyOf": [plain, text]}
    return {"anyOf": [*schema["anyOf"], _sourced(schema)]} if shape.sourced else schema


def _sourced(schema: Schema) -> Schema:
    """A value with a note on where it comes from."""
    return {
        "type": "object",
        "properties": {"value": schema, **_SOURCE},
        "required": ["value"],
        "additionalProperties": False,
    }
