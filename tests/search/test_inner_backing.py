"""A shared tensor backed by an inner memory, below own stores of an outer one at the same depth."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from cases import tree
from einloom.cost.evaluate import evaluate
from einloom.errors import Defect
from einloom.machine.files import machine_from_data
from einloom.machine.levels import Machine, Memory
from einloom.mapspace.ffm.rules import outside
from einloom.mapspace.space import Mapspace
from einloom.problem import Guarantee, Objective, Problem
from einloom.search.exact import Exact, ExactOptions
from einloom.workload.files import workload_from_data
from einloom.workload.selectors import selector
from optima import enumerated, optimum, searched
from tiny_problems import tiny_problem

WRITERS = ("T[m,d] = X[m,d] * W[d]", "T[m,d] = X[m,d] * W[m]", "T[m,d] = X[m,d]")
READERS = ("Z[m,d] = add(T[m,d], V[m,d])", "Z[m,d] = T[m,d] * V[d]", "Z[m] = T[m,d] * V[d]", "Z[d] = T[m,d] * V[m]")


def anywhere(seed: int) -> Problem:
    """A tiny problem in which every memory backs what it may hold."""
    problem = tiny_problem(seed)
    levels = problem.machine.levels
    backing = (replace(level, backs=selector("all")) if isinstance(level, Memory) else level for level in levels)
    return replace(problem, machine=Machine("backing", tuple(backing), problem.machine.partial_sums))


def test_the_own_store_stands_above_the_split() -> None:
    problem = anywhere(1148)
    found = Exact().search(problem)
    assert not outside(problem.workload, problem.machine, problem.mapspace, found.mapping)
    assert found.value == evaluate(problem.workload, problem.machine, found.mapping).latency
    lines = found.mapping_text.splitlines()
    assert lines[1].startswith("store M0:") and lines[2].startswith("store M1:") and lines[3] == "split sequential:"


@pytest.mark.slow
def test_where_no_store_can_stand_above_all_users() -> None:
    """M0 must hold S for its readers and may not for its producer: each reader has a store of its own (rule 8)."""
    problem = anywhere(1157)
    found = searched(problem)
    legal = tree("DRAM[X S T Z] { S.m:2 M0[X] !S@MAC } { T.m:2 M0[S] !T@MAC } { Z.m:2 M0[S] !Z@MAC }")
    best = evaluate(problem.workload, problem.machine, legal).energy
    assert found is not None and found.value == enumerated(problem) <= best
    assert found.certificate is not None and found.certificate.guarantee is Guarantee.OPTIMAL


def test_there_a_start_changes_nothing() -> None:
    problem = anywhere(1157)
    legal = tree("DRAM[X S T Z] { S.m:2 M0[X] !S@MAC } { T.m:2 M0[S] !T@MAC } { Z.m:2 M0[S] !Z@MAC }")
    found = searched(problem, ExactOptions(start=(legal,)))
    assert found is not None and found.value == optimum(problem)
    assert found.certificate is not None and found.certificate.guarantee is Guarantee.OPTIMAL


def two_inside(seed: int) -> Problem:
    """Two Einsums on a machine with two memories, both or one behind a fanout; each may back the intermediate."""
    rng = Random(f"two inside {seed}")
    writer, reader = rng.choice(WRITERS), rng.choice(READERS)
    files = {"schema": "workload/1", "name": "two", "einsums": [writer, reader], "ranks": {"m": 2, "d": 2}, "bits": 1}

    others = [name for name in "XWVZ" if f"{name}[" in writer + reader]

    def memory(name: str, sizes: tuple[int | None, ...]) -> dict[str, object]:
        size = rng.choice(sizes)
        sized = {} if size is None else {"size": size}
        held = {"may": " | ".join(("T", *rng.sample(others, rng.choice((0, 0, 0, 1)))))}
        return {
            "memory": name,
            **sized,
            **held,
            "read_energy": rng.choice((0, 1, 2)),
            "write_energy": rng.choice((0, 1, 2)),
        }

    outer = {"memory": "D", "read_energy": rng.choice((1, 5)), "write_energy": rng.choice((0, 5))}
    inner: list[dict[str, object]] = [memory("M0", (None, 2, 4)), memory("M1", (1, 2, 4))]
    inner.insert(rng.choice((0, 0, 1)), {"fanout": "F", "axes": [{"axis": "F0", "size": 2}]})
    machine = {"schema": "machine/1", "name": "two", "levels": [outer, *inner, {"compute": "C"}]}
    return Problem(workload_from_data(files), machine_from_data(machine), Mapspace("ffm"), Objective("energy"))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(24))
def test_every_tree_with_two_memories_inside(seed: int) -> None:
    problem = two_inside(seed)
    assert optimum(problem) == enumerated(problem)


def test_no_loops_stand_under_no_store() -> None:
    """The plant brings back a mistake: temporal loops between a fanout's and the next store (rule 3)."""
    from bench.truth.planted import PLANTS, planted

    problems = [two_inside(seed) for seed in (12, 48, 54, *range(20))]
    assert all(isinstance(optimum_or_defect(problem), float) for problem in problems)
    with planted(next(one for one in PLANTS if one.name == "loops-under-no-store")):
        assert all("rule 3" in str(optimum_or_defect(problem)) for problem in problems[:3])


def backed_further_in(seed: int) -> Problem:
    """Two products on a machine whose outer one of two small memories backs nothing."""
    rng = Random(f"further in {seed}")
    products = ["A[m,n] = X[m,d] * U[d,n]", "B[m,d] = A[m,n] * V[n,d]"]
    ranks = {"m": rng.choice((1, 2)), "n": 2, "d": 2}
    files = {"schema": "workload/1", "name": "two", "einsums": products, "ranks": ranks, "bits": rng.choice((1, 2))}
    outer = {"memory": "D", "read_energy": rng.choice((1, 5)), "write_energy": rng.choice((0, 1))}
    small = {"memory": "M0", "size": rng.choice((2, 4, 6, 8)), "backs": "nothing", "read_energy": rng.choice((0, 0.1))}
    inner = {"memory": "M1", "size": rng.choice((1, 2, 4))}
    machine = {"schema": "machine/1", "name": "two", "levels": [outer, small, inner, {"compute": "C"}]}
    return Problem(workload_from_data(files), machine_from_data(machine), Mapspace("ffm"), Objective("energy"))


def test_own_stores_above_what_is_backed_further_in_take_room_together() -> None:
    """The plant brings back a mistake: their memory was not followed, as it backs nothing itself."""
    from bench.truth.planted import PLANTS, planted

    problems = [backed_further_in(seed) for seed in (1, 3, 4, 7, 8, 15, 16, 21)]
    assert not any(isinstance(optimum_or_defect(problem), str) for problem in problems)
    with planted(next(one for one in PLANTS if one.name == "own-stores-above-inner-backing")):
        assert any("capacity" in str(optimum_or_defect(problem)) for problem in problems)


def optimum_or_defect(problem: Problem) -> float | str | None:
    try:
        return optimum(problem)
    except Defect as error:
        return str(error)
