"""The group of all verbs; what a verb needs is imported when it is asked for, so that quick ones are quick."""

from __future__ import annotations

import click

from ..version import VERSION
from .guard import Commands, guarded

MAIN = "map evaluate simulate verify show report"
OTHERS = "compare explain export figure import reproduce rewrite rtl schema sweep zoo"
VERBS = sorted(f"{MAIN} {OTHERS}".split())


class Verbs(Commands):
    """The verbs, of which each is known only once it is needed."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """As of `click.Group`."""
        return VERBS

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """As of `click.Group`."""
        if cmd_name in VERBS and cmd_name not in self.commands:
            _import(cmd_name)
        return super().get_command(ctx, cmd_name)


def _import(verb: str) -> None:
    """Import the module of a verb, which adds it to the group."""
    if verb == "zoo":
        from .listing import register
    elif verb in ("export", "import"):
        from .interop import register
    elif verb in ("figure", "sweep"):
        from .figures import register
    elif verb == "compare":
        from .compare import register
    elif verb == "explain":
        from .explain import register
    elif verb == "reproduce":
        from .reproduce import register
    elif verb == "rewrite":
        from .rewrite import register
    elif verb == "rtl":
        from .rtl import register
    elif verb == "schema":
        from .schema import register
    else:
        from .commands import register
    register(main, guarded)


@click.group(cls=Verbs, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(VERSION, prog_name="einloom")
def main() -> None:
    """Optimal fused mappings of Einsum cascades onto accelerators, each with a certificate."""
