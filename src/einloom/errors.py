"""The errors that einloom raises: one small tree, each with what a user needs to mend it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import Enum
from importlib import import_module

MAX_LINES = 100
"""Of more errors than these only the number is printed."""
MAX_REASONS = 10
"""Of more reasons against a mapping the command line prints only these."""
MAX_LISTED = 24
MAX_CANDIDATES = 300
"""Among more names than these only those that begin as the wrong one does are suggested."""


class EinloomError(Exception):
    """Base of every error that einloom raises on purpose."""

    def __reduce__(self) -> tuple[object, ...]:
        return (Exception.__new__, (type(self), *self.args), self.__dict__)  # to another process, as it is


class SpecError(EinloomError):
    """A file or a command line says something that einloom cannot accept.

    Prints as ``FILE:LINE:COLUMN: message (at PATH); did you mean 'x'?``; parts that are unknown are left out.
    """

    def __init__(
        self,
        message: str,
        *,
        file: str | None = None,
        line: int | None = None,
        column: int | None = None,
        path: str | None = None,
        suggestion: str | None = None,
    ) -> None:
        self.message = message
        self.file = file
        self.line = line
        self.column = column
        self.path = path
        self.suggestion = suggestion
        super().__init__(str(self))

    def __str__(self) -> str:
        place = ":".join(str(part) for part in (self.file, self.line, self.column) if part is not None)
        text = f"{place}: {self.message}" if place else self.message
        if self.path:
            text += f" (at {self.path})"
        if self.suggestion:
            text += f"; did you mean {self.suggestion!r}?"
        return text

    def at(self, file: str | None, line: int | None = None) -> SpecError:
        """The same error with a place."""
        return SpecError(self.message, file=file, line=line, suggestion=self.suggestion)


class EinloomWarning(UserWarning):
    """What is allowed, but may not be meant: a selector that selects nothing, say. Printed as a SpecError is."""


class ConsequentError(SpecError):
    """What cannot be read only because something else could not, which is told already."""


class SpecErrors(SpecError):
    """Several things in one file are wrong; `problems` holds each, the message lists them one a line."""

    def __init__(self, problems: Sequence[SpecError]) -> None:
        self.problems = tuple(problems)
        first = self.problems[0]
        super().__init__(first.message, file=first.file, line=first.line, column=first.column, path=first.path)

    def __str__(self) -> str:
        lines = [str(problem) for problem in self.problems[:MAX_LINES]]
        more = len(self.problems) - MAX_LINES
        return "\n".join([*lines, f"... and {more} more"] if more > 0 else lines)


def combined(problems: Sequence[SpecError]) -> SpecError:
    """One error that says all of `problems`, nested lists flattened."""
    flat = [inner for outer in problems for inner in (outer.problems if isinstance(outer, SpecErrors) else (outer,))]
    return flat[0] if len(flat) == 1 else SpecErrors(flat)


def nearest(name: str, known: Iterable[str], alike: float = 0.6) -> str | None:
    """The known name that looks most like `name`, or None if none does. alike: at least so much, of 1.

    >>> nearest("read_enregy", ["read_energy", "size"])
    'read_energy'
    """
    from difflib import get_close_matches  # half of what importing this module would cost

    table = {candidate.lower(): candidate for candidate in known}
    wanted, among = name.lower()[:100], list(table)
    if len(among) > MAX_CANDIDATES:
        among = [one for one in among if one[:1] == wanted[:1] and abs(len(one) - len(wanted)) < 3][:MAX_CANDIDATES]
    close = get_close_matches(wanted, among, 1, alike)
    return table[close[0]] if close else None


def unknown(what: str, name: object, known: Iterable[str], more: str = "") -> SpecError:
    """The error for a name that nothing has: what it should name, what is known, `more`, and the nearest known name.

    >>> print(unknown("objective", "energi", ["energy", "edp"]))
    unknown objective 'energi'; known are energy, edp; did you mean 'energy'?
    >>> print(unknown("a memory of the machine", "GBL", ["DRAM", "GLB"]))
    'GBL' is not a memory of the machine; known are DRAM, GLB; did you mean 'GLB'?
    """
    known = tuple(known)
    some = (*known[:MAX_LISTED], "...") if len(known) > MAX_LISTED else known
    listed = f"known are {', '.join(some)}" if known else "there are none"
    said = f"{name!r:.80} is not {what}" if what.startswith(("a ", "an ")) else f"unknown {what} {name!r:.80}"
    close = nearest(name, known) if isinstance(name, str) else None  # from Python a name may be anything
    return SpecError(f"{said}; {listed}{more}", suggestion=close)


class IllegalMapping(EinloomError):
    """A mapping breaks at least one rule; `reasons` lists all of them, with numbers.

    file: that it was read from. lines: for each reason the line there that it is about, as far as that is known.
    """

    def __init__(self, reasons: Sequence[str], file: str | None = None, lines: Sequence[int | None] = ()) -> None:
        self.reasons, self.file = tuple(reasons), file
        self.lines = (*lines, *[None] * (len(self.reasons) - len(lines)))
        super().__init__("; ".join(self.reasons))

    @property
    def placed(self) -> tuple[str, ...]:
        """The reasons, each with its file and line as far as they are known.

        >>> IllegalMapping(["GLB is full", "T0 has no store"], "mapping.txt", [4, None]).placed
        ('mapping.txt:4: GLB is full', 'mapping.txt: T0 has no store')
        >>> IllegalMapping(["GLB is full"], lines=[4]).placed
        ('line 4: GLB is full',)
        """
        return tuple(map(self._placed, self.reasons, self.lines))

    def _placed(self, reason: str, line: int | None) -> str:
        if self.file is None:
            return reason if line is None else f"line {line}: {reason}"
        return f"{self.file}: {reason}" if line is None else f"{self.file}:{line}: {reason}"

    def __str__(self) -> str:
        return "; ".join(self.placed)


class Infeasible(EinloomError):
    """No mapping of the mapspace is legal; `witness` says which limit was in the way.

    einsum: one that has no mapping even by itself, if the search met one.
    """

    def __init__(self, witness: str, einsum: str | None = None) -> None:
        self.witness, self.einsum = witness, einsum
        super().__init__(witness)


class Ended(Enum):
    """Why a search ended before it was done."""

    SECONDS = "seconds"
    STEPS = "steps"
    MEMORY = "memory"
    NO_MEMORY = "no memory"
    STOPPED = "stopped"

    @property
    def words(self) -> str:
        """The reason as the beginning of a sentence."""
        return _ENDED[self]


_ENDED = {
    Ended.SECONDS: "the budget of seconds ended",
    Ended.STEPS: "the budget of steps ended",
    Ended.MEMORY: "the memory budget ended",
    Ended.NO_MEMORY: "memory ran out (a search takes half of what is free by default)",
    Ended.STOPPED: "the search was stopped",
}


class BudgetExhausted(EinloomError):
    """The search ended before any legal mapping was found; `bound` is what was proven so far.

    ended: what ended it; None where `reason` says more.
    """

    def __init__(self, bound: float, reason: str | None = None, ended: Ended | None = None) -> None:
        self.bound = bound
        self.ended = ended
        if reason is None:
            reason = f"{ended.words if ended else 'the budget ended'} before a legal mapping was found"
        self.reason = reason
        super().__init__(f"{reason} (proven bound {bound:.6g})")


class Defect(EinloomError):
    """Two parts of einloom contradict each other, which nobody who uses it can mend.

    difference: what one part says and what the other does. mapping: the text of the mapping that they differ about, if
    there is one. saved: the folder with the problem, ready to be reported, if it was written. kept: what the best
    mapping that was known is worth, if it is in that folder too. problem: the `Problem` that was asked, where that is
    known. known: the text of the best mapping that was known, likewise.
    """

    def __init__(
        self, difference: str, mapping: str | None = None, saved: str | None = None, kept: str | None = None
    ) -> None:
        self.difference, self.mapping, self.saved, self.kept = difference, mapping, saved, kept
        self.problem: object = None
        self.known: str | None = None
        best = f" with the best mapping found ({kept}, legal by evaluate)" if kept else ""
        where = f"; the problem is saved in {saved}{best}, please report it" if saved else ""
        super().__init__(f"this is a defect of einloom: {difference}{where}")

    def __reduce__(self) -> tuple[object, ...]:  # without its problem
        return (Defect, (self.difference, self.mapping, self.saved, self.kept))


class BrokenMethod(EinloomError):
    """A search method of another package is wrong about its own answer; `evaluate` and the space decide.

    method: its name. difference: what it says and what is so. mapping: the text of the mapping that is meant, if any.
    """

    def __init__(self, method: str, difference: str, mapping: str | None = None) -> None:
        self.method, self.difference, self.mapping = method, difference, mapping
        super().__init__(f"method {method!r} is broken: {difference}")


class MissingExtra(EinloomError):
    """An optional library is not installed; the message names the extra that brings it."""

    def __init__(self, library: str, extra: str) -> None:
        self.library = library
        self.extra = extra
        super().__init__(f"{library} is not installed; it comes with: pip install 'einloom[{extra}]'")


def need(library: str, extra: str) -> None:
    """Raise MissingExtra unless the library can be imported."""
    try:
        import_module(library)
    except ImportError:
        raise MissingExtra(library, extra) from None
