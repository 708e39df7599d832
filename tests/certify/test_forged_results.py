"""Results of many shapes, forged by someone who knows the format: every sum, description and digest fits again.

`KINDS` has one forgery a line: what is forged, of which result, how, and the check that must speak. ``!`` before the
check's name: the file is rejected; ``~``: the verdict says that this is not checked, or not what its name says.
docs/answers.md lists them, as `table` does.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import einloom as el
from edits import Data, Edit, both, put
from einloom.api import solve
from einloom.cli import main
from einloom.cost.event import event_seconds
from einloom.machine.files import parse_machine
from einloom.mapping.text import parse_mapping
from einloom.mapspace.files import parse_mapspace
from einloom.mapspace.space import Mapspace, Order, Stores
from einloom.problem import Certificate, Guarantee
from einloom.reading.located import from_data
from einloom.report.text import answers
from einloom.result import Result
from einloom.result.asked import problem_from
from einloom.result.document import digest
from einloom.workload.build import build_workload

PAIR, SIMPLE = "matmuls:n=2,m=8,kn=4,bits=8", "simple:glb_bits=200,dram_energy=10,glb_throughput=16"
ODD = ("matmul:m=7,n=5,k=3", "two-level:glb_bits=128")
FRONT = ("matmuls:n=2,m=4,kn=4,bits=8", "simple:glb_bits=256,dram_energy=10,glb_throughput=2")
SOLVED = {"again", "any tiles"}  # the checks that --quick leaves out
TWO_UNITS = """\
schema: machine/1
name: two-units
levels:
  - {memory: DRAM, read_energy: 10, write_energy: 10, read_throughput: 64, write_throughput: 64}
  - {memory: GLB, size: 96, read_energy: 1, write_energy: 1}
  - {fanout: array, axes: [{axis: row, size: 2}]}
  - {compute: VEC, throughput: 1, energy: 1, kinds: [map]}
  - {compute: MAC, throughput: 1, energy: 1}
"""
SMALL = """\
schema: machine/1
name: small
levels:
  - {memory: DRAM, read_energy: 5, write_energy: 5, read_throughput: 1, write_throughput: 1}
  - {memory: GLB, size: 16}
  - {compute: MAC, throughput: 1, energy: 1}
