"""JSON Schemas of einloom's files, for editors: made of the tables of keys that the readers use."""

from __future__ import annotations

from ..errors import SpecError, nearest
from ..machine.files import MACHINE
from ..machine.files import VERSION as MACHINE_VERSION
from ..mapspace.files import VERSION as MAPSPACE_VERSION
from ..reading.json_schema import record_schema
from ..reading.keys import Record
from ..result.files import VERSION as RESULT_VERSION
from ..workload.files import VERSION as WORKLOAD_VERSION
from ..workload.files import WORKLOAD
from .answers import MAPSPACE, RESULT

KINDS: dict[str, tuple[Record, int]] = {
    "workload": (WORKLOAD, WORKLOAD_VERSION),
    "machine": (MACHINE, MACHINE_VERSION),
    "mapspace": (MAPSPACE, MAPSPACE_VERSION),
    "result": (RESULT, RESULT_VERSION),
}


def json_schema(kind: str) -> dict[str, object]:
    """The JSON Schema (2020-12) of a kind of file: ``workload``, ``machine``, ``mapspace`` or ``result``.

    What a schema cannot say (that names meet, that sizes fit together) is left to the reader. Raises SpecError for
    other kinds.
    """
    if kind not in KINDS:
        raise SpecError(
            f"there is no schema {kind!r:.40}; there are {', '.join(KINDS)}", suggestion=nearest(kind, KINDS)
        )
    record, version = KINDS[kind]
    return record_schema(record, f"{kind}/{version}")
