"""`einloom zoo`: what ships, as a list or as YAML."""

from __future__ import annotations

import click

from . import completion, output
from .guard import guarded


@click.command("zoo")
@click.argument("name", required=False, shell_complete=completion.entries)
@output.json_option
@guarded
def zoo_verb(name: str | None, json_path: str | None) -> None:
    """List the workloads, machines and dataflows that ship, or print NAME (with parameters, if any) as YAML."""
    output.refuse(json_path)
    data, text = _listed() if name is None else _entry(name)
    output.answer(data, json_path, text)


def _listed() -> tuple[object, str]:
    from .. import zoo
    from ..report.text.catalogue import catalogue

    kinds = (("workloads", zoo.workloads()), ("machines", zoo.machines()), ("dataflows", zoo.dataflows()))
    listed = {kind: [{"name": e.name, "description": e.description} for e in entries] for kind, entries in kinds}
    return listed, catalogue(kinds)


def _entry(name: str) -> tuple[object, str]:
    from .. import zoo
    from ..dataflows.files import dataflow_data, dataflow_text
    from ..dataflows.rules import Dataflow
    from ..machine.write import machine_data, machine_text
    from ..workload.einsum import Workload
    from ..workload.files import workload_data, workload_text

    found = zoo.load(name)
    if isinstance(found, Workload):
        return workload_data(found), workload_text(found)
    if isinstance(found, Dataflow):
        return dataflow_data(found.name), dataflow_text(found.name)
    return machine_data(found), machine_text(found)
