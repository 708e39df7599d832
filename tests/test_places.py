"""Places that sums of steps reach: closed forms and running sums equal listing them all."""

from __future__ import annotations

from itertools import product
from random import Random

import numpy as np
import pytest

from einloom.cost.formulas import places
from einloom.cost.formulas.places import Step, inside, ways


def listed(steps: list[Step], start: int) -> list[int]:
    """Every sum of steps, as often as it occurs."""
    return [start + sum(one) for one in product(*(range(0, stride * times, stride) for stride, times in steps))]


def random_steps(rng: Random) -> list[Step]:
    return [(rng.choice((1, 1, 2, 3, 4, 7, 12)), rng.randint(1, 6)) for _ in range(rng.randint(0, 4))]


def unlike(seed: int) -> bool:
    """True if a random rank has other places than those listed."""
    rng = Random(seed)
    steps, size = random_steps(rng), rng.randint(0, 40)
    starts = np.array([rng.randint(-15, 15) for _ in range(rng.randint(1, 3))])
    right = sum(len({at for at in listed(steps, start) if 0 <= at < size}) for start in starts.tolist())
    counts = np.bincount(listed(steps, 0))
    return inside(steps, starts, size) != right or ways(steps).tolist() != counts.tolist()


def test_places_are_those_that_are_listed() -> None:
    assert not any(map(unlike, range(1500)))


def test_a_stride_too_long_for_a_run_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(places, "_run", lambda steps: (1 + sum(s * (n - 1) for s, n in steps), []))
    assert any(map(unlike, range(100)))


def test_many_places_are_quick() -> None:
    """A window of 4,096 tokens over 65,536 others, which has 268 million iterations."""
    assert inside([(1, 65536), (1, 4096)], np.array([-4095]), 65536) == 65536
    assert ways([(1, 65536), (1, 4096)])[4095:65536].tolist() == [4096] * (65536 - 4095)
