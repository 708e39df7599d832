"""The verbs `export` and `import` of the command line: other tools' files, written and read."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeVar

import click

from .. import api as verbs
from ..cost.evaluate import legality
from ..errors import SpecError
from ..interop.bundle import Bundle, ExportedFiles
from ..interop.clocks import cycles_per_second
from ..interop.registry import SHIPPED, imported, importers
from ..machine.levels import Machine
from ..machine.write import machine_text
from ..mapping.text import parse_mapping, print_mapping
from ..mapping.tree import Mapping
from ..mapspace.files import mapspace_text
from ..problem import OBJECTIVES
from ..reading import writing
from ..reading.located import file_text
from ..workload.einsum import Workload
from ..workload.files import workload_text
from ..zoo.catalogue import split_call
from ..zoo.machine_by_name import load_machine
from ..zoo.workload_by_name import load_workload
from .guard import FAILED, fail, guarded
from .output import tell

Verb = TypeVar("Verb", bound=Callable[..., None])
Guard = Callable[[Verb], Verb]
Verbs = Callable[..., None]
TOLERANCE = 1e-5  # of single precision, over some hundred layers
Decorate = Callable[[Verbs], Verbs]
TITLES = {"zigzag": "ZigZag's accelerators and layers, or Stream's cores,"}


def register(group: click.Group, guarded: Callable[[Callable[..., None]], Callable[..., None]]) -> None:
    """Add the groups `export` and `import` to the command line, each verb behind `guarded`."""
    tools: tuple[tuple[str, str, str, Verbs, Decorate], ...] = (
        ("export", "Write a problem as another tool's files.", "accelforge", export_accelforge, _export_options),
        ("export", "", "tileflow", export_tileflow, _tileflow_out),
        ("export", "", "timeloop", export_timeloop, _clocked(_mapped)),
        ("export", "", "zigzag", export_zigzag, _clocked(_asked)),
        ("import", "Read another tool's files.", "accelforge", import_accelforge, _import_options),
        ("import", "", "tileflow", import_tileflow, _tileflow_in),
        ("import", "", "onnx", import_onnx, _onnx_in),
        ("import", "", "timeloop", import_timeloop, _timeloop_in),
    )
    groups: dict[str, click.Group] = {}
    for name, help_text, tool, verb, decorate in tools:
        kind = _Importers if name == "import" else click.Group
        tools_of = groups.setdefault(name, kind(name, help=help_text))
        tools_of.command(tool)(decorate(guarded(verb)))
        group.add_command(tools_of)


class _Importers(click.Group):
    """The importers that ship have verbs of their own; every other one that is installed has the common verb."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted({*super().list_commands(ctx), *importers()})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        known = super().get_command(ctx, cmd_name)
        if known is not None or cmd_name not in importers():
            return known
        verb = guarded(partial(import_any, cmd_name))
        return click.command(cmd_name, help=_about(cmd_name))(_any_options(verb))


def _about(name: str) -> str:
    """What the help says of an importer without a verb of its own."""
    if name not in SHIPPED:
        return "An importer that an installed package brings."
    return f"Read {TITLES[name]} and write workload.yaml, machine.yaml and mapping.txt, whichever they hold."


def _any_options(verb: Verb) -> Verb:
    for option in (
        click.option("-o", "--output", metavar="DIR", required=True, help="The folder for the files."),
        click.option("--set", "settings", metavar="NAME=VALUE,...", help="Values for what the files leave open."),
        click.option("--option", "options", multiple=True, metavar="KEY=VALUE", help="Of the importer; repeatable."),
        click.argument("files", nargs=-1, required=True),
    ):
        verb = option(verb)
    return verb


def import_any(name: str, files: tuple[str, ...], settings: str | None, options: tuple[str, ...], output: str) -> None:
    """Read FILES with the importer `name` and write whatever they hold."""
    parameters = split_call(f"files:{settings}")[1] if settings else {}
    chosen = split_call(f"options:{','.join(options)}")[1] if options else {}
    _deliver(imported(name, files, parameters, chosen), output)


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
        click.option("--include", "folders", metavar="DIR", multiple=True, help="Files may include others from here."),
        click.argument("files", nargs=-1, required=True),
    ):
        verb = option(verb)
    return verb


def _tileflow_out(verb: Callable[..., None]) -> Callable[..., None]:
    for option in (
        click.option("-o", "--output", metavar="DIR", required=True, help="The folder for the files."),
        click.option("--clock", default="1 Hz", show_default=True, help="Cycles per second, for words per cycle."),
        click.argument("mapping", required=False),
        click.argument("machine"),
        click.argument("workload"),
    ):
        verb = option(verb)
    return verb


def _asked(verb: Verbs) -> Verbs:
    return click.argument("workload")(click.argument("machine")(verb))


def _mapped(verb: Verbs) -> Verbs:
    return _asked(click.argument("mapping", required=False)(verb))


