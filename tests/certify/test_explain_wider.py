"""What explain says of wider spaces: another order of the Einsums, shared stores, fused loops that cut a rank twice."""

from __future__ import annotations

from dataclasses import replace

import pytest

import einloom as el
from einloom.diagnose.feasibility import Asker
from einloom.diagnose.record import Gain
from einloom.diagnose.sensitivity import Larger, _gain
from einloom.mapspace.space import Mapspace
from einloom.problem import Objective, Problem
from einloom.search.method import Watcher
from einloom.workload.build import build_workload
from einloom.workload.selectors import selector
from einloom.zoo.machine_by_name import load_machine
from optima import optimum

SMALL = "simple:dram_energy=50,glb_bits=8"
ORDERED = ("A[m] = relu(X[m])", "V[n] = relu(Y[n])", "C[m] = exp(A[m])", "D[m] = C[m] * V[n]")
TIED = ("T[m] = X[m] * E[]", "Z[m] = T[m] * E[]")
TWICE = ("T[m] = relu(X[m])", "U[m] = relu(T[m])", "Z[m,k] = U[m] * W[k]")


def asked(texts: tuple[str, ...], machine: str, **bits: int) -> Problem:
    extents = {"m": 8} | {rank: 4 for rank in "kn" if any(f"{rank}]" in text for text in texts)}
    workload = build_workload("w", texts, extents, bits={"default": 1, **bits})
    return Problem(workload, load_machine(machine), Mapspace(), Objective("energy"))


def brought(problem: Problem) -> dict[str, Gain]:
    found = el.explain(problem.workload, problem.machine, mapspace=problem.mapspace)
    return {gain.place: gain for gain in found.gains}


@pytest.mark.parametrize(
    ("place", "texts", "machine", "change"),
    [
        ("order", ORDERED, "simple:dram_energy=50,glb_bits=4", {"order": "free"}),
        ("stores", TIED, SMALL, {"stores": "shared"}),
        ("fused loops per rank", TWICE, "simple:dram_energy=50,glb_bits=20", {"max_fused_loops_per_rank_variable": 2}),
    ],
)
def test_a_wider_space_that_pays_is_named(
    place: str, texts: tuple[str, ...], machine: str, change: dict[str, object]
) -> None:
    problem = asked(texts, machine, **({"T": 16} if texts == TWICE else {}))
    dram = replace(problem.machine.memories[0], may=selector("~intermediate"))
    if texts == TWICE:
        problem = replace(problem, machine=replace(problem.machine, levels=(dram, *problem.machine.levels[1:])))
    now, better = optimum(problem), optimum(replace(problem, mapspace=replace(problem.mapspace, **change)))  # type: ignore[arg-type]
    assert now is not None and better is not None and better < now
    gain = brought(problem)[place]
    assert gain.value == pytest.approx(better) and gain.gain == pytest.approx((now - better) / now)


def test_fused_loops_that_cut_a_rank_twice_may_be_one_more_than_the_known_mapping_has() -> None:
    """Both fused loops are there already, b and m; cutting m twice takes a third."""
    texts = ("T[b,m] = relu(X[b,m])", "U[b,m] = relu(T[b,m])", "Z[b,m,k] = U[b,m] * W[b,k]")
    workload = build_workload("w", texts, {"b": 3, "m": 64, "k": 128}, bits={"default": 1, "T": 16})
    machine = load_machine("simple:dram_energy=10,glb_bits=25")
    dram = replace(machine.memories[0], may=selector("~intermediate"))
    problem = Problem(workload, replace(machine, levels=(dram, *machine.levels[1:])), Mapspace(), Objective("energy"))
    now = optimum(problem)
    better = optimum(replace(problem, mapspace=Mapspace(max_fused_loops_per_rank_variable=2)))
    assert now is not None and better is not None and better < now
    gain = brought(problem)["fused loops per rank"]
    assert gain.after == "2, with at most 3 fused loops"
    assert gain.value == pytest.approx(better)


def test_what_is_not_wider_is_not_asked() -> None:
    found = brought(asked(("Z[m] = relu(X[m])",), SMALL))
    assert not {"order", "stores", "fused loops per rank"} & {*found}
    tied = asked(TIED, SMALL)
    wide = replace(tied, mapspace=replace(tied.mapspace, stores="shared"))
    assert "stores" in brought(tied) and "stores" not in brought(wide)


def test_a_wider_space_with_fewer_fused_loops_may_have_no_mapping() -> None:
    """Then the one that is known stays; of a larger machine nothing is known."""
    nothing = replace(asked(TWICE, "simple:glb_bits=1"), objective=Objective("energy"))
    dram = replace(nothing.machine.memories[0], may=selector("~intermediate"))
    nothing = replace(nothing, machine=replace(nothing.machine, levels=(dram, *nothing.machine.levels[1:])))
    more = Larger("fused loops per rank", "1", "2", nothing)
    known, unknown = _gain(Asker(Watcher()), more, 10.0, 10.0), _gain(Asker(Watcher()), more, 10.0)
    assert (known.value, known.gain, known.note) == (10.0, 0.0, "")
    assert unknown.value is None and unknown.note.startswith("no mapping")
