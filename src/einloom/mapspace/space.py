"""ALL schedules: the name and limits of a mapspace, as data. Definitions: docs/mapspace.md."""

from __future__ import annotations

from dataclasses import dataclass

from .limits import UNLIMITED, Limits


@dataclass(frozen=True, slots=True)
class Mapspace:
    """A named set of mappings.

    name: ``ffm``. max_fused_loops: at most this many temporal loops of one Einsum stand above its lowest backing store
    that is not in the outermost memory; None means no limit. limits: what else a user asks (rule 12). title: what the
    user calls this choice of limits.
    """

    name: str = "ffm"
    max_fused_loops: int | None = None
    limits: Limits = UNLIMITED
    title: str | None = None

    def describe(self) -> str:
        """One line that names the space and its limits, as certificates print it."""
        limit = "any number of" if self.max_fused_loops is None else f"at most {self.max_fused_loops}"
        loops = "loop" if self.max_fused_loops == 1 else "loops"
        line = (
            f"{self.name}: perfect tiles, one loop per rank variable between two stores, sequential splits in program "
            f"order, no recomputation, {limit} fused {loops}"
        )
        return f"{line}; with {self.limits}" if self.limits else line
