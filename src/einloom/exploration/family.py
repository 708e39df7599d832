"""Family files: a machine with parameters, the values that these take, and the workloads that all machines are for.

schema: family/1
machine: edge.yaml                     # a machine file with `parameters:` beside this file, or a name of the zoo
workloads:                             # names or files; of several the weighted values are added
  - gpt3-6.7b:batch=1,tokens=2048
  - {workload: decode.yaml, weight: 0.3}
parameters:
  glb: [1 MiB, 2 MiB, 4 MiB]
  side: {from: 64, to: 256, times: 2}  # or `step:`
where:                                 # the others are not machines of the family
  - glb >= 16 KiB * side
cost: 2 * glb / MiB + side * side / 4096     # by default the area of the machine
objective: edp                         # or pareto: energy and latency, each machine with all that nothing beats
"""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

from ..dataclass import dataclass
from ..dataflows.files import dataflow
from ..errors import EinloomWarning, SpecError
from ..machine.levels import Machine
from ..mapspace.space import ORDERS, STORES, space_names
from ..questions import LIMITS, problems
from ..reading.arithmetic import Named
from ..reading.dimensions import PLAIN, Measure, of_sum
from ..reading.fields import STATED, built, read_record
from ..reading.keys import ANYTHING, BOOLEAN, NAME, NAMES, TEXT, Choice, Each, Either, Key, Later, Number, Record, Table
from ..reading.located import Located, read_file
from ..reading.units import measured
from ..search.several import Labelled
from ..workload.einsum import Workload
from ..zoo.catalogue import looks_like_path
from ..zoo.machine_by_name import load_machine
from ..zoo.workload_by_name import load_workload

VERSION = 1
MOST = 100_000  # machines of a family
MOST_COST = 10**30
COMPARED = re.compile(r"(.+?)(<=|>=|==|<|>)(.+)", re.DOTALL)
WRITTEN = re.compile(r"\s*([0-9.]+(?:e[+-]?\d+)?)\s*(.*)")
Values = tuple[tuple[str, str], ...]
"""What each parameter is, as it was written."""

RANGE = Record(
    "a range of values",
    (
        Key("from", ANYTHING, "the first value", required=True),
        Key("to", ANYTHING, "no value is above this one", required=True),
        Key("times", Number("any", sourced=False, positive=True), "what a value is multiplied with for the next one"),
        Key("step", ANYTHING, "what is added to a value for the next one"),
    ),
    build=lambda view, found: _range(view, found),
)
WORKLOAD = Record(
    "a workload of a family",
    (
        Key("workload", TEXT, "its name or file", required=True),
        Key(
            "weight",
            Number("any", sourced=False, positive=True),
            "what its value is multiplied with before values are added (1)",
        ),
    ),
)
FAMILY = Record(
    "a family of machines",
    (
        Key("schema", TEXT, "what this file is, and its version", required=True),
        Key("name", NAME, "what the family is called; by default as its file"),
        Key(
            "machine", TEXT, "a machine with parameters: its file, beside this one, or a name of the zoo", required=True
        ),
        Key("workloads", Each(Either((TEXT, WORKLOAD)), 1), "what every machine is for", required=True),
        Key(
            "parameters",
            Table(Either((Each(ANYTHING, 1), RANGE))),
            "the values of each parameter of the machine that varies",
            required=True,
        ),
        Key("where", Each(TEXT), "comparisons of parameters that hold for every machine of the family"),
        Key("cost", TEXT, "what a machine costs, as arithmetic over parameters; by default its area"),
        Key("objective", TEXT, "energy (the default), latency, edp, a product of both, traffic, or pareto"),
        Key("max_fused_loops", Number("count", sourced=False), "at most so many loops above a fused tensor"),
        Key(
            "max_fused_loops_per_rank_variable",
            Number("count", minimum=1, sourced=False),
            "how often the fused loops of an Einsum may cut one rank (1)",
        ),
        Key("mapspace", TEXT, "a mapspace file, beside this one"),
        Key("dataflow", NAMES, "instead: a published dataflow or a file of one, or several"),
        Key("space", Later("a space", lambda: Choice(space_names())), "the named space that is limited"),
        Key("order", Choice(tuple(ORDERS)), "of the Einsums"),
        Key("stores", Choice(STORES), "whether a store may serve several Einsums"),
        Key("full_use", BOOLEAN, "every Einsum uses as many instances of the axes as it can"),
    ),
)
READ = ("mapspace", "dataflow")  # limits that are files, seen from the family's


@dataclass(frozen=True, slots=True)
class FamilyMember:
    """One machine of a family. values: of the parameters. cost: as the family says, or square metres; None if neither
    is known. asked: for each workload the problems of which the best answer is wanted."""

    values: Values
    machine: Machine
    cost: float | None
    asked: tuple[tuple[Labelled, ...], ...]

    @property
    def label(self) -> str:
        """The values in words."""
        return ", ".join(f"{name}={value}" for name, value in self.values)


