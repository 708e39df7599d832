"""The numbers by which `exact` goes one way or another, and problems made to go every way.

Many ways are taken by large problems only: tables in pieces, segments, neighbours, bounds of choices that nobody lists.
Tiny problems take them when these numbers are low, and a limit that is tried at another place must not matter.
"""

from __future__ import annotations

import ast
import importlib
import pkgutil
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from random import Random
from types import ModuleType

import pytest

import einloom.search.exact as engine
from einloom.search.exact.segments import cuts

INFINITE = float("inf")
Number = int | float | tuple[float, ...]

THRESHOLDS: dict[str, tuple[Number, ...]] = {
    "attempt.WORTH": (0,),
    "attempt.NEARER": ((1e-3, 0.5, 3.0),),
    "bounds.arc_consistency.ROUNDS": (1, 9),
    "bounds.choices.LARGE": (0, 3),
    "bounds.relaxation.ALONE_CUTOFFS": ((0.3, 2.0, INFINITE),),
    "bounds.relaxation.DIVES": ((0.01, INFINITE),),
    "bounds.relaxation.RELAXATION_CUTOFFS": ((0.3, 2.0, INFINITE),),
    "unlisted.reuse.BOXES": (1, 4),
    "unlisted.reuse.FEWEST": (1, 2),
    "unlisted.points.CLOSER": (1,),
    "unlisted.points.MOST": (1, 3),
    "bounds.weighted_sums.HALVINGS": (1,),
    "bounds.weighted_sums.MANY_RATIOS": ((1.0,), (0.5, 2.0)),
    "branch_and_bound.ABOVE": ((0.1, 0.2),),
    "branch_and_bound.AT_BOUND": (1e-8, 0.01),
    "branch_and_bound.CUTOFF_SCHEDULE": ((1e-9, 1e-6, 1e-3, 0.01, 0.1, 0.2, 0.5, 1.0, 2.0, 8.0, INFINITE),),
    "branch_and_bound.FEW": (0, 10**9),
    "branch_and_bound.GLANCED": (1,),
    "branch_and_bound.LOOKED": (1,),
    "branch_and_bound.NEARLY": ((0.1, 0.2, 0.4),),
    "branch_and_bound.NEXT_TO_BOUND": ((0.01, 0.1),),
    "branch_and_bound.SECONDS": (0.0,),
    "branch_and_bound.SOONER": (0.0, 1.0),
    "branch_and_bound.SOONER_THAN": (0.0, 1.0),
    "branch_and_bound.SUMMED": (1e-6, 0.1),
    "drawing.FAR": (0.5, 1.01),
    "drawing.SLICE": (0.001,),
    "einsums.runs.OFTEN": (1,),
    "feasible.AT_ONCE": (1e-9, 0.01),
    "feasible.CHAINED": ((0.0, 0.1),),
    "feasible.FIRST_FEASIBLE": ((0.001, 0.1),),
    "feasible.HEURISTICS": ((1e-9, 1e-3, 0.01, 0.3, 1.0, 2.0),),
    "feasible.NEAR": (1, 6),
    "few_choices.COMPARED": (1,),
    "few_choices.SAMPLED": (1,),
    "few_choices.SPARSE": (0,),
    "fusion.explore.DIVED": (1,),
    "fusion.explore.MANY": (0, 2),
    "fusion.explore.REMEMBERED": (0, 1),
    "fusion.explore.SMALL": (0,),
    "fusion.floors.FEW": (0,),
    "fusion.floors.KEPT": (0, 1),
    "fusion.match.ASKED": (1,),
    "fusion.match.PAIRS": (1, 7),
    "fusion.tilings.KEPT": (0, 1),
    "fusion.tilings.LARGE": (0,),
    "head_starts.CROWDED": (-1,),
    "head_starts.LATE": (0.0,),
    "head_starts.LONGEST": (0.2,),
    "head_starts.MANY": (-1,),
    "head_starts.PACKED": (0,),
    "head_starts.SPARSE": (0, 10**9),
    "head_starts.WHOLE": (0.2,),
    "head_starts.WIDE": (10,),
    "integer.NEARER": ((0.3, 1.0),),
    "joining.completions.MOST_EDGES": (0, 20, 200),
    "least_costs.MANY_KINDS": (0, 1, 2),
    "neighbours.MOST": (2, 6),
    "neighbours.OFTEN": (1, 2),
    "neighbours.SEARCHED": (100,),
    "neighbours.WORTH": (0,),
    "numerics.divisibility.DENSE": (0,),
    "numerics.divisibility.FEW": (0,),
    "numerics.divisibility.SPARSE": (2.0,),
    "numerics.narrow.MANY": (0,),
    "numerics.narrow.PIECE": (1, 3),
    "numerics.pareto.COMPARED": (5,),
    "numerics.pareto.COMPILED_FROM": (0,),
    "numerics.pareto.LOADED_FROM": (0,),
    "numerics.uneven.ROUND": (1, 2),
    "padded.MOST": (1.1, 2.0),
    "pmappings.backpointers.SHORT": (0,),
    "pmappings.expand.CHUNK": (1, 4),
    "pmappings.expand.GROWN": (1, 4),
    "pmappings.prune.WORTH": (0,),
    "pmappings.sweep.PART": (1, 3),
    "prices.columns.LISTED": (1, 2),
    "prices.traffic.FEW": (0,),
    "segments.chain.FEWEST": (2,),
    "segments.chain.SHORT": (1,),
    "segments.cuts.SHORTEST": (1, 2, 3),
    "segments.neighbour_attempt.RISES": ((0.1, 0.5),),
    "segments.segment.AHEAD": (1.0, 1.5),
    "segments.segment.EXPLORED": ((1e-6, 0.1, INFINITE),),
    "segments.segment.NEARER": ((1e-3, 0.3),),
    "segments.segment.RISE": (0.3,),
    "segments.segment.SMALL": (0.0,),
    "segments.segment.WEIGHED": ((1e-6, 0.1, INFINITE),),
    "unfused.SHARES": ((0.5, INFINITE),),
    # added later, behind all others, so that seeds say of those what they said before
    "numerics.divisibility.MOST": (1,),
    "bounds.choices.LOOKED": (1, 40),
    "bounds.choices.WITHIN": (0, 5),
    "bounds.relaxation.SLIDING": (0, 1),
    "einsums.runs.PAIRED": (1, 3),
    "head_starts.LISTED": (0,),
    "head_starts.SOON_DONE": (0, 99),
    "least_costs.MASKED": (0,),
    "least_costs.NEARER": ((0.4, 0.01), (3.0,)),
    "least_costs.MANY": (0, INFINITE, INFINITE),
    "explored_rows.SEVERAL": (0, 1, 99),
    "branch_and_bound.CLIMBING": ((0.01, 0.1, 0.5, 2.0, INFINITE), (0.3, 1.0, 3.0, INFINITE)),
    "least_costs.LISTED": (0, 0, 3),
    "least_costs.RISING": ((), (0.3, 2.0)),
    "least_costs.NEXT": (0.0, 0.5),
    "least_costs.AGREED": ((1e-6, 0.5), (3.0,)),
    "least_costs.AGREEABLE": (0, 3),
    "least_costs.JUMP": (1, 2),
    "least_costs.FEW": (0,),
    "least_costs.PARTS": ((), (0.5,)),
    "least_costs.SHORT": (0.0,),
    "least_costs.LAST": (0.3,),
    "head_starts.NEXT": (0.0, 0.5),
    "spatial_lists.KEPT": (1,),
    "spatial_lists.LONG": (0, 2),
    "unlisted.beginnings.SAMPLED": (1,),
    "einsums.runs.TOGETHER": (1, 5),
    "fusion.explore.SPARE": (1, 100),
    "fusion.room_floors.MANY": (0, 0, 0, 50),
    "fusion.room_floors.SLIDING": (0,),
    "fusion.room_floors.KEPT": (0, 8),
    "fusion.room_floors.AT_ONCE": (1,),
    "fusion.room_floors.TOGETHER": (1, 3),
    "unlisted.reuse.SHARED": (0, 7),
    "least_costs.FURTHER": ((), (3.0,)),
    "branch_and_bound.TIMES": (0, 20),
    "branch_and_bound.SOME": (0, 5),
    "branch_and_bound.COUNTED": (0,),
}
"""What else each number may be, by its place in `search/exact`."""

