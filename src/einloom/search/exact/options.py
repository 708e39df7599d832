"""What the exact search may be asked to leave out, to stay below, and to start from."""

from __future__ import annotations

from dataclasses import field

from ...dataclass import dataclass
from ...mapping.tree import Mapping
from .pmappings.prune import Rules


@dataclass(frozen=True)
class ExactOptions:
    """Which pruning rules the search may use.

    consistency: rows and choices that no partner can save go before joining and before exploring. incumbent: bounds and
    a limit on the objective cut the tables and joins; off, nothing does. segments: energy and traffic are bounded, and
    searched, by segments of the cascade. limit: look only for mappings of at most this value, instead of raising
    limits from the bound ("is anything better than this?"). at_once: nothing below the limit is expected, so that none
    lower is tried before it, and the bound by segments rises to it first, if there are some. start: mappings that are
    known already; the search looks below the best of them and returns it if nothing is there.
    """

    rules: Rules = field(default_factory=Rules)
    incumbent: bool = True
    consistency: bool = True
    completions: bool = True
    segments: bool = True
    limit: float | None = None
    at_once: bool = False
    start: tuple[Mapping, ...] = ()
