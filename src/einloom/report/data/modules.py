"""A result by the modules of its network: rows of Einsums, those that differ in numbers of their names alone as one.

Also by class of Einsum, whatever their modules, and as modules inside modules.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Literal

from ...dataclass import dataclass
from ...errors import SpecError, unknown
from ...result import Result
from .fusion import fused

Detail = Literal["layer", "module", "class", "einsum"]
FEW, MANY = 4, 40
NONE = "(no module)"
LONGEST = 16
_NUMBER = re.compile(r"[0-9]+")
_NUMBERS = re.compile(r"([0-9]+(?:-[0-9]+)?(?:,[0-9]+(?:-[0-9]+)?)*|\*)")


@dataclass(frozen=True, slots=True)
class ModuleRow:
    """`count` modules that are alike; the other numbers are those of each.

    energy in joules, latency in seconds, the Einsums' summed. limit: the component that bounds most of the latency.
    written: intermediates that its Einsums write, and how many of these are `fused`.
    """

    name: str
    count: int
    limit: str
    einsums: int
    multiplications: int
    energy: float
    latency: float
    written: int
    fused: int

    @property
    def alike(self) -> tuple[object, ...]:
        """What two rows have in common that may stand as one."""
        numbers = (self.einsums, self.multiplications, self.limit, self.written, self.fused)
        return (_NUMBER.sub("*", self.name), *numbers, f"{self.energy:.8e}", f"{self.latency:.8e}")


def module_rows(result: Result, by: Detail | None = None, most: int = MANY) -> tuple[ModuleRow, ...]:
    """The rows by layers, modules, classes or Einsums, in program order; of more than `most` the last is for many.

    A class is of Einsums that differ in names alone; its numbers are those of all of them, because they may be mapped
    in several ways.

    Without `by`, paths of modules are cut to the depth that gives most rows, but not more than `most`.
    """
    if by == "class":
        return _shortened(_classes(result), most)
    if by is not None:
        return _shortened(_folded(result, NAMED[by]), most)
    depth = max(einsum.group.count(".") + 1 for einsum in result.workload.einsums)
    ways = [_folded(result, _cut(n)) for n in range(1, depth + 1)]
    best = max((rows for rows in ways if len(rows) <= most), key=len, default=())
    larger = [rows for rows in ways if len(rows) > most]
    return _shortened(larger[0], most) if larger and len(best) < FEW else best


def shown_by(result: Result, most: int = MANY) -> Detail | None:
    """What the rows are where nobody said: Einsums if modules make fewer than four rows and Einsums make more."""
    modules = len(module_rows(result, None, most))
    return "einsum" if modules < FEW and modules < len(module_rows(result, "einsum", most)) else None


def _layer(name: str, group: str) -> str:
    """The path as far as its first number, which counts layers."""
    names = group.split(".")
    end = next((i + 1 for i, one in enumerate(names) if _NUMBER.search(one)), len(names))
    return ".".join(names[:end])


NAMED: dict[Detail, Callable[[str, str], str]] = {
    "layer": _layer,
    "module": lambda name, group: group,
    "einsum": lambda name, group: name,
}
"""What a row is called by: an Einsum's name and its module."""


def _cut(depth: int) -> Callable[[str, str], str]:
    return lambda name, group: ".".join(group.split(".")[:depth])


def _folded(result: Result, named: Callable[[str, str], str]) -> tuple[ModuleRow, ...]:
    """A row for each name that Einsums are given, rows that are alike as one."""
    members: dict[str, list[str]] = {}
    for einsum in result.workload.einsums:
        members.setdefault(named(einsum.name, einsum.group) or NONE, []).append(einsum.name)
    found: dict[tuple[object, ...], list[ModuleRow]] = {}
    for row in _rows(result, members):
        found.setdefault(row.alike, []).append(row)
    return tuple(
        replace(rows[0], name=common_name([row.name for row in rows]), count=len(rows)) for rows in found.values()
    )


def _classes(result: Result) -> tuple[ModuleRow, ...]:
    """A row for each class of Einsums, called by the names of its members."""
    members: dict[tuple[object, ...], list[str]] = {}
    for name in result.workload.names:
        members.setdefault(result.workload.form(name), []).append(name)
    return tuple(_rows(result, {_called(names): names for names in members.values()}))


