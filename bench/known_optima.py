"""Methods without a proof on random tiny problems whose optimum is proven: a row per problem and method.

``python -m bench.mappers --tiny 50`` has the enumeration of all trees for a proof, ``--below 200`` the method `exact`
on other problems, whose value no method may be below. Rows that a CSV has stay, so an interrupted command is taken up.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count
from pathlib import Path

from einloom.errors import BudgetExhausted, Defect, Infeasible
from einloom.mapping.tree import Mapping
from einloom.problem import Budget, Problem, objective
from einloom.search.door import ask
from einloom.search.registry import SHIPPED, method
from einloom.search.watcher import Watcher
from einloom.testing.problems.drawing import draw

from .measured import Row
from .rows import append, had, read, stamp

TINY = Path(__file__).parent / "results" / "mappers-tiny.csv"
BELOW = TINY.with_name("mappers-below.csv")
OTHERS = 1000  # the first seed of the problems of `--below`
EQUAL = 1e-12  # relative difference of values that are sums in different orders
HEADS = ("method", "problems", "points", "optimum reached", "no mapping found", "worst gap", "below the proof")


class Until(Watcher):
    """Asks a search to stop when it has a mapping of this value."""

    def __init__(self, value: float) -> None:
        self.value, self.least = value * (1 + EQUAL), float("inf")

    def incumbent(self, value: float, mapping: Mapping | None = None) -> None:
        self.least = min(self.least, value)

    def stopped(self) -> bool:
        return self.least <= self.value


def solved(seed: int, reference: str) -> tuple[Problem, float] | None:
    """A random tiny problem with all that files can say, groups and uneven tiles among it, and its least energy by the
    reference, a method that proves it; None if it has no mapping."""
    workload, machine, mapspace = draw(seed).files.read
    problem = Problem(workload, machine, mapspace, objective("energy", machine))
    try:
        return problem, ask(method(reference), problem).value
    except Infeasible:
        return None


def missing(path: Path, problems: int, names: Sequence[str], first: int) -> Iterator[tuple[int, list[str]]]:
    """(seed, methods without a row), until so many problems have rows; who asks writes them, if there is a mapping."""
    found = 0
    for seed in count(first):
        if found == problems:
            return
        known = had(path, "problem", "method")
        todo = [name for name in names if (str(seed), name) not in known]
        yield seed, todo
        found += (str(seed), names[0]) in (had(path, "problem", "method") if todo else known)


def row(seed: int, name: str, problem: Problem, best: float, points: int, ends: bool) -> dict[str, object]:
    """What a method finds on a problem; the value is empty if it finds nothing. ends: it stops at the optimum."""
    try:
        value = ask(method(name), problem, Budget(steps=points), Until(best) if ends else None).value
    except BudgetExhausted:
        value = None
    shown = "" if value is None else repr(value)
    return {"problem": seed, "method": name, "points": points, "value": shown, "optimum": repr(best), **stamp()}


def measure(tiny: bool, problems: int, points: int, names: Sequence[str], path: Path | None = None) -> None:
    """Add the rows that the CSV lacks. Raises Defect where a value is below the proof: that row is not written."""
    path = path or (TINY if tiny else BELOW)
    for seed, todo in missing(path, problems, names, 0 if tiny else OTHERS):
        known = solved(seed, "exhaustive" if tiny else "exact") if todo else None
        if known is None:
            continue
        problem, best = known
        for name in todo:
            made = row(seed, name, problem, best, points, tiny)
            if is_below(made):
                raise Defect(f"{name} finds {made['value']} on problem {seed}, the optimum is {best!r}")
            append(path, made)


def forget(tiny: bool, names: Sequence[str], path: Path | None = None) -> None:
    """Drop the rows of these methods, to measure them anew."""
    path = path or (TINY if tiny else BELOW)
    kept = [one for one in read(path) if one["method"] not in names]
    path.unlink(missing_ok=True)
    for one in kept:
        append(path, one)


def is_below(row: dict[str, object] | Row) -> bool:
    """True if a value is below the proven optimum by more than the order of its sum."""
    return bool(row["value"]) and float(str(row["value"])) < float(str(row["optimum"])) * (1 - EQUAL)


def gap(row: Row) -> float:
    """How far a value is above the optimum, as a part of it."""
    value, best = float(row["value"]), float(row["optimum"])
    return max(0.0, value / best - 1) if best else 0.0


def table(rows: Sequence[Row]) -> str:
    """A line per method, in Markdown."""
    lines = [f"| {' | '.join(HEADS)} |", f"|{' --- |' * len(HEADS)}"]
    for name in sorted({one["method"] for one in rows}, key=SHIPPED.index):
        mine = [one for one in rows if one["method"] == name]
        gaps = [gap(one) for one in mine if one["value"]]
        points = " or ".join(dict.fromkeys(f"{int(one['points']):,}" for one in mine))
        reached = sum(one <= EQUAL for one in gaps)
        cells = (name, len(mine), points, reached, len(mine) - len(gaps))
        worst = f"{max(gaps, default=0.0):.1%}"
        lines.append(f"| {' | '.join(map(str, cells))} | {worst} | {sum(map(is_below, mine))} |")
    return "\n".join(lines)
