"""Values of a file read as its table of keys says: every shape in one place, every mistake gathered.

Used by the readers of all files. Nothing is raised at the first mistake; the caller raises all of them
together (`Located.raise_gathered`) before it builds anything of the values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..errors import ConsequentError
from .facts import ORIGIN, UNLIMITED, FactReader
from .keys import Choice, Each, Either, Kind, Later, NameOf, Number, Plain, Record, Shape, Table, Written
from .located import MAX_COUNTED, MAX_WHOLE, Located
from .units import meaning
from .yamltree import MAX_FILE_BYTES

LARGEST, SMALLEST = 1e30, 1e-30  # of a cost or throughput: products of several are still numbers
Places = dict[str, Located]
STATED = FactReader({}, [])
"""Reads numbers as they are stated: no parameters, no sources."""
_PLAIN: Mapping[Kind, Callable[[Located], object]] = {
    "text": Located.text,
    "long": lambda view: view.text(most=MAX_FILE_BYTES),
    "name": Located.name,
    "names": Located.names,
    "boolean": Located.boolean,
    "anything": lambda view: view,
}


def read_record(
    view: Located, record: Record, reader: FactReader, path: str = "", ignored: tuple[str, ...] = ()
) -> dict[str, Any]:
    """The values of the keys that are there, by key; absent and null ones are left out.

    Unknown keys, missing ones and bad values are gathered. ignored: keys that the caller reads itself.
    """
    found: dict[str, Any] = {}
    own = {key.name for key in record.keys if key in ORIGIN}
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


def built(view: Located, record: Record, reader: FactReader = STATED, path: str = "") -> Any:
    """What `record.build` makes of the values. Raises ConsequentError if the record is not as its keys say."""
    before = view.mistakes
    found = read_record(view, record, reader, path)
    if view.mistakes > before:
        raise ConsequentError(f"{record.title} cannot be read")
    return found if record.build is None else record.build(view, found)


def read_shape(view: Located, shape: Shape, reader: FactReader, path: str) -> Any:
    """The value that `view` shows, which must have this shape; facts are noted under `path`.

    A list is a tuple, a table a tuple of (name, value) pairs, a record a dict. Raises or gathers SpecErrors.
    """
    match shape:
        case Number():
            return _number(view, shape, reader, path)
        case Choice(options=options):
            return view.choice(options)
        case Plain(kind=kind):
            return _PLAIN[kind](view)
        case NameOf():
            return _known(view, shape)
        case Written(what=what, parse=parse):
            with view.placed():
                return parse(view.text(what=what))
        case Each(sourced=True):
            return reader.read(view, path, lambda value: _each(value, shape, reader, path))
        case Each():
            return _each(view, shape, reader, path)
        case Table():
            return _table(view, shape, reader, path)
        case Record(build=None):
            return read_record(view, shape, reader, path)
        case Record():
            return built(view, shape, reader, path)
        case Either(shapes=shapes):
            return read_shape(view, fitting(view, shapes), reader, path)
        case Later(shape=shape_of):
            return read_shape(view, shape_of(), reader, path)


def uncountable(shape: Number, number: int | float) -> str | None:
    """Why a cost cannot be added up and multiplied by others within the range of a double, or None. Files of results,
    which hold sums, are not asked."""
    if shape.plain or not isinstance(number, float):
        return None
    if number > LARGEST:
        return f"{number:g} is too large: {meaning(shape.quantity)} is at most {LARGEST:g} in SI units"
    if shape.positive and number < SMALLEST:
        return f"{number:g} is too small: {meaning(shape.quantity)} is at least {SMALLEST:g} in SI units"
    return None


def _number(view: Located, shape: Number, reader: FactReader, path: str) -> int | float | None:
    def plain(value: Located) -> int | float | None:
        if shape.unlimited and value.is_text:
            word = value.text()
            if word == "unlimited" or reader.names.get(word) == UNLIMITED:
                return None
        minimum = None if shape.positive else shape.minimum
        most = MAX_COUNTED if shape.plain else MAX_WHOLE
        found = value.number(shape.quantity, names=reader.names, minimum=minimum, positive=shape.positive, most=most)
        if beyond := uncountable(shape, found):
            raise value.error(beyond)
        return found

    if shape.sourced:
        return reader.read(view, path, plain)
    found = plain(view)
    return found if found is None or not shape.plain or shape.quantity == "count" else float(found)


def _known(view: Located, shape: NameOf) -> object:
    found = view.names() if shape.several else (view.name(),)
    for name in found:
        if shape.names is not None and name not in shape.names:
            at = next(item for item in view.items() if item.name() == name) if view.is_list else view
            raise at.unknown(shape.what, name, shape.names)
    return found if shape.several else found[0]


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
            known = name if shape.name is None else read_shape(key, shape.name, reader, path)
            with value.gather():
                found.append((known, read_shape(value, shape.value, reader, f"{path}.{name}")))
    return tuple(found)


def fitting(view: Located, shapes: tuple[Shape, ...]) -> Shape:
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
        case Choice():
            return view.is_text and not view.text()[:1].isdigit()
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
        case Written(what=what) | Later(what=what) | NameOf(what=what):
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
