"""Forged results, each with a digest that fits: rejected by name, or told as what `verify` does not prove.

`KINDS` has one forgery a line: what is forged, how, and the check that must speak. ``!`` before the check's name: the
file is rejected; ``~``: the claim is no lie that anybody could tell, and the verdict says that it is not checked.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import einloom as el
from edits import Data, Edit, both, put
from einloom.certify.again import SecondSolution
from einloom.certify.likeness import machine_likeness, title_likeness, workload_likeness
from einloom.certify.verdict import Verdict
from einloom.certify.verify import _notes, verify
from einloom.machine.levels import Fanout
from einloom.problem import Certificate, Guarantee
from einloom.questions import problem
from einloom.result import Result
from einloom.result.document import digest
from einloom.workload.selectors import selector

FORGERIES = Path(__file__).resolve().parents[1] / "inputs" / "forgeries"
WORSE = "store DRAM: A B Z\nfor m in 4\nfor n in 4\nfor k in 4\ncompute Z @ MAC\n"


@cache
def honest() -> str:
    """An optimum that the buffer limits, with its time in events."""
    found = el.map("matmul:m=4,n=4,k=4", "simple:glb_bits=128,dram_energy=10")
    priced = el.evaluate(found)
    assert priced.latencies is not None and priced.latencies.event is not None and len(found.trace) == 0
    data = found.to_data()
    data["latencies"]["event"] = priced.latencies.event
    data["trace"] = [{"seconds": 0.001, "best": found.value * 2, "bound": 1.0}]
    data["trace"] += [{"seconds": 0.002, "best": found.value, "bound": found.value}]
    return json.dumps(data)


def times(factor: float) -> Callable[[float], float]:
    return lambda old: old * factor


def certified(value: float = 1.0, bound: float = 1.0, guarantee: str = "optimal") -> Edit:
    """Factors on value and bound of the certificate, with the gap that they give."""

    def edit(data: Data) -> None:
        found = data["certificate"]
        found.update(value=found["value"] * value, bound=found["bound"] * bound, guarantee=guarantee)
        found["gap"] = max(0.0, (found["value"] - found["bound"]) / found["value"])

    return edit


def priced_again(mapping: str | None = None, guarantee: Guarantee = Guarantee.OPTIMAL, **machine: Any) -> Edit:
    """What an honest run would have written, had this mapping or machine been its own."""

    def edit(data: Data) -> None:
        old = Result.from_json(json.dumps(data))
        call = ",".join(f"{key}={value}" for key, value in {"glb_bits": 128, "dram_energy": 10, **machine}.items())
        asked = problem(old.workload, f"simple:{call}")
        tree = el.evaluate(old.workload, asked.machine, mapping or old.mapping_text).mapping
        plain = Result.of(asked, tree)
        proof = Certificate(guarantee, plain.value, plain.value, asked.mapspace.describe(), {"evaluated": 7})
        data.clear()
        data.update(Result.of(asked, tree, certificate=proof, method="exact").to_data())

    return edit


def level(name: str, **changes: Any) -> Edit:
    def edit(data: Data) -> None:
        next(one for one in data["machine"]["levels"] if one.get("memory") == name).update(changes)

    return edit


def sourced(kind: str) -> Edit:
    """All numbers of the workload are said to be of this kind, and counted so."""

    def edit(data: Data) -> None:
        before = len([one for one in data["workload"]["ranks"].values() if one["kind"] == "assumed"])
        for one in data["workload"]["ranks"].values():
            one["kind"] = kind
        data["assumed"]["assumed"] -= before

    return edit


def alternatives(*listed: tuple[str, float | None, float | None]) -> Edit:
    def edit(data: Data) -> None:
        value = data["certificate"]["value"]
        data["certificate"]["alternatives"] = [
            {"label": label, "bound": None if bound is None else bound * value, "value": found and found * value}
            for label, bound, found in listed
        ]

    return edit


def trace(*moments: tuple[float, float | None, float | None]) -> Edit:
    """(seconds, best, bound), the last two as factors on the value."""

    def edit(data: Data) -> None:
        value = data["certificate"]["value"]
        data["trace"] = [
            {"seconds": at, "best": best and best * value, "bound": bound and bound * value}
            for at, best, bound in moments
        ]

    return edit


def tile(data: Data) -> None:
    """The first loop goes one level further out."""
    lines = data["mapping"].splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith("for"))
    data["mapping"] = "\n".join([lines[at], *lines[:at], *lines[at + 1 :]]) + "\n"


KINDS: dict[str, tuple[Edit, str]] = {
    # value
    "value: lower, in the certificate": (certified(value=0.9, bound=0.9), "!value"),
    "value: higher, in the certificate": (certified(value=1.1, bound=1.1), "!value"),
    "value: energy": (both(put("energy", value=times(0.5)), put("edp", value=times(0.5))), "!energy"),
    "value: latency": (both(put("latency", value=times(0.5)), put("edp", value=times(0.5))), "!latency"),
    "value: roofline": (put("roofline", value=times(0.5)), "!roofline"),
    "value: one action's energy": (put("breakdown", 0, "energy", value=times(2)), "!breakdown"),
    "value: one action's count": (put("breakdown", 0, "count", value=lambda old: old + 1), "!breakdown"),
    "value: actions in another order": (put("breakdown", value=lambda old: old[::-1]), "!breakdown"),
    "value: an action twice": (put("breakdown", value=lambda old: [*old, old[0]]), "!breakdown"),
    "value: busy time": (put("busy", 0, "seconds", value=times(0.5)), "!breakdown"),
    "value: latency of an Einsum": (put("einsum_latency", 0, "seconds", value=times(0.5)), "!breakdown"),
    "value: occupancy": (put("occupancy", 0, "bits", value=lambda old: old - 8), "!capacity"),
    "value: what fills a memory": (put("occupancy", 0, "tensors", value=lambda old: old[::-1][:1]), "!capacity"),
    # views of latency
    "views: event": (put("latencies", "event", value=1e-30), "!views"),
    "views: event, slightly": (put("latencies", "event", value=times(1.001)), "!views"),
    "views: tile": (put("latencies", "tile", value=times(0.5)), "!views"),
    "views: floor": (put("latencies", "floor", value=0.0), "!views"),
    "views: gone": (lambda data: data.pop("latencies"), "~views"),
    # bound and guarantee
    "bound: higher than the value": (certified(bound=1.01), "!bound"),
    "bound: a gap, said to be optimal": (certified(bound=0.99), "!bound"),
    "bound: proven for a worse mapping": (priced_again(WORSE), "!again"),
    "bound: too high for a worse mapping": (priced_again(WORSE, Guarantee.BOUNDED), "!again"),
    "bound: the certificate is gone": (put("certificate", value=None), "!certificate"),
    # tiles and mapping
    "tile: a loop further out": (tile, "!"),
    "tile: more trips": (put("mapping", value=lambda old: old.replace("in 4", "in 8", 1)), "!legality"),
    "mapping: another legal one": (put("mapping", value=WORSE), "!"),
    # space
    "space: described as all mappings": (put("certificate", "mapspace", value="all mappings"), "!mapspace"),
    "space: fewer fused loops": (put("mapspace", "max_fused_loops", value=0), "!mapspace"),
    "space: another objective": (put("objective", value="latency"), "!value"),
    "title: everything": (put("mapspace", "title", value="every mapping that exists"), "~title"),
    "title: a dataflow of the zoo": (put("mapspace", "title", value="flash-attention"), "~title"),
    # machine
    "machine: cheaper memory": (level("DRAM", read_energy=1), "!energy"),
    "machine: cheaper memory, priced again": (priced_again(dram_energy=1), "!again"),
    "machine: another one's name": (put("machine", "name", value="tpu-v4i"), "~machine"),
    "machine: leaky, for nothing": (level("GLB", area="1 mm2"), "~machine"),
    # workload
    "workload: smaller": (put("workload", "ranks", "k", value=2), "!"),
    "workload: another one's name": (put("workload", "name", value="gpt3-175b"), "~workload"),
    "sources: fewer assumptions": (put("assumed", "assumed", value=0), "!sources"),
    "sources: assumptions said to be printed": (sourced("printed"), "~workload"),
    # how it was found
    "method: another one that exists": (put("method", value="exhaustive"), "~not checked"),
    "method: a proof": (put("method", value="formal proof in Coq"), "~not checked"),
    "method: none": (put("method", value="evaluate"), "!method"),
    "seconds: none": (put("seconds", value=0.0), "~not checked"),
    "seconds: negative": (put("seconds", value=-1.0), "!seconds"),
    "count: a quadrillion": (put("certificate", "counts", "evaluated", value=10**15), "~not checked"),
    "count: negative": (put("certificate", "counts", "evaluated", value=-5), "!may not be negative"),
    "version: another einloom": (put("einloom", value="99.9"), "~not checked"),
    "version: another model": (put("model_version", value="2"), "!model"),
    "ended: and optimal": (put("ended", value="stopped"), "!ended"),
    "trace: better than the answer": (trace((0.0, 0.5, 0.1)), "!trace"),
    "trace: a bound above the answer": (trace((0.0, 2.0, 1.5)), "!trace"),
    "trace: back in time": (trace((0.2, 2.0, 0.1), (0.1, 1.0, 0.1)), "!trace"),
    "trace: getting worse": (trace((0.1, 1.0, 0.1), (0.2, 2.0, 0.1)), "!trace"),
    "trace: invented": (trace((0.1, 3.0, 0.1), (0.2, 1.0, 1.0)), "~not checked"),
    # other choices
    "choices: one of one": (alternatives(("every machine", 1.0, 1.0)), "!choices"),
    "choices: one label twice": (alternatives(("a", 1.0, 1.0), ("a", 1.0, None)), "!choices"),
    "choices: none has the value": (alternatives(("a", 1.0, 2.0), ("b", 1.0, None)), "!choices"),
    "choices: a lower bound": (alternatives(("a", 1.0, 1.0), ("b", 0.5, None)), "!choices"),
    "choices: others that never were": (alternatives(("a", 1.0, 1.0), ("every machine", 1.0, None)), "~choices"),
    # a front where there is none
    "front: of one objective": (put("front", value=[{"energy": 1.0, "latency": 1.0, "mapping": WORSE}]), "!front"),
}


def verdict(data: Data) -> tuple[bool, tuple[str, ...], tuple[str, ...]]:
    """(ok, reasons, remarks); a file that is refused on reading has that as its reason."""
    try:
        found = el.verify(Result.from_json(json.dumps(data)))
    except el.SpecError as error:
        return False, (str(error),), ()
    return found.ok, found.reasons, found.remarks


def test_the_honest_file_is_verified() -> None:
    ok, reasons, remarks = verdict({**json.loads(honest()), "digest": digest(json.loads(honest()))})
    assert ok, reasons
    assert [remark.split(":")[0] for remark in remarks] == ["not checked"]


def test_there_are_forty_kinds() -> None:
    assert len(KINDS) >= 40
    assert {name.split(":")[0] for name in KINDS} >= set(
        "value bound tile space machine count trace title version".split()
    )


@pytest.mark.parametrize("name", KINDS)
def test_forged(name: str) -> None:
    edit, expected = KINDS[name]
    data, before = json.loads(honest()), json.loads(honest())
    edit(data)
    assert data != before, "nothing was forged"
    data["digest"] = digest(data)
    ok, reasons, remarks = verdict(data)
    kind, check = expected[0], expected[1:]
    if kind == "!":
        assert not ok and any(check in reason for reason in reasons), (reasons, remarks)
    else:
        assert ok, reasons
        assert any(remark.startswith(f"{check}: ") for remark in remarks), remarks


SURVIVORS = {
    "SURV_12": r"!views: .*event=512\.0",
    "SURV_13": "~views: the file has none",
    "SURV_24": "~not checked: .*0 seconds",  # another optimum, with loops in another order: nothing else is forged
    "SURV_37": "~title: 'every mapping that exists' is the file's own word",
    "SURV_38": "~not checked: .*0 seconds",  # the space was widened, and the same optimum is its optimum
    "SURV_39": "~not checked: .* counts",  # the objective was changed, to one of which it is the optimum, too
    "SURV_40": "~not checked: .* counts",
    "SURV_41": "~not checked: .* counts",
    "SURV_46": "~machine: bears the name of the zoo's tpu-v4i and is not that: .*DRAM, GLB, MAC",
    "SURV_47": "~machine: bears the name of the zoo's tpu-v4i and is not that: DRAM.read_energy is 1e-14, there 7",
    "SURV_48": "~workload: bears the name of the zoo's matmuls and is not that: the source of ranks.m is printed",
    "SURV_5": "~not checked: .*counts",  # as SURV_38
    "SURV_51": "~workload: bears the name of the zoo's gpt3-175b and is not that: the number of Einsums is 1",
    "SURV_58": r"~not checked: .*einloom version 99\.9 \(this is ",
    "SURV_61": "~not checked: .*'exhaustive'",
    "SURV_62": "~not checked: .*'formal proof in Coq', which this einloom does not have",
    "SURV_63": "~not checked: .*1 counts",
    "SURV_64": r"!-5 may not be negative \(at certificate.counts.evaluated\)",
    "SURV_65": "!trace: a best value of 1e-09, below",
    "SURV_66": "~not checked: .*0 seconds",
    "SURV_67": "!choices: the best of several has one label for each",
}


@pytest.mark.parametrize("name", SURVIVORS)
def test_files_that_were_once_verified_without_a_word(name: str) -> None:
    """The second solution agreed with all of them then; it is not made again here."""
    kind, expected = SURVIVORS[name][0], SURVIVORS[name][1:]
    ok, reasons, remarks = verdict_of(FORGERIES / f"{name}.json")
    assert ok is (kind == "~")
    assert any(re.search(expected, words) for words in (reasons if kind == "!" else remarks)), (reasons, remarks)


def verdict_of(path: Path) -> tuple[bool, tuple[str, ...], tuple[str, ...]]:
    """As `verdict`, without a second solution."""
    try:
        found = verify(Result.read(path), solver=lambda one, budget: SecondSolution(one.value, "before"))
    except el.SpecError as error:
        return False, (str(error),), ()
    return found.ok, found.reasons, found.remarks


def test_every_survivor_is_here() -> None:
    assert {path.stem for path in FORGERIES.glob("SURV_*.json")} == set(SURVIVORS)


@pytest.mark.parametrize(
    "call",
    [
        *(
            "matmul:m=8,n=4,k=2",
            "matmuls:n=3,m=4,kn=8",
            "gpt3-6.7b:batch=4,tokens=512,layers=3,bits=8",
            "vgg16:image=64",
        ),
        *("gpt3-175b:decode=true,cached=1024", "vgg16:image=32,width=8,stages=2", "resnet18:stages=1,image=56"),
        *("conv-chain:c=2,h=4,w=6,l=2,k=3,first=2", "tileflow-t5:batch=2", "mobilenet-block:bits=16"),
    ],
)
def test_what_the_zoo_makes_is_the_zoos(call: str) -> None:
    found = workload_likeness(el.load_workload(call))
    assert found.same, found
    again = el.load_workload(found.words.removeprefix("the zoo's "))
    assert again == el.load_workload(call)


@pytest.mark.parametrize(
    "call",
    [
        *(
            "simple",
            "simple:glb_bits=16,dram_energy=10",
            "simple:dram_energy=2.5,glb_throughput=3",
            "two-level:glb_bits=1024",
        )
    ]
    + [*("tpu-v4i", "tileflow-edge:clock=2*10**9", "tileflow-edge:unit_energy=3")],
)
def test_what_the_zoo_builds_is_the_zoos(call: str) -> None:
    found = machine_likeness(el.load_machine(call))
    assert found.same, found
    assert el.load_machine(found.words.removeprefix("the zoo's ")) == el.load_machine(call)


def test_every_axis_of_a_fanout_is_compared() -> None:
    machine = el.load_machine("tpu-v4i")
    (fanout,) = (level for level in machine.levels if isinstance(level, Fanout) and len(level.axes) > 1)
    narrow = replace(fanout, axes=(replace(fanout.axes[0], size=64), *fanout.axes[1:]))
    found = machine_likeness(el.Machine("tpu-v4i", tuple(narrow if one is fanout else one for one in machine.levels)))
    assert not found.same and f"{fanout.name}.{fanout.axes[0].name}.size is 64, there 128" in found.words


def test_other_names_are_nobodys() -> None:
    machine = el.load_machine("simple")
    assert machine_likeness(el.Machine("mine", machine.levels)).words.startswith("'mine' is no name of the zoo")
    full = machine_likeness(el.load_machine("tileflow-edge").in_full_use())
    assert not full.same and ".use is full, there any" in full.words


def test_titles_are_held_against_the_dataflows() -> None:
    asked = problem("conv-chain:c=2,h=4,w=4,l=2,k=2", "two-level", dataflow="layerwise-convolution")
    found = title_likeness(asked)
    assert found is not None and found.same and found.words == "the limits of the zoo's layerwise-convolution"
    other = problem("conv-chain:c=2,h=4,w=4,l=2,k=2", "two-level")
    assert title_likeness(other) is None


def test_a_verdict_that_was_stopped_is_not_ok() -> None:
    assert Verdict(()).ok and not Verdict((), stopped=True).ok


def test_the_note_that_the_problem_does_not_give_is_named() -> None:
    """Not one that it does."""
    plain = el.load_machine("two-level")
    levels = (plain.levels[0], replace(plain.levels[1], must=selector("persistent")), *plain.levels[2:])
    with pytest.warns(el.EinloomWarning, match="selects no tensor"):
        found = el.map("matmul:m=2,n=2,k=2", el.Machine("noted", levels))
    assert found.notes and not list(_notes(replace(found, recorded_notes=found.notes)))
    (check,) = _notes(replace(found, recorded_notes=(*found.notes, "proven by hand")))
    assert not check.passed and check.detail == "the problem does not give 'proven by hand'"
    (check,) = _notes(replace(found, recorded_notes=()))
    assert not check.passed and check.detail == "a note of the problem is gone"
