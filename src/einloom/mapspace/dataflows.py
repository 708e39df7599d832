"""Dataflows: published ways to schedule a family of workloads, as restrictions of one mapspace.

Comes in: a dataflow file (``data/dataflows``, or a user's), a workload and a machine. Goes out: the `Mapspace` that the
dataflow leaves. A file speaks of roles (families.py) and of places (outermost, on_chip, buffers, first, innermost), so
one file serves every shape and every machine. The schema is ``dataflow/1``::

    schema: dataflow/1
    name: flat-h
    title: FLAT-HGran
    family: attention                                         # or a file beside this one, as families.py reads it
    source: TileFlow (MICRO'23), Table 5
    kind: printed                                             # printed | code | derived | assumed
    description: one tile of heads at a time, intermediates on chip
    fusion:
      - {tensors: intermediate, at: buffers}                  # where the backing stores of these intermediates stand
    loops:
      - {tensors: intermediate, over: [b, h]}                 # fused loops above them iterate these ranks at most
    memories:
      - {at: on_chip, keep: all, einsums: [QK]}               # also may_keep and bypass
    tiles:
      - {at: buffers, tensors: weights, variables: [l], sizes: whole}     # or a number, a list, {least: , most: }
    axes:
      - {at: outer, over: [b, h, m]}                          # these ranks at most are spread over these axes
      - {axis: rows, over: [k], einsums: [QK]}                # or over an axis by its name
      - {axis: core, variables: [h], instances: 4}            # a number, a list, or {least: , most: }
    binding: {kind: pipelined, stages: [[QK], [max, sub, exp, sum, div], [AV]]}
    rewrite: {online_softmax: {tiles: divisors}}              # or a number, a list: makes the family of another one
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Literal, cast, get_args

from ..constraints import KEYWORDS, Selector, selector
from ..errors import SpecError, nearest
from ..located import Located, read_file, read_text
from ..machine.levels import Machine
from ..workload.einsum import Workload
from ..yamltree import Node, parse_yaml
from .families import Cast, Family, family, family_from, is_member
from .families import cast as cast_of
from .files import HOLDS, numbers_from
from .limits import AxisLimit, BackLimit, HoldLimit, HoldRule, Limits, LoopLimit, Numbers, TileLimit
from .rewrites import REWRITES, Choice, Rewrite
from .space import Mapspace

VERSION = 1
DATA = Path(__file__).parent / "data" / "dataflows"
NAMES = (
    "layerwise",
    "uni-pipe",
    "flat-m",
    "flat-b",
    "flat-h",
    "flat-r",
    "chimera",
    "tileflow-attention",
    "flash-attention",
    "chimera-online",
    "transfusion",
    "layerwise-convolution",
    "fused-layer",
    "isos",
    "tileflow-convolution",
    "spread-attention",
    "spread-online-attention",
    "spread-convolution",
    "spread-tiled-convolution",
)
Place = Literal["outermost", "on_chip", "buffers", "first", "innermost"]
PLACES: tuple[Place, ...] = get_args(Place)
SPOTS = ("outer", "array")
KINDS = ("printed", "code", "derived", "assumed")
Kind = Literal["sequential", "pipelined", "parallel"]
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True)
class Fuse:
    """Intermediates among `tensors` are backed `at` a place."""

    tensors: Selector
    at: Place


@dataclass(frozen=True, slots=True)
class Over:
    """Fused loops above the intermediates among `tensors` iterate the ranks `over` at most."""

    tensors: Selector
    over: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Hold:
    """Memories `at` a place keep, may only keep, or bypass `tensors` of some Einsums (None: of all)."""

    rule: HoldRule
    at: Place
    tensors: Selector
    einsums: tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class Tile:
    """Stores of `tensors` `at` a place have these `sizes` in `variables`; None: the whole rank."""

    at: Place
    tensors: Selector
    variables: tuple[str, ...]
    sizes: Numbers | None


@dataclass(frozen=True, slots=True)
class Spread:
    """Each of `variables` takes so many `instances` of the axes at a `spot` (an axis, ``array`` or ``outer``)."""

    spot: str
    variables: tuple[str, ...]
    instances: Numbers
    einsums: tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class Binding:
    """How branches share the machine: one after the other, or `stages` of Einsums at the same time."""

    kind: Kind = "sequential"
    stages: tuple[tuple[str, ...], ...] = ()


Rule = Fuse | Over | Hold | Tile | Spread


@dataclass(frozen=True, slots=True)
class Dataflow:
    """A published way to schedule a family of workloads.

    family: that of the cascade that is scheduled, which a `rewrite` makes of another one; None: the cascade as it is.
    """

    name: str
    title: str
    family: Family
    source: str
    kind: str
    description: str
    rules: tuple[Rule, ...]
    binding: Binding = Binding()
    rewrite: Rewrite | None = None

    def choices(self, workload: Workload) -> tuple[Choice, ...]:
        """The cascades that may be scheduled for `workload`: rewritten ones by number of tiles, or it alone.

        A workload that is rewritten already stays as it is. Raises SpecError for one that the rewrite does not fit.
        """
        if self.rewrite is None or is_member(self.family, workload):
            return (Choice(workload),)
        return tuple(self.rewrite.choices(workload))

    def mapspace(self, workload: Workload, machine: Machine) -> Mapspace:
        """What the dataflow leaves of `ffm` for a workload on a machine. The binding is sequential there.

        Raises SpecError if the workload is no member of the family; one that is rewritten first is one of `choices`.
        """
        return _Maker(self, cast_of(self.family, workload), workload, machine).space()

    def within(self, other: Dataflow, workload: Workload, machine: Machine) -> Mapspace:
        """What this dataflow and `other` leave together."""
        mine, theirs = (flow.mapspace(workload, machine).limits for flow in (self, other))
        both = Limits(
            (*mine.holds, *theirs.holds),
            (*mine.backs, *theirs.backs),
            (*mine.loops, *theirs.loops),
            (*mine.tiles, *theirs.tiles),
            (*mine.axes, *theirs.axes),
        )
        return Mapspace(limits=both, title=f"{self.name} within {other.name}")

    def stages(self, workload: Workload) -> tuple[tuple[str, ...], ...]:
        """Einsums of `workload` per stage of the binding; none where branches come one after the other."""
        players = cast_of(self.family, workload).einsums
        return tuple(tuple(players[role] for role in stage) for stage in self.binding.stages)


class _Maker:
    """Turns rules about roles and places into limits about names."""

    def __init__(self, dataflow: Dataflow, players: Cast, workload: Workload, machine: Machine) -> None:
        self.dataflow, self.players, self.workload, self.machine = dataflow, players, workload, machine

    def space(self) -> Mapspace:
        made = [limit for rule in self.dataflow.rules for limit in self.limits(rule)]
        return Mapspace(
            limits=Limits(
                tuple(x for x in made if isinstance(x, HoldLimit)),
                tuple(x for x in made if isinstance(x, BackLimit)),
                tuple(x for x in made if isinstance(x, LoopLimit)),
                tuple(x for x in made if isinstance(x, TileLimit)),
                tuple(x for x in made if isinstance(x, AxisLimit)),
            ),
            title=self.dataflow.name,
        )

    def limits(self, rule: Rule) -> Iterator[HoldLimit | BackLimit | LoopLimit | TileLimit | AxisLimit]:
        if isinstance(rule, Fuse):
            yield BackLimit(self.tensors(rule.tensors), places(self.machine, rule.at))
        elif isinstance(rule, Hold):
            einsums = None if rule.einsums is None else tuple(self.players.einsums[role] for role in rule.einsums)
            for memory in places(self.machine, rule.at):
                yield HoldLimit(rule.rule, memory, self.tensors(rule.tensors), einsums)
        elif isinstance(rule, Over):
            others = [role for role in self.dataflow.family.variables if role not in rule.over]
            for names, einsums in self.named(others):
                yield LoopLimit(self.tensors(rule.tensors), names, Numbers(values=(1,)), einsums)
        elif isinstance(rule, Tile):
            for memory in places(self.machine, rule.at):
                for role in rule.variables:
                    for (name,), einsums in self.named([role]):
                        sizes = rule.sizes or Numbers(values=(self.workload.extents[name],))
                        yield TileLimit(memory, self.tensors(rule.tensors), (name,), sizes, einsums)
        else:
            for axis in axes(self.machine, rule.spot):
                for names, einsums in self.named(rule.variables, rule.einsums):
                    yield AxisLimit(axis, rule.instances, names, einsums)

    def named(
        self, roles: Iterable[str], among: tuple[str, ...] | None = None
    ) -> list[tuple[tuple[str, ...], tuple[str, ...] | None]]:
        """Names of the rank variables that play `roles`, with the Einsums that call them so; None: all do.

        among: roles of Einsums that are spoken of; None: all.
        """
        by_names: dict[tuple[str, ...], list[str]] = {}
        wanted = list(roles)
        everywhere: dict[str, set[str]] = {}
        for names in self.players.variables.values():
            for role, name in names.items():
                everywhere.setdefault(name, set()).add(role)
        plain = {role: name for name, played in everywhere.items() for role in played}
        one_name_each = all(len(played) == 1 for played in everywhere.values()) and len(plain) == len(everywhere)
        if among is None and one_name_each:
            found = tuple(plain[role] for role in wanted if role in plain)
            return [(found, None)] if found else []
        for einsum, names in self.players.variables.items():
            mine = tuple(names[role] for role in wanted if role in names)
            if mine and (among is None or einsum in among):
                by_names.setdefault(mine, []).append(self.players.einsums[einsum])
        return [(names, tuple(einsums)) for names, einsums in by_names.items()]

    def tensors(self, which: Selector) -> Selector:
        """The selector with every role replaced by the tensor that plays it."""
        return selector(_WORD.sub(lambda word: self.players.tensors.get(word[0], word[0]), which.text))


def places(machine: Machine, at: Place) -> tuple[str, ...]:
    """The memories of a place, outermost first.

    ``buffers`` are those between the outermost and the innermost; with two memories the inner one. Raises SpecError for
    a machine with one memory, on which nothing is on chip.
    """
    names = tuple(memory.name for memory in machine.memories)
    if at == "outermost":
        return names[:1]
    if len(names) < 2:
        raise SpecError(f"{machine.name} has one memory, so nothing can be {at}")
    found: dict[Place, tuple[str, ...]] = {
        "on_chip": names[1:],
        "buffers": names[1:-1] or names[1:],
        "first": names[1:2],
        "innermost": names[-1:],
    }
    return found[at]


def axes(machine: Machine, spot: str) -> tuple[str, ...]:
    """The axis of this name, those of the innermost fanout (``array``), or all others (``outer``).

    Raises SpecError for an axis that the machine lacks.
    """
    last = tuple(axis.name for axis in machine.fanouts[-1].axes) if machine.fanouts else ()
    if spot == "array":
        return last
    if spot == "outer":
        return tuple(name for name in machine.axes if name not in last)
    if spot not in machine.axes:
        known = ", ".join(machine.axes) or "none"
        message = f"a dataflow speaks of axis {spot!r:.60}; {machine.name} has {known}"
        raise SpecError(message, suggestion=nearest(spot, list(machine.axes)))
    return (spot,)


def dataflow(name: str) -> Dataflow:
    """The dataflow that ships under a name, or that a file ending in .yaml or .yml describes.

    >>> dataflow("flat-h").title
    'FLAT-HGran'

    Raises SpecError with a suggestion for an unknown name, with the place of whatever is wrong in a file.
    """
    if name.endswith((".yaml", ".yml")):
        return dataflow_from(read_file(name))
    if name not in NAMES:
        listed = "`einloom zoo` lists those that ship; a file ends in .yaml"
        raise SpecError(f"there is no dataflow {name!r:.60}; {listed}", suggestion=nearest(name, NAMES))
    return _shipped(name)


@lru_cache(maxsize=len(NAMES))
def _shipped(name: str) -> Dataflow:
    return dataflow_from(read_file(DATA / f"{name}.yaml"))


def parse_dataflow(text: str, file: str = "<text>") -> Dataflow:
    """The dataflow of a YAML text."""
    return dataflow_from(read_text(text, file))


def dataflow_text(name: str) -> str:
    """The file of a dataflow that ships, as it stands there: a start for one's own."""
    dataflow(name)
    return (DATA / f"{name}.yaml").read_text(encoding="utf-8")