"""


def _pipeline() -> Result:
    workload = build_workload("weigh", ["T[m] = A[m] * W[m]", "Z[m] = exp(T[m])"], {"m": 8}, bits=8)
    return el.map(workload, parse_machine(TWO_UNITS), "latency", mapspace=Mapspace(concurrent="any"))


def _limited() -> Result:
    machine = el.load_machine(SIMPLE)
    space = parse_mapspace("schema: mapspace/1\nname: apart\nfusion: {unfused: all}\n", machine)
    return el.map(PAIR, machine, mapspace=space)


def _between(order: Order) -> Result:
    einsums = ["T[m] = exp(A[m])", "V[m] = exp(B[m])", "Z[m] = exp(T[m])"]
    machine = parse_machine(SMALL.replace("size: 16}", "size: 16, may: T}"))
    return el.map(build_workload("between", einsums, {"m": 32}, bits=8), machine, order=order)


def _twice(stores: Stores) -> Result:
    workload = build_workload("twice", ["T[m] = X[m] * E[]", "Z[m] = T[m] * E[]"], {"m": 32}, bits=8)
    return el.map(workload, parse_machine(SMALL), stores=stores)


BASES: dict[str, Callable[[], Result]] = {
    "matmul": lambda: el.map("matmul:m=4,n=4,k=4", "two-level:glb_bits=128"),
    "pair": lambda: el.map(PAIR, SIMPLE),
    "limited": _limited,
    "bounded": lambda: el.map(PAIR, SIMPLE, "edp", steps=20),
    "drawn": lambda: el.map(PAIR, SIMPLE, method="random", steps=20),
    "front": lambda: el.map(*FRONT, "pareto"),
    "uneven": lambda: el.map(*ODD, space="ragged"),
    "relaxed": lambda: el.map(*ODD, relax="integer"),
    "pipeline": _pipeline,
    "free": lambda: _between("free"),
    "program": lambda: _between("program"),
    "shared": lambda: _twice("shared"),
    "own": lambda: _twice("own"),
}


@cache
def honest(base: str) -> str:
    """The file of an honest run, with the time in events."""
    found = BASES[base]()
    data = found.to_data()
    data["latencies"]["event"] = event_seconds(found.workload, found.machine, found.mapping)
    data["digest"] = digest(data)
    return json.dumps(data)


def gone(*path: str) -> Edit:
    def edit(data: Data) -> None:
        place = data
        for key in path[:-1]:
            place = place[key]
        del place[path[-1]]

    return edit


def times(factor: float) -> Callable[[float], float]:
    return lambda old: old * factor


def certified(value: float = 1.0, bound: float = 1.0, guarantee: str | None = None) -> Edit:
    """Factors of the found value on value and bound of the certificate, with the gap that they give."""

    def edit(data: Data) -> None:
        found = data["certificate"]
        found.update(value=found["value"] * value, bound=found["value"] * bound)
        found.update(guarantee=guarantee or found["guarantee"])
        found["gap"] = max(0.0, (found["value"] - found["bound"]) / found["value"])

    return edit


def priced_again(*edits: Edit) -> Edit:
    """The edits, and everything that an honest run would have written, had this problem and mapping been its own."""

    def edit(data: Data) -> None:
        before = json.loads(json.dumps(data))
        for one in edits:
            one(data)
        assert data != before, "nothing was edited"
        problem = problem_from(from_data(data, "<forged>"))
        tree = parse_mapping(data["mapping"], problem.workload, problem.machine)
        value, counts = Result.of(problem, tree).value, data["certificate"]["counts"]
        proof = Certificate(Guarantee.OPTIMAL, value, value, problem.mapspace.describe(), counts)
        made = Result.of(problem, tree, certificate=proof, method=data["method"], seconds=data["seconds"])
        title = data["mapspace"].get("title")
        data.clear()
        data.update(made.to_data())
        if title is not None:
            data["mapspace"]["title"] = title

    return edit


def lines(change: Callable[[list[str]], list[str]]) -> Edit:
    """A change of the mapping's lines."""
    return put("mapping", value=lambda old: "\n".join(change(old.splitlines())) + "\n")


def replaced(old: str, new: str) -> Edit:
    def change(text: str) -> str:
        assert old in text, text
        return text.replace(old, new, 1)

    return put("mapping", value=change)


def level(name: str, **changes: Any) -> Edit:
    def edit(data: Data) -> None:
        next(one for one in data["machine"]["levels"] if name in one.values()).update(changes)

    return edit


def scaled(*tables: tuple[str, str], name: str) -> Edit:
    """A total, halved in all its parts, in the views and in the certificate."""

    def edit(data: Data) -> None:
        for table, key in tables:
            for row in data[table]:
                row[key] *= 0.5
        data[name] *= 0.5
        data["edp"] = data["energy"] * data["latency"]
        found = data["certificate"]
        found.update(value=found["value"] * 0.5, bound=found["bound"] * 0.5)

    return edit


def moved_energy(data: Data) -> None:
    """From one action to another: the sum stays."""
    first, last = data["breakdown"][0], data["breakdown"][-1]
    data["breakdown"][-1] = {**last, "energy": last["energy"] + first["energy"] / 2}
    data["breakdown"][0] = {**first, "energy": first["energy"] / 2}


def exchanged(data: Data) -> None:
    """Two Einsums' latencies; the sum stays."""
    one, other = data["einsum_latency"]
    assert one["einsum"] != other["einsum"]
    one["seconds"], other["seconds"] = one["seconds"] + other["seconds"] / 2, other["seconds"] / 2


