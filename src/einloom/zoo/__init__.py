"""What ships with einloom, as attributes: ``el.zoo.gpt3_6_7b(batch=1, tokens=2048)``, ``el.zoo.tpu_v4i()``.

An attribute is the entry's name with ``_`` for every ``-`` and ``.``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any

from ..errors import SpecError, nearest
from .catalogue import Entry, split_call
from .index import listed

if TYPE_CHECKING:
    from ..dataflows.rules import Dataflow
    from ..machine.levels import Machine
    from ..workload.einsum import Workload

Value = str | int | float | bool
LOADERS = {
    "workloads": (".workload_entries", "zoo_workload"),
    "machines": (".machine_entries", "zoo_machine"),
    "dataflows": ("..dataflows.files", "dataflow"),
}
"""By kind, the module and the function that build an entry; a list needs neither, so they are imported on demand."""


def workloads() -> tuple[Entry, ...]:
    """The workloads that ship, with their parameters."""
    return listed("workloads")


def machines() -> tuple[Entry, ...]:
    """The machines that ship, with their parameters."""
    return listed("machines")


def dataflows() -> tuple[Entry, ...]:
    """The dataflows that ship: restrictions of the mapspace (docs/dataflows.md)."""
    return listed("dataflows")


def load(text: str) -> Workload | Machine | Dataflow:
    """The workload, machine or dataflow that ``name:key=value,…`` names (dataflows have no keys).

    Raises SpecError with a suggestion if there is none.
    """
    name = text.partition(":")[0]
    for kind in LOADERS:
        if (text if kind == "dataflows" else name) in [entry.name for entry in listed(kind)]:
            found: Workload | Machine | Dataflow = _load(kind, text)
            return found
    known = [entry.name for kind in LOADERS for entry in listed(kind)]
    raise SpecError(f"the zoo has no {name!r}; `einloom zoo` lists what it has", suggestion=nearest(name, known))


def _load(kind: str, text: str) -> Any:
    module, function = LOADERS[kind]
    given = (text,) if kind == "dataflows" else split_call(text)
    return getattr(import_module(module, __name__), function)(*given)


def attribute(name: str) -> str:
    """The attribute under which an entry is found.

    >>> attribute("gpt3-6.7b")
    'gpt3_6_7b'
    """
    return re.sub(r"\W", "_", name)


def _call(name: str, parameters: dict[str, Value]) -> str:
    texts = (f"{key}={str(value).lower() if isinstance(value, bool) else value}" for key, value in parameters.items())
    return f"{name}:{','.join(texts)}" if parameters else name


def _maker(kind: str, entry: Entry) -> Callable[..., Any]:
    def make(**parameters: Value) -> Any:
        return _load(kind, _call(entry.name, parameters))

    make.__doc__ = f"{entry.description}: {entry.signature}"
    return make


def __getattr__(name: str) -> Callable[..., Any]:  # of a Workload or of a Machine, which only the name says
    for kind in ("workloads", "machines"):
        for entry in listed(kind):
            if attribute(entry.name) == name:
                return _maker(kind, entry)
    close = nearest(name, __dir__())
    raise AttributeError(f"the zoo has no {name!r}" + (f"; did you mean {close!r}?" if close else ""))


def __dir__() -> list[str]:
    return [attribute(entry.name) for entry in (*workloads(), *machines())] + [
        "dataflows",
        "load",
        "machines",
        "workloads",
    ]
