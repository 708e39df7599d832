"""The answer of a search without a mapping: it names the limits and the numbers, and brute force agrees with both."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from click.testing import CliRunner

import einloom as el
from einloom.cli import main
from einloom.cost.evaluate import legality
from einloom.diagnose.conflict import Blame
from einloom.diagnose.constraints import constraints, only
from einloom.diagnose.feasibility import Asker
from einloom.diagnose.reason import named, obstacles
from einloom.errors import Infeasible
from einloom.machine.levels import Machine, Memory
from einloom.mapspace.registry import space_for
from einloom.problem import Problem
from einloom.questions import problem
from einloom.search.method import Watcher
from planted_conflicts import CASES, DRAM, MAC, MATMUL, Planted, machine, workload
from tiny_limits import tiny_limits
from tiny_problems import tiny_problem

CUBE = workload(MATMUL, m=2, n=1, k=2)
PAIR = "schema: workload/1\nname: pair\nbits: 8\nranks: {m: 2}\neinsums: ['T[m] = exp(A[m])', 'Z[m] = exp(T[m])']\n"
OUTER = DRAM + ", must: ~intermediate"
AXES = "fanout: F, axes: [{{axis: x, size: 2{0}}}]"
TINY = (  # a limit of every kind, on problems of which every tree can be seen; and what the answer must say
    (CUBE, machine(DRAM, "memory: GLB, size: 20 bit, must: all", MAC), "", "Z needs at least 24 bits in GLB for tiles"),
    (
        PAIR,
        machine(OUTER, "memory: GLB, size: 15 bit, may: T | A", MAC),
        "max_fused_loops: 1\nfusion: {fused: T}\nmemories: {GLB: {keep: A}}",
        "T needs at least 16 bits in GLB for tiles of T, A, but GLB holds 15",
    ),
    (
        PAIR,
        machine(OUTER, "memory: GLB, size: 8 bit, may: T", MAC),
        "max_fused_loops: 0\nfusion: {fused: T}",
        "max_fused_loops 1 would be enough; T needs at least 16 bits in GLB",
    ),
    (PAIR, machine(DRAM + ", may: ~intermediate", "memory: GLB, backs: ~T", MAC), "", "GLB.backs all would be enough"),
    (
        PAIR,
        machine(DRAM, "memory: GLB, may: ~T", MAC),
        "fusion: {fused: T}",
        "GLB.may all would be enough",
    ),
    (
        PAIR,
        machine(DRAM + ", size: 31 bit", "link: LK, axis: x", AXES.format(""), MAC),
        "",
        "T needs at least 32 bits in DRAM for tiles of A, T, but DRAM holds 31",
    ),
    (
        CUBE,
        machine(DRAM, "memory: GLB, size: 16 bit, must: weight", AXES.format(", use: full"), MAC),
        "axes: [{axis: x, variables: [m, n, k], instances: 1}]\nmemories: {GLB: [{keep: A}, {keep: Z}]}",
        "Z needs at least 24 bits in GLB for tiles of A, B, Z, but GLB holds 16",
    ),
    (
        CUBE,
        machine(DRAM, AXES.format(", only_irrelevant_to: A"), MAC),
        "axes: [{axis: x, variables: [m], instances: 2}]",
        "x.only_irrelevant_to A leave no mapping of Z",
    ),
    (
        CUBE,
        machine(DRAM, "memory: GLB", MAC),
        "memories: {GLB: {keep: A}}\ntiles: [{memory: GLB, tensors: A, variables: [m], sizes: 3}]",
        "tiles of A in GLB: m 2 or 3' instead would be enough",
    ),
    (
        PAIR,
        machine(OUTER, "memory: GLB, size: 16 bit, may: T | A", MAC),
        "fusion: {fused: T}\nloops: [{tensors: T, variables: [m], trips: 1}]\nmemories: {GLB: {keep: A}}",
        "T needs at least 24 bits .* but GLB holds 16.*fused loops of T over m: 1 or 2 trips' instead",
    ),
)


def solvable(problem: Problem) -> bool:
    """Whether any tree of the space is legal, by looking at all of them."""
    workload, hardware = problem.workload, problem.machine
    trees = space_for(workload, hardware, problem.mapspace).trees()
    return any(not legality(workload, hardware, tree) for tree in trees)


def blame_of(problem: Problem) -> Blame:
    return Blame(Asker(Watcher()), problem, constraints(problem))


def agrees_with_brute_force(problem: Problem) -> int:
    """The number of relaxations that were told; each gives a mapping, and one less of a number does not."""
    assert not solvable(problem)
    blame = blame_of(problem)
    conflict, helpful = obstacles(blame)
    assert not solvable(only(problem, blame.candidates, conflict))
    for one in helpful:
        assert one.problem is not None
        assert solvable(one.problem)
        last = one.changes[-1]
        if last.place.endswith(".size"):
            memory = one.problem.machine.memory(last.place.removesuffix(".size"))
            levels = (replace(x, size=memory.size - 1) if x is memory else x for x in one.problem.machine.levels)
            assert not solvable(replace(one.problem, machine=replace(one.problem.machine, levels=tuple(levels))))
        elif last.place == "max_fused_loops":
            space = one.problem.mapspace
            fewer = replace(space, max_fused_loops=space.max_fused_loops - 1)
            assert not solvable(replace(one.problem, mapspace=fewer))
    return len(helpful)


@pytest.mark.parametrize("case", TINY, ids=range(len(TINY)))
def test_every_kind_of_limit_is_named_with_its_number(case: tuple[str, str, str, str]) -> None:
    problem = Planted("", *case[:2], (), (), case[2]).problem()
    assert re.search(case[3], text := named(problem, "nothing", 60)), text
    assert agrees_with_brute_force(problem)


@pytest.mark.parametrize("seed", [1, 2, 14, 31])
def test_random_problems_without_a_mapping(seed: int) -> None:
    """Single Einsums with random limits."""
    plain = tiny_problem(seed)
    limits = tiny_limits(Random(seed), plain.workload, plain.machine)
    assert agrees_with_brute_force(replace(plain, mapspace=replace(plain.mapspace, limits=limits)))


@pytest.mark.parametrize("case", CASES[:4], ids=lambda case: case.name)
def test_the_answer_names_what_was_planted(case: Planted) -> None:
    problem = case.problem()
    with pytest.raises(Infeasible) as caught:
        el.map(problem.workload, problem.machine, mapspace=problem.mapspace)
    for place, text in case.blamed:
        assert place == "mapspace" or place in caught.value.witness or place.endswith(".size")
        assert text.removesuffix(" bit") in caught.value.witness


def test_the_command_line_says_so_too(tmp_path: Path) -> None:
    (tmp_path / "w.yaml").write_text(CASES[0].workload, encoding="utf-8")
    (tmp_path / "m.yaml").write_text(CASES[0].machine, encoding="utf-8")
    asked = ["map", str(tmp_path / "w.yaml"), str(tmp_path / "m.yaml")]
    found = CliRunner().invoke(main, asked)
    assert found.exit_code == 1
    said = "einloom: no mapping of the space is legal: GLB.size 20 bit and GLB.must all leave no mapping of Z"
    assert said in found.output
    assert "leave no mapping" not in CliRunner().invoke(main, [*asked, "--budget-memory", "4 GiB"]).output


def test_a_machine_without_units_says_so() -> None:
    """Copies need none, so there are such machines."""
    told = Machine("m", (Memory("DRAM"),)).unexecuted(problem("matmul", "simple").workload.einsums[0])
    assert told == "no compute unit of m executes Einsum Z (multiply with 2 inputs; the machine has none)"


def test_an_einsum_that_no_unit_executes_is_named_without_a_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 500 alike Einsums the search for conflicts would take seconds, and say the same."""
    asked = problem("bert-base", "tpu-v4i")
    with pytest.raises(Infeasible) as met:
        el.map("bert-base", "tpu-v4i")
    monkeypatch.setattr(Asker, "feasible", lambda *_: pytest.fail("a search was run"))
    told = (
        "no compute unit of tpu-v4i executes Einsum N0 (map with 3 inputs; "
        "Scalar executes multiply or map with 1 input, MAC executes multiply or map with 2 inputs)"
    )
    able = "; on tpu-v4i-vector, two-level, tileflow-gemm of the zoo every Einsum has a unit"
    assert met.value.witness == named(asked, told) == told + able
    with pytest.raises(pytest.fail.Exception):
        named(asked, "something else")
