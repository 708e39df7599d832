"""One verb for machines: a name from the zoo with parameters, or a file."""

from __future__ import annotations

from ..workload.named import Entry, looks_like_path, split_call
from .files import read_machine
from .levels import Machine
from .zoo import entries, zoo_machine


def load_machine(text: str) -> Machine:
    """The machine that `text` names: ``simple:dram_energy=100,glb_bits=8388608`` or ``path/to/machine.yaml``.

    >>> load_machine("simple:dram_energy=100").memory("DRAM").read_energy
    100.0

    A file's own ``parameters:`` may be set the same way. Raises SpecError for unknown names, keys and bad values.
    """
    name, parameters = split_call(text)
    return read_machine(name, parameters) if looks_like_path(name) else zoo_machine(name, parameters)


def names() -> tuple[Entry, ...]:
    """What `load_machine` knows by name."""
    return tuple(entries().values())
