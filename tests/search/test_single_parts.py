"""Parts of the search and of the analysis, each alone, whose mistakes whole searches do not show."""

from __future__ import annotations

from dataclasses import replace

import pytest

import einloom as el
from einloom.api import problem
from einloom.certify import again
from einloom.certify.likeness import workload_likeness
from einloom.cost import event
from einloom.cost.traffic.accesses import operations
from einloom.cost.traffic.paths import paths
from einloom.machine.files import parse_machine
from einloom.mapping.text import parse_mapping
from einloom.mapping.tree import Loop
from einloom.mapspace.ffm.enumerate import enumerate_trees
from einloom.mapspace.ffm.space import Ffm
from einloom.search.method import Recorder
from einloom.search.principles.matmul import Matmul
from einloom.search.principles.pairs import Pair
from einloom.workload.files import parse_workload

WORKLOAD = "schema: workload/1\nname: one\neinsums: ['B[m] = exp(A[m,k])']\nranks: {m: 24, k: 5}\nbits: 8"
MACHINE = """
schema: machine/1
name: spread
levels:
  - {memory: DRAM, read_energy: 1, write_energy: 1, read_throughput: 8, write_throughput: 8}
  - {memory: GLB, read_throughput: 8, write_throughput: 8}
  - {fanout: X, axes: [{axis: x, size: 2}]}
  - {memory: Reg, read_throughput: 8, write_throughput: 8}
  - {compute: MAC, energy: 1, throughput: 1}
"""
MAPPING = """
store DRAM: A B
for m in 3
store GLB: A B
for m in 4
par m in 2 @ x
store Reg: A B
for k in 5
compute B @ MAC
"""


def test_the_event_time_is_not_asked_where_there_would_be_too_many_operations(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loads, drains and the leaf in each of the 3 x 4 steps above the innermost store; instances work together."""
    workload, machine = parse_workload(WORKLOAD), parse_machine(MACHINE)
    tree = parse_mapping(MAPPING, workload, machine)
    most = 3 * 4 * (1 + 2 * 6)
    monkeypatch.setattr(event, "MOST_OPERATIONS", most)
    assert event.event_seconds(workload, machine, tree) is not None
    monkeypatch.setattr(event, "MOST_OPERATIONS", most - 1)
    assert event.event_seconds(workload, machine, tree) is None


def test_a_recorder_counts_from_its_making() -> None:
    now = iter((5.0, 7.5))
    assert Recorder(clock=lambda: next(now)).seconds == 2.5


def test_the_matmuls_of_a_pair() -> None:
    """C[m,l] = A[m,k] B[k,l], then E[m,n] = C[m,l] D[l,n]."""
    pair = Pair(2, 3, 5, 7)
    assert (pair.first, pair.second) == (Matmul(2, 3, 5), Matmul(2, 5, 7))


def test_a_tiny_problem_is_solved_again_by_looking_at_all_trees(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(again, "TINY_SECONDS", 300.0)
    found = el.map("matmul:m=2,n=2,k=2", "two-level")
    solved = again.solve_again(found)
    assert (solved.value, solved.method) == (found.value, "enumeration of all trees")


def test_a_copy_has_no_operations() -> None:
    workload = parse_workload("schema: workload/1\nname: one\neinsums: ['B[m] = copy A[m]']\nranks: {m: 24}\nbits: 8")
    machine = parse_machine(MACHINE)
    tree = parse_mapping("store DRAM: A B\nfor m in 24\nstore GLB: A B\ncompute B", workload, machine)
    (path,) = paths(workload, tree)
    assert operations(path) == 0 == operations(path, {})


def test_the_rows_of_a_skeleton_are_the_tilings_of_its_trees() -> None:
    """The trees of the space with the loops of one tree, in any tiles, are its rows, each once."""
    asked = problem("matmul:m=8,n=4,k=2", "two-level", "energy")
    space = Ffm(asked.workload, asked.machine, asked.mapspace)
    trees = list(enumerate_trees(asked.workload, asked.machine, asked.mapspace))
    largest = max(trees, key=lambda tree: sum(isinstance(node, Loop) for node in tree.nest))
    skeleton = space.skeleton(largest)
    made = [space.tree(skeleton, row) for block in space.tilings(skeleton) for row in block]
    assert largest in made and len(made) == len(set(map(str, made))) > 1
    assert all(tree in trees for tree in made)


def test_a_name_of_the_zoo_with_another_persistent_tensor_is_not_the_zoos() -> None:
    zoo = el.load_workload("matmul:m=8,n=4,k=2")
    kept = replace(zoo, tensors=tuple(replace(tensor, persistent=tensor.name == "B") for tensor in zoo.tensors))
    same, other = workload_likeness(zoo), workload_likeness(kept)
    assert same is not None and same.same and other is not None and kept != zoo and not other.same
