"""Timeloop's files as einloom's objects: ``architecture``, ``problem``, ``mapping``, ``ERT``, in any order.

Nothing in a file is executed, and no other file is opened.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from ...errors import SpecError
from ...reading.located import Located, file_text
from ..bundle import Bundle
from ..clocks import cycles_per_second, only
from .architecture import cycle, machine_from
from .energies import energies_from
from .mappings import mapping_from
from .problem import workload_from
from .sections import sections, words
from .spreads import mapspace_from

PARAMETERS = ("clock", "bits", "energy", "ert")
DEFAULT_BITS = 8


def read(files: Sequence[str | Path], parameters: Mapping[str, str] | None = None) -> Bundle:
    """What the files say. parameters: ``clock``, ``bits`` per value, ``ert`` (a file of energies), ``energy=none``.

    Raises SpecError with file and line for whatever cannot be read or has no counterpart.
    """
    chosen = dict(parameters or {})
    listed = [*files, *filter(None, [chosen.pop("ert", None)])]
    return read_texts({str(file): file_text(file) for file in listed}, chosen)


def read_texts(texts: Mapping[str, str], parameters: Mapping[str, str] | None = None) -> Bundle:
    """As `read`, for texts by file name."""
    chosen = parameters or {}
    only(PARAMETERS, chosen)
    notes: list[str] = []
    found = sections(texts, notes)
    said = cycle(found)
    clock = cycles_per_second(chosen["clock"]) if "clock" in chosen else said or cycles_per_second()
    energies = energies_from(found.get("ERT"), chosen.get("energy"))
    machine = workload = mapping = mapspace = None
    spreads: Mapping[str, Located] = {}
    if (section := found.get("architecture")) is not None:
        machine, spreads = machine_from(section, energies, clock, notes)
    if (section := found.get("problem")) is not None:
        widths = () if machine is None else machine.memories[0].widths
        workload = workload_from(section, _bits(chosen.get("bits"), widths[0][1] if widths else DEFAULT_BITS))
        dimensions = words(section.require("shape").require("dimensions"))
        if machine is not None:
            mapspace = mapspace_from(spreads, machine, dimensions, notes)
    elif spreads:
        notes.append(f"constraints on the loops of {', '.join(spreads)} are left out without the problem")
    if (section := found.get("mapping")) is not None:
        if machine is None or workload is None:
            raise section.error("a mapping is read together with its problem and its architecture")
        mapping = mapping_from(section, workload, machine, dimensions)
    if machine is None and workload is None:
        raise SpecError("the files hold neither an architecture nor a problem", file=next(iter(texts), None))
    return Bundle(workload, machine, mapping, mapspace=mapspace, notes=tuple(dict.fromkeys(notes)))


def _bits(text: str | None, default: int) -> int:
    if text is None:
        return default
    if not text.isascii() or not text.isdigit() or not 1 <= int(text[:9]) <= 4096:
        raise SpecError(f"bits={text:.40}: bits of a value are a whole number from 1 to 4096")
    return int(text)
