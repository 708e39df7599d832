"""Values of a file read as its table of keys says: every shape in one place, every mistake gathered.

Used by the readers of workload and machine files. Nothing is raised at the first mistake; the caller raises all of them
together (`Located.raise_gathered`) before it builds anything of the values.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .facts import ORIGIN, UNLIMITED, FactReader
from .keys import Choice, Each, Either, Later, Number, Plain, Record, Shape, Table, Written
from .located import Located

Places = dict[str, Located]


def read_record(
    view: Located, record: Record, reader: FactReader, path: str = "", ignored: tuple[str, ...] = ()
) -> dict[str, Any]:
    """The values of the keys that are there, by key; absent and null ones are left out.

    Unknown keys, missing ones and bad values are gathered. ignored: keys that the caller reads itself.
    """
    found: dict[str, Any] = {}
    own = {key.name for key in ORIGIN} & set(record.names)
    if own:
        with view.gather():
            reader = reader.within(view)
    for key in record.keys:
        if key.name in own or key.name in ignored:
            view.get(key.name)
            continue
        with view.gather():
            field = view.require(key.name) if key.required else view.get(key.name)
            if field is not None:
                with field.gather():
                    found[key.name] = read_shape(field, key.shape, reader, f"{path}.{key.name}" if path else key.name)
                    if key.name == record.label:
                        path = str(found[key.name])
    with view.gather():
        view.finish()
    return found


def read_shape(view: Located, shape: Shape, reader: FactReader, path: str) -> Any:
    """The value that `view` shows, which must have this shape; facts are noted under `path`.

    A list is a tuple, a table a tuple of (name, value) pairs, a record a dict. Raises or gathers SpecErrors.
    """
    match shape:
        case Number():
            return _number(view, shape, reader, path)
        case Choice(options=options):
            return view.choice(options)
        case Plain():
            return _plain(view, shape)
        case Written(what=what, parse=parse):
            with view.placed():
                return parse(view.text(what=what))
        case Each(sourced=True):
            return reader.read(view, path, lambda value: _each(value, shape, reader, path))
        case Each():
            return _each(view, shape, reader, path)
        case Table():
            return _table(view, shape, reader, path)
        case Record():
            return read_record(view, shape, reader, path)
        case Either(shapes=shapes):
            return read_shape(view, _fitting(view, shapes), reader, path)
        case Later(shape=shape_of):
            return read_shape(view, shape_of(), reader, path)


def _number(view: Located, shape: Number, reader: FactReader, path: str) -> int | float | None:
    def plain(value: Located) -> int | float | None:
        if shape.unlimited and value.is_text:
            word = value.text()
            if word == "unlimited" or reader.names.get(word) == UNLIMITED:
                return None
        minimum = None if shape.positive else shape.minimum
        return value.number(shape.quantity, names=reader.names, minimum=minimum, positive=shape.positive)

    return reader.read(view, path, plain) if shape.sourced else plain(view)


def _plain(view: Located, shape: Plain) -> object:
    match shape.kind:
        case "text":
            return view.text()
        case "name":
            return view.name()
        case "names":
            return view.names()
        case "boolean":
            return view.boolean()
        case "anything":
            return view


def _each(view: Located, shape: Each, reader: FactReader, path: str) -> tuple[Any, ...]:
    found = []
    items = view.items()
    if len(items) < shape.minimum:
        raise view.error(f"an empty list; {described(shape.item)} must stand here")
    for item in items:
        with item.gather():
            found.append(read_shape(item, shape.item, reader, path))
    return tuple(found)


def _table(view: Located, shape: Table, reader: FactReader, path: str) -> tuple[tuple[Any, Any], ...]:
    found = []
    for name, key, value in view.entries():
        with key.gather():
            known = name if shape.name is None else shape.name.parse(name)
            with value.gather():
                found.append((known, read_shape(value, shape.value, reader, f"{path}.{name}")))
    return tuple(found)


def _fitting(view: Located, shapes: tuple[Shape, ...]) -> Shape:
    """The first shape that a value of this kind may have; the last one if none does, for its message."""
    return next((shape for shape in shapes if _fits(view, shape)), shapes[-1])


def _fits(view: Located, shape: Shape) -> bool:
    match shape:
        case Table():
            return view.is_mapping
        case Record(label=label):
            return view.is_mapping and (not label or label in view.keys)
        case Each(sourced=sourced):
            return view.is_list or (sourced and view.is_mapping and "value" in view.keys)
        case Number(sourced=True):
            return not view.is_list and (not view.is_mapping or "value" in view.keys)
        case Either(shapes=shapes):
            return any(_fits(view, inner) for inner in shapes)
        case Later(shape=shape_of):
            return _fits(view, shape_of())
        case _:
            return not view.is_mapping and not view.is_list


def described(shape: Shape) -> str:
    """A few words for a value of this shape."""
    match shape:
        case Record(title=title):
            return title
        case Written(what=what) | Later(what=what):
            return what
        case Choice(options=options):
            return f"one of {', '.join(options)}"
        case Number():
            return "a number"
        case Either(shapes=shapes):
            return " or ".join(described(inner) for inner in shapes)
        case _:
            return "a value"


def located_at(view: Located, path: str, places: Mapping[str, Located]) -> Located:
    """The view that a path of the reader's own making points at, or the nearest one around it."""
    while path and path not in places:
        path = path.rpartition(".")[0]
    return places.get(path, view)