def _called(names: Sequence[str]) -> str:
    """Several names as few: those that differ in numbers alone are one.

    >>> _called(["Q_0", "K_0", "Q_1", "K_1"])
    'Q_0-1, K_0-1'
    """
    alike: dict[str, list[str]] = {}
    for name in names:
        alike.setdefault(_NUMBER.sub("*", name), []).append(name)
    return ", ".join(common_name(each) for each in alike.values())


@dataclass(frozen=True, slots=True)
class ModuleNode:
    """A module with its share in the whole, the modules in it, and its own Einsums that are in none of these.

    name: the last part of its path. share: of the energy, of all that are alike together, in all that are around them;
    None if there is no energy.
    """

    name: str
    row: ModuleRow
    share: float | None
    parts: tuple[ModuleNode, ...]
    own: tuple[str, ...]

    @property
    def alike(self) -> tuple[object, ...]:
        """What siblings have in common that may stand as one."""
        return (*self.row.alike[1:], _NUMBER.sub("*", self.name), tuple(part.alike for part in self.parts))


def module_tree(result: Result) -> tuple[ModuleNode, ...]:
    """The modules of a network, outermost first, siblings that are alike as one with the parts of the first."""
    members: dict[str, list[str]] = {}
    own: dict[str, list[str]] = {}
    for einsum in result.workload.einsums:
        paths = _paths(einsum.group) or [NONE]
        own.setdefault(paths[-1], []).append(einsum.name)
        for path in paths:
            members.setdefault(path, []).append(einsum.name)
    rows = {row.name: row for row in _rows(result, members)}
    inside: dict[str, list[str]] = {}
    for path in members:
        inside.setdefault(path.rpartition(".")[0] if path != NONE else "", []).append(path)

    def nodes(around: str) -> tuple[ModuleNode, ...]:
        alike: dict[tuple[object, ...], list[ModuleNode]] = {}
        for path in inside.get(around, ()):
            name = path.rpartition(".")[2] if path != NONE else path
            node = ModuleNode(name, rows[path], None, nodes(path), tuple(own.get(path, ())))
            alike.setdefault(node.alike, []).append(node)
        return tuple(_several(each) for each in alike.values())

    return tuple(_shared(node, result.energy, 1) for node in nodes(""))


def _several(nodes: Sequence[ModuleNode]) -> ModuleNode:
    """Siblings that are alike as one."""
    name = common_name([node.name for node in nodes])
    return replace(nodes[0], name=name, row=replace(nodes[0].row, count=len(nodes)))


def _shared(node: ModuleNode, energy: float, times: int) -> ModuleNode:
    """The module and those in it with their shares. times: how many modules like those around it there are."""
    times *= node.row.count
    parts = tuple(_shared(part, energy, times) for part in node.parts)
    return replace(node, share=times * node.row.energy / energy if energy else None, parts=parts)


def _rows(result: Result, members: dict[str, list[str]]) -> Iterable[ModuleRow]:
    workload, cost, kept = result.workload, result.cost, fused(result)
    energy = {str(einsum): value for (einsum,), value in cost.energy_by("einsum").items()}
    latency = dict(cost.einsum_latency)
    busiest: dict[str, tuple[float, str]] = {}
    for einsum, component, seconds in cost.busy:
        if seconds:
            busiest[einsum] = max(busiest.get(einsum, (0.0, "")), (seconds, component))
    for name, einsums in members.items():
        made = dict.fromkeys(workload.einsum(e).output.tensor for e in einsums)
        written = [tensor for tensor in made if workload.consumers[tensor]]
        limits: dict[str, float] = {}
        for einsum in einsums:
            seconds, component = busiest.get(einsum, (0.0, "-"))
            limits[component] = limits.get(component, 0.0) + seconds
        yield ModuleRow(
            name,
            1,
            max(limits, key=lambda one: limits[one]),
            len(einsums),
            workload.repeat * sum(workload.operations(e) for e in einsums if _multiplies(result, e)),
            sum(energy.get(e, 0.0) for e in einsums),
            sum(latency.get(e, 0.0) for e in einsums),
            len(written),
            sum(tensor in kept for tensor in written),
        )


