"""Is what bears a name of the zoo the zoo's? A workload, machine or space comes in, a sentence goes out.

A file does not say with which parameters an entry was called. They are looked for: a number that differs from the
default's proposes values, as it stands and in proportion, and those that leave fewer differences are kept. What is
left then is what the zoo would not have made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields
from typing import TypeVar

from ..dataclass import dataclass
from ..dataflows.files import NAMES, dataflow
from ..dataflows.rules import together
from ..errors import EinloomError, SpecError
from ..machine.levels import Axis, Fanout, Machine
from ..problem import Problem
from ..reading.facts import Fact
from ..workload.einsum import Workload
from ..workload.notation import einsum_text
from ..zoo.catalogue import Entry, Parameter
from ..zoo.index import listed
from ..zoo.machine_by_name import load_machine
from ..zoo.workload_by_name import load_workload

MOST_BUILT = 15_000  # facts and numbers, in all that is built for one comparison
FEW = (1, 2, 3)
COUNT = "the number of Einsums"
MOST_TOLD = 3
Thing = TypeVar("Thing", Workload, Machine)
Leaves = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Likeness:
    """same: the zoo makes exactly this, sources included. words: with which parameters, what differs, or that the zoo
    has none of that name."""

    same: bool
    words: str


def workload_likeness(workload: Workload) -> Likeness:
    """Of a workload."""
    return _likeness(workload, listed("workloads"), load_workload, _of_workload)


def machine_likeness(machine: Machine) -> Likeness:
    """Of a machine."""
    return _likeness(machine, listed("machines"), load_machine, _of_machine)


def title_likeness(problem: Problem) -> Likeness | None:
    """Of the limits of a space whose title names dataflows of the zoo; None without a title.

    Every other title is the word of whoever wrote the file.
    """
    title = problem.mapspace.title
    names = [] if title is None else title.split(" within ")
    if not names or not set(names) <= set(NAMES):
        return None if title is None else Likeness(False, f"{title!r:.80} is the file's own word for the limits")
    try:
        limits = together([dataflow(name) for name in names], problem.workload, problem.machine).limits
    except SpecError as error:
        return Likeness(False, f"bears the name of the zoo's {title}, which does not fit: {error.message}")
    if limits != problem.mapspace.limits:
        return Likeness(False, f"bears the name of the zoo's {title}, which has other limits")
    return Likeness(True, f"the limits of the zoo's {title}")


def _likeness(
    thing: Thing,
    entries: tuple[Entry, ...],
    load: Callable[[str], Thing],
    leaves: Callable[[Thing], dict[str, object]],
) -> Likeness:
    entry = next((one for one in entries if one.name == thing.name), None)
    if entry is None:
        return Likeness(False, f"{thing.name!r:.80} is no name of the zoo: its numbers are the file's own word")
    finder = _Finder(entry, leaves(thing), lambda call: leaves(load(call)))
    call, differences = finder.find()
    if not differences:
        return Likeness(True, f"the zoo's {call}")
    told = "; ".join(differences[:MOST_TOLD])
    more = f"; and {len(differences) - MOST_TOLD} more" if len(differences) > MOST_TOLD else ""
    if finder.left <= 0:
        return Likeness(False, f"bears the name of the zoo's {entry.name}; not all that it could be was tried")
    return Likeness(False, f"bears the name of the zoo's {entry.name} and is not that: {told}{more}")


class _Finder:
    """Looks for the parameters of one entry; `left`: how much more it may build."""

    def __init__(self, entry: Entry, wanted: Leaves, build: Callable[[str], Leaves]) -> None:
        self.entry, self.wanted, self.build, self.left = entry, wanted, build, MOST_BUILT
        self.known: dict[str, Leaves | None] = {}

    def find(self) -> tuple[str, list[str]]:
        """(call, what differs) of the parameters that come nearest."""
        chosen: dict[str, str] = {}
        best = self._distance(chosen)
        better = True
        while best and better:
            better = False
            for parameter in self.entry.parameters:
                for value in self._proposals(parameter, chosen):
                    changed = {**chosen, parameter.name: value}
                    distance = self._distance(changed)
                    if distance < best:
                        chosen, best, better = changed, distance, True
        return self._call(chosen), self._differences(chosen)

    def _call(self, chosen: Mapping[str, str]) -> str:
        listed = ",".join(f"{name}={value}" for name, value in chosen.items())
        return f"{self.entry.name}:{listed}" if listed else self.entry.name

    def _made(self, chosen: Mapping[str, str]) -> Leaves | None:
        call = self._call(chosen)
        if call not in self.known and self.left > 0:
            try:
                self.known[call] = found = self.build(call)
                self.left -= len(found)
            except EinloomError:  # the entry does not take these
                self.known[call] = None
        return self.known.get(call)

    def _distance(self, chosen: Mapping[str, str]) -> float:
        made = self._made(chosen)
        return float("inf") if made is None else len(_differing(self.wanted, made))

    def _differences(self, chosen: Mapping[str, str]) -> list[str]:
        made = self._made(chosen)
        if made is None:
            return ["no parameters were found that make it"]
        return [
            f"{key} is {_shown(self.wanted.get(key))}, there {_shown(made.get(key))}"
            for key in _differing(self.wanted, made)
        ]

    def _proposals(self, parameter: Parameter, chosen: Mapping[str, str]) -> Iterator[str]:
        """Values that what differs suggests for a parameter, each once."""
        if parameter.default in ("true", "false"):
            yield "true" if chosen.get(parameter.name, parameter.default) == "false" else "false"
            return
        made = self._made(chosen)
        now = _number(chosen.get(parameter.name, parameter.default))
        keys = list(self.wanted) if made is None else _differing(self.wanted, made)
        another = COUNT in keys  # then nothing else compares
        proposed: list[float] = [*FEW] if another else []
        for key in [COUNT] if another else keys:
            wanted, had = _number(self.wanted.get(key)), _number(None if made is None else made.get(key))
            if wanted is not None:
                proposed += [wanted, now * wanted / had] if now is not None and had else [wanted]
        for value in dict.fromkeys(proposed):
            yield f"{value:.0f}" if value == int(value) else repr(value)


def _differing(one: Leaves, other: Leaves) -> list[str]:
    return [key for key in {**one, **other} if one.get(key) != other.get(key)]


def _number(value: object) -> float | None:
    """A number, or what a text says as one; None for all else."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        return float(value)
    except ValueError:
        return None


