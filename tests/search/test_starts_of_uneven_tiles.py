"""What a search of uneven tiles starts from, and that it ends with a mapping that costs what is proven."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from einloom.api import map
from einloom.mapping.tree import Mapping
from einloom.problem import Budget, Guarantee
from einloom.questions import problem
from einloom.search.exact import Exact, head_starts
from einloom.search.exact.attempt import Attempt, Solution
from einloom.search.exact.einsums.runs import TooManyChoices
from einloom.search.exact.incumbent import Incumbent
from einloom.search.method import Watcher


@pytest.mark.parametrize("seconds", [None, 60.0])
def test_a_mapping_at_the_bound_ends_the_search(seconds: float | None) -> None:
    """Rows of 229 pixels: drawn perfect tiles meet the compulsory bound at once, where tables of all uneven ones
    outgrew the memory of the machine."""
    found = map("tileflow-cc5", "tileflow-cloud", "latency", space="ragged", seconds=seconds)
    assert found.certificate is not None and found.certificate.guarantee is Guarantee.OPTIMAL
    assert found.certificate.bound == found.value
    assert found.certificate.counts.get("evaluated", 0) < 100_000


def test_uneven_choices_are_not_listed_before_anything_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """To count them takes half a minute here; what they are counted for waits for a mapping."""

    def listed(self: Attempt) -> bool:
        raise AssertionError("uneven choices are listed")

    monkeypatch.setattr(Attempt, "crowded", property(listed), raising=False)
    found = map("tileflow-cc5", "tileflow-cloud", "latency", space="ragged", seconds=60.0)
    assert found.certificate is not None and found.certificate.guarantee is Guarantee.OPTIMAL


@pytest.mark.parametrize(("goal", "met"), [("latency", True), ("edp", True), ("pareto", False)])
def test_the_best_is_proven_where_it_costs_the_bound(goal: str, met: bool) -> None:
    """Not within a thousandth of it, and of a Pareto set never: one point is not all of them."""
    incumbent = Incumbent(problem("matmul", "tpu-v4i", goal), Watcher())
    assert not incumbent.met
    incumbent.found(Solution(2.0, np.array([2.0]), Mapping(())))
    incumbent.prove(1.998)
    assert not incumbent.met
    incumbent.prove(2.0)
    assert incumbent.met is met


def test_nothing_is_lost_where_einsums_alone_have_too_many_choices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the machine's memory: the search goes on, and ends with its proof."""
    asked: list[Attempt] = []

    def too_many(attempt: Attempt, known: float) -> Solution:
        asked.append(attempt)
        raise TooManyChoices("planted")

    monkeypatch.setattr(head_starts, "unfused", too_many)
    ragged = problem("matmul:m=7,n=50,k=197", "nvdla", "edp", space="ragged")
    found = Exact().search(ragged, Budget(seconds=60.0))
    assert asked and found.certificate is not None and found.certificate.guarantee is Guarantee.OPTIMAL


def test_uneven_tiles_are_drawn_where_perfect_ones_are_poor() -> None:
    """Of 229 rows perfect tiles use one core of four; uneven ones take a fifth of their time, long before any proof."""
    asked = problem("tileflow-cc5", "tileflow-cloud", "latency", dataflow="spread-convolution", space="ragged")
    perfect = Exact().search(replace(asked, mapspace=replace(asked.mapspace, name="ffm")))
    assert Exact().search(asked, Budget(seconds=3.0)).value < 0.5 * perfect.value
