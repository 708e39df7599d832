"""The group of all verbs; what a verb needs is imported when it is asked for, so that quick ones are quick."""

from __future__ import annotations

from importlib import import_module

import click

from ..version import VERSION
from .guard import Commands

VERBS = {
    "compare": ("compare", "Compare saved results, or run methods and compare theirs."),
    "evaluate": ("commands", "Price a mapping, or the one of a saved result."),
    "explain": ("explain", "Say why a problem has no mapping, or what binds its best."),
    "explore": ("explore", "Find the best machines of a family, each with its best mapping."),
    "export": ("interop", "Write a problem as another tool's files."),
    "figure": ("figures", "Draw saved results as one picture."),
    "import": ("interop", "Read another tool's files."),
    "map": ("commands", "Find the best mapping of a workload onto a machine."),
    "report": ("show", "Draw a saved result as one HTML file."),
    "reproduce": ("reproduce", "Print what a paper prints beside what einloom says."),
    "rewrite": ("rewrite", "Print an equivalent of a workload."),
    "rtl": ("rtl", "Write the hardware of a fabric, or test it."),
    "run": ("commands", "Run a mapping as a C program and compare its results and counts."),
    "schema": ("schema", "Print the JSON Schema of a kind of file."),
    "show": ("show", "Print a saved result, or one side of it."),
    "simulate": ("commands", "Execute a small mapping and compare its counts."),
    "sweep": ("figures", "Search once for each capacity of a memory."),
    "verify": ("commands", "Check everything that a saved result claims."),
    "zoo": ("listing", "List what ships, or print one entry as YAML."),
}
"""The verbs by name: the module that is imported once one is asked for, with its NAME_verb, and a line about it."""


class Verbs(Commands):
    """The verbs, of which each is known only once it is needed."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """As of `click.Group`."""
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """As of `click.Group`."""
        if cmd_name in VERBS and cmd_name not in self.commands:
            module = import_module(f".{VERBS[cmd_name][0]}", __package__)
            self.add_command(getattr(module, f"{cmd_name}_verb"))
        return super().get_command(ctx, cmd_name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """As of `click.Group`, but no verb is imported."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, about) for name, (_, about) in VERBS.items()])


@click.group(cls=Verbs, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(VERSION, prog_name="einloom")
def main() -> None:
    """Optimal fused mappings of Einsum cascades onto accelerators, each with a certificate."""
