"""Other files that a template may include: found in its own folder and in folders that the user names, nowhere else.

A `Library` answers for one template which file a name means. Names are relative and plain; what a name leads to must
lie, links resolved, within one of those folders. How many files are read, how deep and how much is bounded. A line that
came out of an included file is an `IncludedLine`, which knows its file, so that errors point there.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import field
from itertools import islice
from pathlib import Path

from ...dataclass import dataclass
from ...errors import SpecError, SpecErrors, nearest
from ...reading.located import file_text
from ...reading.yamltree import refuse_unreadable

MAX_DEPTH = 8
MAX_FILES = 50
MAX_LOOKUPS = 500
MAX_CHARACTERS = 5_000_000
MAX_NAME = 200
_PLAIN = re.compile(r"[\w .+@/-]+")


class IncludedLine(int):
    """A line of a file that another one includes."""

    file: str

    def __new__(cls, line: int, file: str) -> IncludedLine:
        made = super().__new__(cls, line)
        made.file = file
        return made

    def __add__(self, other: int) -> IncludedLine:
        return IncludedLine(int(self) + int(other), self.file)

    def __reduce__(self) -> tuple[object, ...]:
        return (IncludedLine, (int(self), self.file))


def with_files(error: SpecError) -> SpecError:
    """The error with the included file's name wherever its line stands in one."""
    if isinstance(error, SpecErrors):
        return SpecErrors([with_files(problem) for problem in error.problems])
    if not isinstance(error.line, IncludedLine):
        return error
    line = error.line
    return SpecError(
        error.message,
        file=line.file,
        line=int(line),
        column=error.column,
        path=error.path,
        suggestion=error.suggestion,
    )


@dataclass(slots=True)
class _Read:
    """What one import has read so far, over all templates."""

    files: int = 0
    lookups: int = 0
    characters: int = 0


@dataclass(slots=True)
class Library:
    """Where one template looks for other files, and from where it may take them.

    file: the template, for messages. allowed: real paths of folders, and how the user wrote them; nothing outside them
    is opened. searched: folders in the order in which names are looked up; `add` appends. chain: the real paths of the
    files that led here.
    """

    file: str
    allowed: tuple[tuple[Path, Path], ...]
    searched: list[Path]
    chain: tuple[Path, ...] = ()
    read: _Read = field(default_factory=_Read)

    @classmethod
    def of(cls, file: str | Path, folders: Sequence[str | Path] = ()) -> Library:
        """The library of a file on disk: its own folder, then `folders`. Raises SpecError for what is no folder."""
        own = _resolved(Path(file), str(file))
        named = [_resolved(Path(folder), str(folder)) for folder in folders]
        for folder, name in zip(named, folders, strict=True):
            if not folder.is_dir():
                raise SpecError("there is no such folder to include files from", file=str(name))
        real = [own.parent, *named]
        written = [Path(file).parent, *(Path(folder) for folder in folders)]
        return cls(str(file), tuple(zip(real, written, strict=True)), real, (own,))

    def add(self, name: object) -> None:
        """Look for names in this folder too."""
        self.searched.append(self.found(name, "folder"))

    def found(self, name: object, kind: str = "file") -> Path:
        """The real path of the file or folder that `name` means; SpecError (without a place) if there is none."""
        text = _plain_name(name)
        self.read.lookups += 1
        if self.read.lookups > MAX_LOOKUPS:
            raise SpecError(f"more than {MAX_LOOKUPS} names of files are looked up")
        for folder in self.searched:
            path = _resolved(folder / text, text)
            if not (path.is_dir() if kind == "folder" else path.is_file()):
                continue
            if not any(path.is_relative_to(root) for root, _ in self.allowed):
                raise SpecError(f"{text!r} leads out of the folders that may be read")
            return path
        raise SpecError(
            f"there is no {kind} {text!r} in the folder of {self.file} or in one named with --include",
            suggestion=nearest(text, _beside(self.searched)),
        )

    def included(self, name: object) -> tuple[str, Library]:
        """The text of the file that `name` means, and the library with which that text is expanded in turn."""
        path = self.found(name)
        shown = next(
            str(written / path.relative_to(root)) for root, written in self.allowed if path.is_relative_to(root)
        )
        if path in self.chain:
            raise SpecError(f"{path.name!r} includes itself")
        if len(self.chain) > MAX_DEPTH:
            raise SpecError(f"files include each other deeper than {MAX_DEPTH}")
        self.read.files += 1
        if self.read.files > MAX_FILES:
            raise SpecError(f"more than {MAX_FILES} files are included")
        text = file_text(path)
        self.read.characters += len(text)
        if self.read.characters > MAX_CHARACTERS:
            raise SpecError(f"the included files have more than {MAX_CHARACTERS // 10**6} MB together")
        refuse_unreadable(text, shown)
        searched = [path.parent, *self.searched]
        return text, Library(shown, self.allowed, searched, (*self.chain, path), self.read)


def _plain_name(name: object) -> str:
    """A relative name without tricks."""
    if not isinstance(name, str) or not name:
        raise SpecError("a file is named by a text in quotes")
    if len(name) > MAX_NAME:
        raise SpecError(f"a file's name may have at most {MAX_NAME} characters, this one has {len(name)}")
    if not _PLAIN.fullmatch(name) or name.startswith("/") or ".." in name.split("/"):
        raise SpecError(
            f"{name!r} is not read: only files in the file's own folder, or in folders named with --include, are, "
            "by a plain name without '..'"
        )
    return name


def _resolved(path: Path, written: str) -> Path:
    try:
        return path.resolve()
    except (OSError, RuntimeError, ValueError):
        raise SpecError(f"{written!r:.80} leads nowhere") from None


def _beside(folders: Sequence[Path]) -> list[str]:
    """Names of files that stand in the folders, to suggest one; none where a folder cannot be listed."""
    found: list[str] = []
    for folder in folders[:MAX_DEPTH]:
        with suppress(OSError):
            found += [entry.name for entry in islice(folder.iterdir(), 300)]
    return found
