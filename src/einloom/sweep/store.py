"""A folder of answers: one index per sweep, one result file per capacity, each written whole or not at all."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from ..errors import EinloomWarning, SpecError
from ..problem import MODEL_VERSION, Problem
from ..reading import writing
from ..report.data.unlike import questions_apart
from ..result import Result, document
from ..result.sweep import index_data, read_index
from ..result.unmapped import Unmapped, read_answer


def kept_answer(path: Path, *problems: Problem) -> Result | Unmapped | None:
    """The unedited answer to one of these very problems by this version of the model that a file holds, or None.

    A file that cannot be read is none, with a warning. Raises SpecError for an answer to another question, which is not
    to be lost.
    """
    if not path.exists():
        return None
    try:
        answer = read_answer(path)
    except SpecError as error:
        warnings.warn(f"{error}; it is searched again", EinloomWarning, stacklevel=2)
        return None
    if answer.problem not in problems:
        apart = questions_apart(answer.problem, problems[0], ("the file", "this one"))
        told = f" ({apart})" if apart else ""
        raise SpecError(f"this answer is to another question{told}; choose another folder", file=str(path))
    ours = answer.provenance.model_version == MODEL_VERSION and answer.recorded_digest == answer.found_digest
    return answer if ours else None


class AnswerStore:
    """The answers of one sweep, called `name`, in `folder`; what is there already need not be asked again."""

    def __init__(self, folder: str | Path, name: str, memory: str, title: str) -> None:
        """Raises SpecError if the folder holds a sweep of that name with another memory or title."""
        self.folder, self.name, self.memory, self.title = Path(folder), name, memory, title
        self.index = self.folder / f"{name}.json"
        self.files: dict[int, str] = {}
        self._read_index()
        writing.folder(self.folder / name)

    def _read_index(self) -> None:
        """Take the files that the index names, which another process may have written; one that is broken has none."""
        if not self.index.exists():
            return
        try:
            before, known, files = read_index(self.index)
        except SpecError as error:
            warnings.warn(f"{error}; it is written again", EinloomWarning, stacklevel=3)
            return
        if (before, known) != (self.memory, self.title):
            raise SpecError(f"holds another sweep ({known}, {before}); choose another folder", file=str(self.index))
        self.files = dict(files) | self.files

    def refuse_others(self, asked: Callable[[int], Sequence[Problem]], capacities: Sequence[int]) -> None:
        """Raise SpecError if an answer here is to none of the problems that `asked` makes of its capacity.

        capacities: those whose files are about to be written; a file may be there that the index does not name.
        """
        others = []
        for capacity, name in sorted(({c: self._file(c) for c in capacities} | self.files).items()):
            with suppress(SpecError):  # a broken file is told of when it is asked for
                path = self.folder / name
                others += [capacity] if path.exists() and read_answer(path).problem not in asked(capacity) else []
        if others:
            listed = ", ".join(f"{capacity:,}" for capacity in others)
            told = f"the answers here for {listed} bits are to another question; choose another folder"
            raise SpecError(told, file=str(self.index))

    def kept(self, capacity: int, problems: Sequence[Problem]) -> Result | Unmapped | None:
        """As `kept_answer`, of the file of a capacity."""
        return kept_answer(self.folder / self._file(capacity), *problems)

    def keep(self, capacity: int, answer: Result | Unmapped) -> None:
        """Save an answer, then name it in the index."""
        answer.write(self.folder / self._file(capacity))
        self.mention(capacity)

    def mention(self, capacity: int) -> None:
        """Name a saved answer in the index."""
        self._read_index()
        self.files[capacity] = self._file(capacity)
        writing.write(document.text(index_data(self.memory, self.title, list(self.files.items()))), self.index)

    def _file(self, capacity: int) -> str:
        return f"{self.name}/{capacity}.json"