def _multiplies(result: Result, name: str) -> bool:
    """Is it a product of several tensors that sums something?"""
    einsum = result.workload.einsum(name)
    return einsum.kind == "multiply" and len(einsum.inputs) > 1 and bool(einsum.reduced)


def common_name(names: Sequence[str]) -> str:
    """One name for several that differ in numbers alone: the numbers as ranges, or ``*`` where they are too many.

    >>> common_name(["layers.0.norm", "layers.1.norm", "layers.3.norm"]), common_name(["a.0.0", "a.1.1"])
    ('layers.0-1,3.norm', 'a.*.*')
    """
    columns = list(zip(*(_NUMBER.findall(name) for name in names), strict=True))
    several = [i for i, column in enumerate(columns) if len(set(column)) > 1]
    shown = ["*" if i in several else column[0] for i, column in enumerate(columns)]
    if len(several) == 1 and len(ranges := _ranges(sorted(map(int, columns[several[0]])))) <= LONGEST:
        shown[several[0]] = ranges
    parts = _NUMBER.split(names[0])
    return "".join(text for pair in zip(parts, [*shown, ""], strict=True) for text in pair)


def _ranges(numbers: Sequence[int]) -> str:
    """Whole numbers as ranges.

    >>> _ranges([0, 1, 2, 4, 6, 7])
    '0-2,4,6-7'
    """
    runs = [list(run) for _, run in groupby(enumerate(numbers), key=lambda pair: pair[1] - pair[0])]
    return ",".join(f"{run[0][1]}-{run[-1][1]}" if len(run) > 1 else str(run[0][1]) for run in runs)


def _shortened(rows: tuple[ModuleRow, ...], most: int) -> tuple[ModuleRow, ...]:
    """The rows with most energy in their order, and one for all others, if there are more than `most`."""
    if len(rows) <= most:
        return rows
    largest = sorted(rows, key=lambda row: -row.count * row.energy)[: most - 1]
    others = [row for row in rows if row not in largest]
    limits = [(sum(r.count * r.latency for r in others if r.limit == row.limit), row.limit) for row in others]
    sums = totals(others)
    last = replace(sums, name=f"{sum(row.count for row in others)} others", limit=max(limits)[1])
    return (*(row for row in rows if row in largest), last)


def totals(rows: Sequence[ModuleRow]) -> ModuleRow:
    """All rows in one, with what each stands for."""
    numbers = ("einsums", "multiplications", "energy", "latency", "written", "fused")
    return ModuleRow("total", 1, "", *(sum(row.count * getattr(row, name) for row in rows) for name in numbers))


def einsums_of(result: Result, module: str) -> frozenset[str]:
    """The Einsums of a module and of the modules in it.

    module: a path, which may hold numbers as rows are named with: ``layers.1-11.attention``, ``layers.*``. Raises
    SpecError where there are none.
    """
    einsums = result.workload.einsums
    found = frozenset(e.name for e in einsums if f"{e.group}.".startswith(f"{module}."))
    if not found:
        found = frozenset(e.name for e in einsums if any(_named(module, path) for path in _paths(e.group)))
    if found:
        return found
    if not any(e.group for e in einsums):
        raise SpecError(f"no Einsum of {result.workload.name} says which module it is part of")
    raise unknown("module", module, dict.fromkeys(path for e in einsums for path in _paths(e.group)))


def _paths(group: str) -> list[str]:
    """The module and those around it, outermost first."""
    names = group.split(".") if group else []
    return [".".join(names[: i + 1]) for i in range(len(names))]


def _named(pattern: str, path: str) -> bool:
    """Does the pattern, with ranges of numbers or ``*``, stand for the path?"""
    parts = _NUMBERS.split(pattern)
    texts = [f"({'[0-9]+' if i % 2 else re.escape(part)})" for i, part in enumerate(parts)]
    match = re.fullmatch("".join(texts), path)
    return match is not None and all(
        wanted == "*" or any(_within(int(match[i + 1]), each) for each in wanted.split(","))
        for i, wanted in enumerate(parts)
        if i % 2
    )


def _within(number: int, written: str) -> bool:
    first, _, last = written.partition("-")
    return int(first) <= number <= int(last or first)
