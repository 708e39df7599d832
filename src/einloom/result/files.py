"""Results as JSON, both ways. The schema is ``result/1``; the digest is SHA-256 of everything else in canonical form.

A result file holds its own inputs, so it is accepted wherever a mapping is. Reading checks every field's type and
refuses what it does not know; whether the numbers are *true* is the question of `certify.verify`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any, TypeVar, cast, get_args

from ..cost.breakdown import Action, ActionName, Cost, Latencies, Occupancy
from ..errors import Ended, SpecError
from ..mapping.text import parse_mapping, print_mapping
from ..problem import Alternative, Certificate, Guarantee, Problem
from ..reading import writing
from ..reading.located import Located, from_data
from . import document
from .asked import check_notes, goal_data, input_data, notes_data, problem_from
from .names import Names
from .record import FrontPoint, Provenance, Result, TracePoint

VERSION = 1
_ACTIONS = get_args(ActionName)
T = TypeVar("T")


def result_data(result: Result) -> dict[str, Any]:
    """The result as plain data, as the file holds it."""
    cost, certificate = result.cost, result.certificate
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
        **input_data(result.problem),
        "assumed": {"facts": result.provenance.facts, "assumed": result.provenance.assumed},
        **({"front": _front_data(result)} if result.front else {}),
        "trace": [{"seconds": p.seconds, "best": p.best, "bound": p.bound} for p in result.trace],
        **notes_data(result.problem),
    }
    data["digest"] = document.digest(data)
    return data


def _front_data(result: Result) -> list[dict[str, Any]]:
    return [
        {"energy": p.energy, "latency": p.latency, "mapping": print_mapping(p.mapping, result.workload)}
        for p in result.front
    ]


def _certificate_data(certificate: Certificate) -> dict[str, Any]:
    return {
        "guarantee": certificate.guarantee.value,
        "value": certificate.value,
        "bound": certificate.bound,
        "gap": certificate.gap,
        "mapspace": certificate.mapspace,
        "counts": dict(certificate.counts),
        **({"alternatives": [asdict(one) for one in certificate.alternatives]} if certificate.alternatives else {}),
    }


def result_text(result: Result) -> str:
    """The result as JSON text, one line per key and per element of a list; ends with a newline."""
    return document.text(result_data(result))


def write_result(result: Result, path: str | Path) -> None:
    """Write the result as JSON, whole or not at all."""
    writing.write(result_text(result), path)


def read_result(path: str | Path) -> Result:
    """The result in a file of at most 5 MB."""
    return parse_result(document.read(path), str(path))


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
    names = Names(problem.workload, problem.machine)
    cost = _cost(view, problem.latency_rule, names)
    edp = view.require("edp")
    if _float(edp) != cost.edp:
        raise edp.error(f"edp is {edp.number('energy')!r}, but energy times latency is {cost.edp!r}")
    view.require("mapping")
    if not isinstance(data["mapping"], str):
        raise view.require("mapping").error("expected the mapping as text")
    mapping = parse_mapping(data["mapping"], problem.workload, problem.machine, f"{file}, mapping")
    names.mapping(view.require("mapping"), mapping)
    assumed = view.require("assumed")
    provenance = Provenance(
        view.require("einloom").text(),
        view.require("model_version").name(),
        assumed.require("facts").integer(minimum=0),
        assumed.require("assumed").integer(minimum=0),
    )
    assumed.finish()
    certificate = view.get("certificate")
    views, front = view.get("latencies"), view.get("front")
    ended = view.get("ended")
    check_notes(view)
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
        document.digest(data),
        None if views is None else _latencies(views),
        () if front is None else _front(front, data["front"], problem, names, file),
        None if ended is None else Ended(ended.choice([one.value for one in Ended])),
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


def _certificate(view: Located) -> Certificate:
    guarantee = Guarantee(view.require("guarantee").choice([g.value for g in Guarantee]))
    value, bound = _float(view.require("value")), _float(view.require("bound"))
    counts = {name: number.integer(minimum=0) for name, _, number in view.require("counts").entries()}
    others = view.get("alternatives")
    alternatives = () if others is None else tuple(_each(others, _alternative))
    certificate = Certificate(guarantee, value, bound, view.require("mapspace").text(), counts, alternatives)
    gap = view.require("gap")
    if _float(gap) != certificate.gap:
        raise gap.error(f"the gap is {gap.number('energy')!r}, but value and bound give {certificate.gap!r}")
    view.finish()
    return certificate


def _alternative(view: Located) -> Alternative:
    bound, value = view.get("bound"), view.get("value")
    return Alternative(
        view.require("label").name(), None if bound is None else _float(bound), None if value is None else _float(value)
    )


def _cost(view: Located, rule: str, names: Names) -> Cost:
    return Cost(
        energy=_float(view.require("energy")),
        latency=_float(view.require("latency")),
        roofline=_float(view.require("roofline")),
        latency_rule=rule,
        actions=tuple(_each(view.require("breakdown"), partial(_action, names=names))),
        busy=tuple(
            _each(
                view.require("busy"),
                lambda v: (
                    names.einsum(v.require("einsum")),
                    names.component(v.require("component")),
                    _float(v.require("seconds")),
                ),
            )
        ),
        einsum_latency=tuple(
            _each(
                view.require("einsum_latency"),
                lambda v: (names.einsum(v.require("einsum")), _float(v.require("seconds"))),
            )
        ),
        occupancy=tuple(_each(view.require("occupancy"), partial(_occupancy, names=names))),
    )


def _front(view: Located, data: list[Any], problem: Problem, names: Names, file: str) -> tuple[FrontPoint, ...]:
    """The points of a Pareto set; `data` is the same list, for the mappings, which may be long texts."""
    points = []
    for item, plain in zip(view.items(), data, strict=True):
        item.require("mapping")
        text = plain["mapping"]
        if not isinstance(text, str):
            raise item.require("mapping").error("expected the mapping as text")
        mapping = parse_mapping(text, problem.workload, problem.machine, f"{file}, {item.path}.mapping")
        names.mapping(item.require("mapping"), mapping)
        points.append(FrontPoint(_float(item.require("energy")), _float(item.require("latency")), mapping))
        item.finish()
    return tuple(points)


def _latencies(view: Located) -> Latencies:
    roofline, floor, tile, einsum = (_float(view.require(name)) for name in ("roofline", "floor", "tile", "einsum"))
    event = view.get("event")
    found = Latencies(roofline, floor, tile, einsum, None if event is None else _float(event))
    view.finish()
    return found


def _action(view: Located, names: Names) -> Action:
    einsum, component = names.einsum(view.require("einsum")), names.component(view.require("component"))
    name = view.require("action").choice(_ACTIONS)
    return Action(
        einsum,
        component,
        names.action(view.require("action"), einsum, component, view.get("tensor")),
        cast(ActionName, name),
        view.require("count").integer(minimum=0),
        view.require("bits").integer(minimum=0),
        view.require("busiest").integer(minimum=0),
        _float(view.require("energy")),
    )


def _occupancy(view: Located, names: Names) -> Occupancy:
    size = view.get("size")
    return Occupancy(
        names.memory(view.require("memory")),
        view.require("bits").integer(minimum=0),
        None if size is None else size.integer(minimum=0),
        tuple(
            _each(
                view.require("tensors"),
                lambda v: (names.tensor(v.require("tensor")), v.require("bits").integer(minimum=0)),
            )
        ),
    )


def _trace_point(view: Located) -> TracePoint:
    best, bound = view.get("best"), view.get("bound")
    return TracePoint(
        _float(view.require("seconds")),
        None if best is None else _float(best),
        None if bound is None else _float(bound),
    )