@dataclass(frozen=True, slots=True)
class MachineFamily:
    """All machines of a family, for the same workloads. workloads: a name each. weights: of the workloads. costs: what
    the cost is: ``cost`` or ``area``, empty if there is none. files: that were read for it. said: what the file asks,
    as pairs of a word and a text."""

    name: str
    workloads: tuple[str, ...]
    weights: tuple[float, ...]
    members: tuple[FamilyMember, ...]
    costs: str
    files: tuple[str, ...] = ()
    said: tuple[tuple[str, str], ...] = ()

    @property
    def parameters(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.members[0].values)


def read_family(path: str | Path) -> MachineFamily:
    """The family of a file, every machine and every problem of it made. Raises SpecError with the place of mistakes."""
    view = read_file(path)
    view.schema("family", VERSION)
    found = read_record(view, FAMILY, STATED, ignored=("schema", "parameters"))
    with view.gather():
        found["parameters"] = _parameters(view.require("parameters"))
    view.raise_gathered()
    return _Made(view, Path(path), found).family()


def _parameters(view: Located) -> dict[str, list[str]]:
    """Every parameter with the texts of its values."""
    found: dict[str, list[str]] = {}
    for name, _, value in view.entries():
        with value.gather():
            texts = built(value, RANGE) if value.is_mapping else [_written(item) for item in value.items()]
            if len(set(texts)) < len(texts):
                raise value.error(f"a value of {name} stands here twice")
            if not texts:
                raise value.error(f"{name} has no value")
            found[name] = texts
    if not view.entries():
        raise view.error("a family has a parameter that varies, at least, such as glb: [8 KiB, 16 KiB]")
    return found


def _written(view: Located) -> str:
    """A value as a text: of a number its digits."""
    if view.is_text:
        text = view.text().strip()
        if "," in text or "=" in text:
            raise view.error("one value stands here; several are a list")
        with view.placed():
            measured(text)
        return text
    number = view.number("any")
    return str(int(number)) if number == int(number) else repr(number)


def _range(view: Located, found: Mapping[str, Any]) -> list[str]:
    """The values from the first one on, in the unit of the first."""
    if ("times" in found) == ("step" in found):
        raise view.error("a range has either `times` or `step`")
    start = _written(found["from"])
    match = WRITTEN.fullmatch(start)
    first, last = _measure(found["from"]), _measure(found["to"])
    step = _measure(found["step"]) if "step" in found else None
    if match is None or any(one is not None and of_sum(one.dimension, first.dimension) is None for one in (last, step)):
        raise view.error("the values of a range are numbers with one unit, or with units of one kind")
    grows = found["times"] > 1 and first.value > 0 if step is None else step.value > 0
    if not grows:
        raise view.error("a range ends only where `times` is above 1 and its first value above 0, or `step` above 0")
    texts, value, unit = list[str](), first.value, match[2]
    scale = Fraction(match[1])
    one = first.value / scale if scale else Fraction(1)
    while value <= last.value and len(texts) <= MOST:
        texts.append(f"{_digits(value / one)} {unit}".strip())
        value = value * Fraction(str(found["times"])) if step is None else value + step.value
    return texts


def _measure(view: Located) -> Measure:
    with view.placed():
        return measured(_written(view))


def _digits(value: Fraction) -> str:
    return str(value.numerator) if value.denominator == 1 else repr(float(value))


