"""Spatial loops of one axis that several Einsums share stand in any order: their variables need not be in the same."""

from __future__ import annotations

from random import Random

import pytest

from einloom.machine.files import machine_from_data
from einloom.mapspace.space import Mapspace
from einloom.problem import Objective, Problem
from einloom.search.exact.fusion.templates import Stacker
from einloom.workload.files import workload_from_data
from optima import enumerated, optimum, same


def turned(seed: int) -> Problem:
    """Two Einsums behind a fanout of one axis, each with its ranks in a random order."""
    rng = Random(f"turned {seed}")

    def ranks(*names: str) -> str:
        return ",".join(rng.sample(names, len(names)))

    einsums = [f"A[{ranks('a', 'b')}] = X[a,b]", f"B[{ranks('c', 'd')}] = A[c,d]"]
    sizes = dict.fromkeys("abcd", 2)
    files = {"schema": "workload/1", "name": "turned", "einsums": einsums, "ranks": sizes, "bits": 1}
    outer = {"memory": "D", "read_energy": rng.choice((0, 9)), "write_energy": rng.choice((0, 9))}
    axes = [{"axis": "x", "size": rng.choice((4, 8))}]
    inner = {"memory": "M", "write_throughput": 1, "may": "A", "must": "A"}
    levels = [outer, {"fanout": "F", "axes": axes}, inner, {"compute": "U"}]
    machine = machine_from_data({"schema": "machine/1", "name": "turned", "levels": levels})
    return Problem(workload_from_data(files), machine, Mapspace(), Objective(rng.choice(("energy", "latency"))))


@pytest.mark.parametrize("seed", range(8))
def test_the_optimum_is_that_of_all_trees(seed: int) -> None:
    problem = turned(seed)
    assert same(optimum(problem), enumerated(problem))


def test_one_order_alone_misses_optima(monkeypatch: pytest.MonkeyPatch) -> None:
    """The mistake that was there: every Einsum had its spatial loops in the order of its own variables."""
    right = [optimum(turned(seed)) for seed in range(8)]
    monkeypatch.setattr(Stacker, "_orders", lambda self, memory: [self._between(memory)])
    wrong = [optimum(turned(seed)) for seed in range(8)]
    worse = [seed for seed in range(8) if not same(right[seed], wrong[seed])]
    assert worse
    assert all((wrong[seed] or float("inf")) > (right[seed] or 0.0) for seed in worse)
