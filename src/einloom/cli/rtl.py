"""`einloom rtl`: a fabric as Verilog with a testbench, random trials of it, and its area."""

from __future__ import annotations

import tempfile
from pathlib import Path
from random import Random

import click

from ..errors import SpecError, need
from ..fabric.describe import NAMES, Fabric, fabric
from ..fabric.simulate import Compiled, by_amaranth
from ..fabric.tools import missing, tool
from ..reading import writing
from ..report.text.table import columns
from .guard import FAILED, fail, guarded


@click.command("rtl")
@click.argument("name", metavar="FABRIC|area")
@click.option("--rows", type=click.IntRange(1, 1024), help="Of elements in an array; by default the file's.")
@click.option("--columns", "width", type=click.IntRange(1, 1024), help="The same for columns.")
@click.option("-o", "--output", metavar="FOLDER", help="Write fabric.v and testbench.cpp there.")
@click.option("--simulate", "number", type=click.IntRange(1), metavar="N", help="Run N random operations.")
@click.option("--seed", default=0, show_default=True, help="Of the random operations.")
@guarded
def rtl_verb(name: str, rows: int | None, width: int | None, output: str | None, number: int | None, seed: int) -> None:
    """Write the hardware of FABRIC (a name or a YAML file), or run it against NumPy and the cycle model.

    `einloom rtl area` prints areas instead: elements and whole fabrics, synthesised with yosys. Simulation uses
    Verilator, and where that is missing Amaranth's own simulator.
    """
    need("amaranth", "rtl")
    if name == "area":
        click.echo(_areas(), nl=False)
        return
    one = fabric(name)
    one = one.with_arrays(rows or one.rows, width or one.columns)
    if output is None and number is None:
        raise SpecError(f"say what to do with {name}: -o FOLDER writes it, --simulate N runs it")
    if output is not None:
        click.echo(_written(one, Path(output)), nl=False)
    if number is not None:
        _simulated(one, number, seed)


def _written(one: Fabric, folder: Path) -> str:
    from ..fabric.rtl.write import testbench, verilog

    tool("yosys")
    writing.folder(folder)
    files = [verilog(one, folder), testbench(one, folder)]
    return "".join(f"wrote {path}\n" for path in files)


def _simulated(one: Fabric, number: int, seed: int) -> None:
    """Run random operations and say what came out; the process fails if anything differs."""
    from ..fabric.trials import random_job

    if one.elements > 4096:
        raise SpecError(f"{one.elements} elements are too many to simulate; choose --rows 4 --columns 4")
    rng = Random(seed)
    jobs = [random_job(one, rng) for _ in range(number)]
    why = missing("verilator", "yosys", "g++", "make")
    if why is None:
        with tempfile.TemporaryDirectory() as folder:
            ran = Compiled(one, Path(folder)).run(jobs)
    else:
        click.echo(f"einloom: {why}; Amaranth's simulator is used", err=True)
        ran = by_amaranth(jobs)
    kinds = sorted({(r.job.operation, r.job.configuration.name) for r in ran})
    rows = []
    for operation, configuration in kinds:
        mine = [r for r in ran if (r.job.operation, r.job.configuration.name) == (operation, configuration)]
        good = [sum(r.right for r in mine), sum(r.on_time for r in mine)]
        rows.append((operation, configuration, str(len(mine)), *(str(n) for n in good)))
    heads = ("operation", "configuration", "runs", "right", "on time")
    click.echo(columns(f"{one.name}, arrays of {one.rows} x {one.columns}", heads, rows, left=(0, 1)))
    if not all(r.right and r.on_time for r in ran):
        fail("the hardware differs from NumPy or from the cycle model", FAILED)


def _areas() -> str:
    """The elements beside each other, and what surrounds them in every fabric."""
    from ..fabric.area import VARIANTS, element_leaf, fabric_leaves

    leaves = {name: element_leaf(name, element) for name, element in VARIANTS.items()}
    base = leaves["WS"].area
    rows = [(n, str(x.cells), f"{x.area:.0f}", f"{x.area / base - 1:+.1%}") for n, x in leaves.items()]
    text = columns("one element, OSU 0.18 um", ("element", "cells", "um2", "over WS"), rows, left=(0,)) + "\n"
    for name in NAMES:
        parts = fabric_leaves(fabric(name))
        whole = parts[0].total
        listed = [(p.name, str(p.count), f"{p.area:.0f}", f"{p.total / whole:.3%}") for p in parts]
        text += "\n" + columns(name, ("leaf", "count", "um2", "of all elements"), listed, left=(0,)) + "\n"
    return text
