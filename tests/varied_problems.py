"""Problems of every kind that the tests draw, by name, and what `exact` answers to them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import isclose
from random import Random

from bench.ragged_problems import grouped_problem, ragged_problem, shared_problem, window_problem

from axis_problems import drawn
from einloom.errors import Infeasible
from einloom.problem import Budget, Guarantee, Objective, Problem, keeps_time
from einloom.search.exact import Exact
from einloom.testing.problems import draw
from forked_cascades import forked
from stacked_layers import LAYERS, stacked

Answer = float | list[tuple[float, float]] | None


def anything(seed: int) -> Problem:
    """What files can say, of any objective."""
    workload, machine, mapspace = draw(seed).files.read
    goals = ("energy", "latency", "edp", "pareto") if keeps_time(machine) else ("energy",)
    return Problem(workload, machine, mapspace, Objective(Random(f"goal {seed}").choice(goals)))


def layers(seed: int) -> Problem:
    """Equal layers on one buffer, in any space."""
    rng = Random(f"layers {seed}")
    layer, more = rng.choice(sorted(LAYERS)), rng.choice(("", ",glb_throughput=2", ",glb_throughput=16"))
    goals = ("energy", "traffic", "edp", "edp", "latency") if more else ("energy", "traffic")
    bits, size = rng.choice((64, 128, 200, 256, 512, 1024)), rng.choice((2, 2, 3, 4))
    asked = stacked(layer, rng.choice((2, 3, 4, 5)), bits, rng.choice(goals), size, more)
    changes: dict[str, object] = {}
    for key, value in {"name": "ragged", "order": "free", "stores": "shared"}.items():
        if rng.random() < 0.2:
            changes[key] = value
    return replace(asked, mapspace=replace(asked.mapspace, max_fused_loops=rng.choice((None, None, 1, 2)), **changes))  # type: ignore[arg-type]


SOURCES: dict[str, Callable[[int], Problem]] = {
    "anything": anything,
    "forks": forked,
    "groups": grouped_problem,
    "layers": layers,
    "ragged": ragged_problem,
    "readers": shared_problem,
    "windows": window_problem,
    "axes": drawn,
}


def answer(problem: Problem, budget: Budget | None = None) -> Answer:
    """The optimum or the front; None: there is none."""
    try:
        found = Exact().search(problem, budget or Budget())
    except Infeasible:
        return None
    assert found.certificate is not None and found.certificate.guarantee is Guarantee.OPTIMAL
    if problem.objective.name == "pareto":
        return sorted((point.energy, point.latency) for point in found.front)
    return found.value


def same(one: Answer, other: Answer) -> bool:
    if isinstance(one, list) and isinstance(other, list):
        pairs = [*zip(one, other, strict=False)]
        return len(one) == len(other) and all(
            isclose(a, b, rel_tol=1e-8) for p, q in pairs for a, b in zip(p, q, strict=True)
        )
    if isinstance(one, float | int) and isinstance(other, float | int):
        return isclose(one, other, rel_tol=1e-8)
    return one is other
