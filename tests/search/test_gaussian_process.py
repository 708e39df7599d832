"""The Gaussian process of `bayes`: grown point by point it says what the whole matrix says."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from einloom.mapspace.registry import space_for
from einloom.questions import problem
from einloom.search.evaluator import Evaluator
from einloom.search.heuristics import bayes
from einloom.search.heuristics.gaussian_process import NOISE, GaussianProcess
from einloom.search.heuristics.points import INFINITE, Points


def kernel(rows: np.ndarray, others: np.ndarray, first: np.ndarray) -> np.ndarray:
    """The squared exponential with the scales of the first rows."""
    scale = first.std(axis=0) + 1e-9
    known = first / scale
    width = np.median([np.linalg.norm(a - b) for a in known for b in known])
    return np.array([[np.exp(-0.5 * (np.linalg.norm((a - b) / scale) / width) ** 2) for b in others] for a in rows])


def test_points_that_come_later_count_as_those_of_the_beginning() -> None:
    rng = np.random.default_rng(3)
    rows, values = rng.normal(size=(40, 5)) * [1, 10, 0.1, 3, 0], rng.normal(size=40)
    rows[17] = rows[4]  # the same point twice: only the noise keeps them apart
    process = GaussianProcess(rows[:12], values[:12])
    for row, value in zip(rows[12:], values[12:], strict=True):
        process.add(row, float(value))
    asked = np.concatenate([rng.normal(size=(6, 5)) * [1, 10, 0.1, 3, 0], rows[:3]])
    whole = kernel(rows, rows, rows[:12]) + NOISE * np.eye(40)
    near = kernel(asked, rows, rows[:12])
    mean, sigma = process.predicted(asked)
    assert mean == pytest.approx(near @ np.linalg.solve(whole, (values - values.mean()) / values.std()), abs=1e-9)
    known = np.einsum("ij,ji->i", near, np.linalg.solve(whole, near.T))
    assert sigma == pytest.approx(np.sqrt(1 + NOISE - known), abs=1e-9)
    gains = process.improvement(asked)
    better = (values.min() - values.mean()) / values.std() - mean
    draws = better[:, None] + sigma[:, None] * np.random.default_rng(1).standard_normal((9, 200_000))
    assert gains == pytest.approx(np.maximum(draws, 0).mean(axis=1), abs=0.01)


def test_a_process_knows_the_best_trials_and_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bayes, "MOST", 6)
    asked, rng = problem("matmuls:n=2,m=64,kn=64", "simple:glb_bits=16384", "energy"), Random(1)
    space = space_for(asked.workload, asked.machine, asked.mapspace)
    points = Points(asked, space, Evaluator(asked, space))
    state = points.encoding.sample(rng)
    assert state is not None
    trials = bayes._Trials(points)
    for value in (9.0, 1.0, INFINITE, 8.0, 2.0, 7.0, 3.0, 6.0, 5.0):
        trials.add((value, state))
    assert len(trials.all) == 8 and trials.best[0] == 1.0
    process = trials.process()
    assert [trials.all[n][0] for n in trials.members] == [1.0, 2.0, 3.0, 6.0, 5.0]
    trials.add((4.0, state))
    assert trials.process() is process and process.count == len(trials.members) == 6
    trials.add((0.5, state))
    assert trials.process() is not process and trials.best[0] == 0.5
    assert [trials.all[n][0] for n in trials.members] == [1.0, 2.0, 5.0, 4.0, 0.5]
