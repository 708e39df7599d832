"""Machine components by name: parts that work out their own energy, area, leakage and rates from what a file says.

A package names its components as entry points of the group ``einloom.components``; each refers to a class without
arguments. In a machine file a level says ``component: {NAME: {attribute: value}}``. How to write one:
docs/how-to/my-component.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, Protocol

from ..errors import SpecError
from ..reading.facts import FactReader
from ..reading.fields import read_record, uncountable
from ..reading.keys import ANYTHING, NAME, Choice, Either, Key, Later, Number, Record, Shape, Table
from ..reading.located import Located
from ..reading.plugins import FAILURES, OURS, brought, built, each, known, loaded, offer, reason_of

GROUP = "einloom.components"
KINDS = ("memory", "toll", "link", "compute")
"""The kinds of levels that a component may be."""


class MachineComponent(Protocol):
    """A part of a machine with formulas of its own.

    name: as machine files call it. level: the kind of level that it is: memory, toll, link or compute. source: where
    the formulas come from; every number that they give carries it, with the kind ``derived``. keys: its own attributes
    in the file, beside the keys of the level.
    """

    name: str
    level: str
    source: str
    keys: tuple[Key, ...]

    def numbers(self, level: Any, own: Mapping[str, Any]) -> Mapping[str, float | None]:
        """Numbers for keys of the level, in SI units: joules, bits (or operations) per second, watts, square metres.

        level: the `Memory`, `Toll`, `Link` or `ComputeUnit` with what the file says of it. own: the values of `keys`
        that the file states, in SI units. What the file says of the level itself counts before what is returned. None:
        unlimited. Raises SpecError for attributes that no formula fits.
        """
        ...


def components() -> tuple[str, ...]:
    """The names of all components that installed packages bring, or this session uses."""
    return brought(GROUP)


def use(component: MachineComponent) -> None:
    """From now on machine files of this session may name this component, as if a package had brought it."""
    offer(GROUP, component.name, lambda: component)


def component(name: str) -> MachineComponent:
    """The component called `name`. Raises SpecError with a suggestion for an unknown one, and for what is none."""
    made: MachineComponent = built("component", name, loaded(GROUP, known(GROUP, "component", name, ())), {})
    for flaw in flaws_of(made):
        raise SpecError(f"component {name!r} is broken: {flaw}")
    return made


def flaws_of(made: object) -> Iterator[str]:
    """Why an object is no component, in words."""
    lacks = [name for name in ("name", "level", "source", "keys", "numbers") if not hasattr(made, name)]
    if lacks:
        yield f"it lacks {', '.join(lacks)}"
        return
    part: Any = made
    if part.level not in KINDS:
        yield f"its level is {part.level!r:.80}; there are {', '.join(KINDS)}"
    if not isinstance(part.source, str) or not part.source.strip():
        yield "it names no source of its formulas"
    if not isinstance(part.keys, tuple | list) or not all(isinstance(key, Key) for key in part.keys):
        yield f"its keys are {part.keys!r:.80}, no tuple of Key"


def component_shape() -> Shape:
    """What the key ``component`` of a level may hold: a name, or a name with its attributes."""
    keys = {name: found.keys for name, found in each(GROUP, "component", (), component)}
    records = [
        Record(f"component {name}", (Key(name, Record(f"attributes of {name}", own)),)) for name, own in keys.items()
    ]
    return Either((Choice(tuple(keys)), *records)) if records else Either((NAME, Table(ANYTHING)))


COMPONENT = Key("component", Later("component", component_shape), "what works out the numbers that are not stated")


def read_component(view: Located, level: Record, reader: FactReader) -> tuple[MachineComponent, dict[str, Any]]:
    """The component that a level names, and its attributes. Raises or gathers SpecErrors."""
    entries = view.entries() if view.is_mapping else [(view.name(), view, None)]
    if len(entries) != 1:
        raise view.error("expected one component, as in {NAME: {attribute: value}}")
    ((name, place, value),) = entries
    with place.placed():
        found = component(name)
    if found.level != level.label:
        raise place.error(f"component {name} is a {found.level}; this level is {level.title}")
    own = Record(f"attributes of {name}", found.keys)
    return found, {} if value is None else read_record(value, own, reader, name)


def numbers_of(found: MachineComponent, level: object, own: Mapping[str, Any], record: Record) -> dict[str, Any]:
    """What the component's formulas give, each a number that the level's key may hold. Raises SpecError."""
    try:
        given = dict(found.numbers(level, own))
    except FAILURES as error:
        if isinstance(error, OURS):
            raise
        raise SpecError(f"component {found.name} is broken: {reason_of(error)}") from error
    keys = {key.name: key.shape for key in record.keys}
    for name, value in given.items():
        shape = keys.get(name)
        if not isinstance(shape, Number):
            raise SpecError(f"component {found.name} is broken: it gives {name!r}, no number of {record.title}")
        if not _allowed(shape, value):
            raise SpecError(f"component {found.name} is broken: it gives {value!r} as {name}")
    return given


def _allowed(shape: Number, value: object) -> bool:
    if value is None:
        return shape.unlimited
    whole = shape.quantity in ("count", "size")
    if isinstance(value, bool) or not isinstance(value, int if whole else int | float) or not math.isfinite(value):
        return False
    if uncountable(shape, value):
        return False
    return value > 0 if shape.positive else value >= (shape.minimum or 0)
