"""Machine files: YAML in, `Machine` out. The schema is ``machine/1``; `write` goes back.

schema: machine/1
name: small
source: data sheet                 # default for the numbers below; every number may be {value, source, kind}
kind: printed
levels:
  - {memory: DRAM, read_energy: 7.03 pJ, write_energy: 7.03 pJ, read_throughput: 614 GB/s, must: ~intermediate}
  - {memory: GLB, size: 128 MiB, ports: separate, widths: {output: 32}, must: unheld}
  - {memory: LB, size: 8 KiB, component: {sram: {banks: 2}}}     # a formula gives what is not stated
  - {toll: ADC, energy: 2 pJ, bits_per_access: 8, down: nothing, up: output}
  - fanout: PE
    axes: [{axis: rows, size: 16, multicast: input, reduce: nothing, only_irrelevant_to: input, use: full}]
  - {compute: MAC, throughput: 1.05 GHz, energy: 0.084 pJ, operands: [2]}
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..dataclass import dataclass
from ..errors import SpecError, nearest
from ..reading.facts import ORIGIN, PARAMETERS, Fact, FactReader, read_parameters
from ..reading.fields import read_record
from ..reading.keys import BOOLEAN, NAME, TEXT, Choice, Each, Either, Key, Number, Plain, Record, Table, Written
from ..reading.located import Located, from_data, read_file, read_text
from ..workload.selectors import selector
from .components import COMPONENT, MachineComponent, numbers_of, read_component
from .levels import Axis, ComputeUnit, Fanout, Level, Link, Machine, Memory, Toll

VERSION = 1
KINDS = ("multiply", "map")
MAX_NAME = 100
READ = "read"
"""Under this name a machine remembers that a file could say it, or what it was read as (`checked`)."""


def level_name(text: str) -> str:
    """The text, if levels and axes may be called that; SpecError if not."""
    if not all(part.isidentifier() for part in text.split("-")):
        raise SpecError(f"{text[:MAX_NAME]!r} is no name: use letters, digits, underscores and dashes, no digit first")
    if len(text) > MAX_NAME:
        raise SpecError(f"{text[:20]!r}... is no name: it has {len(text)} characters of at most {MAX_NAME}")
    return text


SET = Written("a set expression such as 'input | weight'", selector, r"^[\sA-Za-z0-9_.|&~()]+$")
LEVEL_NAME = Written("a name", level_name, r"^[^\W\d]\w*(-[^\W\d]\w*)*$")
_ENERGY, _POWER, _TIME, _AREA = Number("energy"), Number("power"), Number("time"), Number("area")
_THROUGHPUT = Number("throughput", positive=True, unlimited=True)
_UNIT = (
    Key("leakage", _POWER, "watts per instance, used or not", default=0),
    Key("area", _AREA, "square metres per instance", default=0),
)


def _access(energies: str) -> Key:
    """The width of an access, which says for how many bits `energies`."""
    about = f"width of one access: {energies} for so many bits"
    return Key("bits_per_access", Number("size", positive=True), about, default="1 bit")


MEMORY = Record(
    "a memory",
    (
        Key("memory", LEVEL_NAME, "the name of a memory", required=True),
        *ORIGIN,
        COMPONENT,
        Key("size", Number("size", positive=True, unlimited=True), "bits per instance", default="unlimited"),
        Key("read_energy", _ENERGY, "joules per access", default=0),
        Key("write_energy", _ENERGY, "joules per access", default=0),
        _access("the energies are"),
        Key("read_throughput", _THROUGHPUT, "per instance", default="unlimited"),
        Key("write_throughput", _THROUGHPUT, "per instance", default="unlimited"),
        Key(
            "ports",
            Choice(("shared", "separate")),
            "do reads and writes take turns, or happen at the same time?",
            default="shared",
        ),
        Key("widths", Table(Number("size", minimum=1), SET), "bits per value here, for sets of tensors; first match"),
        Key("must", SET, "tensors that it must hold", default="nothing"),
        Key("may", SET, "tensors that it may hold, beside those that it must", default="all"),
        Key("backs", SET, "tensors whose outermost store it may be", default="all"),
        Key("double_buffer", BOOLEAN, "a tile takes twice its size", default=False),
        *_UNIT,
        Key(
            "setup",
            _TIME,
            "seconds before each transfer between it and a store below, in time in events alone",
            default=0,
        ),
        Key(
            "release",
            Choice(("end", "start")),
            "is a slot free when its last use ends, or when it begins?",
            default="end",
        ),
        Key(
            "prefetch",
            Number("count", minimum=1),
            "how many tiles a store holds in turns; by default 1, or 2 with a double buffer",
        ),
        Key("through", BOOLEAN, "do parts of a tile pass through as they come?", default=False),
    ),
    label="memory",
)
TOLL = Record(
    "a toll",
    (
        Key("toll", LEVEL_NAME, "the name of something that values pass and that keeps none", required=True),
        *ORIGIN,
        COMPONENT,
        Key("energy", _ENERGY, "joules per access", default=0),
        _access("the energy is"),
        Key("throughput", _THROUGHPUT, "per instance, both ways together", default="unlimited"),
        Key("down", SET, "tensors that are charged on the way in, towards the units", default="all"),
        Key("up", SET, "tensors that are charged on the way out", default="all"),
        Key("widths", Table(Number("size", minimum=1), SET), "bits per value here, for sets of tensors; first match"),
        *_UNIT,
    ),
    label="toll",
)
LINK = Record(
    "a link",
    (
        Key("link", LEVEL_NAME, "the name of a way between instances", required=True),
        *ORIGIN,
        COMPONENT,
        Key("axis", LEVEL_NAME, "the axis whose instances it joins", required=True),
        Key("throughput", _THROUGHPUT, "bits per second", default="unlimited"),
        Key("energy", _ENERGY, "joules per bit and hop", default=0),
        Key("hops", Number("count", minimum=1), "hops of one transfer", default=1),
        Key("multicast", BOOLEAN, "does one transfer reach all instances that need the tile?", default=True),
    ),
    label="link",
)
AXIS = Record(
    "an axis",
    (
        Key("axis", LEVEL_NAME, "the name of a direction of the fanout", required=True),
        *ORIGIN,
        Key("size", Number("count", minimum=1), "instances along it", required=True),
        Key("multicast", SET, "tensors that one read above sends to all instances along it", default="all"),
        Key("reduce", SET, "outputs that are added on the way up", default="all"),
        Key(
            "only_irrelevant_to",
            SET,
            "only rank variables that none of these tensors has may be spread here",
            default="nothing",
        ),
        Key("use", Choice(("any", "full")), "must an Einsum use as many instances as it can?", default="any"),
    ),
    label="axis",
)
FANOUT = Record(
    "a fanout",
    (
        Key("fanout", LEVEL_NAME, "the name of a fanout", required=True),
        *ORIGIN,
        Key("axes", Each(AXIS, minimum=1), "its directions", required=True),
    ),
    label="fanout",
)
COMPUTE = Record(
    "a compute unit",
    (
        Key("compute", LEVEL_NAME, "the name of a compute unit", required=True),
        *ORIGIN,
        COMPONENT,
        Key(
            "throughput",
            Number("rate", positive=True, unlimited=True),
            "operations per second and instance",
            default="unlimited",
        ),
        Key("energy", _ENERGY, "joules per operation", default=0),
        Key("kinds", Each(Choice(KINDS), minimum=1), "kinds of Einsums that it executes; by default both"),
        Key(
            "operands",
            Each(Number("count", minimum=1, sourced=False)),
            "numbers of inputs that it executes; by default any",
        ),
        *_UNIT,
        Key("setup", _TIME, "seconds before it works on a new tile of an operand, in time in events alone", default=0),
        Key("stationary", SET, "only a new tile of these takes the setup", default="nothing"),
    ),
    label="compute",
)
LEVELS = (MEMORY, TOLL, LINK, FANOUT, COMPUTE)
TYPES: dict[str, type[Level]] = {"memory": Memory, "toll": Toll, "link": Link, "fanout": Fanout, "compute": ComputeUnit}
"""What a level is, by the label of its record."""
MACHINE = Record(
    "a machine",
    (
        Key("schema", Plain("text"), "what this file is, and its version", required=True),
        Key("name", NAME, "what the machine is called", required=True),
        Key("description", TEXT, "for people"),
        *ORIGIN,
        PARAMETERS,
        Key(
            "partial_sums",
            Choice(("read-modify-write", "once")),
            "what a spilled partial sum costs",
            default="read-modify-write",
        ),
        Key("startup", _TIME, "seconds once per run, in time in events alone", default=0),
        Key("levels", Each(Either(LEVELS)), "from the outermost memory inwards", required=True),
    ),
)


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
    facts: list[Fact] = []
    reader = FactReader(read_parameters(view, parameters), facts)
    found = read_record(view, MACHINE, reader, ignored=("schema", "parameters", "levels"))
    with view.gather():
        reader = reader.within(view)
    read: list[_Stated] = []
    places: list[Located] = []
    with view.gather():
        for item in view.require("levels").items():
            with item.gather():
                read.append(_level(item, reader))
                places.append(item)
    view.raise_gathered()
    levels: list[Level] = []
    for stated, item in zip(read, places, strict=True):
        with item.gather():
            levels.append(_priced(stated, facts))
    view.raise_gathered()
    for level, message in structure_problems(levels):
        with (places[level] if level is not None else view.require("levels")).gather():
            raise SpecError(message)
    view.raise_gathered()
    made = Machine(found.pop("name"), tuple(levels), facts=tuple(facts), **_without(found, "description"))
    vars(made)[READ] = True
    return made


def structure_problems(levels: list[Level]) -> list[tuple[int | None, str]]:
    """What is wrong with the order and the names of levels: (place in the list or None, message) each."""
    problems: list[tuple[int | None, str]] = []
    if not any(isinstance(level, Memory) for level in levels):
        problems.append((None, "a machine needs at least one memory"))
    elif not isinstance(levels[0], Memory) or isinstance(levels[0], Link):
        problems.append((0, f"the first level must be a memory, the outermost one; {levels[0].name} is none"))
    units = [i for i, level in enumerate(levels) if isinstance(level, ComputeUnit)]
    if not units:
        problems.append((None, "a machine needs at least one compute unit"))
    else:
        for i in range(units[-1] + 1, len(levels)):
            problems.append((i, f"{levels[i].name} stands after every compute unit, so none can see it"))
    for i, level in enumerate(levels):
        later = {axis.name for inner in levels[i:] if isinstance(inner, Fanout) for axis in inner.axes}
        if isinstance(level, Link) and level.axis not in later:
            message = f"link {level.name} joins the instances of {level.axis}, which is no axis listed after it"
            problems.append((i, message))
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


@dataclass(frozen=True, slots=True)
class _Stated:
    """What the file says of one level; component: with its attributes, what works out the rest."""

    record: Record
    fields: dict[str, Any]
    component: tuple[MachineComponent, dict[str, Any]] | None


def _priced(stated: _Stated, facts: list[Fact]) -> Level:
    """The level, with what its component works out where the file says nothing."""
    label = stated.record.label
    level = _built(label, stated.fields)
    if stated.component is None:
        return level
    component, own = stated.component
    given = numbers_of(component, level, own, stated.record)
    given = {key: value for key, value in given.items() if key not in stated.fields}
    facts += [Fact(f"{level.name}.{key}", f"{component.name}: {component.source}", "derived") for key in given]
    return _built(label, {**stated.fields, **given})


def _level(view: Located, reader: FactReader) -> _Stated:
    found = [level for level in LEVELS if level.label in view.keys]
    if len(found) != 1:
        labels = [level.label for level in LEVELS]
        close = next(filter(None, (nearest(key, labels) for key in view.keys)), None) if not found else None
        message = f"a level has exactly one of the keys {', '.join(labels)}; this one has {len(found)} of them"
        raise view.error(message, close)
    named = None
    if COMPONENT in found[0].keys and (field := view.get(COMPONENT.name)) is not None:
        with field.gather():
            named = read_component(field, found[0], reader.within(view))
    return _Stated(found[0], read_record(view, found[0], reader, ignored=(COMPONENT.name,)), named)


def _built(label: str, fields: dict[str, Any]) -> Level:
    """The level that the values of its keys describe; what is not said has the default of the class."""
    rest = _without(fields, label)
    if label == "fanout":
        rest["axes"] = tuple(Axis(axis["axis"], **_without(axis, "axis")) for axis in fields["axes"])
    if label == "link":
        names = {"throughput": "read_throughput", "energy": "read_energy"}
        rest = {names.get(key, key): value for key, value in rest.items()}
    return TYPES[label](fields[label], **rest)


def _without(fields: dict[str, Any], key: str) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if name != key}
