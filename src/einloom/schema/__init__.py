"""JSON Schemas of einloom's files, for editors: made of the tables of keys that the readers use."""

from __future__ import annotations

from ..dataflows.files import DATAFLOW
from ..dataflows.files import VERSION as DATAFLOW_VERSION
from ..errors import unknown
from ..exploration.family import FAMILY
from ..exploration.family import VERSION as FAMILY_VERSION
from ..machine.files import MACHINE
from ..machine.files import VERSION as MACHINE_VERSION
from ..mapspace.files import MAPSPACE
from ..mapspace.files import VERSION as MAPSPACE_VERSION
from ..reading.json_schema import record_schema
from ..reading.keys import Record
from ..result.files import VERSION as RESULT_VERSION
from ..result.sweep import SWEEP
from ..result.sweep import VERSION as SWEEP_VERSION
from ..result.tables import RESULT
from ..result.unmapped import UNMAPPED
from ..result.unmapped import VERSION as UNMAPPED_VERSION
from ..workload.files import VERSION as WORKLOAD_VERSION
from ..workload.files import WORKLOAD

KINDS: dict[str, tuple[Record, int]] = {
    "workload": (WORKLOAD, WORKLOAD_VERSION),
    "machine": (MACHINE, MACHINE_VERSION),
    "mapspace": (MAPSPACE, MAPSPACE_VERSION),
    "dataflow": (DATAFLOW, DATAFLOW_VERSION),
    "result": (RESULT, RESULT_VERSION),
    "unmapped": (UNMAPPED, UNMAPPED_VERSION),
    "sweep": (SWEEP, SWEEP_VERSION),
    "family": (FAMILY, FAMILY_VERSION),
}


def json_schema(kind: str) -> dict[str, object]:
    """The JSON Schema (2020-12) of a kind of file, one of `KINDS`.

    What a schema cannot say (that names meet, that sizes fit together) is left to the reader. Raises SpecError for
    other kinds.
    """
    if kind not in KINDS:
        raise unknown("schema", kind, KINDS)
    record, version = KINDS[kind]
    return record_schema(record, f"{kind}/{version}")
