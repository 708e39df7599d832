"""Mapspace files: YAML in, `Mapspace` out, and back. The schema is ``mapspace/1``.

schema: mapspace/1
name: my-dataflow                    # what you call it
space: ffm                           # the named space that is limited: ffm, or ragged with uneven tiles
max_fused_loops: 2
concurrent: any                      # groups of Einsums at the same time: none, unit, shared, any (of the two),
                                     # axis, or everywhere (all three)
max_group: 3                         # most Einsums of a group
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

from collections.abc import Collection, Iterable
from pathlib import Path
from typing import TypeVar, cast

from ..errors import SpecError, nearest
from ..machine.levels import Machine
from ..reading.located import Located, from_data, read_file, read_text
from ..reading.yamltree import dump_yaml
from ..workload.einsum import Workload
from ..workload.selectors import Selector, selector, unknown_names
from .limits.data import AxisLimit, BackLimit, HoldLimit, HoldRule, Limit, Limits, LoopLimit, Numbers, TileLimit
from .space import CONCURRENT, LARGEST_GROUP, SPACES, Concurrent, Mapspace, space_names

VERSION = 1
AnyLimit = TypeVar("AnyLimit", bound=Limit)
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
    title = view.get("name")
    view.get("description")
    space = view.get("space")
    name = SPACES[0] if space is None else space.choice(space_names())
    most = view.get("max_fused_loops")
    concurrent, group = groups_from(view)
    limits = _Reader(machine, workload).limits(view)
    with view.gather():
        view.finish()
    view.raise_gathered()
    loops = None if most is None else most.integer(minimum=0)
    return Mapspace(name, loops, limits, None if title is None else title.name(), concurrent, group)


def groups_from(view: Located) -> tuple[Concurrent, int]:
    """Where groups of Einsums may run at the same time, and how many Einsums one may have."""
    where, most = view.get("concurrent"), view.get("max_group")
    concurrent = "none" if where is None else where.choice(CONCURRENT)
    return cast(Concurrent, concurrent), LARGEST_GROUP if most is None else most.integer(minimum=2)


def groups_data(mapspace: Mapspace) -> dict[str, object]:
    """What `groups_from` reads back; nothing where all splits are sequential."""
    return {"concurrent": mapspace.concurrent, "max_group": mapspace.max_group} if mapspace.places else {}


def limits_from(view: Located, machine: Machine) -> Limits:
    """The sections of a mapspace file alone, as a result file repeats them."""
    limits = _Reader(machine, None).limits(view)
    with view.gather():
        view.finish()
    view.raise_gathered()
    return limits


def located_limit(path: str | Path, machine: Machine, limit: Limit) -> Located | None:
    """Where a limit stands in a mapspace file that is known to be good; None if it does not."""
    view = read_file(path)
    reader = _Reader(machine, None)
    reader.limits(view)
    return reader.places.get(limit)


class _Reader:
    """Reads the sections of a mapspace file; errors are gathered."""

    def __init__(self, machine: Machine, workload: Workload | None) -> None:
        self.workload = workload
        self.memories = tuple(memory.name for memory in machine.memories)
        self.axes = tuple(machine.axes)
        self.places: dict[Limit, Located] = {}

    def limits(self, view: Located) -> Limits:
        holds: list[HoldLimit] = []
        loops: list[LoopLimit] = []
        tiles: list[TileLimit] = []
        axes: list[AxisLimit] = []
        for _, key, value in _entries(view.get("memories")):
            with key.gather():
                memory = self._one_of(key, self.memories, "memory")
                for item in value.items() if value.is_list else [value]:
                    holds += self._holds(item, memory)
        for item in _items(view.get("loops")):
            with item.gather():
                names = item.require("variables").names()
                trips = numbers_from(item.require("trips"))
                loop = LoopLimit(_selector(item.require("tensors")), names, trips, _einsums(item))
                loops.append(self._known(item, loop))
                item.finish()
        for item in _items(view.get("tiles")):
            with item.gather():
                where = self._one_of(item.require("memory"), self.memories, "memory")
                which = item.get("tensors")
                tensors = selector("all") if which is None else _selector(which)
                names = item.require("variables").names()
                tile = TileLimit(where, tensors, names, numbers_from(item.require("sizes")), _einsums(item))
                tiles.append(self._known(item, tile))
                item.finish()
        for item in _items(view.get("axes")):
            with item.gather():
                axis = self._one_of(item.require("axis"), self.axes, "axis")
                field = item.get("variables")
                names = () if field is None else field.names()
                share = AxisLimit(axis, numbers_from(item.require("instances")), names, _einsums(item))
                axes.append(self._known(item, share))
                item.finish()
        backs = self._backs(view.get("fusion"))
        return Limits(tuple(holds), tuple(backs), tuple(loops), tuple(tiles), tuple(axes))

    def _holds(self, item: Located, memory: str) -> list[HoldLimit]:
        einsums = _einsums(item)
        found = []
        for rule in HOLDS:
            if (field := item.get(rule)) is not None:
                found.append(self._known(field, HoldLimit(rule, memory, _selector(field), einsums)))
        item.finish()
        return found

    def _backs(self, view: Located | None) -> list[BackLimit]:
        found: list[BackLimit] = []
        if view is None:
            return found
        with view.gather():
            if (field := view.get("fused")) is not None:
                if len(self.memories) < 2:
                    raise field.error("the machine has one memory, so nothing can be fused")
                found.append(self._known(field, BackLimit(_selector(field), self.memories[1:])))
            if (field := view.get("unfused")) is not None:
                found.append(self._known(field, BackLimit(_selector(field), self.memories[:1])))
            for _, key, value in _entries(view.get("backed")):
                alone = (self._one_of(key, self.memories, "memory"),)
                found.append(self._known(value, BackLimit(_selector(value), alone)))
            for item in _items(view.get("within")):
                names = item.require("memories").items()
                among = tuple(self._one_of(name, self.memories, "memory") for name in names)
                found.append(self._known(item, BackLimit(_selector(item.require("tensors")), among)))
                item.finish()
            view.finish()
        return found

    def _known(self, view: Located, limit: AnyLimit) -> AnyLimit:
        """The limit, if it names nothing that the workload lacks; its place is kept."""
        self.places.setdefault(limit, view)
        if self.workload is not None:
            with view.placed():
                check_limit(self.workload, limit)
        return limit

    def _one_of(self, view: Located, names: Collection[str], what: str) -> str:
        name = view.name()
        if name not in names:
            known = ", ".join(names) or "none"
            raise view.error(f"the machine has no {what} {name!r:.60}; it has {known}", nearest(name, list(names)))
        return name


def _entries(view: Located | None) -> list[tuple[str, Located, Located]]:
    return [] if view is None else view.entries()


def _items(view: Located | None) -> list[Located]:
    return [] if view is None else view.items()


def _selector(view: Located) -> Selector:
    with view.placed():
        return selector(view.text(what="a selector such as 'input | weight'"))


def _einsums(view: Located) -> tuple[str, ...] | None:
    field = view.get("einsums")
    return None if field is None else field.names()


def numbers_from(view: Located) -> Numbers:
    """A number, a list of numbers, or ``{least: , most: }``."""
    if view.is_mapping:
        least, most = view.get("least"), view.get("most")
        view.finish()
        low = 1 if least is None else least.integer(minimum=1)
        high = None if most is None else most.integer(minimum=1)
        if high is not None and high < low:
            raise view.error(f"least {low} is above most {high}")
        return Numbers(low, high)
    views = view.items() if view.is_list else [view]
    if not views:
        raise view.error("an empty list allows nothing; list some numbers")
    return Numbers(values=tuple(sorted({item.integer(minimum=1) for item in views})))


def check_mapspace(workload: Workload, mapspace: Mapspace) -> None:
    """Refuse limits that speak of Einsums, tensors or rank variables that the workload does not have."""
    for limit in mapspace.limits.all:
        check_limit(workload, limit)


def check_limit(workload: Workload, limit: Limit) -> None:
    """Refuse one limit that speaks of what the workload does not have."""
    einsums = [e.name for e in workload.einsums]
    tensors = [t.name for t in workload.tensors]
    variables = sorted({v for e in workload.einsums for v in e.variables})
    _known(limit, () if isinstance(limit, BackLimit) else limit.einsums or (), einsums, "Einsum", workload)
    if isinstance(limit, HoldLimit | BackLimit | LoopLimit | TileLimit):
        _known(limit, unknown_names(limit.tensors, workload), tensors, "tensor", workload)
    if isinstance(limit, LoopLimit | TileLimit | AxisLimit):
        _known(limit, limit.variables, variables, "rank variable", workload)


def _known(limit: Limit, names: Iterable[str], known: list[str], what: str, workload: Workload) -> None:
    for name in names:
        if name not in known:
            raise SpecError(
                f"limit '{limit}': {name!r:.60} is no {what} of {workload.name}", suggestion=nearest(name, known)
            )


def mapspace_data(mapspace: Mapspace) -> dict[str, object]:
    """The mapspace as plain data that `mapspace_from_data` reads back to an equal one."""
    data: dict[str, object] = {"schema": f"mapspace/{VERSION}"}
    if mapspace.title is not None:
        data["name"] = mapspace.title
    data["space"] = mapspace.name
    if mapspace.max_fused_loops is not None:
        data["max_fused_loops"] = mapspace.max_fused_loops
    return {**data, **groups_data(mapspace), **limits_data(mapspace.limits)}


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
    if limits.loops:
        data["loops"] = [
            {"tensors": x.tensors.text, "variables": list(x.variables), "trips": _shown(x.trips), **_named(x.einsums)}
            for x in limits.loops
        ]
    if limits.tiles:
        data["tiles"] = [
            {
                "memory": x.memory,
                "tensors": x.tensors.text,
                "variables": list(x.variables),
                "sizes": _shown(x.sizes),
                **_named(x.einsums),
            }
            for x in limits.tiles
        ]
    if limits.axes:
        data["axes"] = [
            {
                "axis": x.axis,
                **({"variables": list(x.variables)} if x.variables else {}),
                "instances": _shown(x.instances),
                **_named(x.einsums),
            }
            for x in limits.axes
        ]
    return data


def mapspace_text(mapspace: Mapspace) -> str:
    """The mapspace as YAML; `parse_mapspace` reads it back to an equal one."""
    return dump_yaml(mapspace_data(mapspace))


def _named(einsums: tuple[str, ...] | None) -> dict[str, object]:
    return {} if einsums is None else {"einsums": list(einsums)}


def _shown(numbers: Numbers) -> object:
    if numbers.values:
        return numbers.values[0] if len(numbers.values) == 1 else list(numbers.values)
    return {"least": numbers.least, **({} if numbers.most is None else {"most": numbers.most})}
