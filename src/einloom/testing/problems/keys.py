"""Which keys of the files' schemas a problem uses: a name for each key, and for each word that a key may hold.

The schemas are the tables that the readers use, so a key that is new to a file is new here, too.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...machine.files import MACHINE, SET
from ...mapspace.files import MAPSPACE
from ...reading.fields import fitting
from ...reading.keys import Choice, Each, Either, Later, Plain, Record, Shape, Table, Written
from ...reading.located import Located, from_data
from ...workload.files import WORKLOAD
from ...workload.selectors import KEYWORDS, selector
from .files import Files

LABELS = ("schema", "name", "description", "source", "kind", "parameters", "component")
"""Keys that say nothing of a problem: what it is called, where its numbers come from, and names for them."""


def known() -> frozenset[str]:
    """Every key of workload, machine and mapspace files, and every word of those that hold one of a few."""
    return frozenset(name for record in (WORKLOAD, MACHINE, MAPSPACE) for name in _of_shape(record, ""))


def used(files: Files) -> frozenset[str]:
    """The keys and words that a problem's files have."""
    whole = ((WORKLOAD, files.workload), (MACHINE, files.machine), (MAPSPACE, files.mapspace))
    return frozenset(name for record, data in whole for name in _of_data(record, from_data(data), ""))


def _of_shape(shape: Shape, at: str) -> Iterator[str]:
    match shape:
        case Record(title=title, keys=keys):
            for key in keys:
                if key.name not in LABELS:
                    yield f"{title}: {key.name}"
                    yield from _of_shape(key.shape, f"{title}: {key.name}")
        case Choice(options=options):
            yield from (f"{at} {word}" for word in options)
        case Plain(kind="boolean"):
            yield from (f"{at} True", f"{at} False")
        case Written() if shape is SET:
            yield from (f"{at} {word}" for word in KEYWORDS)
        case Each(item=inner) | Table(value=inner):
            yield from _of_shape(inner, at)
        case Later(shape=shape_of):
            yield from _of_shape(shape_of(), at)
        case Either(shapes=shapes):
            for one in shapes:
                yield from _of_shape(one, at)


def _of_data(shape: Shape, view: Located, at: str) -> Iterator[str]:
    match shape:
        case Record(title=title, keys=keys):
            for key in keys:
                if key.name not in LABELS and (value := view.get(key.name)) is not None:
                    yield f"{title}: {key.name}"
                    yield from _of_data(key.shape, value, f"{title}: {key.name}")
        case Choice():
            yield f"{at} {view.text()}"
        case Plain(kind="boolean"):
            yield f"{at} {view.boolean()}"
        case Written() if shape is SET:
            yield from (f"{at} {word}" for word in selector(view.text()).names if word in KEYWORDS)
        case Later(shape=shape_of):
            yield from _of_data(shape_of(), view, at)
        case Each(item=inner):
            for one in view.items():
                yield from _of_data(inner, one, at)
        case Table(value=inner):
            for _, _, one in view.entries():
                yield from _of_data(inner, one, at)
        case Either(shapes=shapes):
            yield from _of_data(fitting(view, shapes), view, at)
