"""Cascades of many Einsums: residual tensors read far away, repeated layers, and the bounds that keep both quick."""

from __future__ import annotations

import numpy as np
import pytest

from einloom.mapspace.space import Mapspace
from einloom.problem import Budget, Objective, Problem
from einloom.search.exact import Exact, ExactOptions, Rules
from einloom.search.exact.bounds.cutoff import Cutoff
from einloom.search.exact.bounds.weighted_sums import Lines
from einloom.search.exhaustive import Exhaustive
from einloom.workload.build import build_workload
from einloom.workload.einsum import Workload
from einloom.zoo.machine_by_name import load_machine

SMALL = {
    "two consumers far apart": (
        "H[m] = relu(X[m])",
        "A[m] = add(H[m], P[m])",
        "B[m] = add(A[m], Q[m])",
        "Y[m] = add(B[m], H[m])",
    ),
    "three consumers": (
        "H[m] = relu(X[m])",
        "A[m] = relu(H[m])",
        "B[m] = add(A[m], P[m])",
        "C[m] = add(B[m], H[m])",
        "Y[m] = add(C[m], H[m])",
    ),
    "two residuals across each other": (
        "H[m] = relu(X[m])",
        "A[m] = relu(H[m])",
        "B[m] = add(A[m], P[m])",
        "C[m] = add(B[m], H[m])",
        "Y[m] = add(C[m], A[m])",
    ),
}
RESIDUALS = {
    "two consumers far apart": (
        "H[m,d] = X[m,k] * W0[k,d]",
        "A[m,n] = H[m,d] * W1[d,n]",
        "B[m,d] = A[m,n] * W2[n,d]",
        "Y[m,d] = add(B[m,d], H[m,d])",
    ),
    "three consumers": (
        "H[m,d] = X[m,k] * W0[k,d]",
        "A[m,d] = relu(H[m,d])",
        "B[m,n] = A[m,d] * H[m,d] * W1[d,n]",
        "C[m,d] = B[m,n] * W2[n,d]",
        "Y[m,d] = add(C[m,d], H[m,d])",
    ),
    "two residuals across each other": (
        "H[m,d] = X[m,k] * W0[k,d]",
        "A[m,d] = relu(H[m,d])",
        "B[m,d] = add(A[m,d], H[m,d])",
        "C[m,n] = B[m,d] * W1[d,n]",
        "Y[m,n] = C[m,n] * A[m,d] * W2[d,n]",
    ),
}


def problem(einsums: tuple[str, ...], sizes: dict[str, int], bits: int, objective: str = "energy") -> Problem:
    workload = build_workload("residual", einsums, sizes, bits=8)
    machine = load_machine(f"simple:dram_energy=100,glb_bits={bits},glb_throughput=100")
    return Problem(workload, machine, Mapspace("ffm"), Objective(objective))


DEAR = ("three consumers",)


@pytest.mark.parametrize(
    "einsums",
    [pytest.param(texts, marks=pytest.mark.slow if name in DEAR else (), id=name) for name, texts in SMALL.items()],
)
def test_residual_tensors_by_enumeration(einsums: tuple[str, ...]) -> None:
    """Tiles of one value, so that only what the buffer keeps until the last consumer is in question."""
    values = set()
    machines = [load_machine(f"two-level:glb_bits={bits}") for bits in (24, 32)]
    for machine in machines:
        workload = build_workload("residual", einsums, {"m": 1}, bits=8)
        asked = Problem(workload, machine, Mapspace("ffm"), Objective("energy"))
        enumerated = Exhaustive().search(asked, Budget(seconds=600))
        assert enumerated.complete
        values.add(enumerated.value)
        assert Exact().search(asked).value == pytest.approx(enumerated.value, rel=1e-9, abs=0)
    assert len(values) > 1, "what a larger buffer keeps costs less"


@pytest.mark.parametrize("objective", ["energy", "edp"])
@pytest.mark.parametrize("einsums", RESIDUALS.values(), ids=RESIDUALS)
def test_residual_tensors_without_bounds(einsums: tuple[str, ...], objective: str) -> None:
    """Dominance alone decides: no limits, no incumbent, no consistency."""
    free = ExactOptions(Rules(limits=False), incumbent=False, consistency=False)
    asked = problem(einsums, {"m": 4, "k": 2, "d": 2, "n": 2}, 200, objective)
    assert Exact().search(asked).value == pytest.approx(Exact(free).search(asked).value, rel=1e-9, abs=0)


def layers(count: int) -> Workload:
    """Layers of two matmuls and a residual addition."""
    einsums, before = [], "X"
    for i in range(count):
        einsums += [
            f"A{i}[m,n] = {before}[m,d] * U{i}[d,n]",
            f"B{i}[m,d] = A{i}[m,n] * V{i}[n,d]",
            f"Y{i}[m,d] = add(B{i}[m,d], {before}[m,d])",
        ]
        before = f"Y{i}"
    return build_workload("layers", einsums, {"m": 16, "n": 32, "d": 8}, bits=8)


@pytest.mark.parametrize("count", [3, pytest.param(5, marks=pytest.mark.slow)])
@pytest.mark.parametrize("objective", ["energy", "edp"])
def test_repeated_layers_without_consistency(objective: str, count: int) -> None:
    machine = load_machine("simple:dram_energy=50,glb_bits=3000,glb_throughput=100")
    asked = Problem(layers(count), machine, Mapspace("ffm"), Objective(objective))
    found = Exact().search(asked)
    assert found.certificate is not None
    counts = found.certificate.counts
    assert counts["isomorphic"] > 0
    assert counts["arc consistency"] > 0
    plain = Exact(ExactOptions(consistency=False)).search(asked)
    assert found.value == pytest.approx(plain.value, rel=1e-9, abs=0)


def test_lines_bound_every_sum_of_choices() -> None:
    """Random rows of random Einsums: no sum within the limit lies beyond its bounds, and lines see more than sums."""
    rng = np.random.default_rng(7)
    sharper = 0
    for _ in range(300):
        rows = [rng.uniform(0.1, 1.0, (4, 2)) ** 3 for _ in range(3)]
        sums = (rows[0][:, None, None] + rows[1][None, :, None] + rows[2][None, None]).reshape(-1, 2)
        best = float(sums.prod(axis=1).min())
        least = np.stack([part.min(axis=0) for part in rows])
        lines = Lines.of(Cutoff((1.0, 1.0), best), least)
        bounds = lines.extend(rows[0]) + sum(lines.extend(part).min(axis=0) for part in rows[1:])
        sure = (rows[0] + least[1:].sum(axis=0)).prod(axis=1) > best * (1 + 1e-9)
        beyond = lines.beyond(bounds)
        useful = sums.prod(axis=1).reshape(4, -1).min(axis=1) <= best * (1 + 1e-9)
        assert not (beyond & useful).any()
        assert (beyond | ~sure).all()
        sharper += int((beyond & ~sure).sum())
    assert sharper > 50


def test_stack_of_layers_costs_what_its_layers_do() -> None:
    """A stack costs at most its layers one by one, and some of it is saved between them."""
    machine = load_machine("two-level:glb_bits=3000")
    values = {}
    for count in (1, 6):
        values[count] = Exact().search(Problem(layers(count), machine, Mapspace("ffm"), Objective("energy"))).value
    assert 3 * values[1] < values[6] <= 6 * values[1] * (1 + 1e-9)
