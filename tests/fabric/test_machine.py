"""`exact` on the machine and limits of a fabric: the closed form's traffic, and a mapping that the hardware runs."""

from __future__ import annotations

import numpy as np
import pytest

from einloom.errors import SpecError
from einloom.fabric.describe import fabric
from einloom.fabric.machine import problems, tile_of
from einloom.fabric.traffic import choices
from einloom.search.exact import Exact
from einloom.search.principles.matmul import Matmul
from einloom.search.principles.pairs import Pair, fused_schedule
from einloom.workload.build import build_workload

ONE = ("C[m,l] = A[m,k] * B[k,l]",)
TWO = ("C[m,l] = A[m,k] * B[k,l]", "E[m,n] = C[m,l] * D[l,n]")
FABRICS = ("tpu-v4i-like", "gemmini-like", "unfcu")


@pytest.mark.parametrize("name", FABRICS)
def test_exact_finds_the_closed_form(name: str) -> None:
    """Every stationary operand in every configuration, sizes that the regions divide."""
    one = fabric(name).with_arrays(2, 2)
    workload = build_workload("one", ONE, {"m": 16, "k": 8, "l": 8}, bits=8)
    forms = {}
    for c in choices(one, Matmul(16, 8, 8)):
        mode = {"B": "WS", "A": "IS", "C": "OS"}[c.stationary]
        forms[f"{mode} {c.configuration.name}"] = c.moved
    found = {label: Exact().search(problem).value / 8 for label, problem in problems(one, workload)}
    assert found == forms


def test_exact_finds_tile_fusion() -> None:
    one = fabric("fusecu").with_arrays(2, 2)
    workload = build_workload("two", TWO, {"m": 8, "k": 4, "l": 8, "n": 4}, bits=8)
    pair, forms = Pair(8, 4, 8, 4), {}
    for configuration in one.configurations:
        if not configuration.column:  # sums that come again are counted with their way back
            block = configuration.extents(one)
            forms[f"tile {configuration.name}"] = fused_schedule(
                pair, "m outside", "", block, "read-modify-write"
            ).traffic
    found = {label: Exact().search(problem).value / 8 for label, problem in problems(one, workload)}
    assert found == forms


def test_column_fusion_from_end_to_end() -> None:
    """The closed form's schedule, block by block of rows, on both legal shapes; and what has no place is refused."""
    pytest.importorskip("amaranth", reason="the extra rtl (amaranth) is not installed")
    from einloom.fabric.simulate import by_amaranth
    from fabric_jobs import column_jobs, reference

    one = fabric("fusecu").with_arrays(2, 2)
    for configuration in (c for c in one.configurations if c.column):
        _, wide = configuration.extents(one)
        rng = np.random.default_rng(1)
        a, b, d = (rng.integers(-128, 128, size) for size in ((7, wide), (wide, 6), (6, wide - 1)))
        ran = by_amaranth(column_jobs(one, configuration, (a, b, d), 8))
        assert all(r.right and r.on_time for r in ran)
        got = np.concatenate([m for r in ran for m in r.answers])
        assert np.array_equal(got, reference((a, b, d), 8, 8))
        with pytest.raises(SpecError, match="does not fit"):
            column_jobs(one, configuration, (np.ones((4, wide + 1), np.int64), b, d), 8)


def test_a_mapping_of_exact_runs_on_the_hardware() -> None:
    """Tile fusion from end to end: the tree's blocks, the streams, the RTL, NumPy."""
    pytest.importorskip("amaranth", reason="the extra rtl (amaranth) is not installed")
    from einloom.fabric.simulate import by_amaranth
    from fabric_jobs import assembled, fused_jobs, reference

    one = fabric("fusecu").with_arrays(2, 2)
    workload = build_workload("two", TWO, {"m": 8, "k": 3, "l": 8, "n": 5}, bits=8)
    label, problem = next((n, p) for n, p in problems(one, workload) if n == "tile square")
    mapping = Exact().search(problem).mapping
    assert tile_of(workload, mapping) == (4, 4)
    rng = np.random.default_rng(0)
    operands = tuple(rng.integers(-128, 128, size) for size in ((8, 3), (3, 8), (8, 5)))
    configuration = next(c for c in one.configurations if label.endswith(c.name))
    jobs = fused_jobs(one, configuration, workload, mapping, operands, 9)  # type: ignore[arg-type]
    ran = by_amaranth(jobs)
    assert all(r.right and r.on_time for r in ran)
    got = assembled(workload, mapping, operands, [m for r in ran for m in r.answers])  # type: ignore[arg-type]
    assert np.array_equal(got, reference(operands, 9, 8))  # type: ignore[arg-type]
