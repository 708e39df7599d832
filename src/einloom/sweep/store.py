"""A folder of answers: one index per sweep, one result file per capacity, each written whole or not at all."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from ..errors import Ended, SpecError
from ..mapping.tree import Mapping
from ..problem import MODEL_VERSION, Problem
from ..reading import writing
from ..result import Result, document
from ..result.sweep import index_data, read_index
from ..result.unmapped import Unmapped, read_answer


def saved_answer(path: Path, problem: Problem) -> Result | Unmapped | None:
    """The unedited answer to this very problem by this version of the model that a file holds, or None."""
    if not path.exists():
        return None
    answer = read_answer(path)
    if answer.problem != problem or answer.provenance.model_version != MODEL_VERSION:
        return None
    return answer if answer.recorded_digest == answer.found_digest else None


class AnswerStore:
    """The answers of one sweep, called `name`, in `folder`; what is there already need not be asked again."""

    def __init__(self, folder: str | Path, name: str, memory: str, title: str) -> None:
        """Raises SpecError if the folder holds a sweep of that name with another memory or title."""
        self.folder, self.name, self.memory, self.title = Path(folder), name, memory, title
        self.index = self.folder / f"{name}.json"
        self.files: dict[int, str] = {}
        if self.index.exists():
            before, known, files = read_index(self.index)
            if (before, known) != (memory, title):
                raise SpecError(f"holds another sweep ({known}, {before}); choose another folder", file=str(self.index))
            self.files = dict(files)
        writing.folder(self.folder / name)

    def without_others(self, asked: Callable[[int], Problem]) -> tuple[int, ...]:
        """Take answers to other problems than `asked` makes of their capacity out of the index; their capacities."""
        others = []
        for capacity, name in self.files.items():
            with suppress(SpecError):  # a broken file is told of when it is asked for
                path = self.folder / name
                others += [capacity] if path.exists() and read_answer(path).problem != asked(capacity) else []
        for capacity in others:
            del self.files[capacity]
        return tuple(others)

    def known(self, capacity: int, problem: Problem) -> Result | Unmapped | None:
        """The finished and unedited answer to this very problem by this version of the model, or None."""
        answer = saved_answer(self.folder / self._file(capacity), problem)
        if answer is None or answer.ended is Ended.STOPPED:
            return None
        return answer if isinstance(answer, Result) or answer.status == "infeasible" else None

    def begun(self, capacity: int, problem: Problem) -> tuple[Mapping, ...]:
        """What a search for the answer had found when it was stopped."""
        answer = saved_answer(self.folder / self._file(capacity), problem)
        return (answer.mapping,) if isinstance(answer, Result) and answer.ended is Ended.STOPPED else ()

    def keep(self, capacity: int, answer: Result | Unmapped) -> None:
        """Save an answer, then name it in the index."""
        answer.write(self.folder / self._file(capacity))
        self.mention(capacity)

    def mention(self, capacity: int) -> None:
        """Name a saved answer in the index."""
        self.files[capacity] = self._file(capacity)
        writing.write(document.text(index_data(self.memory, self.title, list(self.files.items()))), self.index)

    def _file(self, capacity: int) -> str:
        return f"{self.name}/{capacity}.json"
