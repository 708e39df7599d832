"""A saved sweep: what `exact` (or another method) found for each capacity of one memory, a file per capacity.

The index is a JSON file of schema ``sweep/1``: the memory, a title, and for every point the capacity in bits and the
result file, beside or below the index. `sweep` writes these, figures read them.
"""

from __future__ import annotations

from dataclasses import field
from pathlib import Path, PurePosixPath
from typing import Any

from ..dataclass import dataclass
from ..errors import SpecError
from ..reading.fields import STATED, read_record
from ..reading.keys import NAME, TEXT, Each, Record
from ..reading.located import Located, file_text, from_data
from ..reporting import reported
from . import document
from .record import Result
from .tables import WHOLE, must
from .unmapped import Unmapped, read_answer

VERSION = 1


@dataclass(frozen=True, slots=True)
class CapacityPoint:
    """A capacity in bits, and what was found for it."""

    capacity: int
    answer: Result | Unmapped


@dataclass(frozen=True, slots=True)
class Sweep:
    """Answers for rising capacities of `memory`; `title` says what all of them share. file: the index that was read."""

    memory: str
    title: str
    points: tuple[CapacityPoint, ...]
    file: str | None = field(default=None, compare=False, repr=False)

    @property
    def records(self) -> tuple[dict[str, object], ...]:
        """Every point as plain data in SI units: what was found, and how near the least it is; None where nothing."""
        return tuple(_record(point) for point in self.points)

    def to_csv(self) -> str:
        """A line per capacity, heads first."""
        return str(reported("csv", self.records))


def _record(point: CapacityPoint) -> dict[str, object]:
    answer = point.answer
    asked: dict[str, object] = {"capacity": point.capacity, "objective": answer.problem.objective.measured}
    none = dict.fromkeys(("value", "energy", "latency", "guarantee", "bound", "gap"))
    found: dict[str, object] = {"status": "found"}
    if isinstance(answer, Result):
        found |= {"value": answer.value, "energy": answer.cost.energy, "latency": answer.cost.latency}
        if (proof := answer.certificate) is not None:
            found |= {"guarantee": proof.guarantee.value, "bound": proof.bound, "gap": proof.gap}
    else:
        found = {"status": answer.status, "bound": answer.bound}
    return {**asked, "status": None, **none, **found, "seconds": answer.seconds}


def _inside(view: Located, found: dict[str, Any]) -> tuple[int, str]:
    name = found["file"]
    if PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts or "\\" in name:
        raise view.error(f"{name!r:.80} lies outside the folder of the sweep")
    return found["capacity"], name


SWEEP = Record(
    "a sweep",
    (
        must("schema", TEXT, "what this file is, and its version"),
        must("memory", NAME, "the memory whose capacity varies"),
        must("title", TEXT, "what all points share"),
        must(
            "points",
            Each(
                Record(
                    "a point of a sweep",
                    (must("capacity", WHOLE, "bits"), must("file", TEXT, "the answer, beside or below the index")),
                    build=_inside,
                )
            ),
        ),
    ),
)


def index_data(memory: str, title: str, files: list[tuple[int, str]]) -> dict[str, Any]:
    """The index as plain data, from (capacity, file name relative to the index) pairs."""
    points = [{"capacity": capacity, "file": name} for capacity, name in sorted(files)]
    return {"schema": f"sweep/{VERSION}", "memory": memory, "title": title, "points": points}


def read_index(path: str | Path) -> tuple[str, str, list[tuple[int, str]]]:
    """(memory, title, (capacity, file) pairs) of an index. Raises SpecError, also for files outside its folder."""
    file = str(path)
    with document.shallow(file):
        view = from_data(document.parse(file_text(path), file), file)
        view.schema("sweep", VERSION)
        found = read_record(view, SWEEP, STATED, ignored=("schema",))
        view.raise_gathered()
    return found["memory"], found["title"], sorted(found["points"])


def read_sweep(path: str | Path) -> Sweep:
    """The sweep that an index file (or a folder with one) holds, by rising capacity. Raises SpecError."""
    if Path(path).is_dir():
        inside = sorted(Path(path).glob("*.json"))
        if len(inside) != 1:
            found = ", ".join(one.name for one in inside[:6]) or "none"
            raise SpecError(f"a folder with one index file is expected; there is {found}", file=str(path))
        path = inside[0]
    memory, title, files = read_index(path)
    points = tuple(CapacityPoint(capacity, read_answer(Path(path).parent / name)) for capacity, name in files)
    return Sweep(memory, title, points, str(path))
