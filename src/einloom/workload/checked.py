"""The door of workloads that Python put together: what no file could say is refused, as in a file.

What `build_workload` makes, as readers of files do, is such; `Workload` and `dataclasses.replace` check nothing.
"""

from __future__ import annotations

from dataclasses import fields

from ..errors import SpecError
from ..once import read_once
from .build import BUILT
from .einsum import Workload
from .files import workload_data, workload_from_data

NOT_TOGETHER = (AttributeError, IndexError, KeyError, TypeError, ValueError)


def checked(workload: Workload) -> Workload:
    """The workload as a file would say it, with plain numbers; looked at once for each object.

    Raises SpecError for everything that a file of the same contents would be refused for.
    """
    return read_once(workload, BUILT, _read_again)


def _read_again(workload: Workload) -> Workload:
    where = f"workload {workload.name!s:.40}" if workload.name else "a workload"
    try:
        found = workload_from_data(workload_data(workload), where)
        unlike = [one.name for one in fields(Workload) if one.compare and not _alike(workload, found, one.name)]
    except NOT_TOGETHER as error:
        said = f"not put together as build_workload does it ({type(error).__name__}: {error})"
        raise SpecError(said, file=where) from error
    for name in unlike:
        said = f"{name} is {getattr(workload, name)!r:.200}, and the rest of it says {getattr(found, name)!r:.200}"
        raise SpecError(f"{said}; build_workload makes one from Einsums and sizes", file=where, path=name)
    return found


def _alike(workload: Workload, found: Workload, name: str) -> bool:
    """True if a field says the same in both; tensors, sizes and outputs in any order."""
    mine, read = getattr(workload, name), getattr(found, name)
    return set(mine) == set(read) if name in ("tensors", "sizes", "outputs") else bool(mine == read)
