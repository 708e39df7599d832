"""Results as JSON, both ways. The schema is ``result/1``; the digest is SHA-256 of everything else in canonical form.

A result file holds its own inputs, so it is accepted wherever a mapping is. Reading checks every field's type and
refuses what it does not know; whether the numbers are *true* is the question of `certify.verify`.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from ..cost.breakdown import Action, Cost
from ..errors import SpecError
from ..mapping.text import print_mapping
from ..problem import Certificate
from ..reading.fields import STATED, read_record
from ..reading.located import Located, from_data
from . import document
from .asked import goal_data, input_data, notes_data, problem_from
from .record import Result
from .tables import ASKED, ResultTables, ended_of, provenance_of

VERSION = 1


def result_data(result: Result) -> dict[str, Any]:
    """The result as plain data, as the file holds it."""
    cost, certificate = result.cost, result.certificate
    front = [
        {"energy": p.energy, "latency": p.latency, "mapping": print_mapping(p.mapping, result.workload)}
        for p in result.front
    ]
    data: dict[str, Any] = {
        "schema": f"result/{VERSION}",
        "einloom": result.provenance.version,
        "model_version": result.provenance.model_version,
        "method": result.method,
        "seconds": result.seconds,
        **({} if result.ended is None else {"ended": result.ended.value}),
        **goal_data(result.problem),
        "energy": cost.energy,
        "latency": cost.latency,
        "edp": cost.edp,
        "certificate": None if certificate is None else _certificate_data(certificate),
        "mapping": result.mapping_text,
        "roofline": cost.roofline,
        **({} if result.latencies is None else {"latencies": asdict(result.latencies)}),
        "einsum_latency": [{"einsum": name, "seconds": seconds} for name, seconds in cost.einsum_latency],
        "busy": [{"einsum": e, "component": c, "seconds": seconds} for e, c, seconds in cost.busy],
        "occupancy": [
            {
                "memory": o.memory,
                "bits": o.bits,
                "size": o.size,
                "tensors": [{"tensor": tensor, "bits": bits} for tensor, bits in o.tensors],
            }
            for o in cost.occupancy
        ],
        "breakdown": [{name: getattr(a, name) for name in Action._fields} for a in cost.actions],
        **input_data(result.problem),
        "assumed": {"facts": result.provenance.facts, "assumed": result.provenance.assumed},
        **({"front": front} if front else {}),
        "trace": [{"seconds": p.seconds, "best": p.best, "bound": p.bound} for p in result.trace],
        **notes_data(result.notes),
    }
    data["digest"] = document.digest(data)
    return data


def _certificate_data(certificate: Certificate) -> dict[str, Any]:
    return {
        "guarantee": certificate.guarantee.value,
        "value": certificate.value,
        "bound": certificate.bound,
        "gap": certificate.gap,
        "mapspace": certificate.mapspace,
        "counts": dict(certificate.counts),
        **({"alternatives": [asdict(one) for one in certificate.alternatives]} if certificate.alternatives else {}),
        **({} if certificate.integer is None else {"integer": certificate.integer}),
    }


def parse_result(text: str, file: str = "<result>") -> Result:
    """The result that a JSON text holds. Raises SpecError with the place of whatever is wrong."""
    with document.shallow(file):
        data = document.parse(text, file)
        if str(data.get("schema")).startswith("unmapped/"):
            raise SpecError(
                f"this file holds no mapping, but why none was found: {data.get('reason')!s:.300}", file=file
            )
        return _result(from_data(data, file, text=text), data, file)


def _result(view: Located, data: dict[str, Any], file: str) -> Result:
    view.schema("result", VERSION)
    problem = problem_from(view)
    tables = ResultTables(problem, file)
    found = read_record(view, tables.record, STATED, ignored=("schema", *ASKED))
    view.raise_gathered()
    names = ("energy", "latency", "roofline", "busy", "einsum_latency", "occupancy")
    cost = Cost(**{name: found[name] for name in names}, latency_rule=problem.latency_rule, actions=found["breakdown"])
    if found["edp"] != cost.edp:
        raise view.require("edp").error(f"edp is {found['edp']!r}, but energy times latency is {cost.edp!r}")
    return Result(
        problem,
        tables.tree(view.require("mapping"), found["mapping"]),
        cost,
        found.get("certificate"),
        found["method"],
        found["seconds"],
        found["trace"],
        provenance_of(found),
        found["digest"],
        document.digest(data),
        found.get("latencies"),
        found.get("front", ()),
        ended_of(found),
        tuple(found.get("notes", ())),
    )
