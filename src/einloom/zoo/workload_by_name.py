"""One verb for workloads: a name from the zoo with parameters, a file, or a file that an importer reads."""

from __future__ import annotations

from pathlib import Path

from ..errors import SpecError
from ..interop.registry import claimant, imported
from ..workload.einsum import Workload
from ..workload.files import read_workload
from .catalogue import means_file, pathless, split_call
from .workload_entries import entries, zoo_workload


def load_workload(text: str | Path) -> Workload:
    """The workload that `text` names: ``gpt3-6.7b:batch=1,tokens=2048`` or ``path/to/workload.yaml``.

    >>> load_workload("matmuls:n=2,m=8,kn=4").outputs
    ('T2',)

    What ships goes before a file of its name, which is ``./matmul``. A file's own ``parameters:`` may be set the same
    way. A file whose suffix an importer claims is read by it. Raises SpecError for unknown names, keys and bad values.
    """
    name, parameters = split_call(pathless(text))
    if name not in entries() and (reader := claimant(name)) is not None:
        found = imported(reader, [name], parameters).workload
        if found is None:
            raise SpecError(f"importer {reader!r} finds no workload in it", file=name)
        return found
    return read_workload(name, parameters) if means_file(name, entries()) else zoo_workload(name, parameters)
