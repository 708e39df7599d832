"""What the command line gives out: answers to files and standard output, remarks to standard error.

Files come first and everything is tried: where one cannot be written, the answer is still printed, and the exit code
says that something was lost.
"""

from __future__ import annotations

import errno
import io
import json
import os
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from os.path import exists, isfile
from pathlib import Path

import click

from ..errors import SpecError, combined
from ..reading import writing

by_option = click.option(
    "--by",
    type=click.Choice(("layer", "module", "class", "einsum", "none")),
    help="Rows of the table that stands for the mapping with more than 40 Einsums; none: the whole mapping instead.",
)
json_option = click.option(
    "--json", "json_path", metavar="FILE", help="Write the answer as JSON; - for standard output."
)
READ = ("mapspace", "dataflow", "explanation", "statistics")
"""Parameters of options whose files are read; of `--start` the result may take the place (docs/exact.md)."""
Output = tuple[str | None, Callable[[], str]]
"""A file, ``-`` for standard output, None for nowhere; and what makes the text for it."""


class _Closed(io.TextIOBase):
    """In place of a standard output that the process was started without."""

    def write(self, text: str) -> int:
        raise OSError(errno.EBADF, "it is closed")


def attach() -> None:
    """Make the standard streams safe to use.

    A closed one is taken by /dev/null, or the next file that is opened would stand in its place. Names in files and of
    files may hold anything: what the terminal cannot show is escaped.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 (as long as the process)
    if sys.stdout is None:
        sys.stdout = _Closed()
    elif isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def tell(remark: str) -> None:
    """A line on standard error, if that can be written to."""
    with suppress(OSError):
        click.echo(remark, err=True)


def drop() -> None:
    """Give up standard output: what is left in its buffer must not fail once more when the process ends."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def deliver(printed: str, *outputs: Output) -> None:
    """Write the outputs, then print the text; an output on standard output replaces it.

    Raises SpecError for all files that could not be written, after everything else is out.
    """
    failed: list[SpecError] = []
    shown = [printed] if "-" not in [path for path, _ in outputs] else []
    for path, content in outputs:
        if path == "-":
            shown.append(content())
        elif path is not None:
            try:
                file(content(), path)
            except SpecError as error:
                failed.append(error)
    for text in shown:
        click.echo(text, nl=False)
    if failed:
        raise combined(failed)


def answer(data: object, json_path: str | None, printed: str) -> None:
    """Print the text, and write the data as JSON where it is wanted; JSON on standard output replaces the text."""
    deliver(printed, (json_path, lambda: json.dumps(data, indent=1) + "\n"))


def file(content: str, path: str) -> None:
    """Write one file, with a remark where somebody is waited for. Raises SpecError."""
    writing.write(content, path, lambda: tell(f"einloom: waiting for a reader of {path}"))


def refuse(*paths: str | None) -> None:
    """Raise SpecError for places that cannot be written to, or cost a file that is read or written beside them: before
    a long search, not after it."""
    wrong: list[SpecError] = []
    for path in paths:
        if path is not None and path != "-":
            try:
                writing.refuse(path)
            except SpecError as error:
                wrong.append(error)
    if wrong:
        raise combined(wrong)
    keep_apart(*paths)


def keep_apart(*paths: str | Path | None, read: Iterable[str | Path] = ()) -> None:
    """Raise SpecError if one output would replace another, or a file that the verb reads.

    A mapping that a search starts from may be replaced by what was found. read: further files that are read.
    """
    places = _named([path for path in paths if path is not None])
    for number, (name, path) in enumerate(places):
        for other, earlier in places[:number]:
            if path == earlier == "-":
                raise SpecError(f"{other} and {name} both go to standard output, which takes one of them")
            if _same(path, earlier):
                raise SpecError(f"{other} and {name} are the same file, {str(path)!r}; give each its own")
        for text in (*_inputs(), *map(str, read)):
            if isfile(text) and _same(path, text):
                raise SpecError(f"{name} would replace {text!r}, which is read here; give another place")


def _named(paths: list[str | Path]) -> list[tuple[str, str | Path]]:
    """Each output with the option that it is given by, or else with itself."""
    context = click.get_current_context()
    options = [one for one in context.command.params if isinstance(one, click.Option) and one.name not in READ]
    found = []
    for path in paths:
        mine = [one for one in options if context.params.get(one.name or "") == path]
        options = [one for one in options if one not in mine[:1]]
        found.append((mine[0].opts[0] if mine else repr(str(path)), path))
    return found


def _inputs() -> list[str]:
    """What the arguments of the verb, and its options that name a file to read, say; without parameters of a file."""
    context = click.get_current_context()
    given = [
        context.params[one.name or ""]
        for one in context.command.params
        if isinstance(one, click.Argument) or one.name in READ
    ]
    texts = [text for value in given for text in (value if isinstance(value, tuple) else (value,)) if value is not None]
    return [part for text in texts if "\0" not in text for part in dict.fromkeys((text, text.partition(":")[0]))]


def _same(one: str | Path, other: str | Path) -> bool:
    """True if both mean one file of which there would be one content; /dev/null, say, takes any number."""
    try:
        first, second = Path(one).resolve(), Path(other).resolve()
    except OSError:  # the working folder is gone
        return False
    return first == second and (isfile(first) or not exists(first))
