"""The verbs `export` and `import` of the command line: other tools' files, written and read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

from .. import questions
from ..cost.evaluate import legality
from ..errors import IllegalMapping, SpecError
from ..interop.bundle import Bundle, ExportedFiles
from ..interop.clocks import cycles_per_second
from ..interop.registry import SHIPPED, imported, importers
from ..machine.levels import Machine
from ..machine.write import machine_text
from ..mapping.legality.reason import lines_of
from ..mapping.text import print_mapping
from ..mapping.tree import Mapping
from ..mapspace.files import mapspace_text
from ..problem import OBJECTIVES
from ..reading import writing
from ..workload.einsum import Workload
from ..workload.files import workload_text
from ..zoo.catalogue import split_call
from ..zoo.machine_by_name import load_machine
from ..zoo.workload_by_name import load_workload
from .arguments import machine_argument, objective_option, workload_argument
from .guard import FAILED, NamedCommands, fail, guarded
from .output import keep_apart, tell

NAMED = 3
"""So many tensors are named where several would be."""
TITLES = {"zigzag": "ZigZag's accelerators and layers, or Stream's cores,"}


class _Importers(NamedCommands):
    """The importers that ship have verbs of their own; every other one that is installed has the common verb."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted({*super().list_commands(ctx), *importers()})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        known = super().get_command(ctx, cmd_name)
        return _importer(cmd_name) if known is None and cmd_name in importers() else known


export_verb = NamedCommands("export", help="Write a problem as another tool's files.")
import_verb = _Importers("import", help="Read another tool's files.")
mapping_argument = click.argument("mapping", required=False)
files_argument = click.argument("files", nargs=-1, required=True)
folder_option = click.option("-o", "--output", metavar="DIR", required=True, help="The folder for the files.")
any_folder_option = click.option("-o", "--output", metavar="DIR", help="The folder for the files.")
clock_option = click.option("--clock", help="Cycles per second; by default the unit's operations per second.")


def _importer(name: str) -> click.Command:
    """The verb of an importer that has none of its own."""
    about = "An importer that an installed package brings."
    if name in SHIPPED:
        about = f"Read {TITLES[name]} and write workload.yaml, machine.yaml and mapping.txt, whichever they hold."

    @click.command(name, help=about)
    @files_argument
    @click.option("--option", "options", multiple=True, metavar="KEY=VALUE", help="Of the importer; repeatable.")
    @_settings("Values for what the files leave open")
    @folder_option
    @guarded
    def verb(files: tuple[str, ...], settings: tuple[str, ...], options: tuple[str, ...], output: str) -> None:
        _deliver(imported(name, files, _named(settings), _named(options, "options")), output)

    return verb


def _named(settings: Sequence[str], kind: str = "files") -> dict[str, str]:
    """The values of NAME=VALUE,... of an option that may be repeated."""
    given = ",".join(settings)
    return split_call(f"{kind}:{given}")[1] if given else {}


def _settings(about: str, metavar: str = "NAME=VALUE,...") -> Callable[[Any], Any]:
    return click.option("--set", "settings", multiple=True, metavar=metavar, help=f"{about}; repeatable.")


@import_verb.command("timeloop")
@files_argument
@click.option("--counts", "counted", is_flag=True, help="Print reads, fills and updates as Timeloop counts.")
@_settings("clock, bits, ert=FILE, or energy=none")
@any_folder_option
@guarded
def import_timeloop(files: tuple[str, ...], settings: tuple[str, ...], counted: bool, output: str | None) -> None:
    """Read Timeloop's YAML FILES of version 0.4 and write workload.yaml, machine.yaml and mapping.txt, as far as there.

    Architecture, problem, mapping and ERT (energies) may stand in any files. Nothing in them is executed.
    """
    from ..interop.timeloop import counts, read, table_text

    if output is None and not counted:
        raise SpecError("say -o DIR to write the files, --counts to print what Timeloop counts, or both")
    found = read(files, _named(settings))
    workload, machine, mapping = found.workload, found.machine, found.mapping
    if output is not None:
        _deliver(found, output)
    else:
        _say(found.notes)
    if workload is not None and machine is not None and mapping is not None:
        if counted:
            click.echo(table_text(counts(workload, machine, mapping)), nl=False)
        _say_illegal(workload, machine, mapping)
    elif counted:
        raise SpecError("--counts needs an architecture, a problem and a mapping")


