"""Results as JSON, both ways. The schema is ``result/1``; the digest is SHA-256 of everything else in canonical form.

A result file holds its own inputs, so it is accepted wherever a mapping is. Reading checks every field's type and
refuses what it does not know; whether the numbers are *true* is the question of `certify.verify`.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn, TypeVar, cast, get_args

from ..cost.record import Action, ActionName, Cost, Occupancy
from ..errors import SpecError
from ..located import Located, from_data
from ..machine.files import machine_from
from ..machine.write import machine_data
from ..mapping.text import parse_mapping
from ..mapspace.space import Mapspace
from ..problem import Certificate, Guarantee, Problem, objective
from ..workload.files import workload_data, workload_from
from ..yamltree import MAX_FILE_BYTES
from .record import Provenance, Result, TracePoint

VERSION = 1
_ACTIONS = get_args(ActionName)
T = TypeVar("T")


def digest(data: dict[str, Any]) -> str:
    """SHA-256 of the data without its ``digest``, with sorted keys and no spaces."""
    rest = {key: value for key, value in data.items() if key != "digest"}
    text = json.dumps(rest, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def result_data(result: Result) -> dict[str, Any]:
    """The result as plain data, as the file holds it."""
    cost, certificate = result.cost, result.certificate
    data: dict[str, Any] = {
        "schema": f"result/{VERSION}",
        "einloom": result.provenance.version,
        "model_version": result.provenance.model_version,
        "method": result.method,
        "seconds": result.seconds,
        "objective": str(result.objective),
        "latency_rule": result.latency_rule,
        "mapspace": {"name": result.mapspace.name, "max_fused_loops": result.mapspace.max_fused_loops},
        "energy": cost.energy,
        "latency": cost.latency,
        "edp": cost.edp,
        "certificate": None if certificate is None else _certificate_data(certificate),
        "mapping": result.mapping_text,
        "roofline": cost.roofline,
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
        "breakdown": [
            {
                "einsum": a.einsum,
                "component": a.component,
                "tensor": a.tensor,
                "action": a.action,
                "count": a.count,
                "bits": a.bits,
                "busiest": a.busiest,
                "energy": a.energy,
            }
            for a in cost.actions
        ],
        "workload": workload_data(result.workload),
        "machine": machine_data(result.machine),
        "assumed": {"facts": result.provenance.facts, "assumed": result.provenance.assumed},
        "trace": [{"seconds": p.seconds, "best": p.best, "bound": p.bound} for p in result.trace],
    }
    data["digest"] = digest(data)
    return data


def _certificate_data(certificate: Certificate) -> dict[str, Any]:
    return {
        "guarantee": certificate.guarantee.value,
        "value": certificate.value,
        "bound": certificate.bound,
        "gap": certificate.gap,
        "mapspace": certificate.mapspace,
        "counts": dict(certificate.counts),
    }


def result_text(result: Result) -> str:
    """The result as JSON text, one line per key and per element of a list; ends with a newline."""
    lines = []
    for key, value in result_data(result).items():
        if isinstance(value, list) and value:
            items = ",\n  ".join(json.dumps(item, allow_nan=False) for item in value)
            lines.append(f" {json.dumps(key)}: [\n  {items}\n ]")
        else:
            lines.append(f" {json.dumps(key)}: {json.dumps(value, allow_nan=False)}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def write_result(result: Result, path: str | Path) -> None:
    """Write the result beside its place and rename it there: a reader sees the whole file or the old one."""
    target = Path(path)
    beside = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        try:
            beside.write_text(result_text(result), encoding="utf-8")
            os.replace(beside, target)
        finally:
            beside.unlink(missing_ok=True)
    except OSError as error:
        raise SpecError(f"cannot write the file: {error.strerror}", file=str(path)) from None


def read_result(path: str | Path) -> Result:
    """The result in a file of at most 5 MB."""
    file = str(path)
    try:
        with open(path, "rb") as stream:
            raw = stream.read(MAX_FILE_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise SpecError(f"cannot read the file: {reason}", file=file) from None
    try:
        return parse_result(raw.decode("utf-8"), file)
    except UnicodeDecodeError:
        raise SpecError("not a text file in UTF-8", file=file) from None


def parse_result(text: str, file: str = "<result>") -> Result:
    """The result that a JSON text holds. Raises SpecError with the place of whatever is wrong."""
    if len(text) > MAX_FILE_BYTES:
        raise SpecError(f"larger than {MAX_FILE_BYTES // 10**6} MB; einloom does not read it", file=file, line=1)
    try:
        data = _json(text, file)
        if not isinstance(data, dict):
            raise SpecError("a result file holds one JSON object", file=file, line=1)
        return _result(from_data(data, file), data, file)
    except RecursionError:
        raise SpecError("nested too deep", file=file, line=1) from None


def _json(text: str, file: str) -> Any:
    def pairs(found: list[tuple[str, Any]]) -> dict[str, Any]:
        table = dict(found)
        if len(table) < len(found):
            names = [name for name, _ in found]
            twice = next(name for name in names if names.count(name) > 1)
            raise SpecError(f"key {twice!r} stands twice in one object", file=file)
        return table

    def constant(name: str) -> NoReturn:
        raise SpecError(f"{name} is not a number", file=file)

    try:
        return json.loads(text, object_pairs_hook=pairs, parse_constant=constant)
    except json.JSONDecodeError as error:
        raise SpecError(f"not JSON: {error.msg}", file=file, line=error.lineno, column=error.colno) from None
    except ValueError as error:
        raise SpecError(f"not JSON: {error}", file=file) from None


def _result(view: Located, data: dict[str, Any], file: str) -> Result:
    view.schema("result", VERSION)
    workload = workload_from(view.require("workload"))
    machine = machine_from(view.require("machine"))
    with (aim := view.require("objective")).placed():
        goal = objective(aim.text(), machine)
    view.require("latency_rule").choice(("einsum", "tile"))
    problem = Problem(workload, machine, _mapspace(view.require("mapspace")), goal, data["latency_rule"])
    cost = _cost(view, data["latency_rule"])
    edp = view.require("edp")
    if _float(edp) != cost.edp:
        raise edp.error(f"edp is {edp.number('energy')!r}, but energy times latency is {cost.edp!r}")
    view.require("mapping")
    if not isinstance(data["mapping"], str):
        raise view.require("mapping").error("expected the mapping as text")
    mapping = parse_mapping(data["mapping"], workload, machine, f"{file}, mapping")
    assumed = view.require("assumed")
    provenance = Provenance(
        view.require("einloom").text(),
        view.require("model_version").name(),
        assumed.require("facts").integer(minimum=0),
        assumed.require("assumed").integer(minimum=0),
    )
    assumed.finish()
    certificate = view.get("certificate")
    result = Result(
        problem,
        mapping,
        cost,
        None if certificate is None else _certificate(certificate),
        view.require("method").text(),
        _float(view.require("seconds")),
        tuple(_each(view.require("trace"), _trace_point)),
        provenance,
        view.require("digest").text(),
        digest(data),
    )
    view.finish()
    return result


def _each(view: Located, reader: Callable[[Located], T]) -> list[T]:
    found = []
    for item in view.items():
        found.append(reader(item))
        item.finish()
    return found


def _float(view: Located) -> float:
    return float(view.number("energy"))


def _mapspace(view: Located) -> Mapspace:
    limit = view.get("max_fused_loops")
    name = view.require("name").choice(("ffm",))
    view.finish()
    return Mapspace(name, None if limit is None else limit.integer(minimum=0))


def _certificate(view: Located) -> Certificate:
    guarantee = Guarantee(view.require("guarantee").choice([g.value for g in Guarantee]))
    value, bound = _float(view.require("value")), _float(view.require("bound"))
    counts = {name: number.integer() for name, _, number in view.require("counts").entries()}
    certificate = Certificate(guarantee, value, bound, view.require("mapspace").text(), counts)
    gap = view.require("gap")
    if _float(gap) != certificate.gap:
        raise gap.error(f"the gap is {gap.number('energy')!r}, but value and bound give {certificate.gap!r}")
    view.finish()
    return certificate


def _cost(view: Located, rule: str) -> Cost:
    return Cost(
        energy=_float(view.require("energy")),
        latency=_float(view.require("latency")),
        roofline=_float(view.require("roofline")),
        latency_rule=rule,
        actions=tuple(_each(view.require("breakdown"), _action)),
        busy=tuple(
            _each(
                view.require("busy"),
                lambda v: (v.require("einsum").name(), v.require("component").name(), _float(v.require("seconds"))),
            )
        ),
        einsum_latency=tuple(
            _each(view.require("einsum_latency"), lambda v: (v.require("einsum").name(), _float(v.require("seconds"))))
        ),
        occupancy=tuple(_each(view.require("occupancy"), _occupancy)),
    )


def _action(view: Located) -> Action:
    tensor = view.get("tensor")
    name = view.require("action").choice(_ACTIONS)
    return Action(
        view.require("einsum").name(),
        view.require("component").name(),
        None if tensor is None else tensor.name(),
        cast(ActionName, name),
        view.require("count").integer(minimum=0),
        view.require("bits").integer(minimum=0),
        view.require("busiest").integer(minimum=0),
        _float(view.require("energy")),
    )


def _occupancy(view: Located) -> Occupancy:
    size = view.get("size")
    return Occupancy(
        view.require("memory").name(),
        view.require("bits").integer(minimum=0),
        None if size is None else size.integer(minimum=0),
        tuple(
            _each(view.require("tensors"), lambda v: (v.require("tensor").name(), v.require("bits").integer(minimum=0)))
        ),
    )


def _trace_point(view: Located) -> TracePoint:
    best, bound = view.get("best"), view.get("bound")
    return TracePoint(
        _float(view.require("seconds")),
        None if best is None else _float(best),
        None if bound is None else _float(bound),
    )