def printed(data: Data) -> None:
    """Assumed numbers are said to be printed, and no longer counted as assumed."""
    for place in (data["machine"]["levels"], list(data["workload"]["ranks"].values())):
        for entry in place:
            for one in (entry, *entry.values()):
                if isinstance(one, dict) and one.get("kind") == "assumed":
                    one["kind"] = "printed"
                    data["assumed"]["assumed"] -= 1


def front(change: Callable[[list[Data]], list[Data]]) -> Edit:
    return put("front", value=change)


def as_mapping(number: int) -> Edit:
    """A point of the front becomes the answer."""

    def edit(data: Data) -> None:
        points = data["front"]
        priced_again(put("mapping", value=points[number]["mapping"]))(data)
        data["front"] = points

    return edit


def _reordered(old: list[str]) -> list[str]:
    """The outermost loop and the third change places; the stores stay where they are."""
    one, _, other, *_ = (at for at, line in enumerate(old) if line.startswith("for"))
    found = list(old)
    found[one], found[other] = old[other], old[one]
    return found


def _crowded(old: str) -> str:
    """Four instances of two."""
    return old.replace("for m in 4", "for m in 2").replace("par m in 2", "par m in 4")


def of(base: str) -> Edit:
    """The mapping of another result of the same problem."""
    return put("mapping", value=lambda _: json.loads(honest(base))["mapping"])


def dominated(points: list[Data]) -> list[Data]:
    """A point more, with the energy of the last and the latency of the first."""
    return [*points, {**points[0], "energy": points[-1]["energy"] * 2}]


