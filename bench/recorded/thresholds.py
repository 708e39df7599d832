"""Parts of `exact` that wait for large problems, put to work on small ones: their thresholds lowered for a while."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from importlib import import_module
from unittest.mock import patch

from einloom.search.exact.segments.cuts import cuts

LOWERED: dict[str, dict[str, object]] = {
    "attempt": {"WORTH": 0},
    "bounds.choices": {"LARGE": 1},
    "unlisted.points": {"MOST": 4},
    "head_starts": {"SHORT": 1},
    "einsums.runs": {"OFTEN": 1},
    "fusion.explore": {"LARGE": 1, "MANY": 1},
    "fusion.match": {"PAIRS": 4},
    "fusion.tilings": {"KEPT": 4, "LARGE": 1},
    "numerics.divisibility": {"DENSE": 1},
    "pmappings.expand": {"CHUNK": 4},
    "pmappings.sweep": {"CHUNK": 4, "PART": 4},
    "segments.chain": {"FEWEST": 2, "SHORT": 1, "cuts": partial(cuts, shortest=1)},
}
"""By module: completions, chains of segments, bounds without a list of choices, rows and grids in parts."""


@contextmanager
def lowered() -> Iterator[None]:
    """No cascade is too short, no table too small."""
    with ExitStack() as stack:
        for module, values in LOWERED.items():
            stack.enter_context(patch.multiple(import_module(f"einloom.search.exact.{module}"), **values))
        yield
