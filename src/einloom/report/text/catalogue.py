"""What ships, as a list for people."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import wrap

from ...zoo.catalogue import Entry
from .table import WIDTH


def catalogue(kinds: Sequence[tuple[str, Sequence[Entry]]]) -> str:
    """What ships, by kind."""
    blocks = []
    for kind, entries in kinds:
        lines = [kind]
        for entry in entries:
            about = wrap(entry.description, WIDTH - 22)
            lines += [f"  {entry.name:<18}  {about[0] if about else ''}", *(f"{'':22}{more}" for more in about[1:])]
            called = ", ".join(f"{p.name}={p.default}" if p.default else p.name for p in entry.parameters)
            lines += [f"{'':22}{line}" for line in wrap(called and f"parameters: {called}", WIDTH - 22)]
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks) + "\n"
