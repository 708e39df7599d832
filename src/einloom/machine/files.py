"""Machine files: YAML in, `Machine` out. The schema is ``machine/1``; `write` goes back.

schema: machine/1
name: small
source: data sheet                 # default for the numbers below; every number may be {value, source, kind}
kind: printed
levels:
  - {memory: DRAM, read_energy: 7.03 pJ, write_energy: 7.03 pJ, read_throughput: 614 GB/s, must: ~intermediate}
  - {memory: GLB, size: 128 MiB, ports: separate, widths: {output: 32}, must: unheld}
  - fanout: PE
    axes: [{axis: rows, size: 16, multicast: input, reduce: nothing, only_irrelevant_to: input, use: full}]
  - {compute: MAC, throughput: 1.05 GHz, energy: 0.084 pJ, operands: [2]}
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal, cast

from ..constraints import Selector, selector
from ..errors import SpecError
from ..located import Located, from_data, read_file, read_text
from ..units import Quantity
from ..workload.einsum import Fact
from ..workload.facts import UNLIMITED, FactReader, read_parameters
from .levels import Axis, ComputeUnit, Fanout, Level, Machine, Memory

VERSION = 1
KINDS = ("multiply", "map")
LEVELS = ("memory", "fanout", "compute")
PARTIAL_SUMS = ("read-modify-write", "once")


def read_machine(path: str | Path, parameters: Mapping[str, str] | None = None) -> Machine:
    """The machine of a file; `parameters` replace defaults of its ``parameters:``. Raises SpecError with the place."""
    return machine_from(read_file(path), parameters)


def parse_machine(text: str, file: str = "<text>", parameters: Mapping[str, str] | None = None) -> Machine:
    """The machine of a YAML text."""
    return machine_from(read_text(text, file), parameters)


def machine_from_data(data: object, file: str | None = None) -> Machine:
    """The machine of plain data as `machine_data` makes it (and a result file holds it)."""
    return machine_from(from_data(data, file))


def machine_from(view: Located, parameters: Mapping[str, str] | None = None) -> Machine:
    """The machine that a view shows."""
    view.schema("machine", VERSION)
    name = view.require("name").name()
    view.get("description")
    facts: list[Fact] = []
    reader = FactReader(read_parameters(view, parameters), facts, None, None).within(view)
    sums = view.get("partial_sums")
    partial_sums = "read-modify-write" if sums is None else sums.choice(PARTIAL_SUMS)
    field = view.require("levels")
    levels: list[Level] = []
    places: list[Located] = []
    for item in field.items():
        with item.gather():
            levels.append(_level(item, reader))
            places.append(item)
    with view.gather():
        view.finish()
    view.raise_gathered()
    for level, message in structure_problems(levels):
        with (places[level] if level is not None else field).gather():
            raise SpecError(message)
    view.raise_gathered()
    return Machine(name, tuple(levels), cast(Literal["read-modify-write", "once"], partial_sums), tuple(facts))


def structure_problems(levels: list[Level]) -> list[tuple[int | None, str]]:
    """What is wrong with the order and the names of levels: (place in the list or None, message) each."""
    problems: list[tuple[int | None, str]] = []
    if not any(isinstance(level, Memory) for level in levels):
        problems.append((None, "a machine needs at least one memory"))
    elif not isinstance(levels[0], Memory):
        problems.append((0, f"the first level must be a memory, the outermost one; {levels[0].name} is none"))
    units = [i for i, level in enumerate(levels) if isinstance(level, ComputeUnit)]
    if not units:
        problems.append((None, "a machine needs at least one compute unit"))
    else:
        for i in range(units[-1] + 1, len(levels)):
            problems.append((i, f"{levels[i].name} stands after every compute unit, so none can see it"))
    seen: set[str] = set()
    for i, level in enumerate(levels):
        names = [level.name]
        if isinstance(level, Fanout):
            axes = [axis.name for axis in level.axes]
            names = axes if axes == [level.name] else [level.name, *axes]
        for name in names:
            if name in seen:
                problems.append((i, f"the name {name} is taken; levels and axes share one set of names"))
            seen.add(name)
    return problems


def _level(view: Located, reader: FactReader) -> Level:
    found = [key for key in LEVELS if key in view.keys]
    if len(found) != 1:
        raise view.error(f"a level has exactly one of the keys {', '.join(LEVELS)}; this one has {len(found)} of them")
    kind = found[0]
    name = _name(view.require(kind))
    fields = _Fields(view, name, reader.within(view))
    level: Level
    if kind == "memory":
        level = _memory(fields)
    elif kind == "fanout":
        level = _fanout(fields)
    else:
        level = _compute(fields)
    with view.gather():
        view.finish()
    return level


def _name(view: Located) -> str:
    name = view.name()
    if not all(part.isidentifier() for part in name.split("-")) or len(name) > 100:
        raise view.error(f"{name[:100]!r} is no name: use letters, digits, underscores and dashes, no digit first")
    return name


class _Fields:
    """Typed access to the fields of one level or axis; errors are gathered, a default stands in for a bad field."""

    def __init__(self, view: Located, name: str, reader: FactReader) -> None:
        self.view = view
        self.name = name
        self.reader = reader

    def number(self, key: str, quantity: Quantity, *, positive: bool = False) -> float:
        """A number that may not be negative; 0 if absent."""
        found = self.optional(key, quantity, positive=positive)
        return 0.0 if found is None else float(found)

    def optional(self, key: str, quantity: Quantity, *, positive: bool = True) -> int | float | None:
        """A number greater than zero; None if absent or ``unlimited``."""
        field = self.view.get(key)
        if field is None:
            return None
        with field.gather():
            return self.reader.read(field, f"{self.name}.{key}", lambda view: self._limit(view, quantity, positive))
        return None

    def _limit(self, view: Located, quantity: Quantity, positive: bool) -> int | float | None:
        if positive and view.is_text:
            word = view.text()
            if word == "unlimited" or self.reader.names.get(word) == UNLIMITED:
                return None
        return view.number(quantity, names=self.reader.names, minimum=None if positive else 0, positive=positive)

    def size(self) -> int:
        """The required whole number of instances of an axis."""
        field = self.view.require("size")
        with field.gather():
            return self.reader.integer(field, f"{self.name}.size")
        return 1

    def count(self, key: str) -> int | None:
        """A whole number of at least 1; None if absent."""
        field = self.view.get(key)
        if field is not None:
            with field.gather():
                return self.reader.integer(field, f"{self.name}.{key}")
        return None

    def selector(self, key: str, default: str) -> Selector:
        field = self.view.get(key)
        if field is not None:
            with field.gather():
                return selector(field.text(what="a selector such as 'input | weight'"))
        return selector(default)

    def choice(self, key: str, options: tuple[str, ...]) -> str:
        """One of `options`; the first if absent."""
        field = self.view.get(key)
        if field is not None:
            with field.gather():
                return field.choice(options)
        return options[0]

    def boolean(self, key: str) -> bool:
        field = self.view.get(key)
        if field is not None:
            with field.gather():
                return field.boolean()
        return False


def _memory(fields: _Fields) -> Memory:
    widths: list[tuple[Selector, int]] = []
    table = fields.view.get("widths")
    for text, key, value in table.entries() if table is not None else ():
        with key.gather():
            which = selector(text)
            path = f"{fields.name}.widths.{text}"
            widths.append((which, int(fields.reader.number(value, path, "size", minimum=1))))
    size = fields.optional("size", "size")
    return Memory(
        fields.name,
        size=None if size is None else int(size),
        read_energy=fields.number("read_energy", "energy"),
        write_energy=fields.number("write_energy", "energy"),
        bits_per_access=int(fields.optional("bits_per_access", "size") or 1),
        read_throughput=fields.optional("read_throughput", "throughput"),
        write_throughput=fields.optional("write_throughput", "throughput"),
        ports=cast(Literal["shared", "separate"], fields.choice("ports", ("shared", "separate"))),
        widths=tuple(widths),
        must=fields.selector("must", "nothing"),
        may=fields.selector("may", "all"),
        backs=fields.selector("backs", "all"),
        double_buffer=fields.boolean("double_buffer"),
        leakage=fields.number("leakage", "power"),
        area=fields.number("area", "area"),
        setup=fields.number("setup", "time"),
        release=cast(Literal["end", "start"], fields.choice("release", ("end", "start"))),
        prefetch=fields.count("prefetch"),
    )


def _fanout(fields: _Fields) -> Fanout:
    axes: list[Axis] = []
    field = fields.view.require("axes")
    for item in field.items():
        with item.gather():
            name = _name(item.require("axis"))
            inner = _Fields(item, name, fields.reader.within(item))
            axes.append(
                Axis(
                    name,
                    inner.size(),
                    multicast=inner.selector("multicast", "all"),
                    reduce=inner.selector("reduce", "all"),
                    only_irrelevant_to=inner.selector("only_irrelevant_to", "nothing"),
                    use=cast(Literal["any", "full"], inner.choice("use", ("any", "full"))),
                )
            )
            item.finish()
    if not field.items():
        raise field.error(f"fanout {fields.name} needs at least one axis")
    return Fanout(fields.name, tuple(axes))


def _compute(fields: _Fields) -> ComputeUnit:
    kinds: tuple[str, ...] = KINDS
    if (field := fields.view.get("kinds")) is not None:
        with field.gather():
            kinds = tuple(item.choice(KINDS) for item in field.items())
            if not kinds:
                raise field.error(f"compute unit {fields.name} executes nothing; list some of {', '.join(KINDS)}")
    operands: tuple[int, ...] = ()
    if (field := fields.view.get("operands")) is not None:
        with field.gather():
            operands = tuple(item.integer(minimum=1) for item in field.items())
    return ComputeUnit(
        fields.name,
        throughput=fields.optional("throughput", "rate"),
        energy=fields.number("energy", "energy"),
        kinds=kinds,
        operands=operands,
        leakage=fields.number("leakage", "power"),
        area=fields.number("area", "area"),
        setup=fields.number("setup", "time"),
    )
