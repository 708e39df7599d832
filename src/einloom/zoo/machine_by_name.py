"""One verb for machines: a name from the zoo with parameters, or a file."""

from __future__ import annotations

from pathlib import Path

from ..errors import SpecError
from ..interop.registry import claimant, imported
from ..machine.files import LEVELS, read_machine
from ..machine.levels import Machine
from ..reading.located import Located, read_file
from .catalogue import looks_like_path, means_file, pathless, split_call
from .machine_entries import NAMES, zoo_machine


def load_machine(text: str | Path) -> Machine:
    """The machine that `text` names: ``simple:dram_energy=100,glb_bits=8388608`` or ``path/to/machine.yaml``.

    >>> load_machine("simple:dram_energy=100").memory("DRAM").read_energy
    100.0

    What ships goes before a file of its name, which is ``./simple``. A file's own ``parameters:`` may be set the same
    way. A file of another tool is read by its importer. Raises SpecError for unknown names, keys and bad values.
    """
    name, parameters = split_call(pathless(text))
    if name not in NAMES and (reader := claimant(name)) is not None:
        found = imported(reader, [name], parameters).machine
        if found is None:
            raise SpecError(f"importer {reader!r} finds no machine in it", file=name)
        return found
    return read_machine(name, parameters) if means_file(name, NAMES) else zoo_machine(name, parameters)


def located_key(text: str, place: str) -> Located | None:
    """The view of a key such as ``GLB.must`` or ``PE.rows.multicast`` in the file that `text` names, for errors.

    None if `text` names no file.
    """
    name, _ = split_call(text)
    if name in NAMES or not looks_like_path(name) or claimant(name) is not None:
        return None
    level, *rest = place.split(".")
    for item in read_file(name).require("levels").items():
        if level in (item.require(key).name() for key in (kind.label for kind in LEVELS) if item.get(key) is not None):
            axes = item.get("axes")
            if len(rest) == 2 and axes is not None:
                item = next(axis for axis in axes.items() if axis.require("axis").name() == rest[0])
            return item.get(rest[-1]) or item
    return None
