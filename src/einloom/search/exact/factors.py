"""A search for a product begins again from the least energy, where seconds are few and what is known is far from the
bound.

Comes in: a search for a product of energy and latency. Goes out: mappings of little energy, priced by the product and
kept by the search's incumbent (docs/exact.md, few choices).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Protocol

from ...errors import Infeasible
from ...mapping.tree import Mapping
from ...problem import Objective
from .einsums.runs import TooManyChoices
from .head_starts import Search
from .stops import Enough, StopsOnly

PRODUCTS = ("edp", "product")
AFTER = 0.06  # of a budget of seconds, after which a product that is far from the bound is left for energy
GAP = 1.1  # times the bound: what is known of a product is far from it from there on
SHARE = 0.5  # of what is left of a budget goes to energy alone, at most


class ProductSearch(Search, Protocol):
    """A search that also lets something be done at each of its checks of the budget."""

    checks: Callable[[], None]


def due(search: ProductSearch) -> bool:
    """True if a search for a product may gain from a look for the least energy."""
    seconds = search.budget.seconds
    if seconds is None or search.budget.steps is not None or search.problem.objective.name not in PRODUCTS:
        return False
    return (
        search.stops.spent > AFTER * seconds
        and search.drawing.least > GAP * search.incumbent.bound / search.incumbent.repeats
    )


def by_energy(search: ProductSearch) -> None:
    """Keep the best of the mappings that a search for the least energy meets in its share of the seconds. Mappings are
    drawn besides, as before."""
    seconds, stops = search.budget.seconds, search.stops
    assert seconds is not None
    energy = replace(search.problem, objective=Objective("energy"))
    inner = search.within(energy, _Priced(search))
    left = min(seconds - stops.spent, stops.until - time.monotonic())
    own = inner.checks

    def both() -> None:
        own()
        search.drawing.checkpoint()

    inner.checks = both
    search.watcher.stage("looking for the least energy")
    with suppress(Infeasible, Enough, TooManyChoices), stops.within(SHARE * left):
        inner.solve()
    search.drawing.begin_near(search.incumbent.best)


class _Priced(StopsOnly):
    """Hears of the mappings of a search for something else, which are priced and kept."""

    def __init__(self, search: ProductSearch) -> None:
        super().__init__(search.watcher)
        self.search = search

    def incumbent(self, value: float, mapping: Mapping | None = None) -> None:
        known = self.search.incumbent
        if mapping is None:
            return
        solution = known.solution(mapping)
        if solution.value < known.value:
            if known.provisional:
                known.early = solution
            known.found(solution)
