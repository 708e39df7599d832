"""Which mutants: the functions of some folders in an order that a seed decides, and one change of each."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import unified_diff
from functools import cached_property
from pathlib import Path

from bench.mutants.changes import Change, Source, changes, counts

PACKAGE = Path("src") / "einloom"
FOLDERS = ("mapping", "cost", "oracle", "mapspace", "search", "certify")


@dataclass(frozen=True)
class Mutant:
    """A change of a file with the text that it changes. number: its place in the draw."""

    number: int
    change: Change
    source: str

    @cached_property
    def changed(self) -> str:
        return self.change.applied(self.source)

    @cached_property
    def lines(self) -> tuple[str, str]:
        """The lines that the change touches, before and after, without the blanks around them."""
        raw, new = self.source.encode(), self.changed.encode()
        start, end = raw.rfind(b"\n", 0, self.change.start) + 1, raw.find(b"\n", self.change.end)
        rest = len(raw) - end if end >= 0 else 0
        return _joined(raw[start : len(raw) - rest]), _joined(new[start : len(new) - rest])

    @property
    def identity(self) -> tuple[str, str, str, str]:
        """File, function, lines before and after: the same wherever the function stands in the file."""
        return self.change.file, self.change.function, *self.lines

    @property
    def folder(self) -> str:
        return Path(self.change.file).relative_to(PACKAGE).parts[0].removesuffix(".py")

    def diff(self, context: int = 2) -> str:
        file = self.change.file
        text = unified_diff(
            self.source.splitlines(), self.changed.splitlines(), file, f"{file} (mutant)", n=context, lineterm=""
        )
        return "\n".join(text)


def _joined(lines: bytes) -> str:
    return "; ".join(line.strip() for line in lines.decode().splitlines())


def sources(root: Path, folders: Sequence[str]) -> Iterator[Source]:
    """The files of these folders of the package, or of a single file named without its suffix, in order."""
    for folder in sorted(folders):
        place = root / PACKAGE / folder
        files = sorted(place.rglob("*.py")) if place.is_dir() else [place.with_suffix(".py")]
        for file in files:
            yield Source(file.relative_to(root).as_posix(), file.read_text(encoding="utf-8"))


def draw(root: Path, seed: int, count: int, folders: Sequence[str] = FOLDERS) -> list[Mutant]:
    """`count` mutants, at most one a function: functions by chance, then a kind of change, then a change of it."""
    chance = random.Random(seed)
    offered = [(source, found) for source in sources(root, folders) for found in changes(source).values()]
    chance.shuffle(offered)
    drawn: list[Mutant] = []
    for source, found in offered:
        if len(drawn) == count:
            break
        kinds = sorted({change.kind for change in found})
        chance.shuffle(kinds)
        chance.shuffle(found)
        found.sort(key=lambda change: kinds.index(change.kind))
        if (chosen := next((change for change in found if counts(source, change)), None)) is not None:
            drawn.append(Mutant(len(drawn), chosen, source.text))
    return drawn


def found_again(root: Path, file: str, identity: tuple[str, str, str, str]) -> Mutant | None:
    """The mutant of this identity in the present state of its file; None if there is none."""
    path = root / file
    if not path.is_file():
        return None
    source = Source(file, path.read_text(encoding="utf-8"))
    for change in changes(source).get(identity[1], ()):
        mutant = Mutant(0, change, source.text)
        if mutant.identity == identity and counts(source, change):
            return mutant
    return None
