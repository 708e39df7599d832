"""The mapspaces by name: ``ffm`` and ``ragged``, and those that installed packages bring.

A package names its spaces as entry points of the group ``einloom.spaces``. Each refers to a class that makes
a `Space` of (workload, machine, mapspace).
"""

from __future__ import annotations

from collections.abc import Callable

from ..errors import SpecError
from ..machine.levels import Machine
from ..reading.plugins import FAILURES, OURS, loaded, offer, reason_of
from ..workload.einsum import Workload
from .space import GROUP, SPACES, Mapspace, Space, known_space


def space_for(workload: Workload, machine: Machine, mapspace: Mapspace) -> Space:
    """The set of mappings that `mapspace` means for this workload and machine. Raises SpecError for an unknown name."""
    if known_space(mapspace.name) in SPACES:
        from .ffm.space import Ffm

        return Ffm(workload, machine, mapspace)
    make = loaded(GROUP, mapspace.name)
    try:
        made: Space = make(workload, machine, mapspace)
    except FAILURES as error:
        if isinstance(error, OURS):
            raise
        raise SpecError(f"mapspace {mapspace.name!r} cannot be made: {reason_of(error)}") from error
    return made


def use(name: str, make: Callable[[Workload, Machine, Mapspace], Space]) -> None:
    """From now on this session knows the space by this name, as if a package had brought it."""
    offer(GROUP, name, make)
