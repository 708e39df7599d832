"""What `verify` found out, as data."""

from __future__ import annotations

from ..dataclass import dataclass
from ..reporting import reported


@dataclass(frozen=True, slots=True)
class Check:
    """One question, whether it was answered well, and the detail that a reader wants.

    passed: None for what cannot be checked, and for what is true and should be known all the same.
    """

    name: str
    passed: bool | None
    detail: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """ok: nothing speaks against the result. reasons: everything that does. checks: all questions in order.

    remarks: what is not proven by this verdict, and what should be known. stopped: by the user, before the end; then
    the result is not `ok`. True where a condition is asked for means `ok`.
    """

    checks: tuple[Check, ...]
    stopped: bool = False

    @property
    def ok(self) -> bool:
        return not self.reasons and not self.stopped

    @property
    def reasons(self) -> tuple[str, ...]:
        return tuple(f"{check.name}: {check.detail}" for check in self.checks if check.passed is False)

    @property
    def remarks(self) -> tuple[str, ...]:
        return tuple(f"{check.name}: {check.detail}" for check in self.checks if check.passed is None)

    def __bool__(self) -> bool:
        return self.ok

    def __str__(self) -> str:
        """The verdict as text: a line for each check, and the sentence at the end."""
        return str(reported("verdict", self))
