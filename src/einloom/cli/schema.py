"""`einloom schema`: the JSON Schema of a kind of file, for editors."""

from __future__ import annotations

import json

import click

from .guard import guarded


@click.command("schema")
@click.argument("kind", metavar="KIND")
@guarded
def schema_verb(kind: str) -> None:
    """Print the JSON Schema of a kind of file: workload, machine, mapspace, dataflow, result, unmapped or sweep.
    docs/inputs.md says how to use it."""
    from ..schema import json_schema

    click.echo(json.dumps(json_schema(kind), indent=1))
