"""Mapspace files: YAML in, `Mapspace` out, and back. The schema is ``mapspace/1``.

schema: mapspace/1
name: my-dataflow                    # what you call it
space: ffm                           # the named space that is limited: ffm, or ragged with uneven tiles
max_fused_loops: 2
concurrent: any                      # groups of Einsums at the same time: none, unit, shared, any (of the two),
                                     # axis, or everywhere (all three)
max_group: 3                         # most Einsums of a group
order: free                          # of the Einsums: program, or free, any that their data allows
stores: shared                       # one for several Einsums that read a tensor; own: one for each
memories:
  GLB: {keep: QK | AV, bypass: weight}               # also may_keep, once; per Einsum: [{keep: Q, einsums: [QK]}, ...]
fusion:
  fused: QK | AV                     # backed in any memory but the outermost
  unfused: Z                         # backed in the outermost
  backed: {GLB: V | K}               # backed in this memory, or in one of a list
loops:
  - {tensors: QK, variables: [h], trips: 4}          # fused loops: a number, a list, or {least: 2, most: 8}
tiles:
  - {memory: GLB, tensors: Q, variables: [m], sizes: {most: 64}}
axes:
  - {axis: Z, variables: [h], instances: 4}          # without variables: all loops on the axis together
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from ..errors import SpecError, combined, nearest
from ..machine.files import SET
from ..machine.levels import Machine
from ..reading.fields import STATED, read_record
from ..reading.keys import NAME, NAMES, TEXT, Choice, Each, Either, Key, Later, NameOf, Number, Record, Table
from ..reading.located import Located, from_data, read_file, read_text
from ..reading.yamltree import dump_yaml
from ..workload.einsum import Workload
from ..workload.selectors import KEYWORDS, selector, unknown_names
from .limits.data import AxisLimit, BackLimit, HoldLimit, HoldRule, Limit, Limits, LoopLimit, Numbers, TileLimit
from .space import CONCURRENT, ORDERS, SPACES, STORES, Mapspace, space_names

VERSION = 1
AnyLimit = TypeVar("AnyLimit", bound=Limit)
RowLimit = LoopLimit | TileLimit | AxisLimit
ROWS: dict[str, tuple[Callable[..., RowLimit], tuple[str, ...]]] = {
    "loops": (LoopLimit, ("tensors", "variables", "trips")),
    "tiles": (TileLimit, ("memory", "tensors", "variables", "sizes")),
    "axes": (AxisLimit, ("axis", "variables", "instances")),
}
"""Sections that list limits of one kind, and the keys of an entry, which are fields of the limit, besides `einsums`."""
COUNTED = ("trips", "sizes", "instances")
HOLDS: tuple[HoldRule, ...] = ("keep", "may_keep", "bypass", "once")


def read_mapspace(path: str | Path, machine: Machine, workload: Workload | None = None) -> Mapspace:
    """The mapspace of a file. Raises SpecError with the place of whatever is wrong."""
    return mapspace_from(read_file(path), machine, workload)


def parse_mapspace(text: str, machine: Machine, file: str = "<text>") -> Mapspace:
    """The mapspace of a YAML text."""
    return mapspace_from(read_text(text, file), machine)


def mapspace_from_data(data: object, machine: Machine, file: str | None = None) -> Mapspace:
    """The mapspace of plain data as `mapspace_data` makes it (and a result file holds it)."""
    return mapspace_from(from_data(data, file), machine)


def mapspace_from(view: Located, machine: Machine, workload: Workload | None = None) -> Mapspace:
    """The mapspace that a view shows, for `machine`, whose memories and axes it names.

    workload: if given, names that it lacks are refused where they stand.
    """
    view.schema("mapspace", VERSION)
    sections = Sections(machine, workload)
    found = read_record(view, sections.mapspace, STATED, ignored=("schema",))
    limits = sections.limits(view, found)  # raises what was gathered
    return space_of(found, found.get("name"), found.get("space", SPACES[0]), limits)


def space_of(found: dict[str, Any], title: str | None, name: str, limits: Limits) -> Mapspace:
    """The mapspace of values of keys, as mapspace and result files share them."""
    given = {key.name: found[key.name] for key in SPLITS if key.name in found}
    return Mapspace(name, limits=limits, title=title, **given)


def with_splits(mapspace: Mapspace, instead: dict[str, object]) -> Mapspace:
    """The mapspace with other values of keys of `SPLITS`; None keeps the one that it has.

    Raises SpecError for values that a file could not have either, those that are kept included.
    """
    kept = {key.name: getattr(mapspace, key.name) for key in SPLITS}
    view = from_data(kept | {name: value for name, value in instead.items() if value is not None})
    found = read_record(view, Record("a mapspace", SPLITS), STATED)
    view.raise_gathered()
    return space_of(found, mapspace.title, mapspace.name, mapspace.limits)


def splits_data(mapspace: Mapspace) -> dict[str, object]:
    """Where groups of Einsums may run at the same time, in which order, whether they share stores, and how often fused
    loops may cut a rank; nothing where splits are sequential and in program order, every Einsum has its own stores, and
    fused loops cut a rank once."""
    data: dict[str, object] = {}
    default = Mapspace()
    if mapspace.places:
        data = {"concurrent": mapspace.concurrent, "max_group": mapspace.max_group}
    for name in ("order", "stores", "max_fused_loops_per_rank_variable"):
        if (value := getattr(mapspace, name)) != getattr(default, name):
            data[name] = value
    return data


def located_limit(path: str | Path, machine: Machine, limit: Limit) -> Located | None:
    """Where a limit stands in a mapspace file that is known to be good; None if it does not."""
    view, sections = read_file(path), Sections(machine)
    sections.limits(view, read_record(view, sections.mapspace, STATED))
    return sections.places.get(limit)


_COUNT = Number("count", minimum=1, sourced=False)


def _range(view: Located, found: dict[str, Any]) -> Numbers:
    low, high = found.get("least", 1), found.get("most")
    if high is not None and high < low:
        raise view.error(f"least {low} is above most {high}")
    return Numbers(low, high)


RANGE = Record("a range", (Key("least", _COUNT, "from"), Key("most", _COUNT, "to")), build=_range)
NUMBERS = Either((_COUNT, Each(_COUNT, minimum=1), RANGE))


def numbers_of(found: Any) -> Numbers:
    """The numbers that a value of the shape `NUMBERS` allows."""
    if isinstance(found, Numbers):
        return found
    return Numbers(values=tuple(sorted({found} if isinstance(found, int) else set(found))))


SPLITS = (
    Key("max_fused_loops", Number("count", sourced=False, plain=True), "at most so many loops above a fused tensor"),
    Key("concurrent", Choice(CONCURRENT), "where groups of Einsums may run at the same time"),
    Key("max_group", Number("count", minimum=2, sourced=False, plain=True), "most Einsums of a group"),
    Key("order", Choice(tuple(ORDERS)), "in which order the Einsums may run"),
    Key("stores", Choice(STORES), "whether a store may serve several Einsums that read its tensor"),
    Key(
        "max_fused_loops_per_rank_variable",
        Number("count", minimum=1, sourced=False, plain=True),
        "how often the fused loops of an Einsum may cut one rank",
    ),
)
SPACE = Later("a named mapspace", lambda: Choice(space_names()))
EINSUMS = Key("einsums", NAMES, "the Einsums that it speaks of; by default all")
EVERYTHING = selector("all")


class Sections:
    """The tables of keys of a mapspace file, for the memories and axes of a machine, and the limits that they make.

    machine: None stands for any, as in a schema. workload: if given, it must have what the limits name. places: where
    each limit stands.
    """

    def __init__(self, machine: Machine | None = None, workload: Workload | None = None) -> None:
        self.workload = workload
        self.memories = None if machine is None else tuple(memory.name for memory in machine.memories)
        self.axes = None if machine is None else tuple(machine.axes)
        self.places: dict[Limit, Located] = {}

    @property
    def mapspace(self) -> Record:
        """The table of a whole file."""
        first = (
            Key("schema", TEXT, "what this file is, and its version", required=True),
            Key("name", NAME, "what you call it"),
            Key("description", TEXT, "for people"),
            Key("space", SPACE, "the named space that is limited"),
        )
        return Record("a mapspace", (*first, *SPLITS, *self.keys))

    @property
    def keys(self) -> tuple[Key, ...]:
        """The sections that make limits, as a result file repeats them."""
        memory = NameOf("a memory of the machine", self.memories)
        which = Key("tensors", SET, "of which tensors; by default all")
        words = ("tensors that it must keep", "the only tensors that it may keep")
        rules = zip(HOLDS, (*words, "tensors that it must not keep", "tensors that come to it once"), strict=True)
        hold = Record("what a memory holds", (*(Key(rule, SET, said) for rule, said in rules), EINSUMS), build=seen)
        within = (
            Key("tensors", SET, "which", required=True),
            Key("memories", Each(memory), "in one of these memories", required=True),
        )
        fusion = (
            Key("fused", SET, "backed in any memory but the outermost"),
            Key("unfused", SET, "backed in the outermost memory"),
            Key("backed", Table(SET, memory), "backed in this memory"),
            Key("within", Each(Record("where tensors are backed", within, build=seen)), "backed in one of several"),
        )
        loop = (
            Key("tensors", SET, "the tensors that they are fused over", required=True),
            Key("variables", NAMES, "their rank variables", required=True),
            Key("trips", NUMBERS, "a number, a list, or {least, most}", required=True),
        )
        tile = (
            Key("memory", memory, "where", required=True),
            which,
            Key("variables", NAMES, "along which rank variables", required=True),
            Key("sizes", NUMBERS, "a number, a list, or {least, most}", required=True),
        )
        axis = (
            Key("axis", NameOf("an axis of the machine", self.axes), "which", required=True),
            Key("variables", NAMES, "loops over these; by default all loops on the axis together"),
            Key("instances", NUMBERS, "a number, a list, or {least, most}", required=True),
        )
        return (
            Key("memories", Table(Either((Each(hold), hold)), memory), "what each memory keeps"),
            Key("fusion", Record("what is fused", fusion, build=seen), "which intermediates are fused, and where"),
            Key("loops", Each(Record("fused loops", (*loop, EINSUMS), build=seen)), "fused loops"),
            Key("tiles", Each(Record("tiles", (*tile, EINSUMS), build=seen)), "sizes of tiles"),
            Key("axes", Each(Record("use of an axis", (*axis, EINSUMS), build=seen)), "spatial use"),
        )

    def limits(self, view: Located, found: dict[str, Any]) -> Limits:
        """The limits that the values of `keys` make. Raises all that was gathered."""
        holds = []
        for memory, entries in found.get("memories", ()):
            for at, item in (entries,) if entries and isinstance(entries[0], Located) else entries:
                einsums = item.get("einsums")
                holds += [
                    self._known(at.require(rule), HoldLimit(rule, memory, item[rule], einsums))
                    for rule in HOLDS
                    if rule in item
                ]
        rows: dict[str, Any] = {
            name: tuple([self._row(at, kind, x) for at, x in found.get(name, ())]) for name, (kind, _) in ROWS.items()
        }
        backs: list[BackLimit] = []
        with view.gather():
            backs = self._backs(*found["fusion"]) if "fusion" in found else []
        view.raise_gathered()
        return Limits(tuple(holds), tuple(backs), **rows)

    def _row(self, view: Located, kind: Callable[..., RowLimit], found: dict[str, Any]) -> RowLimit:
        """One entry of a section of `ROWS`."""
        values: dict[str, Any] = {"tensors": EVERYTHING} if kind is TileLimit else {}
        values |= {key: numbers_of(value) if key in COUNTED else value for key, value in found.items()}
        return self._known(view, kind(**values))

    def _backs(self, view: Located, found: dict[str, Any]) -> list[BackLimit]:
        memories = self.memories or ()
        limits = []
        if "fused" in found:
            field = view.require("fused")
            if len(memories) < 2:
                raise field.error("the machine has one memory, so nothing can be fused")
            limits.append(self._known(field, BackLimit(found["fused"], memories[1:])))
        if "unfused" in found:
            limits.append(self._known(view.require("unfused"), BackLimit(found["unfused"], memories[:1])))
        for memory, tensors in found.get("backed", ()):
            limits.append(self._known(view.require("backed").require(memory), BackLimit(tensors, (memory,))))
        limits += [self._known(at, BackLimit(x["tensors"], x["memories"])) for at, x in found.get("within", ())]
        return limits

    def _known(self, view: Located, limit: AnyLimit) -> AnyLimit:
        """The limit; a name that the workload lacks is gathered. Its place is kept."""
        self.places.setdefault(limit, view)
        if self.workload is not None:
            for error in strangers(self.workload, limit):
                with view.gather():
                    raise error
        return limit


def seen(view: Located, found: dict[str, Any]) -> tuple[Located, dict[str, Any]]:
    """The values with the place where they stand."""
    return view, found


MAPSPACE = Sections().mapspace


def check_mapspace(workload: Workload, mapspace: Mapspace) -> None:
    """Refuse limits that speak of Einsums, tensors or rank variables that the workload does not have, all at once."""
    wrong = [error for limit in mapspace.limits.all for error in strangers(workload, limit)]
    if wrong:
        raise combined(wrong)


def strangers(workload: Workload, limit: Limit) -> Iterator[SpecError]:
    """An error for each name in a limit that the workload does not have."""
    einsums = [e.name for e in workload.einsums]
    words = [*(t.name for t in workload.tensors), *KEYWORDS]
    variables = sorted({v for e in workload.einsums for v in e.variables})
    named: list[tuple[Iterable[str], list[str], str]] = []
    if not isinstance(limit, BackLimit):
        named.append((limit.einsums or (), einsums, "Einsum"))
    if isinstance(limit, HoldLimit | BackLimit | LoopLimit | TileLimit):
        named.append((unknown_names(limit.tensors, workload), words, "tensor"))
    if isinstance(limit, LoopLimit | TileLimit | AxisLimit):
        named.append((limit.variables, variables, "rank variable"))
    for names, known, what in named:
        for name in names:
            if name not in known:
                message = f"limit '{limit}': {name!r:.60} is no {what} of {workload.name}"
                yield SpecError(message, suggestion=nearest(name, known))


def mapspace_data(mapspace: Mapspace) -> dict[str, object]:
    """The mapspace as plain data that `mapspace_from_data` reads back to an equal one."""
    data: dict[str, object] = {"schema": f"mapspace/{VERSION}"}
    if mapspace.title is not None:
        data["name"] = mapspace.title
    data["space"] = mapspace.name
    if mapspace.max_fused_loops is not None:
        data["max_fused_loops"] = mapspace.max_fused_loops
    return {**data, **splits_data(mapspace), **limits_data(mapspace.limits)}


def limits_data(limits: Limits) -> dict[str, object]:
    """The sections of a mapspace file as plain data."""
    data: dict[str, object] = {}
    memories: dict[str, list[dict[str, object]]] = {}
    for hold in limits.holds:
        memories.setdefault(hold.memory, []).append({hold.rule: hold.tensors.text, **_named(hold.einsums)})
    if memories:
        data["memories"] = memories
    if limits.backs:
        within = [{"tensors": back.tensors.text, "memories": list(back.memories)} for back in limits.backs]
        data["fusion"] = {"within": within}
    for section, (_, keys) in ROWS.items():
        if listed := getattr(limits, section):
            data[section] = [_row_data(limit, keys) for limit in listed]
    return data


def _row_data(limit: RowLimit, keys: tuple[str, ...]) -> dict[str, object]:
    """One entry of a section of `ROWS`."""
    found: dict[str, object] = {}
    for key in keys:
        value = getattr(limit, key)
        if value != () or not isinstance(limit, AxisLimit):  # without variables: all loops on the axis together
            found[key] = _shown(value) if key in COUNTED else list(value) if key == "variables" else str(value)
    return found | _named(limit.einsums)


def mapspace_text(mapspace: Mapspace) -> str:
    """The mapspace as YAML; `parse_mapspace` reads it back to an equal one."""
    return dump_yaml(mapspace_data(mapspace))


def _named(einsums: tuple[str, ...] | None) -> dict[str, object]:
    return {} if einsums is None else {"einsums": list(einsums)}


def _shown(numbers: Numbers) -> object:
    if numbers.values:
        return numbers.values[0] if len(numbers.values) == 1 else list(numbers.values)
    return {"least": numbers.least, **({} if numbers.most is None else {"most": numbers.most})}
