"""What every mapping costs at least, known before the search begins: no legal tree is below it, and some are at it."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from random import Random

import pytest

from einloom.cost.evaluate import evaluate
from einloom.mapspace.ffm.space import Ffm
from einloom.mapspace.registry import space_for
from einloom.problem import Objective, Problem
from einloom.problem.compulsory import compulsory
from einloom.questions import problem
from tiny_problems import tiny_problem

GOALS = (
    Objective("energy"),
    Objective("latency"),
    Objective("edp"),
    Objective("product", powers=(2.0, 1.0)),
)
ZOO = (
    ("gpt3-6.7b:tokens=64", "tpu-v4i"),
    ("conv-chain", "nvdla"),
    ("resnet18:stages=1,image=32", "ffm-edge-vector"),
    ("tileflow-bert-s", "tileflow-edge-code"),
    ("residual-diamond", "tileflow-cloud"),
)


def values(asked: Problem, draws: int) -> list[tuple[float, float]]:
    """(bound, value) of each objective for some legal trees of the space."""
    memory = asked.machine.memories[0].name
    goals = [replace(asked, objective=goal) for goal in (*GOALS, Objective("traffic", memory))]
    bounds = [compulsory(goal) for goal in goals]
    space, rng, found = space_for(asked.workload, asked.machine, asked.mapspace), Random(0), []
    assert isinstance(space, Ffm)
    for _ in range(draws):
        tree = space.sample(rng)
        if tree is None:
            continue
        for rule in ("einsum", "tile"):
            cost = evaluate(asked.workload, asked.machine, tree, rule)
            found += [(bound, goal.objective.value(cost)) for bound, goal in zip(bounds, goals, strict=True)]
    return found


@pytest.mark.parametrize("seeds", [range(40), pytest.param(range(40, 80), marks=pytest.mark.slow)], ids=["few", "more"])
def test_no_tree_of_tiny_problems_is_below(seeds: range) -> None:
    met: Counter[str] = Counter()
    for seed in seeds:
        for bound, value in values(tiny_problem(seed), 4):
            assert bound <= value * (1 + 1e-9), seed
            met["reached" if 0 < value <= bound * (1 + 1e-9) else "above" if bound > 0 else "zero"] += 1
    assert met["reached"] > 50 and met["above"] > 250


@pytest.mark.parametrize(("workload", "machine"), ZOO)
def test_no_tree_of_the_zoo_is_below(workload: str, machine: str) -> None:
    found = values(problem(workload, machine), 3)
    assert found and all(0 < bound <= value * (1 + 1e-9) for bound, value in found)