def _clocked(arguments: Decorate) -> Decorate:
    """Options of an export that counts in cycles."""

    def decorate(verb: Verbs) -> Verbs:
        said = "Cycles per second; by default the unit's operations per second."
        verb = click.option("--clock", help=said)(arguments(verb))
        return click.option("-o", "--output", metavar="DIR", required=True, help="The folder for the files.")(verb)

    return decorate


def _tileflow_in(verb: Callable[..., None]) -> Callable[..., None]:
    for option in (
        click.option("-o", "--output", metavar="DIR", help="The folder for the files."),
        click.option("--set", "settings", metavar="NAME=VALUE,...", help="Values for macros and free factors."),
        click.option("--clock", default="1 Hz", show_default=True, help="Cycles per second."),
        click.option("--compare", "statistics", metavar="CSV", help="Print TileFlow's counts beside einloom's."),
        click.argument("files", nargs=-1, required=True),
    ):
        verb = option(verb)
    return verb


def _onnx_in(verb: Callable[..., None]) -> Callable[..., None]:
    for option in (
        click.option("-o", "--output", metavar="DIR", help="The folder for workload.yaml and import.txt."),
        click.option("--set", "settings", metavar="NAME=N,...", help="Sizes of axes that the file leaves open."),
        click.option(
            "--bits", default="", metavar="N", help="Of all values, or weights=4,default=16; else the file's."
        ),
        click.option("--operands", type=click.IntRange(1), help="At most so many of one Einsum."),
        click.option("--boundary", multiple=True, metavar="NODE", help="Cut at this node; repeatable."),
        click.option("--check", is_flag=True, help="Compare every tensor with a run of the model on random inputs."),
        click.argument("file"),
    ):
        verb = option(verb)
    return verb


def _timeloop_in(verb: Callable[..., None]) -> Callable[..., None]:
    for option in (
        click.option("-o", "--output", metavar="DIR", help="The folder for the files."),
        click.option("--set", "settings", metavar="NAME=VALUE,...", help="clock, bits, ert=FILE, or energy=none."),
        click.option("--counts", "counted", is_flag=True, help="Print reads, fills and updates as Timeloop counts."),
        click.argument("files", nargs=-1, required=True),
    ):
        verb = option(verb)
    return verb


def import_timeloop(files: tuple[str, ...], settings: str | None, counted: bool, output: str | None) -> None:
    """Read Timeloop's YAML FILES of version 0.4 and write workload.yaml, machine.yaml and mapping.txt, as far as there.

    Architecture, problem, mapping and ERT (energies) may stand in any files. Nothing in them is executed.
    """
    from ..interop.timeloop import counts, read, table_text

    if output is None and not counted:
        raise SpecError("say -o DIR to write the files, --counts to print what Timeloop counts, or both")
    found = read(files, split_call(f"files:{settings}")[1] if settings else {})
    workload, machine, mapping = found.workload, found.machine, found.mapping
    if output is not None:
        _deliver(found, output)
    else:
        _say(found.notes)
    if counted and (workload is None or machine is None or mapping is None):
        raise SpecError("--counts needs an architecture, a problem and a mapping")
    if workload is not None and machine is not None and mapping is not None:
        if counted:
            click.echo(table_text(counts(workload, machine, mapping)), nl=False)
        for reason in legality(workload, machine, mapping):
            tell(f"not a legal mapping: {reason}")


def import_onnx(
    file: str,
    settings: str | None,
    bits: str,
    operands: int | None,
    boundary: tuple[str, ...],
    check: bool,
    output: str | None,
) -> None:
    """Read a network from FILE.onnx as a cascade of Einsums and say what was absorbed, cut and left out.

    Weights are not needed. With --check, compute every tensor of the cascade and compare it with a run of the model;
    exit with 1 if one differs by more than 1e-5 of its largest value.
    """
    from ..interop.onnx.importer import OnnxImporter

    sizes = split_call(f"axes:{settings}")[1] if settings else {}
    model = OnnxImporter(bits, operands or 0, ";".join(boundary)).model([file], sizes)
    click.echo(model.report(), nl=False)
    agreed = model.check() if check else None
    if output is not None:
        _write(output, model.workload, None, None)
        writing.write(model.report(), Path(output) / "import.txt")
        click.echo(str(Path(output) / "import.txt"))
    if agreed is not None:
        worst = f"; worst {agreed.worst:.2g} of the largest value" + (f" in {agreed.where}" if agreed.worst else "")
        click.echo(f"  checked   {agreed.tensors} tensors{worst}")
        if not agreed.worst <= TOLERANCE:
            fail(f"{agreed.where} differs from the model's own value", FAILED)


