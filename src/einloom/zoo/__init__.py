"""What ships with einloom, as attributes: ``el.zoo.gpt3_6_7b(batch=1, tokens=2048)``, ``el.zoo.tpu_v4i()``.

An attribute is the entry's name with ``_`` for every ``-`` and ``.``.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from ..dataflows.files import NAMES as DATAFLOWS
from ..dataflows.files import dataflow
from ..dataflows.rules import Dataflow
from ..errors import SpecError, nearest
from ..machine.levels import Machine
from ..workload.einsum import Workload
from .catalogue import Entry
from .machine_by_name import load_machine
from .machine_by_name import names as known_machines
from .workload_by_name import load_workload
from .workload_by_name import names as known_workloads

Value = str | int | float | bool


def workloads() -> tuple[Entry, ...]:
    """The workloads that ship, with their parameters."""
    return known_workloads()


def machines() -> tuple[Entry, ...]:
    """The machines that ship, with their parameters."""
    return known_machines()


def dataflows() -> tuple[Entry, ...]:
    """The dataflows that ship: restrictions of the mapspace (docs/dataflows.md)."""
    found = [dataflow(name) for name in DATAFLOWS]
    return tuple(Entry(d.name, f"{d.title}, for {d.family.name}: {d.description}") for d in found)


def load(text: str) -> Workload | Machine | Dataflow:
    """The workload, machine or dataflow that ``name:key=value,…`` names (dataflows have no keys).

    Raises SpecError with a suggestion if there is none.
    """
    name = text.partition(":")[0]
    if name in [entry.name for entry in known_workloads()]:
        return load_workload(text)
    machine_names = [entry.name for entry in known_machines()]
    if name in machine_names:
        return load_machine(text)
    if text in DATAFLOWS:
        return dataflow(text)
    known = [*(entry.name for entry in known_workloads()), *machine_names, *DATAFLOWS]
    raise SpecError(f"the zoo has no {name!r}; `einloom zoo` lists what it has", suggestion=nearest(name, known))


def attribute(name: str) -> str:
    """The attribute under which an entry is found.

    >>> attribute("gpt3-6.7b")
    'gpt3_6_7b'
    """
    return re.sub(r"\W", "_", name)


def _call(name: str, parameters: dict[str, Value]) -> str:
    texts = (f"{key}={str(value).lower() if isinstance(value, bool) else value}" for key, value in parameters.items())
    return f"{name}:{','.join(texts)}" if parameters else name


def _maker(entry: Entry, load: Callable[[str], Workload | Machine]) -> Callable[..., Workload | Machine]:
    def make(**parameters: Value) -> Workload | Machine:
        return load(_call(entry.name, parameters))

    make.__doc__ = f"{entry.description}: {entry.signature}"
    return make


def __getattr__(name: str) -> Callable[..., Workload | Machine]:
    for entries, load in ((known_workloads, load_workload), (known_machines, load_machine)):
        for entry in entries():
            if attribute(entry.name) == name:
                return _maker(entry, load)
    close = nearest(name, __dir__())
    raise AttributeError(f"the zoo has no {name!r}" + (f"; did you mean {close!r}?" if close else ""))


def __dir__() -> list[str]:
    return [attribute(entry.name) for entry in (*known_workloads(), *known_machines())] + [
        "dataflows",
        "load",
        "machines",
        "workloads",
    ]