def dataflow_data(name: str) -> object:
    """The same file as plain data."""
    return _plain(parse_yaml(dataflow_text(name), name))


def _plain(node: Node) -> object:
    if node.kind == "mapping":
        return {str(key.scalar): _plain(value) for key, value in node.pairs}
    return [_plain(item) for item in node.items] if node.kind == "list" else node.scalar


def dataflow_from(view: Located) -> Dataflow:
    """The dataflow that a view shows. Raises SpecError with the places of all that is wrong."""
    view.schema("dataflow", VERSION)
    name = view.require("name").name()
    field = view.require("family")
    with field.placed():
        kind = _family(field.name(), view.file)
    reader = _Reader(kind)
    rules = tuple(reader.rules(view))
    binding = Binding()
    if (bound := view.get("binding")) is not None:
        with bound.gather():
            binding = reader.binding(bound)
    title, about, changed = view.get("title"), view.get("description"), view.get("rewrite")
    rewrite = None
    if changed is not None:
        with changed.gather():
            rewrite = reader.rewrite(changed)
    found = Dataflow(
        name,
        name if title is None else title.text(),
        kind,
        view.require("source").text(),
        view.require("kind").choice(KINDS),
        "" if about is None else about.text(),
        rules,
        binding,
        rewrite,
    )
    with view.gather():
        view.finish()
    view.raise_gathered()
    return found