def export_accelforge(workload: str, machine: str, objective: str, max_fused_loops: int | None, output: str) -> None:
    """Write WORKLOAD and MACHINE as AccelForge's YAML: architecture, workload, search settings.

    einloom.yaml, which AccelForge is not given, keeps what the format has no word for.
    """
    from ..interop.accelforge import export

    asked = verbs.problem(workload, machine, objective, max_fused_loops)
    made = export(asked.workload, asked.machine, asked.objective, asked.mapspace)
    for path in made.write(Path(output)):
        click.echo(str(path))
    _say(made.notes)


def import_accelforge(files: tuple[str, ...], settings: str | None, folders: tuple[str, ...], output: str) -> None:
    """Read AccelForge's YAML FILES and write workload.yaml, machine.yaml and mapping.txt, whichever they hold.

    What loop_bounds ask of the search becomes mapspace.yaml. Files that the files include come from their own folders
    and from those named with --include; nothing in them is executed.
    """
    from ..interop.accelforge import read

    parameters = split_call(f"files:{settings}")[1] if settings else {}
    _deliver(read(files, parameters, folders), output)


def _deliver(found: Bundle, output: str) -> None:
    """Write whatever an importer found, and say where and what was taken differently."""
    _write(output, found.workload, found.machine, found.mapping)
    if found.mapspace is not None and found.mapspace.limits:
        writing.write(mapspace_text(found.mapspace), Path(output) / "mapspace.yaml")
        click.echo(str(Path(output) / "mapspace.yaml"))
    if found.objective is not None and found.mapspace is not None:
        limit = found.mapspace.max_fused_loops
        words = f"--objective {found.objective}" + ("" if limit is None else f" --max-fused-loops {limit}")
        click.echo(f"the search that the files ask for: {words}")
    _say(found.notes)


def export_tileflow(workload: str, machine: str, mapping: str | None, clock: str, output: str) -> None:
    """Write WORKLOAD and MACHINE, and a MAPPING if one is given, as TileFlow's YAML: arch, prob, map.

    Energies are left out: TileFlow has tables of its own.
    """
    from ..interop.tileflow import export

    chosen, where = load_workload(workload), load_machine(machine)
    tree = None
    if mapping is not None:
        tree = parse_mapping(file_text(mapping), chosen, where, mapping)
    made = export(chosen, where, tree, cycles_per_second(clock))
    for path in made.write(Path(output)):
        click.echo(str(path))
    _say(made.notes)


def export_timeloop(workload: str, machine: str, mapping: str | None, clock: str | None, output: str) -> None:
    """Write WORKLOAD, one Einsum, and MACHINE, and a MAPPING if one is given, as Timeloop's YAML of version 0.4.

    arch.yaml, problem.yaml, map.yaml and ERT.yaml, the energies.
    """
    from ..interop.timeloop import export

    chosen, where = load_workload(workload), load_machine(machine)
    tree = None if mapping is None else parse_mapping(file_text(mapping), chosen, where, mapping)
    _exported(export(chosen, where, tree, 0.0 if clock is None else cycles_per_second(clock)), output)


def export_zigzag(workload: str, machine: str, clock: str | None, output: str) -> None:
    """Write WORKLOAD, of products and sums of two operands, and MACHINE as ZigZag's YAML."""
    from ..interop.zigzag import export

    chosen, where = load_workload(workload), load_machine(machine)
    _exported(export(chosen, where, 0.0 if clock is None else cycles_per_second(clock)), output)


def _exported(made: ExportedFiles, output: str) -> None:
    for path in made.write(Path(output)):
        click.echo(str(path))
    _say(made.notes)


def import_tileflow(
    files: tuple[str, ...], settings: str | None, clock: str, statistics: str | None, output: str | None
) -> None:
    """Read TileFlow's YAML FILES and write workload.yaml, machine.yaml and mapping.txt, whichever they hold.

    With --compare, print TileFlow's counts (its out.csv) beside einloom's and the rules that make the difference; exit
    with 1 if the rules do not account for a number.
    """
    from ..interop.tileflow import compare, read, read_statistics, table_text

    if output is None and statistics is None:
        raise SpecError("say -o DIR to write the files, --compare out.csv to set the counts side by side, or both")
    parameters = split_call(f"files:{settings}")[1] if settings else {}
    found = read(files, parameters, cycles_per_second(clock))
    if output is not None:
        _write(output, found.workload, found.machine, found.mapping)
    comparison = None if statistics is None else compare(found, read_statistics(statistics))
    if comparison is not None:
        click.echo(table_text(comparison), nl=False)
    if found.workload is not None and found.machine is not None and found.mapping is not None:
        for reason in legality(found.workload, found.machine, found.mapping):
            tell(f"not a legal mapping: {reason}")
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
    folder = writing.folder(output)
    for name, text in texts.items():
        writing.write(text, folder / name)
        click.echo(str(folder / name))


def _say(notes: tuple[str, ...]) -> None:
    for note in notes:
        tell(f"note: {note}")
