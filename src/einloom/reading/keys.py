"""What each key of a file may hold, as data: readers ask these tables, and editors get a JSON Schema made of them.

At the door, beside `located`. A *shape* says what a value looks like; a `Key` gives a shape a name and a meaning. The
readers of workload, machine, mapspace and result files read by such tables, so that no key can be read that the schema
does not have, or the other way round.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, Literal

from ..dataclass import dataclass
from .located import Located
from .units import Quantity

Default = str | int | bool | None
Kind = Literal["text", "long", "name", "names", "boolean", "anything"]


@dataclass(frozen=True, slots=True)
class Number:
    """A number in SI, a number with a unit of the quantity, or arithmetic over parameters and units.

    positive: zero is refused too. unlimited: the word ``unlimited`` is accepted, and means None. sourced: may be
    written ``{value: ..., source: ..., kind: ...}``. plain: a bare number, as JSON files of results hold it.
    """

    quantity: Quantity
    minimum: float | None = 0
    positive: bool = False
    unlimited: bool = False
    sourced: bool = True
    plain: bool = False


@dataclass(frozen=True, slots=True)
class Choice:
    """One of a few words."""

    options: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Plain:
    """A text (a long one, with many lines), a name, a list of names (or a single one), true or false; ``anything`` is
    not looked at."""

    kind: Kind


@dataclass(frozen=True, slots=True)
class NameOf:
    """A name among `names`; None: of any, as long as nothing says which there are. what: such as ``a tensor of the
    workload``. several: a list of them, or a single one."""

    what: str
    names: Collection[str] | None = None
    several: bool = False


@dataclass(frozen=True, slots=True)
class Written:
    """A text in a small notation. parse: its reader, which may raise SpecError. pattern: its regular expression."""

    what: str
    parse: Callable[[str], object]
    pattern: str | None = None


@dataclass(frozen=True, slots=True)
class Each:
    """A list of values of one shape. sourced: the whole list may carry a source."""

    item: Shape
    minimum: int = 0
    sourced: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """A mapping from names that the user chooses to values of one shape."""

    value: Shape
    name: Written | NameOf | None = None


@dataclass(frozen=True, slots=True)
class Record:
    """A mapping with fixed keys. label: the key whose value names the record in paths, and tells it from others.

    build: what makes the record's value of its view and the values of its keys; without it they are the value.
    """

    title: str
    keys: tuple[Key, ...]
    label: str = ""
    build: Callable[[Located, dict[str, Any]], Any] | None = None

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(key.name for key in self.keys)


@dataclass(frozen=True, slots=True)
class Either:
    """A value of one of several shapes."""

    shapes: tuple[Shape, ...]


@dataclass(frozen=True, slots=True)
class Later:
    """A shape that is known only when it is asked for, as where installed packages bring names. what: in words."""

    what: str
    shape: Callable[[], Shape]


Shape = Number | Choice | Plain | NameOf | Written | Each | Table | Record | Either | Later


@dataclass(frozen=True, slots=True)
class Key:
    """One key of a mapping: its name, what it holds, what that means, and whether it must be there.

    default: what its absence means, as a file would say it; None where nothing that a file may say means the same.
    """

    name: str
    shape: Shape
    meaning: str = ""
    required: bool = False
    default: Default = None


TEXT = Plain("text")
NAME = Plain("name")
NAMES = Plain("names")
BOOLEAN = Plain("boolean")
ANYTHING = Plain("anything")