@import_verb.command("onnx")
@click.argument("file")
@click.option("--check", is_flag=True, help="Compare every tensor with a run of the model on random inputs.")
@click.option("--boundary", multiple=True, metavar="NODE", help="Cut at this node; repeatable.")
@click.option("--operands", type=click.IntRange(1), help="At most so many of one Einsum.")
@click.option(
    "--bits", multiple=True, metavar="N", help="Of all values, or weights=4,default=16; else the file's; repeatable."
)
@_settings("Sizes of axes that the file leaves open", "NAME=N,...")
@click.option("-o", "--output", metavar="DIR", help="The folder for workload.yaml and import.txt.")
@guarded
def import_onnx(
    file: str,
    settings: tuple[str, ...],
    bits: tuple[str, ...],
    operands: int | None,
    boundary: tuple[str, ...],
    check: bool,
    output: str | None,
) -> None:
    """Read a network from FILE.onnx as a cascade of Einsums and say what was absorbed, cut and left out.

    Weights are not needed. With --check, compute every tensor of the cascade and compare it with a run of the model;
    exit with 1 if one differs by more than rounding in the model's types: 1e-5 of its largest value, 0.01 in float16.
    """
    from ..interop.onnx.importer import OnnxImporter

    model = OnnxImporter(",".join(bits), operands or 0, ";".join(boundary)).model([file], _named(settings, "axes"))
    click.echo(model.report(), nl=False)
    if output is not None:
        _write(output, model.workload, None, None)
        writing.write(model.account(), Path(output) / "import.txt")
        click.echo(str(Path(output) / "import.txt"))
    if check:
        agreed = model.check()
        against = f" against {agreed.reference}" if agreed.reference else ""
        worst = f"; worst {agreed.worst:.2g} of the largest value" + (f" in {agreed.where}" if agreed.worst else "")
        if agreed.unbounded:
            worst += f"; {agreed.unbounded} with infinities or NaN, where the model has them, too"
        click.echo(f"  checked   {agreed.tensors} tensors{against}{worst}")
        if agreed.ties:
            click.echo(_ties(agreed.ties))
        if not agreed.agrees:
            value = f"the model's own value{against.replace('against', 'by', 1)}"
            fail(f"{agreed.where} differs from {value} by more than {agreed.limit:.2g} of its largest", FAILED)


def _ties(ties: Sequence[tuple[str, int]]) -> str:
    """Which values were rounded the other way, in a line."""
    names = ", ".join(name for name, _ in ties[:NAMED]) + (", ..." if len(ties) > NAMED else "")
    count = sum(count for _, count in ties)
    half = f"{count:,} value{'s' * (count > 1)} half-way between two quantised numbers"
    return (
        f"  rounded   {half}: the model rounds the other way, and what follows is computed from its values; in {names}"
    )


@export_verb.command("accelforge")
@workload_argument
@machine_argument
@objective_option(f"One of {', '.join(OBJECTIVES)}.")
@click.option("--max-fused-loops", type=click.IntRange(0), help="At most so many loops above a fused tensor.")
@click.option(
    "--max-fused-loops-per-rank-variable", "again", type=click.IntRange(1), help="So many of them of one rank (1)."
)
@folder_option
@guarded
def export_accelforge(
    workload: str, machine: str, objective: str, max_fused_loops: int | None, again: int | None, output: str
) -> None:
    """Write WORKLOAD and MACHINE as AccelForge's YAML: architecture, workload, search settings.

    einloom.yaml, which AccelForge is not given, keeps what the format has no word for.
    """
    from ..interop.accelforge import export

    asked = questions.problem(workload, machine, objective, max_fused_loops, max_fused_loops_per_rank_variable=again)
    _exported(export(asked.workload, asked.machine, asked.objective, asked.mapspace), output)


@import_verb.command("accelforge")
@files_argument
@click.option("--include", "folders", metavar="DIR", multiple=True, help="Files may include others from here.")
@_settings("Values for the templates in the files")
@folder_option
@guarded
def import_accelforge(files: tuple[str, ...], settings: tuple[str, ...], folders: tuple[str, ...], output: str) -> None:
    """Read AccelForge's YAML FILES and write workload.yaml, machine.yaml and mapping.txt, whichever they hold.

    What loop_bounds ask of the search becomes mapspace.yaml. Files that the files include come from their own folders
    and from those named with --include; nothing in them is executed.
    """
    from ..interop.accelforge import read

    _deliver(read(files, _named(settings), folders), output)


def _deliver(found: Bundle, output: str) -> None:
    """Write whatever an importer found, and say where and what was taken differently."""
    _write(output, found.workload, found.machine, found.mapping)
    if found.mapspace is not None and found.mapspace.limits:
        writing.write(mapspace_text(found.mapspace), Path(output) / "mapspace.yaml")
        click.echo(str(Path(output) / "mapspace.yaml"))
    if found.objective is not None and found.mapspace is not None:
        limit, again = found.mapspace.max_fused_loops, found.mapspace.max_fused_loops_per_rank_variable
        words = f"--objective {found.objective}" + ("" if limit is None else f" --max-fused-loops {limit}")
        words += "" if again == 1 else f" --max-fused-loops-per-rank-variable {again}"
        click.echo(f"the search that the files ask for: {words}")
    _say(found.notes)


