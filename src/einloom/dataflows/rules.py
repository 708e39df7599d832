"""Dataflows: published ways to schedule a family of workloads, as restrictions of one mapspace.

Comes in: a dataflow file (``data/dataflows``, or a user's), a workload and a machine. Goes out: the `Mapspace` that the
dataflow leaves. A file speaks of roles (families.py) and of places (outermost, on_chip, buffers, first, innermost), so
one file serves every shape and every machine.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, get_args

from ..dataclass import dataclass
from ..errors import SpecError, nearest
from ..machine.levels import Machine
from ..mapspace.limits.data import AxisLimit, BackLimit, HoldLimit, HoldRule, Limits, LoopLimit, Numbers, TileLimit
from ..mapspace.space import Mapspace
from ..workload.einsum import Workload
from ..workload.selectors import Selector, selector
from .casts import Cast, is_member
from .casts import cast as cast_of
from .families import Family
from .rewrites import Rewrite, RewriteChoice

Place = Literal["outermost", "on_chip", "buffers", "first", "innermost"]
PLACES: tuple[Place, ...] = get_args(Place)
SPOTS = ("outer", "array")
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
class TileSizes:
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


Rule = Fuse | Over | Hold | TileSizes | Spread


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

    def choices(self, workload: Workload) -> tuple[RewriteChoice, ...]:
        """The cascades that may be scheduled for `workload`: rewritten ones by number of tiles, or it alone.

        A workload that is rewritten already stays as it is. Raises SpecError for one that the rewrite does not fit.
        """
        if self.rewrite is None or is_member(self.family, workload):
            return (RewriteChoice(workload),)
        return tuple(self.rewrite.choices(workload))

    def mapspace(self, workload: Workload, machine: Machine) -> Mapspace:
        """What the dataflow leaves of `ffm` for a workload on a machine. The binding is sequential there.

        Raises SpecError if the workload is no member of the family; one that is rewritten first is one of `choices`.
        """
        return _Maker(self, cast_of(self.family, workload), workload, machine).space()

    def stages(self, workload: Workload) -> tuple[tuple[str, ...], ...]:
        """Einsums of `workload` per stage of the binding; none where branches come one after the other."""
        players = cast_of(self.family, workload).einsums
        return tuple(tuple(players[role] for role in stage) for stage in self.binding.stages)


def together(flows: Sequence[Dataflow], workload: Workload, machine: Machine) -> Mapspace:
    """What several dataflows leave together: the limits of all of them hold."""
    limits = Limits.of(x for flow in flows for x in flow.mapspace(workload, machine).limits.all)
    return Mapspace(limits=limits, title=" within ".join(flow.name for flow in flows))


class _Maker:
    """Turns rules about roles and places into limits about names."""

    def __init__(self, dataflow: Dataflow, players: Cast, workload: Workload, machine: Machine) -> None:
        self.dataflow, self.players, self.workload, self.machine = dataflow, players, workload, machine

    def space(self) -> Mapspace:
        limits = Limits.of(limit for rule in self.dataflow.rules for limit in self.limits(rule))
        return Mapspace(limits=limits, title=self.dataflow.name)

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
        elif isinstance(rule, TileSizes):
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
        wanted = list(roles)
        pairs = {pair for names in self.players.variables.values() for pair in names.items()}
        everywhere = dict(pairs)
        if among is None and len(pairs) == len(everywhere) == len({*everywhere.values()}):
            found = tuple(everywhere[role] for role in wanted if role in everywhere)
            return [(found, None)] if found else []
        by_names: dict[tuple[str, ...], list[str]] = {}
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
