"""`verify` accepts what a search wrote, and rejects every file that was edited since."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from time import monotonic
from typing import Any

import pytest

import einloom as el
from edits import Data, put
from einloom.certify import again
from einloom.cost.evaluate import evaluate
from einloom.errors import BudgetExhausted
from einloom.machine.files import machine_from_data
from einloom.mapping.text import parse_mapping
from einloom.mapspace.space import Mapspace
from einloom.problem import Budget, Certificate, Guarantee
from einloom.questions import problem
from einloom.result import Result
from einloom.result.document import digest
from einloom.search.door import ask
from einloom.search.exact.einsums import orders
from einloom.search.registry import method
from einloom.workload.files import workload_from_data

WORSE = "store DRAM: A B Z\nfor m in 2\nfor n in 2\nfor k in 2\ncompute Z @ MAC\n"


@cache
def solved() -> Result:
    """A tiny optimum that the buffer's size limits."""
    return el.map("matmul:m=2,n=2,k=2", "simple:glb_bits=16,dram_energy=10", method="exhaustive")


def rewritten(data: Data, mapping: str | None = None, guarantee: Guarantee | None = None, slack: float = 1.0) -> Data:
    """The file that an honest run would have written had the edited inputs, and this mapping, been its answer."""
    workload, machine = workload_from_data(data["workload"]), machine_from_data(data["machine"])
    old = solved()
    problem = el.Problem(workload, machine, old.mapspace, old.objective)
    tree = parse_mapping(mapping or data["mapping"], workload, machine)
    value = problem.objective.value(evaluate(workload, machine, tree))
    certificate = Certificate(guarantee or Guarantee.OPTIMAL, value, value * slack, old.mapspace.describe())
    made = Result.of(problem, tree, certificate=certificate, method="exhaustive", trace=old.trace)
    return made.to_data()


def swap(path: str, old: str, new: str) -> Callable[[Data], None]:
    def edit(data: Data) -> None:
        assert old in data[path], data[path]
        data[path] = data[path].replace(old, new, 1)

    return edit


def plain(field: Any) -> Any:
    return field["value"] if isinstance(field, dict) else field


def level(data: Data, name: str) -> Data:
    return next(entry for entry in data["machine"]["levels"] if name in entry.values())


def machine_number(name: str, key: str, change: Callable[[Any], Any]) -> Callable[[Data], None]:
    def edit(data: Data) -> None:
        entry = level(data, name)
        if isinstance(entry.get(key), dict):
            entry[key]["value"] = change(entry[key]["value"])
        else:
            entry[key] = change(entry.get(key))

    return edit


def consistent(change: Callable[[Data], None] | None = None, **options: Any) -> Callable[[Data], None]:
    """An edit whose author priced everything again: only the second solution can tell."""

    def edit(data: Data) -> None:
        if change is not None:
            change(data)
        data.update(rewritten(data, **options))

    return edit


def both_values(data: Data) -> None:
    data["certificate"].update(value=data["certificate"]["value"] * 0.9, bound=data["certificate"]["value"] * 0.9)


def scaled_energy(data: Data) -> None:
    for entry in data["breakdown"]:
        entry["energy"] *= 0.5
    data["energy"] *= 0.5
    data["edp"] = data["energy"] * data["latency"]
    data["certificate"].update(value=data["energy"], bound=data["energy"])


def lines(change: Callable[[list[str]], list[str]]) -> Callable[[Data], None]:
    def edit(data: Data) -> None:
        data["mapping"] = "\n".join(change(data["mapping"].splitlines())) + "\n"

    return edit