@export_verb.command("tileflow")
@workload_argument
@machine_argument
@mapping_argument
@click.option("--clock", default="1 Hz", show_default=True, help="Cycles per second, for words per cycle.")
@folder_option
@guarded
def export_tileflow(workload: str, machine: str, mapping: str | None, clock: str, output: str) -> None:
    """Write WORKLOAD and MACHINE, and a MAPPING if one is given, as TileFlow's YAML: arch, prob, map.

    Energies are left out: TileFlow has tables of its own.
    """
    from ..interop.tileflow import export

    _exported(export(*_problem(workload, machine, mapping), cycles_per_second(clock)), output)


@export_verb.command("timeloop")
@folder_option
@clock_option
@workload_argument
@machine_argument
@mapping_argument
@guarded
def export_timeloop(workload: str, machine: str, mapping: str | None, clock: str | None, output: str) -> None:
    """Write WORKLOAD, one Einsum, and MACHINE, and a MAPPING if one is given, as Timeloop's YAML of version 0.4.

    arch.yaml, problem.yaml, map.yaml and ERT.yaml, the energies.
    """
    from ..interop.timeloop import export

    asked = _problem(workload, machine, mapping)
    _exported(export(*asked, 0.0 if clock is None else cycles_per_second(clock)), output)


@export_verb.command("zigzag")
@folder_option
@clock_option
@workload_argument
@machine_argument
@guarded
def export_zigzag(workload: str, machine: str, clock: str | None, output: str) -> None:
    """Write WORKLOAD, of products and sums of two operands, and MACHINE as ZigZag's YAML."""
    from ..interop.zigzag import export

    chosen, where = load_workload(workload), load_machine(machine)
    _exported(export(chosen, where, 0.0 if clock is None else cycles_per_second(clock)), output)


def _problem(workload: str, machine: str, mapping: str | None) -> tuple[Workload, Machine, Mapping | None]:
    cascade, hardware = load_workload(workload), load_machine(machine)
    if mapping is None:
        return cascade, hardware, None
    found = questions.mapping_in(mapping, cascade, hardware)
    if reasons := legality(cascade, hardware, found.mapping):
        raise IllegalMapping(reasons, found.file, lines_of(found, reasons))
    return cascade, hardware, found.mapping


def _exported(made: ExportedFiles, output: str) -> None:
    keep_apart(*(Path(output) / name for name in made.files))
    for path in made.write(Path(output)):
        click.echo(str(path))
    _say(made.notes)


@import_verb.command("tileflow")
@files_argument
@click.option("--compare", "statistics", metavar="CSV", help="Print TileFlow's counts beside einloom's.")
@click.option("--clock", default="1 Hz", show_default=True, help="Cycles per second.")
@_settings("Values for macros and free factors")
@any_folder_option
@guarded
def import_tileflow(
    files: tuple[str, ...], settings: tuple[str, ...], clock: str, statistics: str | None, output: str | None
) -> None:
    """Read TileFlow's YAML FILES and write workload.yaml, machine.yaml and mapping.txt, whichever they hold.

    With --compare, print TileFlow's counts (its out.csv) beside einloom's and the rules that make the difference; exit
    with 1 if the rules do not account for a number.
    """
    from ..interop.tileflow import compare, read, read_statistics, table_text

    if output is None and statistics is None:
        raise SpecError("say -o DIR to write the files, --compare out.csv to set the counts side by side, or both")
    found = read(files, _named(settings), cycles_per_second(clock))
    if output is not None:
        _write(output, found.workload, found.machine, found.mapping)
    comparison = None if statistics is None else compare(found, read_statistics(statistics))
    if comparison is not None:
        click.echo(table_text(comparison), nl=False)
    if found.workload is not None and found.machine is not None and found.mapping is not None:
        _say_illegal(found.workload, found.machine, found.mapping)
    _say(found.notes)
    if comparison is not None and not comparison.accounted:
        missing = sum(not row.accounted for row in comparison.rows)
        fail(f"{missing} of {len(comparison.rows)} numbers are not accounted for", FAILED)


def _write(output: str, workload: Workload | None, machine: Machine | None, mapping: Mapping | None) -> None:
    """Write whichever there are into the folder `output`, and say where."""
    texts: dict[str, str] = {}
    if workload is not None:
        texts["workload.yaml"] = workload_text(workload)
    if machine is not None:
        texts["machine.yaml"] = machine_text(machine)
    if mapping is not None and workload is not None:
        texts["mapping.txt"] = print_mapping(mapping, workload)
    keep_apart(*(Path(output) / name for name in texts))
    folder = writing.folder(output)
    for name, text in texts.items():
        writing.write(text, folder / name)
        click.echo(str(folder / name))


def _say_illegal(workload: Workload, machine: Machine, mapping: Mapping) -> None:
    for reason in legality(workload, machine, mapping):
        tell(f"not a legal mapping: {reason}")


def _say(notes: tuple[str, ...]) -> None:
    for note in notes:
        tell(f"note: {note}")
