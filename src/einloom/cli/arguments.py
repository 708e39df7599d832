"""Arguments and options that several verbs have, with what a shell offers for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from . import completion

workload_argument = click.argument("workload", shell_complete=completion.workloads)
machine_argument = click.argument("machine", shell_complete=completion.machines)
machine_or_none = click.argument("machine", shell_complete=completion.machines, required=False)
"""Of verbs that take a saved result in place of workload and machine."""


def objective_option(about: str, default: str | None = "energy") -> Callable[[Any], Any]:
    """``--objective``. default: None where it depends on what is asked, which `about` says then."""
    shown = default is not None
    return click.option(
        "--objective",
        shell_complete=completion.objectives,
        metavar="NAME",
        default=default,
        show_default=shown,
        help=about,
    )
