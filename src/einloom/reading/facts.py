"""Where numbers come from: reading and writing ``{value: 7.03 pJ, source: "...", kind: printed}``.

Used by the readers of workload and machine files; a number without such a note inherits the `source` and `kind` of the
level or file around it, and a number without any source leaves no fact.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, TypeVar, cast, get_args

from ..dataclass import dataclass
from ..errors import unknown
from .arithmetic import Named, exact
from .dimensions import PLAIN, Measure
from .keys import TEXT, Choice, Key, Table
from .keys import Number as NumberShape
from .located import Located
from .units import UNIT_NAMES, described, measured

FactKind = Literal["printed", "code", "derived", "assumed"]
KINDS: tuple[FactKind, ...] = get_args(FactKind)


@dataclass(frozen=True, slots=True)
class Fact:
    """Where one number comes from: `path` names it, `kind` says how far to trust it."""

    path: str
    source: str
    kind: FactKind


UNLIMITED = float("inf")
"""What a parameter called ``unlimited`` is; only fields that may be unlimited accept it."""
ORIGIN = (
    Key("source", TEXT, "where the numbers come from that name no source of their own"),
    Key("kind", Choice(KINDS), "how sure they are"),
)
PARAMETERS = Key(
    "parameters",
    Table(NumberShape("any", minimum=None, unlimited=True, sourced=False)),
    "names for arithmetic in the values of this file; the command line may set them",
)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class FactReader:
    """Reads values that may carry a source, and collects the facts; `names` are what arithmetic may use."""

    names: Mapping[str, Named]
    facts: list[Fact]
    source: str | None = None
    kind: FactKind | None = None

    def within(self, view: Located) -> FactReader:
        """A reader for the fields of `view`, whose own ``source`` and ``kind`` count first."""
        source, kind = _origin(view)
        return FactReader(self.names, self.facts, source or self.source, kind or self.kind)

    def read(self, view: Located, path: str, reader: Callable[[Located], T]) -> T:
        """What `reader` makes of the value, with its fact noted under `path`."""
        source, kind, value = self.source, self.kind, view
        if view.is_mapping and "value" in view.keys:
            value = view.require("value")
            own_source, own_kind = _origin(view)
            view.finish()
            source, kind = own_source or source, own_kind or kind
        if source is not None:
            self.facts.append(Fact(path, source, kind or "assumed"))
        return reader(value)


def _origin(view: Located) -> tuple[str | None, FactKind | None]:
    source, kind = view.get("source"), view.get("kind")
    return (
        None if source is None else source.text(what="a source"),
        None if kind is None else cast(FactKind, kind.choice(KINDS)),
    )


def read_parameters(view: Located, given: Mapping[str, str] | None) -> dict[str, Named]:
    """The table of ``parameters:``, with the values `given` outside (a command line, say) in place of defaults.

    A value may have a unit, or use parameters above it; ``unlimited`` is a value for sizes and throughputs. Raises
    SpecError for a given name that the file does not have, and gathers what is wrong with the values.
    """
    table: dict[str, Named] = {}
    entries: list[tuple[str, Located, Located]] = []
    with view.gather():
        entries = view.table("parameters")
    known = [name for name, _, _ in entries]
    for name in given or {}:
        if name not in known:
            raise unknown("parameter", name, known).at(view.file)
    for name, key, value in entries:
        table[name] = None  # should the value be unreadable, nothing below complains about the name
        with value.gather():
            if name in UNIT_NAMES or not name.isidentifier():
                raise key.error(f"a parameter may not be called {name!r}: it is a unit or no plain name")
            above = {other: number for other, number in table.items() if other != name}
            table[name] = _parameter(value, above, (given or {}).get(name))
    return table


def _parameter(view: Located, above: Mapping[str, Named], given: str | None) -> Named:
    """The value of a parameter: what was `given` outside, which has the dimension of its default, else that."""
    default = measure_of(view.text(), above) if view.is_text else exact(view.number("any"))
    if given is None:
        return default
    found = measure_of(given, above)
    if not isinstance(found, Measure) or not isinstance(default, Measure) or default.dimension == PLAIN:
        return found
    if found.dimension not in (PLAIN, default.dimension):
        raise view.error(f"{given!r} {described(found)}, but the default {described(default)}")
    return Measure(found.value, default.dimension)


def measure_of(text: str, names: Mapping[str, Named]) -> Named:
    """The number that the text of a parameter means; ``unlimited`` is one."""
    return UNLIMITED if text == "unlimited" else measured(text, names)


def noted(value: object, path: str, facts: Mapping[str, Fact]) -> object:
    """`value` as a file writes it, with its source if it has one."""
    fact = facts.get(path)
    return value if fact is None else {"value": value, "source": fact.source, "kind": fact.kind}


def fact_table(facts: Sequence[Fact]) -> dict[str, Fact]:
    """Facts by path; the last one counts."""
    return {fact.path: fact for fact in facts}