class _Made:
    """The members of a family that a file describes. found: what its keys hold."""

    def __init__(self, view: Located, path: Path, found: Mapping[str, Any]) -> None:
        self.view, self.path, self.found = view, path, found
        self.name = str(found.get("name", path.stem))
        entries = [one if isinstance(one, dict) else {"workload": one} for one in found["workloads"]]
        self.texts = [str(entry["workload"]) for entry in entries]
        self.weights = tuple(float(entry.get("weight", 1.0)) for entry in entries)
        self.workloads = [self._workload(i, text) for i, text in enumerate(self.texts)]
        self.limits = {name: found[name] for name in LIMITS if name in found and name not in READ}
        if "mapspace" in found:
            self.limits["mapspace"] = str(path.parent / found["mapspace"])
        if "dataflow" in found:
            with view.require("dataflow").placed():
                self.limits["dataflow"] = tuple(dataflow(self._beside(name)) for name in found["dataflow"])

    def _workload(self, i: int, text: str) -> Workload:
        item = self.view.require("workloads").items()[i]
        with item.placed():
            return load_workload(self._beside(text))

    def _beside(self, text: str) -> str:
        """The text, a file in it as seen from the family's file."""
        name, colon, rest = text.partition(":")
        beside = self.path.parent / name
        if Path(name).is_absolute() or not (looks_like_path(name) or beside.is_file()):
            return text
        return f"{beside}{colon}{rest}"

    def family(self) -> MachineFamily:
        table = self.found["parameters"]
        number = 1
        for texts in table.values():
            number *= len(texts)
        if number > MOST:
            raise self.view.require("parameters").error(f"{number:,} machines; a family has at most {MOST:,}")
        chosen = [values for values in self._choices(table) if self._kept(values)]
        if not chosen:
            raise self.view.require("where").error("no machine of the family is left")
        members = tuple(self._member(values, first=i == 0) for i, values in enumerate(chosen))
        costs = "cost" if "cost" in self.found else "area" if any(one.machine.area for one in members) else ""
        if costs == "area":
            self._tell_bare(members)
        names = self._names()
        said = self._said(names, costs, members)
        return MachineFamily(self.name, names, self.weights, members, costs, self._files(), said)

    def _tell_bare(self, members: Sequence[FamilyMember]) -> None:
        """Warn of memories and units on chip without an area."""
        chips = [one.machine for one in members]
        inner = [part for chip in chips for part in chip.components if part.name != chip.memories[0].name]
        bare = dict.fromkeys(part.name for part in inner if not part.area)
        if bare:
            have = "has no area, so it costs" if len(bare) == 1 else "have no area, so they cost"
            told = f"{', '.join(bare)} {have} nothing; state it in {self.found['machine']}, or a cost in the family"
            warnings.warn(told, EinloomWarning, stacklevel=2)

    def _names(self) -> tuple[str, ...]:
        """The workloads' names; of those that share one, as the file has them."""
        every = Counter(one.name for one in self.workloads)
        return tuple(
            text if every[one.name] > 1 else one.name for one, text in zip(self.workloads, self.texts, strict=True)
        )

    def _said(self, names: tuple[str, ...], costs: str, members: Sequence[FamilyMember]) -> tuple[tuple[str, str], ...]:
        """What is asked, in words."""
        weighted = [text if n == 1 else f"{n:g} x {text}" for n, text in zip(self.weights, self.texts, strict=True)]
        ranges = [
            f"{name}: {texts[0]}" + (f" to {texts[-1]} ({len(texts)} values)" if len(texts) > 1 else "")
            for name, texts in self.found["parameters"].items()
        ]
        asked = [each for several in members[0].asked for each in several]
        spaces = dict.fromkeys(each.problem.mapspace.describe() for each in asked)
        pairs = {
            "machine": self.found["machine"],
            "parameters": "; ".join(ranges),
            "where": "; ".join(self.found.get("where", ())),
            "workloads": " + ".join(weighted),
            "cost": self.found.get("cost", "the area of the machine" if costs else ""),
            "space": "; or ".join(spaces),
        }
        return tuple((what, said) for what, said in pairs.items() if said)

    def _files(self) -> tuple[str, ...]:
        """The files that were read for the family, itself among them."""
        texts = [self.found["machine"], *self.texts, *self.found.get("dataflow", ())]
        places = [self._beside(text).partition(":")[0] for text in texts]
        places += [str(self.limits["mapspace"])] if "mapspace" in self.limits else []
        return (str(self.path), *(place for place in places if Path(place).is_file()))

    def _choices(self, table: Mapping[str, Sequence[str]]) -> Iterator[Values]:
        for texts in product(*table.values()):
            yield tuple(zip(table, texts, strict=True))

    def _kept(self, values: Values) -> bool:
        if "where" not in self.found:
            return True
        return all(_holds(item, _names(values)) for item in self.view.require("where").items())

    def _member(self, values: Values, first: bool) -> FamilyMember:
        given = ",".join(f"{name}={value}" for name, value in values)
        text = self._beside(self.found["machine"])
        try:
            machine = load_machine(f"{text}{',' if ':' in self.found['machine'] else ':'}{given}")
        except SpecError as error:
            raise self.view.require("machine").error(f"with {given}: {error}") from error
        cost = machine.area or None
        if "cost" in self.found:
            view = self.view.require("cost")
            with view.placed():
                found = measured(self.found["cost"], _names(values))
                if found.dimension != PLAIN or found.value < 0:
                    raise SpecError("a cost is a plain number of at least 0, such as 2 * glb / MiB")
                if found.value > MOST_COST:
                    raise SpecError(f"a cost is at most {MOST_COST:.0e}")
            cost = float(found.value)
        return FamilyMember(values, machine, cost, tuple(self._asked(one, machine, first) for one in self.workloads))

    def _asked(self, workload: Workload, machine: Machine, first: bool) -> tuple[Labelled, ...]:
        """The problems of one workload on one machine; what they warn of is said once."""
        with warnings.catch_warnings(), self.view.placed():
            if not first:
                warnings.simplefilter("ignore", EinloomWarning)
            goal = self.found.get("objective", "energy")
            return problems(workload, machine, goal, **self.limits)


def _names(values: Values) -> dict[str, Named]:
    return {name: measured(text) for name, text in values}


def _holds(view: Located, names: Mapping[str, Named]) -> bool:
    """Whether a comparison holds."""
    match = COMPARED.fullmatch(view.text())
    if match is None or re.search(r"[<>=]", match[3]):
        raise view.error("one comparison is expected, such as glb >= 16 KiB * side; several are several lines")
    with view.placed():
        left, right = (measured(text.strip(), names) for text in (match[1], match[3]))
    if of_sum(left.dimension, right.dimension) is None:
        raise view.error("what stands left and right of a comparison must be of one kind")
    a, b = left.value, right.value
    return {"<=": a <= b, ">=": a >= b, "==": a == b, "<": a < b, ">": a > b}[match[2]]
