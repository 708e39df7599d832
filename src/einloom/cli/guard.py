"""What stands around every verb: errors and stops become one message and an exit code, warnings a line each.

Exit codes: 0 fine, 1 nothing found, illegal or rejected, 2 bad input or output that cannot be written, 130 and 143
after SIGINT (Ctrl-C) and SIGTERM.
"""

from __future__ import annotations

import functools
import signal
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import click

from .. import stops
from ..errors import (
    MAX_REASONS,
    BudgetExhausted,
    Defect,
    EinloomError,
    EinloomWarning,
    IllegalMapping,
    Infeasible,
    nearest,
)
from . import output

FAILED, BAD_INPUT = 1, 2
Verb = TypeVar("Verb", bound=Callable[..., None])


class NamedCommands(click.Group):
    """A group whose unknown commands are told of with the nearest known one, whether that was imported or not."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As of `click.Group`."""
        name = args[0]
        if not ctx.resilient_parsing and not name.startswith("-") and self.get_command(ctx, name) is None:
            close = nearest(name, self.list_commands(ctx))
            ctx.fail(f"No such command {name!r}" + (f"; did you mean {close!r}?" if close else "."))
        return super().resolve_command(ctx, args)


class Commands(NamedCommands):
    """The group of all verbs: standard streams that fail are told of, with the others or before any verb is known."""

    def main(self, *args: Any, **extra: Any) -> Any:
        """As of `click.Group`."""
        output.attach()
        try:
            return super().main(*args, **extra)
        except OSError as error:
            _lost(error)

    def invoke(self, ctx: click.Context) -> Any:
        """As of `click.Group`; Ctrl-C while a verb is still being imported ends like one later."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            fail(stops.words(signal.SIGINT), stops.exit_code(signal.SIGINT))


def guarded(verb: Verb) -> Verb:
    """Turn the project's own errors, stops and lost output into a message and an exit code."""

    @functools.wraps(verb)
    def run(*args: Any, **kwargs: Any) -> None:
        try:
            with stops.listening(), warned():
                verb(*args, **kwargs)
        except IllegalMapping as error:
            fail("\n".join(_illegal(error)), FAILED)
        except Infeasible as error:
            fail(f"no mapping of the space is legal: {error.witness}", FAILED)
        except BudgetExhausted as error:
            fail(str(error), FAILED)
        except Defect as error:
            from ..defects import saved

            fail(str(saved(error)), FAILED)
        except EinloomError as error:
            fail(str(error), BAD_INPUT)
        except MemoryError:
            fail("the machine ran out of memory", FAILED)
        except KeyboardInterrupt as stop:
            number = stop.number if isinstance(stop, stops.Interrupted) else signal.SIGINT
            fail(stops.words(number), stops.exit_code(number))
        except BrokenPipeError:
            output.drop()
        except OSError as error:
            _lost(error)

    return run  # type: ignore[return-value]


def _illegal(error: IllegalMapping) -> Iterator[str]:
    """The lines that say why a mapping is illegal: the first reasons, and how many more there are."""
    yield f"{'' if error.file is None else f'{error.file}: '}the mapping is illegal:"
    yield from (f"  {reason}" for reason in error.placed[:MAX_REASONS])
    if (more := len(error.reasons) - MAX_REASONS) > 0:
        yield f"  ... and {more} more"


@contextmanager
def warned() -> Iterator[None]:
    """A ``with`` block in which an EinloomWarning is a line on standard error, once; other warnings are as ever."""
    told: set[str] = set()
    with warnings.catch_warnings():
        others = warnings.showwarning

        def show(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
            if not issubclass(category, EinloomWarning):
                others(message, category, *place, **more)
            elif str(message) not in told:
                told.add(str(message))
                output.tell(f"einloom: warning: {message}")

        warnings.simplefilter("always", EinloomWarning)
        warnings.showwarning = show
        yield


def fail(message: str, code: int) -> None:
    """End the process with a message."""
    output.tell(f"einloom: {message}")
    raise SystemExit(code)


def stopped(numbers: Sequence[int], known: str) -> None:
    """End the process as one that the first of these signals ended, after a sentence on what it leaves."""
    number = numbers[0] if numbers else signal.SIGINT
    fail(f"{stops.words(number)}: {known}", stops.exit_code(number))


def _lost(error: OSError) -> None:
    output.drop()
    where = "standard output" if error.filename is None else error.filename
    fail(f"cannot write to {where}: {error.strerror}", BAD_INPUT)
