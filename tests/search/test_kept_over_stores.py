"""One Einsum on three or four memories: a store may keep its tile over loops above the stores of other memories, and
then wants loops below it that would else stand above it (docs/model/pruning.md, lowering)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

import pytest

from einloom.errors import Infeasible
from einloom.machine.files import parse_machine
from einloom.mapspace.ffm.enumerate import enumerate_trees
from einloom.mapspace.ffm.rules import outside
from einloom.mapspace.space import Mapspace
from einloom.problem import Objective, Problem
from einloom.search.exact import Exact, ExactOptions, Rules
from einloom.search.exact.pmappings.expand import Expansion
from einloom.search.exact.pmappings.rows import Rows
from einloom.search.exhaustive import Exhaustive
from einloom.testing.problems.files import read_folder
from einloom.workload.files import parse_workload

EINSUMS = (
    "T1[a] = add(I0[a], I2[b], T0[a])",
    "Z[a] = A[a,b] * B[b]",
    "Z[a] = mul(A[b], B[a])",
    "Z[a,b] = A[a] * B[b]",
    "Z[a] = A[a] * B[b] * C[a,b]",
)
FEW = 300
FOUND = Path(__file__).parent / "found" / "exact-is-all-trees-8365"


def problem(seed: int) -> Problem:
    """Two or three small memories below the outermost, each for some of the tensors."""
    rng = Random(seed)
    sizes = f"a: {rng.choice((2, 4))}, b: {rng.choice((2, 2, 4))}"
    workload = parse_workload(
        f"schema: workload/1\nname: one\neinsums: ['{rng.choice(EINSUMS)}']\nranks: {{{sizes}}}\nbits: 1"
    )
    tensors = workload.einsums[0].tensors
    levels = ["{memory: D, read_energy: 5, write_energy: 5, read_throughput: 1, write_throughput: 1}"]
    for number in range(rng.choice((2, 2, 3))):
        may = [tensor for tensor in tensors if rng.random() < 0.5] or [rng.choice(tensors)]
        energy = rng.choice((0, 0.5, 1))
        levels.append(
            f"{{memory: M{number}, size: {rng.choice((1, 1, 2, 3, 8, 64))}, may: {' | '.join(may)}, "
            f"read_energy: {energy}, write_energy: {energy}, read_throughput: 4, write_throughput: 4}}"
        )
    levels.append("{compute: MAC, throughput: 8}")
    machine = parse_machine("schema: machine/1\nname: m\nlevels:\n" + "".join(f"  - {level}\n" for level in levels))
    return Problem(workload, machine, Mapspace(), Objective(rng.choice(("energy", "latency", "edp"))))


def small(seed: int) -> bool:
    one = problem(seed)
    return sum(1 for _ in islice(enumerate_trees(one.workload, one.machine, one.mapspace), FEW + 1)) <= FEW


def best(method: Exact | Exhaustive, asked: Problem) -> float | None:
    try:
        return method.search(asked).value
    except Infeasible:
        return None


def missed(seeds: range) -> list[int]:
    """The seeds of the small problems among these for which `exact` and all trees differ."""
    return [
        seed
        for seed in seeds
        if small(seed) and best(Exact(), problem(seed)) != pytest.approx(best(Exhaustive(), problem(seed)))
    ]


@pytest.mark.parametrize("first", [0, *(pytest.param(n, marks=pytest.mark.slow) for n in range(20, 1000, 20))])
def test_exact_finds_what_all_trees_say(first: int) -> None:
    assert missed(range(first, first + 20)) == []


@pytest.mark.slow
def test_with_every_loop_above_the_stores_that_it_moves_optima_are_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Expansion, "below_kept", lambda self, memory: None)
    assert missed(range(60, 80)) == [66, 76]


def test_loops_for_kept_tiles_come_beside_all_others_and_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where charges that are put off meet loops: the rows that `rest` allows, each once, and others marked as such."""
    real, seen = Expansion.ordered, list[int]()

    def ordered(self: Expansion, rows: Rows, dims: list[int], at: int, *asked: Any) -> Iterator[tuple[Rows, bool]]:
        found = list(real(self, rows, dims, at, *asked))
        if len(asked) == 3 and asked[1] and asked[2] is not None:
            apart = {kind: shown(part for part, mine in found if mine == kind) for kind in (False, True)}
            assert apart[False] == shown(part for part, _ in real(self, rows, dims, at, *asked[:2], None))
            assert not set(apart[False]) & set(apart[True])
            seen.append(len(apart[True]))
        yield from found

    def shown(parts: Iterable[Rows]) -> list[tuple[bytes, bytes, bytes]]:
        one = (zip(part.x, part.marks, part.cost, strict=True) for part in parts)
        return sorted((x.tobytes(), marks.tobytes(), cost.tobytes()) for row in one for x, marks, cost in row)

    monkeypatch.setattr(Expansion, "ordered", ordered)
    for seed in (66, 76, 81):
        best(Exact(), problem(seed))
    assert sum(seen) > 0


def test_a_tile_of_the_inner_memory_stays_while_the_outer_one_changes() -> None:
    """I2 is loaded once although each value of T0 in M0, which has room for one, is followed by all of I2."""
    workload, machine, space = read_folder(FOUND)
    asked = Problem(workload, machine, space, Objective("latency"))
    assert Exact().search(asked).value == Exact(ExactOptions(Rules(lowering=False))).search(asked).value == 12


UNEVEN = """
schema: workload/1
name: uneven
einsums: ['T[m,n] = A[m] * B[n]', 'Z[m] = T[m,n] * C[n]']
ranks: {m: 9, n: 5}
bits: 1
"""
WITH_CORES = """
schema: machine/1
name: with-cores
levels:
  - {memory: DRAM, read_energy: 10, write_energy: 12, read_throughput: 8, write_throughput: 8}
  - {memory: GLB, size: 10, write_energy: 1, read_throughput: 32, write_throughput: 32}
  - {fanout: F, axes: [{axis: F0, size: 5, multicast: nothing, reduce: nothing}]}
  - {memory: LB, size: 61, read_energy: 1, write_energy: 4, backs: nothing}
  - {compute: MAC, throughput: 1, energy: 1}
"""


def test_loops_over_which_a_tile_stays_are_one_loop_of_a_variable() -> None:
    """A row in which B stays in LB over three of nine steps of m is as fast as others; its tree has one of nine."""
    asked = Problem(parse_workload(UNEVEN), parse_machine(WITH_CORES), Mapspace("ragged"), Objective("latency"))
    found = Exact().search(asked)
    assert outside(asked.workload, asked.machine, asked.mapspace, found.mapping) == ()
    assert found.value == Exact(ExactOptions(Rules(deferral=False))).search(asked).value == 18
