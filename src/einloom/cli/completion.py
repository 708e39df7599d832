"""What a shell offers while an argument is typed: names of what ships, of methods and of objectives, else files.

click calls these functions where the shell's completion is switched on (docs/getting-started.md), and never otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

from ..errors import EinloomError

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

Offers = list["CompletionItem"]


def workloads(context: click.Context, parameter: click.Parameter, begun: str) -> Offers:
    """The workloads of the zoo that begin so."""
    return _entries(begun, "workloads")


def machines(context: click.Context, parameter: click.Parameter, begun: str) -> Offers:
    """The machines of the zoo that begin so."""
    return _entries(begun, "machines")


def dataflows(context: click.Context, parameter: click.Parameter, begun: str) -> Offers:
    """The dataflows that ship and begin so."""
    return _entries(begun, "dataflows")


def entries(context: click.Context, parameter: click.Parameter, begun: str) -> Offers:
    """Whatever of the zoo begins so."""
    return _entries(begun, "workloads", "machines", "dataflows")


def methods(context: click.Context, parameter: click.Parameter, begun: str) -> Offers:
    """The search methods that begin so; of names with commas between them the last is completed."""
    from ..search.registry import methods

    before, comma, last = begun.rpartition(",")
    return _offers(begun, ((f"{before}{comma}{name}", None) for name in methods() if name.startswith(last)))


def objectives(context: click.Context, parameter: click.Parameter, begun: str) -> Offers:
    """The objectives that begin so; the traffic of each memory if the machine is known already."""
    from ..problem import OBJECTIVES

    names = [name for name in OBJECTIVES if name.isalpha() and name != "traffic"]
    typed = context.args[1:2]  # not sorted into parameters yet, as the option lacks its value
    traffic = [one for machine in typed for one in _traffic(machine)]
    return _offers(begun, ((name, None) for name in (*names, *traffic)))


def spaces(context: click.Context, parameter: click.Parameter, begun: str) -> Offers:
    """The named mapspaces that begin so."""
    from ..mapspace.space import space_names

    return _offers(begun, ((name, None) for name in space_names()))


def rewrites(context: click.Context, parameter: click.Parameter, begun: str) -> Offers:
    """The rewrites that begin so."""
    from ..dataflows.rewrites import FOR_ANY, REWRITES

    return _offers(begun, ((name, None) for name in (*REWRITES, *FOR_ANY)))


def _traffic(machine: str) -> list[str]:
    from ..zoo.machine_by_name import load_machine

    try:
        return [f"traffic:{memory.name}" for memory in load_machine(machine).memories]
    except EinloomError:  # the verb will say so
        return []


def _entries(begun: str, *kinds: str) -> Offers:
    from ..zoo.index import listed

    return _offers(begun, ((entry.name, entry.description) for kind in kinds for entry in listed(kind)))


def _offers(begun: str, known: Iterable[tuple[str, str | None]]) -> Offers:
    """Names with a line about each; where none begins so, the shell offers files."""
    from click.shell_completion import CompletionItem

    found = [CompletionItem(name, help=about) for name, about in known if name.startswith(begun)]
    return found or [CompletionItem(begun, type="file")]
