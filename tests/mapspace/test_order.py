"""The order of independent Einsums: which trees `order: free` has, each of some order of the cascade."""

from __future__ import annotations

from pathlib import Path

import pytest

from cases import cascade, simple
from einloom.errors import SpecError
from einloom.mapping.legality.structure import problems
from einloom.mapping.text import parse_mapping, print_mapping
from einloom.mapspace.ffm.enumerate import enumerate_trees
from einloom.mapspace.ffm.rules import outside
from einloom.mapspace.files import mapspace_text, parse_mapspace, read_mapspace
from einloom.mapspace.space import Mapspace
from einloom.workload.orders import orders, reordered

FREE = Mapspace(order="free")
BETWEEN = cascade("T: T[m] = exp(A[m])\nV: V[m] = exp(B[m])\nZ: Z[m] = exp(T[m])", {"m": 2}, outputs=["V", "Z"])
FORK = cascade(
    "Q: Q[m] = exp(A[m])\nK: K[m] = exp(A[m])\nV: V[m] = exp(A[m])\nS: S[m] = Q[m] * K[m]\nZ: Z[m] = S[m] * V[m]",
    {"m": 2},
)
FUSED = """store DRAM: A B V Z
split sequential:
  - for m in 2
    store GLB: T
    split sequential:
      - compute T @ MAC
      - compute Z @ MAC
  - for m in 2
    compute V @ MAC
"""


def test_every_order_puts_each_einsum_after_what_it_reads() -> None:
    found = ["".join(one.names) for one in orders(FORK)]
    assert found[0] == "QKVSZ" and len(found) == len(set(found)) == 8
    assert all(one.index("S") > max(one.index("Q"), one.index("K")) and one[-1] == "Z" for one in found)


def test_a_tree_in_another_order_belongs_to_the_free_space_alone() -> None:
    tree = parse_mapping(FUSED, BETWEEN, simple())
    assert not problems(BETWEEN, simple(), tree) and not outside(BETWEEN, simple(), FREE, tree)
    assert "rule 1: the leaves stand in the order T, Z, V, not in program order" in outside(
        BETWEEN, simple(), Mapspace(), tree
    )
    assert parse_mapping(print_mapping(tree, BETWEEN), BETWEEN, simple()) == tree


def test_other_rules_speak_of_the_cascade_in_the_order_of_the_tree() -> None:
    """Rule 7: T passes from T to Z over V, which does not read it, whatever the program says."""
    text = """store DRAM: A B V Z
for m in 2
store GLB: T
split sequential:
  - compute T @ MAC
  - compute V @ MAC
  - compute Z @ MAC
"""
    tree = parse_mapping(text, BETWEEN, simple())
    for workload in (BETWEEN, reordered(BETWEEN, ("T", "Z", "V"))):
        assert [r[:9] for r in outside(workload, simple(), FREE, tree)] == ["rule 7: V"]


def test_the_trees_are_those_of_every_order() -> None:
    pair = cascade("X: X[m] = exp(A[m])\nZ: Z[m] = exp(B[m])", {"m": 2})
    found = list(enumerate_trees(pair, simple(), FREE))
    alone = [list(enumerate_trees(one, simple(), Mapspace())) for one in orders(pair)]
    assert len(found) == len(set(found)) == sum(map(len, alone)) and len(alone) == 2
    assert {tree.einsums for tree in found} == {("X", "Z"), ("Z", "X")}
    assert not any(outside(pair, simple(), FREE, tree) for tree in found)


def test_the_order_comes_back_from_its_file(tmp_path: Path) -> None:
    path = tmp_path / "space.yaml"
    path.write_text("schema: mapspace/1\norder: free\n")
    space = read_mapspace(path, simple(), BETWEEN)
    assert space == FREE and parse_mapspace(mapspace_text(space), simple()) == space
    assert "order" not in mapspace_text(Mapspace()) and "any order" in space.describe()
    path.write_text("schema: mapspace/1\norder: fre\n")
    with pytest.raises(SpecError, match="free") as caught:
        read_mapspace(path, simple(), BETWEEN)
    assert (caught.value.line, caught.value.suggestion) == (2, "free")
