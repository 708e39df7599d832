"""ZigZag's YAML files as einloom's objects: an accelerator (or Stream core), layers, a mapping.

They may come in any order. Nothing in a file is executed, and no other file is opened. Of a key that stands
twice the last counts, as in ZigZag, with a note.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from ...errors import SpecError
from ...machine.levels import Machine
from ...mapspace.space import Mapspace
from ...reading.located import Located, file_text, read_text
from ..bundle import Bundle
from .accelerator import accelerator_from
from .layers import CascadeOfLayers, layers_from
from .mappings import mapspace_from

WORKLOAD_NAME = "zigzag"
_KNOWN = "an accelerator has the keys memories and operational_array, a workload is a list of layers with equation"


def read(files: Sequence[str | Path], clock: float = 1.0) -> Bundle:
    """What the files say; `clock`: cycles per second. Raises SpecError with file and line for whatever is not read."""
    return read_texts({str(file): file_text(file) for file in files}, clock)


def read_texts(texts: Mapping[str, str], clock: float = 1.0) -> Bundle:
    """As `read`, for texts by file name."""
    notes: list[str] = []
    machine: Machine | None = None
    layers: CascadeOfLayers | None = None
    mapping: Located | None = None
    met: set[str] = set()
    if not texts:
        raise SpecError("ZigZag's files are an accelerator, a workload, or both; none is given")
    for name, text in texts.items():
        repeated: list[SpecError] = []
        view = read_text(text, name, repeated)
        notes += [f"{error}; the last one counts, as in ZigZag" for error in repeated]
        kind = _kind(view)
        if kind in met:
            raise view.error(f"a second {kind}; one is read at a time")
        met.add(kind)
        if kind == "mapping":
            mapping = view
        elif kind == "workload":
            layers = layers_from(view, WORKLOAD_NAME, notes)
        else:
            machine = accelerator_from(view, clock, notes)
    mapspace: Mapspace | None = None
    if mapping is not None:
        if layers is None or machine is None:
            raise mapping.error("a mapping is read together with its layers and its accelerator")
        mapspace = mapspace_from(mapping, layers, machine, notes)
    workload = None if layers is None else layers.workload
    return Bundle(workload, machine, mapspace=mapspace, notes=tuple(dict.fromkeys(notes)))


def _kind(view: Located) -> str:
    """Which of the three it is. SpecError for a system of Stream, and for anything else."""
    if view.is_list:
        items = view.items()
        keys = items[0].keys if items and items[0].is_mapping else ()
        spreads = "equation" not in keys and ("spatial_mapping" in keys or "memory_operand_links" in keys)
        return "mapping" if spreads else "workload"
    keys = view.keys
    if "cores" in keys:
        raise view.require("cores").error(
            "a system of Stream, several cores with links between them; give the file of one compute core instead"
        )
    if "memories" not in keys and "operational_array" not in keys:
        raise view.error(f"neither an accelerator nor a workload of ZigZag: {_KNOWN}")
    return "accelerator"