OTHERS = {
    "bounds.cutoff": ("TIE", "BELOW", "COARSE"),  # what counts as equal, and how a schedule is refined
    "bounds.weighted_sums": ("RATIOS",),  # a default argument
    "branch_and_bound": ("LONGER", "QUIET", "SHARE"),  # of a clock
    "drawing": (
        *("ALONE", "BRIEF", "CLOSING", "DRAWN", "FAVOURED", "FURTHER", "HASTE"),
        *("LOADS_FROM", "PATIENT", "PROVING", "SHARED", "SOON", "TURNS"),
    ),  # of a clock
    "einsums.orders": ("MOST",),  # beyond which a problem is refused
    "einsums.runs": ("HELD",),  # bytes
    "factors": ("AFTER", "GAP", "SHARE"),  # of a clock (test_factors.py)
    "narrower": ("AFTER", "GAP", "HALF", "LEAST", "LOOPS", "POOL"),  # of a clock (test_smaller_spaces.py)
    "few_choices": ("IDLE",),  # a rule of a dive
    "fusion.match": ("BEYOND",),  # a mark
    "head_starts": (
        "ABOVE_FEW",
        "APART",
        "DIVING",
        "DRAWN",
        "GLANCE",
        "HEAD",
        "MUCH",
        "PERFECT",
        "ROUNDED",
        "SEARCHING",
        "SLOW",
        "UNTIMED",
    ),  # of a clock, or of what is drawn under one
    "unlisted.points": ("ROUNDED",),  # what counts as equal
    "padded": ("MULTIPLES",),  # a rule of a dive
    "pmappings.expand": ("ROUNDING",),  # what counts as equal
    "pmappings.prune": ("PRIMES",),  # any are right: what else divides an extent has to be the same
    "pmappings.levels": ("MOST_LINKS",),  # bits of a number
    "pmappings.rows": (
        *("ABSORBED", "ANYWHERE", "CONTEXT", "FAR", "FRESH", "LEAF", "NEAR", "NEXT"),
        *("OPEN", "PLACED", "RIMS", "SIDE", "SPREAD", "TARGET", "TOP", "TRIPS"),
    ),  # places of columns
}
"""Numbers that are no such thing, by module."""


