"""Of which mappings a bound over any integer tiles speaks (docs/model/integer-tiles.md)."""

from __future__ import annotations

from ..workload.einsum import Workload
from ..workload.padding import has_windows, padded_variables


def any_tiles(workload: Workload) -> str:
    """The mappings, in words: such a bound knows even cuts of windows, and of padded ranks those of rule 11."""
    if not has_windows(workload):
        return "any integer tiles"
    padded = any(padded_variables(workload, name) for name in workload.names)
    return "any integer tiles with windows cut evenly" + (" (padded ranks by rule 11)" if padded else "")
