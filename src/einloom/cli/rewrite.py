"""`einloom rewrite`: the workload that a rewrite makes of another one, as YAML."""

from __future__ import annotations

import click

from . import completion
from .arguments import workload_argument
from .guard import guarded


@click.command("rewrite")
@workload_argument
@click.argument("call", metavar="NAME[:KEY=NUMBER,…]", shell_complete=completion.rewrites)
@guarded
def rewrite_verb(workload: str, call: str) -> None:
    """Print an equivalent of WORKLOAD, as in online_softmax:tiles=4, windows:height=7,width=4 or stored_padding."""
    from ..dataflows.rewrites import rewrite
    from ..reading.units import parse
    from ..workload.files import workload_text
    from ..zoo.catalogue import split_call
    from ..zoo.workload_by_name import load_workload

    name, texts = split_call(call)
    made = rewrite(load_workload(workload), name, **{key: int(parse(text, "count")) for key, text in texts.items()})
    click.echo(workload_text(made), nl=False)
