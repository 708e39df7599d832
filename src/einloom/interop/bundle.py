"""What an importer returns: whatever the files of another tool hold, as einloom's objects."""

from __future__ import annotations

from dataclasses import dataclass

from ..machine.levels import Machine
from ..mapping.tree import Mapping
from ..mapspace.space import Mapspace
from ..workload.einsum import Workload


@dataclass(frozen=True)
class Bundle:
    """What the files hold, None where they hold nothing of the kind.

    objective: the name of what their search minimises. notes: sentences on what was left out or taken differently.
    """

    workload: Workload | None = None
    machine: Machine | None = None
    mapping: Mapping | None = None
    objective: str | None = None
    mapspace: Mapspace | None = None
    notes: tuple[str, ...] = ()
