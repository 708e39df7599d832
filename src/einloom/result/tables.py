"""The tables of keys of result files: what each may hold, and what is made of it.

Names in a file are held against the workload and the machine of the same file; without these, as in a schema, any name
will do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, get_args

from ..cost.breakdown import Action, ActionName, Latencies, Occupancy
from ..errors import Ended, unknown
from ..machine.files import MACHINE
from ..machine.levels import ComputeUnit, Memory, Toll
from ..mapping.text import parse_mapping
from ..mapping.tree import Mapping
from ..mapspace.files import SPACE, SPLITS, Sections, seen
from ..problem import Alternative, Certificate, Guarantee, LatencyRule, Problem
from ..reading.keys import NAME, TEXT, Choice, Each, Key, NameOf, Number, Plain, Record, Shape, Table
from ..reading.located import Located
from ..workload.einsum import Tensor
from ..workload.files import WORKLOAD
from .record import FrontPoint, Provenance, TracePoint

WHOLE = Number("count", sourced=False, plain=True)
FLOAT = Number("energy", minimum=None, sourced=False, plain=True)
POSITIVE = Number("energy", sourced=False, plain=True)
TREE = Plain("long")
ASKED = ("objective", "latency_rule", "mapspace", "workload", "machine")
"""Keys that `asked.problem_from` reads."""
_DOERS: dict[str, tuple[type[Memory | Toll | ComputeUnit], str]] = {
    "read": (Memory, "memory"),
    "write": (Memory, "memory"),
    "down": (Toll, "toll"),
    "up": (Toll, "toll"),
    "compute": (ComputeUnit, "compute unit"),
}
"""Action -> what does it, and of a tensor unless it is `compute`; everything leaks."""
Build = Callable[[Located, dict[str, Any]], Any]


def must(name: str, shape: Shape, meaning: str = "") -> Key:
    """A key that must be there."""
    return Key(name, shape, meaning, required=True)


def _rows(title: str, build: Build, *keys: Key) -> Each:
    return Each(Record(title, keys, build=build))


def _tuple(view: Located, found: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(found.values())


def _certificate(view: Located, found: dict[str, Any]) -> Certificate:
    guarantee, others = Guarantee(found["guarantee"]), found.get("alternatives", ())
    counts, integer = dict(found["counts"]), found.get("integer")
    made = Certificate(guarantee, found["value"], found["bound"], found["mapspace"], counts, others, integer)
    if found["gap"] != made.gap:
        raise view.require("gap").error(f"the gap is {found['gap']!r}, but value and bound give {made.gap!r}")
    return made


SECONDS = must("seconds", POSITIVE)
ALTERNATIVES = _rows(
    "one of several problems",
    lambda _, found: Alternative(found["label"], found.get("bound"), found.get("value")),
    must("label", NAME),
    Key("bound", FLOAT),
    Key("value", FLOAT),
)
CERTIFICATE = Record(
    "a certificate",
    (
        must("guarantee", Choice(tuple(guarantee.value for guarantee in Guarantee))),
        must("value", FLOAT, "the objective of the mapping"),
        must("bound", FLOAT, "no mapping of the space has less"),
        must("gap", FLOAT, "(value - bound) / value"),
        must("mapspace", TEXT, "the space that the proof speaks of"),
        must("counts", Table(WHOLE), "points dropped, by rule"),
        Key("alternatives", ALTERNATIVES, "the best of several problems: what is proven of each"),
        Key("integer", FLOAT, "no mapping with any integer tiles has less"),
    ),
    build=_certificate,
)
LATENCIES = Record(
    "views of latency",
    (*(must(name, FLOAT) for name in ("roofline", "floor", "tile", "einsum")), Key("event", FLOAT)),
    build=lambda _, found: Latencies(**found),
)
TRACE = _rows(
    "a moment",
    lambda _, found: TracePoint(found["seconds"], found.get("best"), found.get("bound")),
    SECONDS,
    Key("best", FLOAT),
    Key("bound", FLOAT),
)
SOURCES = Record("sources", (must("facts", WHOLE), must("assumed", WHOLE)), build=_tuple)
HEAD = (
    must("schema", TEXT, "what this file is, and its version"),
    must("einloom", TEXT, "the version that wrote it"),
    must("model_version", NAME, "the version of the cost model"),
    must("method", TEXT, "how it was found"),
    SECONDS,
    Key("ended", Choice(tuple(one.value for one in Ended)), "what ended the search before it was done"),
)
FOOT = (
    must("workload", WORKLOAD),
    must("machine", MACHINE),
    must("assumed", SOURCES),
    must("trace", TRACE),
    Key("notes", Each(TEXT), "what is said to no effect, such as selectors that select nothing"),
    must("digest", TEXT, "SHA-256 of everything else"),
)


def space_record(sections: Sections) -> Record:
    """The table of the mapspace that a result repeats."""
    title, limits = Key("title", NAME), Key("limits", Record("limits", sections.keys, build=seen))
    return Record("the space of a result", (must("name", SPACE), *SPLITS, title, limits))


GOAL = (
    must("objective", TEXT, "what is minimised"),
    must("latency_rule", Choice(get_args(LatencyRule))),
    must("mapspace", space_record(Sections())),
)


def provenance_of(found: dict[str, Any]) -> Provenance:
    """Which einloom made the answer, and how many of its numbers are assumed."""
    return Provenance(found["einloom"], found["model_version"], *found["assumed"])


def ended_of(found: dict[str, Any]) -> Ended | None:
    """What ended the search before it was done, if anything did."""
    return Ended(found["ended"]) if "ended" in found else None


class ResultTables:
    """The table of one result file, whose names are those of its problem; None: any names."""

    def __init__(self, problem: Problem | None = None, file: str = "<result>") -> None:
        self.problem, self.file = problem, file
        workload, machine = (problem.workload, problem.machine) if problem else (None, None)
        self._components = {one.name: one for one in machine.components} if machine else {}
        einsums, components, tensors, memories = (
            (workload.names, self._components, _names(workload.tensors), _names(machine.memories))
            if workload and machine
            else (None, None, None, None)
        )
        self._einsum = must("einsum", NameOf("an Einsum of the workload", einsums))
        self._component = must("component", NameOf("a component of the machine", components))
        self._tensor = must("tensor", NameOf("a tensor of the workload", tensors))
        self._memory = must("memory", NameOf("a memory of the machine", memories))

    @property
    def record(self) -> Record:
        """The table of the whole file."""
        bits = must("bits", WHOLE)
        alive = must("tensors", _rows("a share", _tuple, self._tensor, bits))
        point = (*(must(key, FLOAT) for key in ("energy", "latency")), must("mapping", TREE))
        action = (
            self._einsum,
            self._component,
            Key("tensor", NAME),
            must("action", Choice(get_args(ActionName))),
            *(must(name, WHOLE) for name in ("count", "bits", "busiest")),
            must("energy", FLOAT),
        )
        busy = _rows("a busy time", _tuple, self._einsum, self._component, SECONDS)
        room = _rows("an occupancy", _occupancy, self._memory, bits, Key("size", WHOLE), alive)
        return Record(
            "a result",
            (
                *HEAD,
                *GOAL,
                must("energy", FLOAT, "joules"),
                must("latency", FLOAT, "seconds"),
                must("edp", FLOAT, "joule seconds"),
                Key("certificate", CERTIFICATE),
                must("mapping", TREE, "the tree as text"),
                must("roofline", FLOAT, "seconds that no mapping can undercut with these counts"),
                Key("latencies", LATENCIES, "the same mapping by every rule, seconds"),
                Key(
                    "front",
                    _rows("a point of a Pareto set", self._point, *point),
                    "the points of a Pareto set, known ones if no optimum is proven",
                ),
                must("einsum_latency", _rows("a latency", _tuple, self._einsum, SECONDS)),
                must("busy", busy),
                must("occupancy", room),
                must("breakdown", _rows("an action", self._action, *action)),
                *FOOT,
            ),
        )

    def tree(self, view: Located, text: str) -> Mapping:
        """The mapping that a text of the file holds, which must compute every Einsum once."""
        assert self.problem is not None
        known = self.problem.workload.names
        tree = parse_mapping(text, self.problem.workload, self.problem.machine, f"{self.file}, {view.path}")
        found = tree.einsums
        missing = [name for name in known if name not in found]
        if missing:
            raise view.error(f"the mapping does not compute {', '.join(missing[:6])}")
        twice = [name for name in known if found.count(name) > 1] if len(found) > len(set(found)) else []
        if twice:
            raise view.error(f"the mapping computes {', '.join(twice[:6])} more than once")
        return tree

    def _point(self, view: Located, found: dict[str, Any]) -> FrontPoint:
        return FrontPoint(found["energy"], found["latency"], self.tree(view.require("mapping"), found["mapping"]))

    def _action(self, view: Located, found: dict[str, Any]) -> Action:
        """The action, which its component must be able to do, on a tensor that its Einsum accesses if it moves one."""
        assert self.problem is not None
        name, component, tensor = found["action"], found["component"], found.get("tensor")
        kind, what = _DOERS.get(name, (object, ""))
        if not isinstance(self._components[component], kind):
            raise view.require("action").error(f"{name!r} is what a {what} does, and {component!r:.80} is none")
        if (tensor is None) != (name in ("compute", "leak")):
            wrong = f"{name!r} without a tensor" if tensor is None else f"{name!r} is an action on no tensor"
            raise view.require("action" if tensor is None else "tensor").error(wrong)
        accessed = self.problem.workload.einsum(found["einsum"]).tensors
        if tensor is not None and tensor not in accessed:
            with view.require("tensor").placed():
                raise unknown(f"a tensor that {found['einsum']} accesses", tensor, accessed)
        return Action(**{"tensor": None, **found})


def _occupancy(view: Located, found: dict[str, Any]) -> Occupancy:
    return Occupancy(found["memory"], found["bits"], found.get("size"), found["tensors"])


def _names(things: Iterable[Tensor | Memory]) -> dict[str, None]:
    return dict.fromkeys(thing.name for thing in things)


RESULT = ResultTables().record
