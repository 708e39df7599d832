"""Several saved results side by side: what each costs, how far each is from the best, and what makes them differ.

Nothing is searched. Results that do not answer the same question are compared all the same, and the difference is said.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from ..dataclass import dataclass
from ..errors import SpecError
from ..machine.write import machine_data
from ..reading import writing
from ..reporting import Drawn, reported
from ..result import Result, document
from ..result.unmapped import Unmapped, read_answer
from .data.fusion import fused
from .data.unlike import computed, space_words, unlike
from .text.names import numbered
from .text.results import bits, joules, objective_value, seconds
from .text.table import WIDTH, columns, csv_text

if TYPE_CHECKING:
    import pandas

SIDE_BY_SIDE = 4


@dataclass(frozen=True, slots=True)
class ComparisonRow:
    """One result under the name that the comparison gives it, and the memory that holds each fused intermediate."""

    label: str
    result: Result
    fused: Mapping[str, str]

    def traffic(self, memory: str) -> int | None:
        """Bits through `memory`; None if the machine has no memory of that name."""
        names = [one.name for one in self.result.machine.memories]
        return self.result.cost.traffic(memory) if memory in names else None

    @property
    def gap(self) -> float | None:
        """How far the value may be from the best of its space; None if nothing is proven."""
        certificate = self.result.certificate
        return None if certificate is None or certificate.guarantee.value == "none" else certificate.gap


@dataclass(frozen=True, slots=True)
class Comparison(Drawn):
    """Results side by side. warnings: why they may not be comparable, in sentences; empty if they are."""

    rows: tuple[ComparisonRow, ...]
    warnings: tuple[str, ...]

    @property
    def memories(self) -> tuple[str, ...]:
        """The names of all memories of all machines, in the order of the first machine that has them."""
        return tuple(dict.fromkeys(m.name for row in self.rows for m in row.result.machine.memories))

    @property
    def intermediates(self) -> tuple[str, ...]:
        """The names of what Einsums hand on, of all workloads."""
        return tuple(dict.fromkeys(t for row in self.rows for t in row.result.workload.intermediates))

    def best(self, quantity: Callable[[Result], float]) -> float:
        """The least of a quantity."""
        return min(quantity(row.result) for row in self.rows)

    def to_data(self) -> dict[str, Any]:
        """Plain data: warnings, and for every result its numbers in SI units, ratios to the best among them."""
        return {
            "schema": "comparison/1",
            "warnings": list(self.warnings),
            "results": [self._record(r) for r in self.rows],
        }

    def _record(self, row: ComparisonRow) -> dict[str, Any]:
        result, certificate = row.result, row.result.certificate
        record: dict[str, Any] = {
            "label": row.label,
            "workload": result.workload.name,
            "machine": result.machine.name,
            "mapspace": result.mapspace.describe(),
            "mapspace_name": result.mapspace.title,
            "method": result.method,
            "objective": str(result.objective),
            "value": result.value,
            "guarantee": "none" if certificate is None else certificate.guarantee.value,
            "bound": None if certificate is None else certificate.bound,
            "gap": row.gap,
            "seconds": result.seconds,
        }
        for name, quantity in QUANTITIES:
            record[name] = quantity(result)
            record[f"{name}_ratio"] = _ratio(quantity(result), self.best(quantity))
        record |= {f"traffic_{memory}": row.traffic(memory) for memory in self.memories}
        return {**record, "fused": dict(row.fused)}

    def to_json(self) -> str:
        return json.dumps(self.to_data(), indent=1) + "\n"

    def to_csv(self) -> str:
        """One line per result, heads first; what is fused as ``tensor:memory`` pairs."""
        records = (self._record(row) for row in self.rows)
        return csv_text([{**r, "fused": " ".join(f"{t}:{m}" for t, m in r["fused"].items())} for r in records])

    def to_frame(self) -> pandas.DataFrame:
        """A DataFrame with a row per result. Raises MissingExtra without pandas."""
        from .frames import frame

        return frame([self._record(row) for row in self.rows]).set_index("label")

    def to_html(self) -> str:
        """One page that needs no network."""
        return str(reported("comparison", self))

    def write(self, path: str | Path) -> None:
        """Write the page. Raises SpecError if the file cannot be written."""
        writing.write(self.to_html(), path)

    def __str__(self) -> str:
        return text(self)


QUANTITIES: tuple[tuple[str, Callable[[Result], float]], ...] = (
    ("energy", lambda result: result.energy),
    ("latency", lambda result: result.latency),
    ("edp", lambda result: result.edp),
)


def compare(
    results: Result | str | Path | Iterable[Result | str | Path] | Mapping[str, Result | str | Path],
) -> Comparison:
    """Results (or result files) side by side, or a single one; a mapping's keys are their labels.

    Files that say that nothing was found are named among the warnings and left out. Raises SpecError if nothing is left
    or a file cannot be read, and for what is neither a result nor a path.
    """
    results = [results] if isinstance(results, Result | str | Path) or not isinstance(results, Iterable) else results
    named = results.items() if isinstance(results, Mapping) else ((None, one) for one in results)
    found: list[tuple[str | None, Result]] = []
    missing = []
    for name, one in named:
        if not isinstance(one, Result | str | Path):
            which = "" if name is None else f" for {name}"
            raise SpecError(f"what is compared are results and paths of result files, not {one!r:.80}{which}")
        answer = one if isinstance(one, Result) else read_answer(one)
        label = name if name is not None else None if isinstance(one, Result) else Path(one).stem
        if isinstance(answer, Unmapped):
            missing.append(f"{label} is left out, it holds no mapping ({answer.status}): {answer.reason}")
        else:
            found.append((label, answer))
    if not found:
        raise SpecError("; ".join(["there is no result to compare", *missing]))
    labels = _labels(found)
    rows = tuple(ComparisonRow(label, result, fused(result)) for label, (_, result) in zip(labels, found, strict=True))
    return Comparison(rows, (*missing, *_differences(rows)))


def labels_of(results: Sequence[Result], given: Sequence[str] | None = None) -> list[str]:
    """A name for each result: the given ones, else what tells it from the others; numbered where two are the same.

    Raises SpecError if there are not as many as results.
    """
    if given is None:
        return _labels([(None, result) for result in results])
    if len(given) != len(results):
        raise SpecError(f"{len(given)} labels for {len(results)} results")
    return numbered(given)


def _labels(found: list[tuple[str | None, Result]]) -> list[str]:
    """The given names, else what tells a result from the others; numbered where that is not enough."""
    aspects: tuple[Callable[[Result], str], ...] = (
        lambda r: r.workload.name,
        lambda r: r.machine.name,
        lambda r: r.method,
        lambda r: str(r.objective),
        lambda r: space_words(r.mapspace),
    )
    telling: list[Callable[[Result], str]] = []
    for aspect in aspects:
        known = {tuple(one(result) for one in telling) for _, result in found}
        if len({tuple(one(result) for one in (*telling, aspect)) for _, result in found}) > len(known):
            telling.append(aspect)
    return numbered([name or ", ".join(one(result) for one in telling) or result.method for name, result in found])


def _differences(rows: tuple[ComparisonRow, ...]) -> list[str]:
    """Why the results may not be comparable."""
    aspects: tuple[tuple[str, Callable[[Result], object], Callable[[Result], str]], ...] = (
        ("workloads", lambda r: document.digest(computed(r.workload)), lambda r: r.workload.name),
        ("machines", lambda r: document.digest(machine_data(r.machine)), lambda r: r.machine.name),
        ("objectives", lambda r: str(r.objective), lambda r: str(r.objective)),
        ("latency rules", lambda r: r.latency_rule, lambda r: r.latency_rule),
        ("versions of the model", lambda r: r.provenance.model_version, lambda r: r.provenance.model_version),
        ("mapspaces", lambda r: r.mapspace.describe(), lambda r: space_words(r.mapspace)),
    )
    found = []
    for what, key, name in aspects:
        groups: dict[object, list[ComparisonRow]] = {}
        for row in rows:
            groups.setdefault(key(row.result), []).append(row)
        if len(groups) > 1:
            told = [f"{name(group[0].result)} ({', '.join(row.label for row in group)})" for group in groups.values()]
            found.append(f"different {what}: {'; '.join(told)}" + _unlike(what, groups, name))
    for row in rows:
        if row.result.recorded_digest != row.result.found_digest:
            found.append(f"{row.label} was changed after it was written: its digest does not match")
    return found


def _unlike(what: str, groups: Mapping[object, list[ComparisonRow]], name: Callable[[Result], str]) -> str:
    """In what the first two inputs of one name differ; nothing where their names differ, or tell it."""
    data = {"workloads": lambda r: computed(r.workload), "machines": lambda r: machine_data(r.machine)}.get(what)
    if data is None:
        return ""
    named: dict[str, ComparisonRow] = {}
    for first, *_ in groups.values():
        before = named.setdefault(name(first.result), first)
        if before is not first:
            return f": {unlike(data(before.result), data(first.result), (before.label, first.label))}"
    return ""


def _ratio(value: float, best: float) -> float | None:
    return value / best if best else 1.0 if value == best else None


def times(value: float, best: float) -> str:
    """A quantity over the best one."""
    ratio = _ratio(value, best)
    return "-" if ratio is None else "best" if value == best else f"{ratio:.4g} x"


def text(compared: Comparison) -> str:
    """The comparison in at most 100 columns, four results side by side."""
    lines = []
    for warning in compared.warnings:
        lines += wrap(f"note: {warning}", WIDTH, subsequent_indent=" " * 6)
    groups = [compared.rows[i : i + SIDE_BY_SIDE] for i in range(0, len(compared.rows), SIDE_BY_SIDE)]
    for shown in groups:
        listed = [(name, *(cell(row) for row in shown)) for name, cell in cells(compared)]
        lines += ["", columns("", ("", *(row.label for row in shown)), listed, left=(0,)).lstrip("\n")]
    for shown in groups if compared.intermediates else ():
        listed = [(tensor, *(_place(row, tensor) for row in shown)) for tensor in compared.intermediates]
        lines += ["", columns("what is fused where", ("tensor", *(row.label for row in shown)), listed)]
    return "\n".join(lines).lstrip("\n") + "\n"


def _place(row: ComparisonRow, tensor: str) -> str:
    return row.fused.get(tensor, "not fused" if tensor in row.result.workload.intermediates else "-")


def cells(compared: Comparison) -> list[tuple[str, Callable[[ComparisonRow], str]]]:
    """(name, text for a result) of every line of the table."""
    least = {name: compared.best(quantity) for name, quantity in QUANTITIES}
    lines: list[tuple[str, Callable[[ComparisonRow], str]]] = [
        ("workload", lambda row: row.result.workload.name),
        ("machine", lambda row: row.result.machine.name),
        ("method", lambda row: row.result.method),
        ("objective", lambda row: str(row.result.objective)),
        ("value", lambda row: objective_value(row.result.objective, row.result.value, 6)),
        ("energy", lambda row: joules(row.result.energy, 5)),
        ("  over the best", lambda row: times(row.result.energy, least["energy"])),
        ("latency", lambda row: seconds(row.result.latency, 5)),
        ("  over the best", lambda row: times(row.result.latency, least["latency"])),
        ("EDP", lambda row: f"{row.result.edp:.5g} J s"),
        ("  over the best", lambda row: times(row.result.edp, least["edp"])),
    ]
    lines += [(f"traffic of {memory}", partial(_traffic, memory)) for memory in compared.memories]
    return [
        *lines,
        ("proven", lambda row: "nothing" if row.gap is None else f"gap {row.gap:.3%}"),
        ("fused", lambda row: f"{len(row.fused)} of {len(row.result.workload.intermediates)}"),
        ("seconds", lambda row: f"{row.result.seconds:.3g}"),
    ]


def _traffic(memory: str, row: ComparisonRow) -> str:
    moved = row.traffic(memory)
    return "-" if moved is None else bits(moved)
