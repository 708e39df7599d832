"""Shares of an axis: which ones the space has, what `use: full` asks inside a share, and the words of files."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest

from einloom.errors import SpecError
from einloom.machine.levels import Axis, ComputeUnit, Fanout, Machine, Memory
from einloom.mapping.text import parse_mapping
from einloom.mapspace.ffm.concurrency import grouped_forms
from einloom.mapspace.ffm.rules import full_use, outside
from einloom.mapspace.ffm.shares import every_share, least_share
from einloom.mapspace.files import mapspace_from
from einloom.mapspace.space import CONCURRENT, Mapspace
from einloom.reading.located import read_text
from einloom.workload.build import build_workload
from einloom.workload.einsum import Workload
from einloom.workload.notation import parse_einsum
from einloom.workload.selectors import selector


def tree(split: str, first: int, second: int) -> str:
    """T and Z, four values along n each, spread over so many instances."""
    spread = [f"par n in {k} @ x\n    for n in {4 // k}".replace("\n    for n in 1", "") for k in (first, second)]
    return f"""
store DRAM: X Z
for m in 3
store GLB: T
split {split}:
  - {spread[0]}
    compute T @ MAC
  - {spread[1]}
    compute Z @ MAC
"""


def chain() -> Workload:
    einsums = [parse_einsum("T[m,n] = exp(X[m,n])"), parse_einsum("Z[m,n] = exp(T[m,n])")]
    return build_workload("chain", einsums, {"m": 3, "n": 4}, bits={"default": 1})


def machine(size: int, use: str = "any") -> Machine:
    keeps = Memory("GLB", None, must=selector("intermediate"), may=selector("nothing"))
    outer = Memory("DRAM", None, must=selector("~intermediate"))
    axis = Axis("x", size, use="full" if use == "full" else "any")
    return Machine("small", (outer, keeps, Fanout("F", (axis,)), ComputeUnit("MAC", throughput=1.0)))


def reasons(size: int, shares: str, first: int, second: int, use: str = "any", concurrent: str = "axis") -> str:
    workload, small = chain(), machine(size, use)
    mapping = parse_mapping(tree(f"pipelined @ x shares {shares}", first, second), workload, small)
    space = Mapspace(concurrent=concurrent)  # type: ignore[arg-type]
    return "; ".join(outside(workload, small, space, mapping))


@pytest.mark.parametrize("size", range(1, 41))
def test_shares_are_multiples_of_a_quarter_rounded_up_to_a_divisor(size: int) -> None:
    unit = least_share(size)
    assert size % unit == 0 and 4 * unit >= size
    assert all(size % n or 4 * n < size for n in range(1, unit))
    for branches in (2, 3, 4, 5):
        every = {shares for shares in product(range(unit, size + 1, unit), repeat=branches) if sum(shares) == size}
        listed = list(every_share(size, branches))
        assert len(listed) == len(set(listed)) and set(listed) == every


def test_quarters_of_common_sizes() -> None:
    assert [least_share(n) for n in (1, 2, 3, 4, 5, 6, 7, 8, 12, 32, 128)] == [1, 1, 1, 1, 5, 2, 7, 2, 3, 8, 32]
    assert list(every_share(4, 3)) == [(1, 1, 2), (1, 2, 1), (2, 1, 1)]
    assert list(every_share(2, 2)) == [(1, 1)] and list(every_share(5, 2)) == []


def test_what_is_inside_and_why_not() -> None:
    assert reasons(4, "2 2", 2, 2) == ""
    assert reasons(8, "4 4", 4, 4) == ""
    assert "of 8 instances a share is a multiple of 2" in reasons(8, "5 3", 4, 2)
    assert "a share is a multiple of 2" in reasons(8, "5 2", 4, 2), "one of them is enough"
    assert "which are not all 8 instances" in reasons(8, "4 2", 4, 2)
    assert "only pipelines on unit or shared may be" in reasons(4, "2 2", 2, 2, concurrent="any")
    assert reasons(4, "2 2", 2, 2, concurrent="everywhere") == ""
    assert "rule 1: a pipelined split" in reasons(4, "2 2", 2, 2, concurrent="none")


def test_full_use_is_of_the_share() -> None:
    """Four values along n: all four instances without a split, both of a share of two inside one."""
    workload, small = chain(), machine(4, "full")
    assert full_use(workload, small, "T", "MAC") == 4
    assert full_use(workload, small, "T", "MAC", left={"x": 2}) == 2
    assert full_use(workload, small, "T", "MAC", left={"x": 3}) == 3  # along m
    assert reasons(4, "2 2", 2, 2, use="full") == ""
    eight = machine(8, "full")
    assert full_use(workload, eight, "T", "MAC", left={"x": 4}) == 4
    assert "it could use 4" in reasons(8, "4 4", 4, 2, use="full")


def test_every_form_of_a_tree() -> None:
    workload, small = chain(), machine(4)
    forms = list(grouped_forms(parse_mapping(tree("sequential", 2, 2), workload, small), ("unit", "axis"), {"x": 4}))
    wheres = [(split.where, split.shares) for form in forms for split in [form.nest[-1]]]  # type: ignore[union-attr]
    assert wheres == [("unit", ()), ("x", (1, 3)), ("x", (2, 2)), ("x", (3, 1))]


def test_words_of_files() -> None:
    small = machine(4)
    for word in CONCURRENT:
        view = read_text(f"schema: mapspace/1\nconcurrent: {word}\n", "space.yaml")
        assert mapspace_from(view, small).concurrent == word
    with pytest.raises(SpecError, match="axis"):
        mapspace_from(read_text("schema: mapspace/1\nconcurrent: axes\n", "space.yaml"), small)
    space = Mapspace(concurrent="everywhere", max_group=3)
    assert space.describe().endswith(
        "groups of at most 3 Einsums pipelined @ unit or shared or @ AXIS in shares of a quarter"
    )
    assert replace(space, concurrent="axis").places == ("axis",)