EDITS: dict[str, Callable[[Data], None]] = {
    # mapping
    "mapping: another legal one": put("mapping", value=WORSE),
    "mapping: another, priced again": consistent(mapping=WORSE),
    "mapping: another, priced again, said to be near": consistent(
        mapping=WORSE, guarantee=Guarantee.BOUNDED, slack=0.99
    ),
    "mapping: a loop less": lines(lambda found: [line for line in found if line != "for k in 2"]),
    "mapping: more trips": swap("mapping", "in 2", "in 3"),
    "mapping: a store less": lines(
        lambda found: [line for i, line in enumerate(found) if not line.startswith("store GLB")]
    ),
    "mapping: a store more": lines(lambda found: [*found[:-1], "store GLB: A B Z", found[-1]]),
    "mapping: a store further out": lines(lambda found: sorted(found, key=lambda line: not line.startswith("store"))),
    "mapping: cut short": put("mapping", value=lambda old: old[: len(old) // 2]),
    "mapping: not text": put("mapping", value=["store DRAM: A B Z"]),
    # bound and value
    "bound: lower": put("certificate", "bound", value=lambda old: old * 0.5),
    "bound: higher": put("certificate", "bound", value=lambda old: old * 1.5),
    "bound: negative": put("certificate", "bound", value=-1.0),
    "bound: a gap": put("certificate", "gap", value=0.25),
    "bound: none": put("certificate", "bound", value=None),
    "value: lower": put("certificate", "value", value=lambda old: old * 0.9),
    "value: with its bound": both_values,
    "value: all energies halved": scaled_energy,
    "value: energy": put("energy", value=lambda old: old * 0.9),
    "value: latency": put("latency", value=lambda old: old * 0.9),
    "value: edp": put("edp", value=lambda old: old * 0.9),
    "value: one action": put("breakdown", 0, "energy", value=lambda old: old + 1.0),
    "value: one count": put("breakdown", 0, "count", value=lambda old: old + 1),
    "value: occupancy": put("occupancy", 0, "bits", value=lambda old: old - 8),
    "value: busy": put("busy", 0, "seconds", value=lambda old: old + 1.0),
    "value: no certificate": put("certificate", value=None),
    "value: not a number": put("energy", value="little"),
    # machine
    "machine: cheaper DRAM": machine_number("DRAM", "read_energy", lambda old: 1),
    "machine: dearer buffer, priced again": consistent(machine_number("GLB", "read_energy", lambda old: 100)),
    "machine: larger buffer": machine_number("GLB", "size", lambda old: 4096),
    "machine: larger buffer, priced again": consistent(machine_number("GLB", "size", lambda old: 4096)),
    "machine: smaller buffer": machine_number("GLB", "size", lambda old: 8),
    "machine: faster": machine_number("MAC", "throughput", lambda old: 2),
    "machine: no buffer": put("machine", "levels", value=lambda old: [e for e in old if "GLB" not in e.values()]),
    "machine: leaky": machine_number("GLB", "leakage", lambda old: 1),
    "machine: unknown key": put("machine", "levels", 0, value=lambda old: {**old, "sizes": 3}),
    # workload
    "workload: smaller": put("workload", "ranks", "k", value=1),
    "workload: larger": put("workload", "ranks", "k", value=4),
    "workload: narrower": put("workload", "bits", value=4),
    "workload: narrower, priced again": consistent(put("workload", "bits", value=4)),
    "workload: repeated": lambda data: data["workload"].update(repeat=2),
    "workload: another Einsum": put("workload", "einsums", value=["Z[m] = A[m,k] * B[k,n]"]),
    "workload: another output": put("workload", "outputs", value=["A"]),
    "workload: without sources": put("workload", "bits", value=plain),
    # space
    "space: fewer fused loops": put("mapspace", "max_fused_loops", value=0),
    "space: another name": put("mapspace", "name", value="everything"),
    "space: another description": put("certificate", "mapspace", value="all mappings"),
    "space: another objective": put("objective", value="latency"),
    "space: another rule": put("latency_rule", value="tile"),
    "space: another model": put("model_version", value="0"),
    "space: another schema": put("schema", value="result/2"),
}


def verdict_of(data: Data) -> tuple[bool, tuple[str, ...]]:
    try:
        verdict = el.verify(Result.from_json(json.dumps(data)))
    except el.SpecError as error:
        return False, (str(error),)
    return verdict.ok, verdict.reasons


def test_what_was_found_is_verified() -> None:
    ok, reasons = verdict_of(json.loads(solved().to_json()))
    assert ok, reasons


def test_a_file_that_says_the_same_with_another_digest_was_changed() -> None:
    data = json.loads(solved().to_json())
    ok, reasons = verdict_of({**data, "digest": digest({**data, "name": "another"})})
    assert not ok and any("the file was changed after it was written" in reason for reason in reasons)


def test_a_verdict_is_its_own_condition_and_reads_as_the_verb_prints_it() -> None:
    honest, forged = solved(), Result.from_json(solved().to_json().replace('"optimal"', '"none"', 1))
    accepted, rejected = el.verify(honest, quick=True), el.verify(forged, quick=True)
    assert accepted and str(accepted).endswith("verified: every claim that can be checked holds\n")
    assert not rejected, "a rejected result is not taken for a verified one"
    assert "  FAIL  " in str(rejected) and str(rejected).endswith("\nrejected\n")
    executed = el.simulate(honest)
    assert executed and "outputs of " in str(executed) and "counts agree" in str(executed)
    differing = replace(executed, differences=("Z DRAM A read: executed 1, priced 2",))
    assert not differing and "executed 1, priced 2" in str(differing)


def test_there_are_fifty() -> None:
    assert len(EDITS) >= 50


@pytest.mark.parametrize("sealed", [False, True], ids=["as edited", "digest renewed"])
@pytest.mark.parametrize("name", EDITS)
def test_edited_files_are_rejected(name: str, sealed: bool) -> None:
    data = json.loads(solved().to_json())
    before = json.dumps(data, sort_keys=True)
    recorded = data["digest"]
    EDITS[name](data)
    assert json.dumps(data, sort_keys=True) != before, "the edit changed nothing"
    data["digest"] = digest(data) if sealed else recorded
    ok, reasons = verdict_of(data)
    assert not ok
    assert reasons and all(reasons)


def test_bounded_claims_that_are_true_are_accepted() -> None:
    data = json.loads(solved().to_json())
    data = rewritten(data, mapping=WORSE, guarantee=Guarantee.BOUNDED, slack=0.1)
    ok, reasons = verdict_of(data)
    assert ok, reasons


@cache
def bounded(workload: str, machine: str) -> tuple[float, Data]:
    """The least EDP, and the file of a run that ended with the mapping of least energy, and the least EDP as bound."""
    best = el.map(workload, machine, "edp").value
    frugal = el.map(workload, machine, "energy")
    asked = el.questions.problem(workload, machine, "edp")
    plain = Result.of(asked, frugal.mapping)
    assert plain.value > best * 1.04
    certificate = Certificate(Guarantee.BOUNDED, plain.value, best, asked.mapspace.describe())
    return best, Result.of(asked, frugal.mapping, certificate=certificate, method="exact").to_data()


LARGE = (
    ("matmuls:n=1,m=64,kn=64,bits=8", "simple:dram_energy=10,glb_bits=4096,glb_throughput=2"),  # nothing but dominance
    ("matmuls:n=1,m=1024,kn=1024,bits=8", "simple:dram_energy=10,glb_bits=65536,glb_throughput=2"),  # below the bound
)


@pytest.mark.parametrize(("workload", "machine"), LARGE)
@pytest.mark.parametrize(
    ("bound", "value", "accepted"), [(1.0, 1.0, True), (1.01, 1.0, False), (1.0, 0.99, False), (1.0, 1.01, False)]
)
def test_bounds_are_derived_again(workload: str, machine: str, bound: float, value: float, accepted: bool) -> None:
    """Factors on bound and value of an honest BOUNDED result, with a new digest: only what is true is accepted."""
    best, honest = bounded(workload, machine)
    data = json.loads(json.dumps(honest))
    certificate = data["certificate"]
    certificate.update(bound=best * bound, value=certificate["value"] * value)
    certificate["gap"] = (certificate["value"] - certificate["bound"]) / certificate["value"]
    data["digest"] = digest(data)
    ok, reasons = verdict_of(data)
    assert ok is accepted, reasons
    assert ok or any(("again" if value == 1.0 else "value") in reason for reason in reasons)


def test_what_exact_does_not_search_is_verified_where_nothing_is_proven(monkeypatch: pytest.MonkeyPatch) -> None:
    """A drawn mapping claims no bound, so that nothing is solved again; as an optimum it is rejected."""
    monkeypatch.setattr(orders, "MOST", 1)
    space = Mapspace(concurrent="unit", order="free")
    drawn = el.map("matmuls:n=3,m=8,kn=4", "simple", mapspace=space, method="random", steps=20)
    found = el.verify(drawn)
    assert found.ok and found.remarks[-1] == "again: no bound is claimed, so nothing is solved a second time"
    claimed = replace(
        drawn, ended=None, certificate=replace(drawn.certificate, guarantee=Guarantee.OPTIMAL, bound=drawn.value)
    )
    assert [reason.partition(",")[0] for reason in el.verify(claimed).reasons] == [
        "again: there is no second solution: exact joins at most 1 sets of Einsums"
    ]


def test_tiles_kept_across_two_memories_are_found_again() -> None:
    """LB keeps B while A and Z move through GLB: more than enumeration bears, and a tree that no pruning rule makes."""
    from einloom.machine.levels import ComputeUnit, Machine, Memory
    from einloom.workload.selectors import selector

    levels = (
        Memory("DRAM", None, 100.0, 100.0),
        Memory("GLB", 6, 10.0, 10.0, must=selector("all")),
        Memory("LB", 4, 1.0, 1.0, must=selector("all")),
        ComputeUnit("MAC", 1.0, 1.0),
    )
    workload = workload_from_data(
        {"schema": "workload/1", "name": "w", "ranks": {"m": 4, "n": 8}, "bits": 1, "einsums": ["Z[m,n] = A[m] * B[n]"]}
    )
    verdict = el.verify(el.map(workload, Machine("m", levels)))
    assert verdict.ok, verdict.reasons


def test_a_space_described_as_before_is_told_and_checked_as_it_was_searched() -> None:
    """Until rule 4 spoke of fused loops, descriptions of `ffm` did not, either."""
    found = solved()
    assert found.certificate is not None
    earlier = found.mapspace.describe().replace(" and among fused loops", "")
    described = replace(found, certificate=replace(found.certificate, mapspace=earlier))
    verdict = el.verify(described, quick=True)
    assert verdict.ok and any("more than once" in remark for remark in verdict.remarks)
    wide = replace(described.mapspace, max_fused_loops_per_rank_variable=2)
    asked = replace(described, problem=replace(described.problem, mapspace=wide))
    assert any("certified for" in reason for reason in el.verify(asked, quick=True).reasons)
    narrow = replace(asked, certificate=replace(found.certificate, mapspace=found.mapspace.describe()))
    assert any("certified for" in reason for reason in el.verify(narrow, quick=True).reasons)


def test_a_second_search_that_ended_early_proves_nothing() -> None:
    asked = problem("matmul:m=2,n=2,k=2", "simple:glb_bits=16,dram_energy=10", "energy")
    early = ask(method("exhaustive"), asked, Budget(steps=500))
    assert early.certificate is not None and early.certificate.guarantee is not Guarantee.OPTIMAL
    with pytest.raises(BudgetExhausted):
        again._proven(early, "enumeration of all trees")
    whole = ask(method("exhaustive"), asked, Budget())
    assert again._proven(whole, "enumeration of all trees").value == whole.value <= early.value


@cache
def pair_behind_axes() -> Result:
    """Two small products whose intermediate may be backed behind three axes: more tables than seconds can fill."""
    workload = workload_from_data(
        {
            "schema": "workload/1",
            "name": "pair",
            "ranks": {"m": 64, "k": 64, "n": 64, "q": 64},
            "bits": 8,
            "einsums": ["T[m,n] = X[m,k] * W0[k,n]", "Y[m,q] = T[m,n] * W1[n,q]"],
        }
    )
    axes = [{"axis": "row", "size": 16, "multicast": "input", "reduce": "nothing"}]
    machine = machine_from_data(
        {
            "schema": "machine/1",
            "name": "cores",
            "levels": [
                {"memory": "DRAM", "read_energy": 10, "write_energy": 10, "must": "~intermediate"},
                {"memory": "L2", "size": 2**24, "read_energy": 0.8, "write_energy": 0.8, "read_throughput": 2048},
                {"fanout": "cores", "axes": [{"axis": "core", "size": 4, "reduce": "nothing"}]},
                {"memory": "L1", "size": 2**20, "read_energy": 0.2, "write_energy": 0.2, "must": "all"},
                {"fanout": "array", "axes": [*axes, {"axis": "col", "size": 16, "multicast": "nothing"}]},
                {"compute": "MAC", "throughput": 1e9, "energy": 0.15},
            ],
        }
    )
    return el.map(workload, machine, "edp")


def again_of(found: el.Verdict) -> tuple[bool | None, str]:
    return next((check.passed, check.detail) for check in found.checks if check.name == "again")


def test_tables_that_take_too_long_leave_the_other_route(monkeypatch: pytest.MonkeyPatch) -> None:
    found = pair_behind_axes()
    assert again._small(found.problem)
    monkeypatch.setattr(again, "SMALL_SECONDS", 0.5)
    verdict = el.verify(found, seconds=60)
    assert again_of(verdict) == (True, "exact below the value, with every loop everywhere, finds nothing")


def test_a_budget_that_ends_says_what_is_not_derived_again() -> None:
    found = pair_behind_axes()
    began = monotonic()
    verdict = el.verify(found, seconds=0.1)
    assert monotonic() - began < 30
    assert again_of(verdict) == (None, "the optimum is not derived again: the budget of seconds ended")
    assert verdict.ok and "again: the optimum is not derived again: the budget of seconds ended" in verdict.remarks
    bounded = replace(found.certificate, guarantee=Guarantee.BOUNDED, bound=found.value * 0.9)
    verdict = el.verify(replace(found, certificate=bounded), seconds=0.1)
    assert again_of(verdict) == (None, "the bound is not derived again: the budget of seconds ended")
    wrong = replace(found, certificate=replace(found.certificate, value=found.value * 0.9, bound=found.value * 0.9))
    assert not el.verify(wrong, seconds=0.1).ok


def test_the_bound_of_any_tiles_needs_seconds_that_are_left(monkeypatch: pytest.MonkeyPatch) -> None:
    found = el.map("matmul:m=2,n=2,k=2", "simple:glb_bits=16,dram_energy=10", relax="integer")
    assert found.certificate is not None and found.certificate.integer is not None
    checks = {check.name: check for check in el.verify(found, seconds=1e-9).checks}
    assert checks["any tiles"].detail == "the bound is not derived again: the budget of seconds ended"
    assert checks["any tiles"].passed is None
    assert {c.name: c.passed for c in el.verify(found).checks}["any tiles"] is True


def test_a_long_look_for_any_tiles_ends_with_the_seconds() -> None:
    """Three products of 4,095 rows and columns take much longer than the hundredth of a second that there is."""
    asked = problem("matmuls:n=3,m=4095,kn=4095", "nvdla", "edp")
    found = el.map("matmuls:n=3,m=4095,kn=4095", "nvdla", "edp", steps=1)
    assert again.below_integer(asked, found.value, Budget(0.01)) is None