KINDS: dict[str, tuple[str, Edit, str]] = {
    # value
    "value: lower, and its bound": ("pair", certified(value=0.9, bound=0.9), "!value"),
    "value: higher": ("drawn", certified(value=1.5, bound=0.0), "!value"),
    "value: EDP alone": ("pair", put("edp", value=times(0.5)), "!edp"),
    "energy: halved in every part": ("pair", scaled(("breakdown", "energy"), name="energy"), "!energy"),
    "energy: moved between two parts": ("pair", moved_energy, "!breakdown"),
    "energy: a part gone": ("pair", put("breakdown", value=lambda old: old[1:]), "!breakdown"),
    "accesses: one less": ("uneven", put("breakdown", 0, "count", value=lambda old: old - 1), "!breakdown"),
    "accesses: of the busiest instance": (
        "pipeline",
        put("breakdown", 0, "busiest", value=lambda old: old - 1),
        "!breakdown",
    ),
    "accesses: bits": ("pair", put("breakdown", 0, "bits", value=lambda old: old // 2), "!breakdown"),
    "latency: halved everywhere": (
        "pipeline",
        scaled(("einsum_latency", "seconds"), ("busy", "seconds"), name="latency"),
        "!latency",
    ),
    "latency: moved between two Einsums": ("pair", exchanged, "!breakdown"),
    "latency: a component's busy time": ("pipeline", put("busy", 0, "seconds", value=times(2)), "!breakdown"),
    "latency: roofline": ("pair", put("roofline", value=times(0.5)), "!roofline"),
    "latency: time in events": ("pipeline", put("latencies", "event", value=times(0.99)), "!views"),
    "latency: by the finer rule": ("pipeline", put("latencies", "tile", value=times(0.5)), "!views"),
    "latency: no time in events": ("pair", gone("latencies", "event"), "~the file has no time in events"),
    "latency: no views": ("pair", gone("latencies"), "~the file has none but the latency"),
    "occupancy: less": ("pipeline", put("occupancy", 0, "bits", value=lambda old: old - 8), "!capacity"),
    "occupancy: a larger memory": ("pair", put("occupancy", 1, "size", value=4096), "!capacity"),
    # bound and guarantee
    "bound: too high": ("bounded", certified(bound=0.999, guarantee="bounded"), "!again"),
    "bound: the value itself": ("bounded", certified(guarantee="bounded"), "!again"),
    "bound: of a drawn mapping": ("drawn", certified(bound=0.95), "!again"),
    "bound: too low, said to be optimal": ("pair", certified(bound=0.999), "!bound"),
    "bound: lower than proven": ("pair", certified(bound=0.5, guarantee="bounded"), "~no higher bound"),
    "bound: another gap": ("bounded", put("certificate", "gap", value=0.0), "!gap"),
    "integer tiles: a bound too high": ("relaxed", put("certificate", "integer", value=times(1.01)), "!any tiles"),
    "integer tiles: a bound above the value": ("relaxed", put("certificate", "integer", value=1e9), "!integer"),
    "integer tiles: where none is known": ("pipeline", put("certificate", "integer", value=1e-3), "!any tiles"),
    "integer tiles: lower than proven": (
        "relaxed",
        put("certificate", "integer", value=times(0.5)),
        "~no higher bound of any integer tiles",
    ),
    "guarantee: optimal, of a drawn mapping": (
        "drawn",
        both(certified(guarantee="optimal"), gone("ended")),
        "!again",
    ),
    "guarantee: optimal, of an ended search": (
        "bounded",
        both(certified(guarantee="optimal"), gone("ended")),
        "!again",
    ),
    "guarantee: weaker than proven": ("pair", certified(guarantee="none"), "~no higher bound"),
    "guarantee: no certificate": ("pair", put("certificate", value=None), "!certificate"),
    "ended: by something else": ("bounded", put("ended", value="memory"), "~by the file's word: .* memory"),
    "ended: by nothing": ("bounded", gone("ended"), "~by the file's word: .* nothing ended it early"),
    "ended: and yet optimal": ("pair", put("ended", value="seconds"), "!ended"),
    # mapping
    "tiles: another size": (
        "matmul",
        priced_again(replaced("for n in 2\nstore", "for n in 4\nstore"), replaced("for n in 2\n", "")),
        "!again",
    ),
    "tiles: more than there are elements": ("matmul", replaced("for k in 4", "for k in 8"), "!legality"),
    "tiles: uneven ones": ("relaxed", priced_again(of("uneven")), "!space"),
    "loops: in another order": ("relaxed", priced_again(lines(_reordered)), "!again"),
    "stores: one less": ("pair", priced_again(replaced("    store GLB: W0\n", "")), "!again"),
    "stores: one more": ("pair", replaced("    compute E0", "    store GLB: W0\n    compute E0"), "!legality"),
    "homes: an intermediate in DRAM": ("pair", priced_again(of("limited")), "!again"),
    "units: one that cannot": ("pipeline", replaced("compute T @ MAC", "compute T @ VEC"), "!legality"),
    "units: one for both": ("pipeline", replaced("compute Z @ VEC", "compute Z @ MAC"), "!legality"),
    "pipeline: one after the other": ("pipeline", priced_again(replaced("pipelined @ unit", "sequential")), "!again"),
    "pipeline: where the space has none": (
        "pipeline",
        priced_again(replaced("pipelined @ unit", "pipelined shared"), put("mapspace", "concurrent", value="unit")),
        "!space",
    ),
    "instances: fewer": (
        "pipeline",
        priced_again(
            replaced("for m in 4", "for m in 8"), *[replaced("- par m in 2 @ row\n    compute", "- compute")] * 2
        ),
        "!again",
    ),
    "instances: more than there are": ("pipeline", put("mapping", value=_crowded), "!legality"),
    # space
    "space: of even tiles": ("uneven", priced_again(put("mapspace", "name", value="ffm")), "!space"),
    "space: of uneven tiles": ("relaxed", priced_again(put("mapspace", "name", value="ragged")), "!again"),
    "space: that does not exist": ("pair", put("mapspace", "name", value="everything"), "!everything"),
    "space: another description": ("pair", put("certificate", "mapspace", value="all mappings"), "!mapspace"),
    "space: no fused loops": ("pair", priced_again(put("mapspace", "max_fused_loops", value=0)), "!space"),
    "limits: removed": ("limited", priced_again(gone("mapspace", "limits")), "!again"),
    "limits: removed, the description kept": ("limited", gone("mapspace", "limits"), "!mapspace"),
    "limits: added": ("pair", priced_again(put("mapspace", "limits", value={"fusion": {"unfused": "all"}})), "!space"),
    "title: a dataflow's": ("limited", put("mapspace", "title", value="flash-attention"), "~zoo's flash-attention"),
    "title: invented": (
        "pair",
        put("mapspace", "title", value="all mappings"),
        "~'all mappings' is the file's own",
    ),
    "order of Einsums: the program's": ("free", priced_again(gone("mapspace", "order")), "!space"),
    "order of Einsums: any": ("program", priced_again(put("mapspace", "order", value="free")), "!again"),
    "shared stores: none": ("shared", priced_again(gone("mapspace", "stores")), "!space"),
    "shared stores: any": ("own", priced_again(put("mapspace", "stores", value="shared")), "!again"),
    "groups: none": ("pipeline", priced_again(gone("mapspace", "concurrent")), "!space"),
    "groups: any": (
        "pipeline",
        both(
            priced_again(replaced("pipelined @ unit", "sequential"), gone("mapspace", "concurrent")),
            priced_again(put("mapspace", "concurrent", value="unit")),
        ),
        "!again",
    ),
    # machine
    "machine: a larger memory": ("pair", priced_again(level("GLB", size=512)), "!again"),
    "machine: a smaller memory": ("pair", level("GLB", size=64), "!legality"),
    "machine: cheaper accesses": ("pair", level("DRAM", read_energy=1), "!energy"),
    "machine: a leak": ("pipeline", level("GLB", leakage=1), "!energy"),
    "machine: a faster unit": ("pipeline", level("MAC", throughput=2), "!latency"),
    "machine: no buffer": ("pair", put("machine", "levels", value=lambda old: [old[0], old[2]]), "!GLB"),
    "machine: free operations, priced again": ("pair", priced_again(level("MAC", energy=0)), "~not that: MAC.energy"),
    "machine: the zoo's name": ("pipeline", put("machine", "name", value="tpu-v4i"), "~zoo's tpu-v4i and is not that"),
    "machine: a name that nobody has": ("pair", put("machine", "name", value="tpu-v9"), "~'tpu-v9' is no name"),
    # workload
    "workload: a smaller rank": ("pair", put("workload", "ranks", "m", value=4), "!legality"),
    "workload: fewer bits": ("pair", priced_again(put("workload", "bits", value=4)), "!again"),
    "workload: another Einsum": (
        "pair",
        put("workload", "einsums", 1, value="T2[m] = T1[m,n1] * W1[n1,n2]"),
        "!'E1' is not an Einsum",
    ),
    "workload: another output": ("pair", put("workload", "outputs", value=["T1", "T2"]), "!legality"),
    "workload: repeated": ("pair", priced_again(put("workload", "repeat", value=3)), "~not that: repeat is 3"),
    "workload: modules": (
        "pair",
        put("workload", "einsums", 0, value=lambda old: {**old, "group": "layers.0.attention"}),
        "~not that: the modules of its Einsums",
    ),
    "workload: nodes": (
        "pair",
        put("workload", "einsums", 0, value=lambda old: {**old, "nodes": [{"output": "t"}]}),
        "~not that: the nodes of its Einsums",
    ),
    "workload: absorbed operators": ("pair", put("workload", "absorbed", value=["12 x Gelu"]), "~not that: absorbed"),
    "workload: the zoo's name": (
        "pair",
        put("workload", "name", value="gpt3-175b"),
        "~not that: the number of",
    ),
    "workload: a name that nobody has": ("pair", put("workload", "name", value="gpt9"), "~'gpt9' is no name"),
    # objective
    "objective: another": ("pair", priced_again(put("objective", value="latency")), "!again"),
    "objective: another, the value kept": ("pair", put("objective", value="latency"), "!value"),
    "objective: the latency rule": ("pair", put("latency_rule", value="tile"), "!latency rule"),
    # how it was found
    "method: another": ("drawn", put("method", value="exact"), "~word: method 'exact'"),
    "method: one that does not exist": ("pair", put("method", value="proof"), "~'proof', which this einloom does not"),
    "method: none": ("pair", put("method", value="evaluate"), "!method"),
    "seconds: none": ("pair", put("seconds", value=0.0), "~ 0 seconds"),
    "counts: of evaluated points": ("pair", put("certificate", "counts", "evaluated", value=10**15), "~11 counts"),
    "counts: of a rule that does not exist": ("pair", put("certificate", "counts", "magic", value=1), "~12 counts"),
    "counts: below zero": ("pair", put("certificate", "counts", "evaluated", value=-1), "!may not be negative"),
    "trace: invented": (
        "bounded",
        put("trace", value=[{"seconds": 0.0, "best": 1e12, "bound": 0.0}]),
        "~trace of 1 moments",
    ),
    "trace: better than the answer": (
        "bounded",
        put("trace", value=[{"seconds": 0.0, "best": 1.0, "bound": 0.0}]),
        "!trace",
    ),
    "version: another einloom": ("pair", put("einloom", value="99.9"), "~einloom version 99.9"),
    "version: another model": ("pair", put("model_version", value="2"), "!model"),
    "version: another schema": ("pair", put("schema", value="result/2"), "!reads result/1"),
    "notes: invented": ("pair", put("notes", value=["proven by hand"]), "!notes"),
    "sources: fewer assumptions": ("pair", put("assumed", "assumed", value=0), "!sources"),
    "sources: assumptions said to be printed": ("pair", printed, "~matmuls and is not that: the source of ranks.m"),
    # alternatives
    "alternatives: invented": (
        "pair",
        lambda data: data["certificate"].update(
            alternatives=[{"label": x, "bound": 1e9, "value": y} for x, y in (("1", 19200.0), ("2", None))]
        ),
        "~it alone is checked",
    ),
    "alternatives: none with the value": (
        "pair",
        lambda data: data["certificate"].update(
            alternatives=[{"label": x, "bound": 1e9, "value": None} for x in ("1", "2")]
        ),
        "!choices",
    ),
    # Pareto set
    "front: a point missing": ("front", front(lambda old: [*old[:4], *old[5:]]), "!again"),
    "front: its ends missing": ("front", front(lambda old: old[1:]), "!again"),
    "front: a dominated point": ("front", front(dominated), "!front"),
    "front: a point twice": ("front", front(lambda old: [old[0], *old]), "!front"),
    "front: another energy": ("front", put("front", 0, "energy", value=times(0.9)), "!front"),
    "front: another latency": ("front", put("front", 0, "latency", value=times(0.9)), "!front"),
    "front: mappings exchanged": (
        "front",
        front(lambda old: [{**old[0], "mapping": old[1]["mapping"]}, *old[1:]]),
        "!front",
    ),
    "front: gone": ("front", gone("front"), "!front"),
    "front: another point as the mapping": ("front", as_mapping(0), "!front"),
    "front: of one objective": ("pair", lambda data: data.update(front=json.loads(honest("front"))["front"]), "!front"),
}


def forged(kind: str) -> Data:
    """The file of a kind of forgery, its digest renewed."""
    base, edit, _ = KINDS[kind]
    data = json.loads(honest(base))
    edit(data)
    before = {key: value for key, value in json.loads(honest(base)).items() if key != "digest"}
    assert {key: value for key, value in data.items() if key != "digest"} != before, "nothing was forged"
    data["digest"] = digest(data)
    return data


def verified(data: Data, folder: Path, *options: str) -> tuple[int, str]:
    """Exit code and words of the command line, spaces made one."""
    path = folder / "r.json"
    path.write_text(json.dumps(data), encoding="utf-8")
    done = CliRunner().invoke(main, ["verify", str(path), *options])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    assert "Traceback" not in done.output
    return done.exit_code, done.output


@pytest.mark.parametrize("base", BASES)
def test_the_honest_file_is_verified(base: str, tmp_path: Path) -> None:
    code, said = verified(json.loads(honest(base)), tmp_path)
    assert code == 0, said


@pytest.mark.parametrize("kind", KINDS)
def test_the_forgery_is_told(kind: str, tmp_path: Path) -> None:
    _, _, (expected, *words) = KINDS[kind]
    sought = "".join(words)
    quick = [] if expected == "!" and sought in SOLVED else ["--quick"]
    code, said = verified(forged(kind), tmp_path, *quick)
    flat = " ".join(said.split())
    if expected == "~":
        assert code == 0 and re.search(sought, flat), said
    else:
        assert code in (1, 2), said
        assert re.search(rf"(^|\n)  FAIL  {sought}" if code == 1 else sought, said), said


def changed(value: Any) -> Iterator[Any]:
    """Other values of a field: other numbers and texts, lists without their last, tables without one of their keys."""
    if isinstance(value, int | float):
        yield from (value * 2 + 1, value // 2 if isinstance(value, int) else value / 2)
    elif isinstance(value, str):
        yield value + "x"
    elif value is None:
        yield from (1, "x")
    elif isinstance(value, list):
        yield from [value[:-1]] if value else []
    else:
        yield from ({key: kept for key, kept in value.items() if key != left} for left in value)


def edits(value: Any) -> Iterator[Any]:
    """The document with one field changed, for every field and every change of it."""
    yield from changed(value)
    for key, inner in list(value.items() if isinstance(value, dict) else enumerate(value)):
        if isinstance(inner, dict | list):
            forgeries = edits(inner)
        else:
            forgeries = changed(inner)
        for other in forgeries:
            copied = value.copy()
            copied[key] = other
            yield copied


def told(data: Data, quick: bool = True) -> tuple[bool, str, Result | None]:
    """Whether a file is verified, the verdict, and the result that was read."""
    try:
        found = Result.from_json(json.dumps({**data, "digest": digest(data)}))
        verdict = el.verify(found, quick=quick)
    except el.SpecError as error:
        return False, str(error), None
    return verdict.ok, answers.verdict(verdict), found


def meant(result: Result) -> Data:
    """What a result writes, but for its digest and the counts, of which a verdict says that they are not checked."""
    data = result.to_data()
    del data["digest"], data["certificate"]["counts"]
    return data


@pytest.mark.parametrize(
    "base", [base if base == "pipeline" else pytest.param(base, marks=pytest.mark.slow) for base in BASES]
)
def test_no_field_is_forged_without_a_word(base: str) -> None:
    """One change of every field: rejected, told in the verdict, or the same said otherwise. What is left are other
    problems: the second solution rejects what is not true of them, too."""
    file, tried = json.loads(honest(base)), 0
    del file["digest"]
    _, words, result = told(file)
    assert result is not None
    written = meant(result)
    for data in edits(file):
        tried += 1
        ok, said, found = told(data)
        if not ok or said != words or found is None or (again := meant(found)) == written:
            continue
        assert {key for key in again if again[key] != written.get(key)} <= {"workload", "machine", "mapspace"}
        if told(data, quick=False)[0]:
            assert found.value == pytest.approx(solve(found.problem).value, rel=1e-9)
    assert tried > 300


def table() -> str:
    """The kinds as docs/answers.md lists them, one row per part of a file."""
    rows: dict[str, dict[str, list[str]]] = {}
    for kind, (_, _, expected) in KINDS.items():
        part, forgery = kind.split(": ", 1)
        rows.setdefault(part, {"!": [], "~": []})[expected[0]].append(forgery)
    lines = ["| forged | rejected | said to be unchecked |", "|---|---|---|"]
    lines += [f"| {part} | {'; '.join(row['!'])} | {'; '.join(row['~'])} |" for part, row in rows.items()]
    return "\n".join(lines)


def test_there_are_forty_kinds_and_the_page_lists_them() -> None:
    assert len(KINDS) >= 40 and {base for base, _, _ in KINDS.values()} == set(BASES)
    page = (Path(__file__).resolve().parents[2] / "docs" / "answers.md").read_text(encoding="utf-8")
    assert table() in page, f"docs/answers.md lacks this table:\n{table()}"