@cache
def modules() -> dict[str, ModuleType]:
    """Every module of `search/exact`, by its name below it."""
    found = pkgutil.walk_packages(engine.__path__, f"{engine.__name__}.")
    return {one.name.removeprefix(f"{engine.__name__}."): importlib.import_module(one.name) for one in found}


def _tree(module: ModuleType) -> ast.Module:
    assert module.__file__ is not None
    return ast.parse(Path(module.__file__).read_text(encoding="utf-8"))


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) or (isinstance(value, tuple) and all(map(_is_number, value)))


def numbers() -> set[str]:
    """Every constant of `search/exact` that is a number, or a row of them."""
    found = set()
    for place, module in modules().items():
        for node in _tree(module).body:
            targets = node.targets if isinstance(node, ast.Assign) else []
            names = [name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)]
            found |= {f"{place}.{name}" for name in names if name.isupper() and _is_number(vars(module)[name])}
    return found


@cache
def users() -> dict[str, list[ModuleType]]:
    """The modules in which each threshold has to be changed: its own, and those that import it."""
    found: dict[str, list[ModuleType]] = {place: [modules()[place.rpartition(".")[0]]] for place in THRESHOLDS}
    for module in modules().values():
        for node in _tree(module).body:
            if isinstance(node, ast.ImportFrom) and node.module and node.level:
                for name in node.names:
                    for place in (one for one in THRESHOLDS if one.endswith(f"{node.module}.{name.name}")):
                        found[place].append(module)
    return found


@contextmanager
def changed(rng: Random, share: float) -> Iterator[dict[str, Number]]:
    """A share of the thresholds at other values; says which."""
    chosen = {place: rng.choice(values) for place, values in THRESHOLDS.items() if rng.random() < share}
    with pytest.MonkeyPatch.context() as patch:
        for place, value in chosen.items():
            for module in users()[place]:
                patch.setattr(module, place.rpartition(".")[2], value)
        if "segments.cuts.SHORTEST" in chosen:
            patch.setattr(cuts.cuts, "__defaults__", (chosen["segments.cuts.SHORTEST"],))
        yield chosen
