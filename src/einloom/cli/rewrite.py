"""`einloom rewrite`: the workload that a rewrite makes of another one, as YAML."""

from __future__ import annotations

from collections.abc import Callable

import click


def register(group: click.Group, guarded: Callable[[Callable[..., None]], Callable[..., None]]) -> None:
    """Add the verb to the command line."""

    @group.command("rewrite")
    @click.argument("workload")
    @click.argument("call", metavar="NAME:KEY=NUMBER,…")
    @guarded
    def rewrite_verb(workload: str, call: str) -> None:
        """Print an equivalent of WORKLOAD, as in online_softmax:tiles=4 or windows:height=7,width=4."""
        from ..arithmetic import arithmetic
        from ..errors import SpecError
        from ..mapspace.rewrites import rewrite
        from ..workload.files import workload_text
        from ..workload.load import load_workload
        from ..workload.named import split_call

        name, texts = split_call(call)
        numbers = {key: arithmetic(text) for key, text in texts.items()}
        for key, number in numbers.items():
            if number.denominator != 1:
                raise SpecError(f"{name}: {key}={texts[key]} must be a whole number")
        made = rewrite(load_workload(workload), name, **{key: int(number) for key, number in numbers.items()})
        click.echo(workload_text(made), nl=False)