def _family(name: str, beside: str | None) -> Family:
    """The family of a name, or of a file that stands beside the file that names it."""
    if name.endswith((".yaml", ".yml")):
        return family_from(read_file(Path(beside or "").parent / name))
    return family(name)


def _tiles(view: Located) -> tuple[int, ...] | None:
    """Numbers of tiles: one, a list, or None for ``divisors``."""
    if view.is_text:
        view.choice(("divisors",))
        return None
    items = view.items() if view.is_list else [view]
    if not items:
        raise view.error("an empty list; numbers of tiles or 'divisors' must stand here")
    return tuple(dict.fromkeys(item.integer(minimum=1) for item in items))


class _Reader:
    """Reads the sections of a dataflow file; what names a role is checked against the family. Errors are gathered."""

    def __init__(self, kind: Family) -> None:
        self.family = kind
        self.einsums = tuple(einsum.name for einsum in kind.einsums)

    def rules(self, view: Located) -> Iterator[Rule]:
        for section, read in (
            ("fusion", self.fuse),
            ("loops", self.over),
            ("memories", self.hold),
            ("tiles", self.tile),
            ("axes", self.spread),
        ):
            field = view.get(section)
            for item in [] if field is None else field.items():
                with item.gather():
                    yield from read(item)
                    item.finish()

    def fuse(self, item: Located) -> Iterator[Rule]:
        yield Fuse(self.tensors(item.require("tensors")), self.place(item.require("at")))

    def over(self, item: Located) -> Iterator[Rule]:
        yield Over(
            self.tensors(item.require("tensors")), self.roles(item.require("over"), self.family.variables, "rank")
        )

    def hold(self, item: Located) -> Iterator[Rule]:
        at, which = self.place(item.require("at")), item.get("einsums")
        einsums = None if which is None else self.roles(which, self.einsums, "Einsum")
        for rule in HOLDS:
            if (field := item.get(rule)) is not None:
                yield Hold(rule, at, self.tensors(field), einsums)

    def tile(self, item: Located) -> Iterator[Rule]:
        at, which, sizes = self.place(item.require("at")), item.get("tensors"), item.require("sizes")
        whole = sizes.is_text and sizes.text() == "whole"
        yield Tile(
            at,
            selector("all") if which is None else self.tensors(which),
            self.roles(item.require("variables"), self.family.variables, "rank"),
            None if whole else numbers_from(sizes),
        )

    def spread(self, item: Located) -> Iterator[Rule]:
        named, at, which = item.get("axis"), item.get("at"), item.get("einsums")
        if (named is None) == (at is None):
            raise item.error("an axis is meant by 'axis: NAME' or by 'at: outer' or 'at: array'")
        spot = named.name() if named is not None else "" if at is None else at.choice(SPOTS)
        einsums = None if which is None else self.roles(which, self.einsums, "Einsum")
        over = item.get("over")
        if over is not None:
            most = self.roles(over, self.family.variables, "rank")
            others = tuple(role for role in self.family.variables if role not in most)
            yield Spread(spot, others, Numbers(values=(1,)), einsums)
        else:
            variables = self.roles(item.require("variables"), self.family.variables, "rank")
            yield Spread(spot, variables, numbers_from(item.require("instances")), einsums)

    def binding(self, view: Located) -> Binding:
        """The binding; its stages hold every Einsum once, in program order."""
        kind = cast(Kind, view.require("kind").choice(get_args(Kind)))
        field = view.get("stages")
        stages = () if field is None else tuple(self.roles(s, self.einsums, "Einsum") for s in field.items())
        view.finish()
        if kind == "sequential" and field is not None:
            raise field.error("a sequential binding has no stages")
        if kind != "sequential" and tuple(role for stage in stages for role in stage) != self.einsums:
            message = f"the stages must hold each of {', '.join(self.einsums)} once, in this order"
            raise (view if field is None else field).error(message)
        return Binding(kind, stages)

    def rewrite(self, view: Located) -> Rewrite:
        """The rewrite and its numbers of tiles; it must make the family that the file speaks of."""
        entries = view.entries()
        if len(entries) != 1:
            raise view.error("expected one rewrite, as in {online_softmax: {tiles: divisors}}")
        ((name, key, value),) = entries
        if name not in REWRITES:
            raise key.error(f"there is no rewrite {name!r:.60}; known: {', '.join(REWRITES)}", nearest(name, REWRITES))
        rule = REWRITES[name]
        if rule.target != self.family.name:
            raise key.error(f"{name} makes {rule.target} of {rule.source}, but the family here is {self.family.name}")
        numbers: list[tuple[str, tuple[int, ...] | None]] = []
        for cut, place, tiles in value.entries():
            if cut not in rule.cuts:
                known = ", ".join(rule.cuts)
                raise place.error(f"{name} has no number {cut!r:.60}; it has {known}", nearest(cut, rule.cuts))
            numbers.append((cut, _tiles(tiles)))
        if not numbers:
            raise value.error(f"which tiles? {name} has {', '.join(rule.cuts)}, each 'divisors', a number or a list")
        return Rewrite(name, tuple(numbers))

    def place(self, view: Located) -> Place:
        return cast(Place, view.choice(PLACES))

    def tensors(self, view: Located) -> Selector:
        with view.placed():
            found = selector(view.text(what="a selector such as 'intermediate & ~weights'"))
        for name in found.names:
            if name not in KEYWORDS and name not in self.family.tensors:
                known = ", ".join(self.family.tensors)
                message = f"the family {self.family.name} has no tensor {name!r:.60}; it has {known}"
                raise view.error(message, nearest(name, self.family.tensors))
        return found

    def roles(self, view: Located, known: tuple[str, ...], what: str) -> tuple[str, ...]:
        names = view.names()
        for name in names:
            if name not in known:
                message = f"the family {self.family.name} has no {what} {name!r:.60}; it has {', '.join(known)}"
                raise view.error(message, nearest(name, known))
        return names
