"""What was found, a row of a CSV for each mutant; and the mutants that change no answer, with the reason for each."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from bench.mutants.draw import Mutant
from bench.mutants.trial import Verdict
from bench.rows import append, stamp
from einloom.reading.located import read_file

Identity = tuple[str, str, str, str]
Row = Mapping[str, str]
KNOWN = Path(__file__).parent / "equivalent.yaml"


def row(mutant: Mutant, verdict: Verdict, seed: int, commit: str, known: Mapping[Identity, str]) -> dict[str, object]:
    """The row of a trial. A survivor that is known to change no answer is ``equivalent``."""
    file, function, was, now = mutant.identity
    word = "equivalent" if verdict.word in ("survived", "unreached") and mutant.identity in known else verdict.word
    return {
        "seed": seed,
        "number": mutant.number,
        "commit": commit,
        "folder": mutant.folder,
        "file": file,
        "function": function,
        "line": mutant.change.line,
        "kind": mutant.change.kind,
        "was": was,
        "now": now,
        "verdict": word,
        "test": verdict.test,
        "tests": verdict.tests,
        "reaching": verdict.reaching,
        "cpu_seconds": f"{verdict.cpu:.1f}",
        "seconds": f"{verdict.seconds:.1f}",
        **{key: value for key, value in stamp().items() if key != "commit"},
    }


def identity(one: Row) -> Identity:
    return one["file"], one["function"], one["was"], one["now"]


def read(path: Path) -> list[dict[str, str]]:
    """The rows of the file; none if there is no file."""
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def replace(path: Path, rows: Iterable[Mapping[str, object]]) -> None:
    """Write the file anew, whole or not at all."""
    beside = path.with_name(f".{path.name}.tmp")
    beside.unlink(missing_ok=True)
    for one in rows:
        append(beside, one)
    if beside.exists():
        beside.replace(path)


@dataclass(frozen=True, slots=True)
class Equivalent:
    """A mutant that changes no answer, and why."""

    identity: Identity
    reason: str


def equivalents(path: Path = KNOWN) -> list[Equivalent]:
    """The mutants that are known to change no answer. Raises SpecError with the place of whatever is wrong."""
    view = read_file(path)
    found = []
    for item in view.require("mutants").items():
        file, function, was, now = (item.require(key).text() for key in ("file", "function", "was", "now"))
        found.append(Equivalent((file, function, was, now), item.require("reason").text()))
        item.finish()
    view.finish()
    return found


def by_folder(rows: Iterable[Row]) -> list[dict[str, str]]:
    """Per seed and part of the sources, and per seed: mutants drawn, and how many of each verdict."""
    counts: dict[tuple[str, str], Counter[str]] = {}
    for one in rows:
        for folder in (one["folder"], "all"):
            counts.setdefault((one["seed"], folder), Counter())[one["verdict"]] += 1
    found = []
    for (seed, folder), words in sorted(counts.items(), key=lambda item: (item[0][0], item[0][1] == "all", item[0][1])):
        caught = words["caught"] + words["time"]
        changing = words.total() - words["equivalent"]
        numbers = (words.total(), words["equivalent"], changing, caught)
        names = ("mutants", "change nothing", "may change an answer", "caught")
        share = f"{caught / changing:.1%}" if changing else "-"
        found.append({"seed": seed, "part": folder, **dict(zip(names, map(str, numbers), strict=True)), "share": share})
    return found


def summary(rows: Iterable[Row]) -> str:
    """How many there were of each verdict, which share of those that may change an answer was noticed, and how long."""
    rows = list(rows)
    words = Counter(one["verdict"] for one in rows)
    noticed = words["caught"] + words["time"]
    counted = noticed + words["survived"] + words["unreached"]
    share = f"{noticed} of {counted} that may change an answer are caught ({noticed / max(counted, 1):.1%})"
    seconds = sorted(float(one["cpu_seconds"]) for one in rows)
    middle = seconds[len(seconds) // 2] if seconds else 0.0
    each = ", ".join(f"{number} {word}" for word, number in sorted(words.items()))
    cpu = f"{middle:.0f} CPU seconds in the middle, {sum(seconds) / 60:.0f} CPU minutes in all"
    return f"{len(rows)} mutants: {each}; {share}; {cpu}"
