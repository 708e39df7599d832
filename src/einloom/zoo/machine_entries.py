"""The machines that ship with einloom: files in ``data/``, by name, each number with its source."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType

from ..machine.files import machine_from
from ..machine.levels import Machine
from ..reading.located import Located, read_node
from .catalogue import Entry, Parameter, check_keys
from .index import check_entry
from .parsed import parsed

DATA = Path(__file__).parent / "data"
NAMES = (
    "simple",
    "two-level",
    "nvdla",
    "tpu-v4i",
    "tpu-v4i-free",
    "tpu-v4i-vector",
    "ffm-edge",
    "ffm-edge-vector",
    "eyeriss",
    "tileflow-gemm",
    "tileflow-fused",
    "tileflow-edge",
    "tileflow-edge-code",
    "tileflow-cloud",
    "tileflow-cloud-code",
)


def zoo_machine(name: str, parameters: Mapping[str, str] | None = None) -> Machine:
    """The machine called `name`, with `parameters` in place of its defaults.

    >>> [memory.name for memory in zoo_machine("tpu-v4i").memories]
    ['DRAM', 'GLB', 'LB', 'Reg']

    Raises SpecError for an unknown name or parameter.
    """
    check_entry(name, "machine", NAMES)
    given = dict(parameters or {})
    if given:
        check_keys(given, _entry(_view(name)))
    return _build(name, tuple(sorted(given.items())))


@lru_cache(maxsize=64)
def _build(name: str, parameters: tuple[tuple[str, str], ...]) -> Machine:
    return machine_from(_view(name), dict(parameters))


def entries() -> Mapping[str, Entry]:
    """Every machine with its description and parameters, by name."""
    return MappingProxyType({name: _entry(_view(name)) for name in NAMES})


def _view(name: str) -> Located:
    return read_node(parsed(name), str(DATA / f"{name}.yaml"))


def _entry(view: Located) -> Entry:
    parameters = []
    for name, _, value in view.table("parameters"):
        parameters.append(Parameter(name, value.text() if value.is_text else str(value.integer())))
    return Entry(view.require("name").name(), view.require("description").text(), tuple(parameters))
