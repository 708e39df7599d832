"""The verbs `export` and `import` of the command line: other tools' files, written and read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import click

from . import verbs
from .errors import SpecError
from .machine.write import machine_text
from .mapping.text import print_mapping
from .problem import OBJECTIVES
from .workload.files import workload_text
from .workload.named import split_call

Verb = TypeVar("Verb", bound=Callable[..., None])
Guard = Callable[[Verb], Verb]


def register(main: click.Group, guarded: Callable[[Callable[..., None]], Callable[..., None]]) -> None:
    """Add the groups `export` and `import` to the command line, each verb behind `guarded`."""
    for name, help_text, verb, decorate in (
        ("export", "Write a problem as another tool's files.", export_accelforge, _export_options),
        ("import", "Read another tool's files.", import_accelforge, _import_options),
    ):
        group = click.Group(name, help=help_text)
        group.command("accelforge")(decorate(guarded(verb)))
        main.add_command(group)


def _export_options(verb: Callable[..., None]) -> Callable[..., None]:
    for option in (
        click.option("-o", "--output", metavar="DIR", required=True, help="The folder for the files."),
        click.option("--max-fused-loops", type=click.IntRange(0), help="At most so many loops above a fused tensor."),
        click.option("--objective", default="energy", show_default=True, help=f"One of {', '.join(OBJECTIVES)}."),
        click.argument("machine"),
        click.argument("workload"),
    ):
        verb = option(verb)
    return verb


def _import_options(verb: Callable[..., None]) -> Callable[..., None]:
    for option in (
        click.option("-o", "--output", metavar="DIR", required=True, help="The folder for the files."),
        click.option("--set", "settings", metavar="NAME=VALUE,...", help="Values for the templates in the files."),
        click.argument("files", nargs=-1, required=True),
    ):
        verb = option(verb)
    return verb


def export_accelforge(workload: str, machine: str, objective: str, max_fused_loops: int | None, output: str) -> None:
    """Write WORKLOAD and MACHINE as AccelForge's YAML: architecture, workload, search settings.

    einloom.yaml, which AccelForge is not given, keeps what the format has no word for.
    """
    from .interop.accelforge import export

    asked = verbs.problem(workload, machine, objective, max_fused_loops)
    made = export(asked.workload, asked.machine, asked.objective, asked.mapspace)
    with _writing(output) as folder:
        for path in made.write(folder):
            click.echo(str(path))
    _say(made.notes)


def import_accelforge(files: tuple[str, ...], settings: str | None, output: str) -> None:
    """Read AccelForge's YAML FILES and write workload.yaml, machine.yaml and mapping.txt, whichever they hold."""
    from .interop.accelforge import read

    parameters = split_call(f"files:{settings}")[1] if settings else {}
    found = read(files, parameters)
    texts: dict[str, str] = {}
    if found.workload is not None:
        texts["workload.yaml"] = workload_text(found.workload)
    if found.machine is not None:
        texts["machine.yaml"] = machine_text(found.machine)
    if found.mapping is not None and found.workload is not None:
        texts["mapping.txt"] = print_mapping(found.mapping, found.workload)
    with _writing(output) as folder:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in texts.items():
            (folder / name).write_text(text, encoding="utf-8")
            click.echo(str(folder / name))
    if found.objective is not None and found.mapspace is not None:
        limit = found.mapspace.max_fused_loops
        words = f"--objective {found.objective}" + ("" if limit is None else f" --max-fused-loops {limit}")
        click.echo(f"the search that the files ask for: {words}")
    _say(found.notes)


class _writing:  # noqa: N801 (used as a `with` statement's verb)
    """A folder to write into; trouble with it becomes a SpecError."""

    def __init__(self, folder: str) -> None:
        self.folder = Path(folder)

    def __enter__(self) -> Path:
        return self.folder

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if isinstance(error, OSError):
            raise SpecError(f"cannot write the files: {error.strerror}", file=str(self.folder)) from None


def _say(notes: tuple[str, ...]) -> None:
    for note in notes:
        click.echo(f"note: {note}", err=True)
