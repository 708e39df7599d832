"""The door of machines that Python put together: what no file could say is refused, as in a file.

What files are read into is such already; the classes of `levels` and `dataclasses.replace` check nothing.
"""

from __future__ import annotations

from dataclasses import fields, replace

from ..errors import SpecError
from ..once import read_once
from .files import READ, machine_from_data
from .levels import Machine
from .write import machine_data

NOT_TOGETHER = (AttributeError, IndexError, KeyError, StopIteration, TypeError, ValueError)


def checked(machine: Machine) -> Machine:
    """The machine as a file would say it, with plain numbers; looked at once for each object.

    Raises SpecError for everything that a file of the same contents would be refused for.
    """
    return read_once(machine, READ, _read_again)


def _read_again(machine: Machine) -> Machine:
    where = f"machine {machine.name!s:.40}" if machine.name else "a machine"
    try:
        given = replace(machine, levels=tuple(machine.levels))
        found = machine_from_data(machine_data(given, units=False), where)
        for one, other in zip(given.levels, found.levels, strict=True):
            for field in fields(one):
                _same(getattr(one, field.name), getattr(other, field.name), where, f"{one.name}.{field.name}")
        for name in ("name", "partial_sums", "startup"):
            _same(getattr(given, name), getattr(found, name), where, name)
    except NOT_TOGETHER as error:
        said = f"not made of memories, tolls, links, fanouts and compute units ({type(error).__name__}: {error})"
        raise SpecError(said, file=where) from error
    return found


def _same(given: object, found: object, where: str, path: str) -> None:
    """Refuse a value that is read as another one: a size that is a text, a selector that is one."""
    if given != found:
        said = f"{given!r:.200} is no value of it; from Python it would be {found!r:.200}"
        raise SpecError(said, file=where, path=path)