def _shown(value: object) -> str:
    if isinstance(value, Fact):
        return f"{value.kind}, from {value.source!r:.50}"
    return "not there" if value is None else f"{value!s:.60}"


def _sources(facts: tuple[Fact, ...]) -> dict[str, object]:
    return {f"the source of {fact.path}": fact for fact in facts}


def _of_workload(workload: Workload) -> dict[str, object]:
    """Everything that a workload says, by name; numbers first."""
    return {
        COUNT: len(workload.einsums),
        **{f"the extent of {name}": extent for name, extent in workload.extents.items()},
        **{f"the bits of {tensor.name}": tensor.bits for tensor in workload.tensors},
        "repeat": workload.repeat,
        **{f"Einsum {one.name}": einsum_text(one) for one in workload.einsums},
        **{f"the shape of {tensor.name}": tensor.shape for tensor in workload.tensors},
        "outputs": workload.outputs,
        "the modules of its Einsums": ", ".join(one.group for one in workload.einsums),
        "the nodes of its Einsums": ", ".join(str(node) for one in workload.einsums for node in one.nodes),
        "absorbed": workload.absorbed,
        "persistent": tuple(tensor.name for tensor in workload.tensors if tensor.persistent),
        **{f"the view {view.name}": (view.tensor, view.shape) for view in workload.views},
        "initial": tuple(tensor.name for tensor in workload.tensors if tensor.initial),
        **_sources(workload.facts),
    }


def _of_machine(machine: Machine) -> dict[str, object]:
    """Everything that a machine says, by name."""
    found: dict[str, object] = {"the order of levels": ", ".join(level.name for level in machine.levels)}
    for level in machine.levels:
        parts: tuple[object, ...] = (level, *level.axes) if isinstance(level, Fanout) else (level,)
        for part in parts:
            place = f"{level.name}.{part.name}" if isinstance(part, Axis) else level.name
            found[f"the kind of {place}"] = type(part).__name__
            for one in fields(part):  # type: ignore[arg-type]
                if one.name not in ("name", "axes"):
                    found[f"{place}.{one.name}"] = getattr(part, one.name)
    return {**found, "partial_sums": machine.partial_sums, "startup": machine.startup, **_sources(machine.facts)}
