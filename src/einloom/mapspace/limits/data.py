"""What a mapspace asks beyond its definition, as data: keep and bypass, fusion, loops, tiles and spatial use.

Each limit speaks of one memory or axis and of some Einsums (None: all). Definitions, with the rule numbers that
`ffm.outside` prints: docs/mapspace.md.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from ...dataclass import dataclass
from ...workload.selectors import Selector
from ..divisors import divisors

HoldRule = Literal["keep", "may_keep", "bypass", "once"]


@dataclass(frozen=True, slots=True)
class Numbers:
    """Whole numbers that are allowed: the listed `values`, or everything from `least` to `most`.

    >>> Numbers(least=2, most=8).allow(4), Numbers(values=(1, 16)).allow(4)
    (True, False)
    """

    least: int = 1
    most: int | None = None
    values: tuple[int, ...] = ()

    def allow(self, number: int) -> bool:
        if self.values:
            return number in self.values
        return self.least <= number and (self.most is None or number <= self.most)

    def any_tile(self, extent: int, uneven: bool) -> bool:
        """True if a tile of such an extent may have an allowed size: a divisor of it, or uneven, any number up to it.

        >>> Numbers(values=(7, 128)).any_tile(64, uneven=False), Numbers(values=(7, 128)).any_tile(64, uneven=True)
        (False, True)
        """
        if uneven:
            return self.bounds[0] <= min(extent, self.bounds[1])
        return any(self.allow(n) for n in divisors(extent))

    @property
    def bounds(self) -> tuple[int, int]:
        """Least and greatest allowed number (2^62 stands for no limit)."""
        if self.values:
            return min(self.values), max(self.values)
        return self.least, 1 << 62 if self.most is None else self.most

    def __str__(self) -> str:
        if self.values:
            return " or ".join(str(value) for value in self.values)
        if self.most is None:
            return f"at least {self.least}"
        return f"at most {self.most}" if self.least <= 1 else f"{self.least} to {self.most}"


@dataclass(frozen=True, slots=True)
class HoldLimit:
    """`memory` must keep, may only keep, or must not keep the `tensors`; ``once``: what it keeps of them never comes to
    it again, because no temporal loop that the tensor lacks makes the store forget its tile and fetch it anew."""

    rule: HoldRule
    memory: str
    tensors: Selector
    einsums: tuple[str, ...] | None = None

    def __str__(self) -> str:
        verbs = {"keep": "keeps", "may_keep": "may keep only", "bypass": "is bypassed by", "once": "fetches once"}
        return f"{self.memory} {verbs[self.rule]} {self.tensors}{_of(self.einsums)}"


@dataclass(frozen=True, slots=True)
class BackLimit:
    """The intermediates among `tensors` have their backing store in one of `memories`.

    The outermost memory alone: never fused. All but the outermost: always fused.
    """

    tensors: Selector
    memories: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.tensors} backed in {' or '.join(self.memories)}"


@dataclass(frozen=True, slots=True)
class LoopLimit:
    """Fused loops: above the backing store of each intermediate among `tensors`, if that is not the outermost memory,
    the temporal loops over each of `variables` multiply to one of `trips` (no loop counts as one trip).
    """

    tensors: Selector
    variables: tuple[str, ...]
    trips: Numbers
    einsums: tuple[str, ...] | None = None

    def __str__(self) -> str:
        names = ", ".join(self.variables)
        return f"fused loops of {self.tensors} over {names}: {self.trips} trips{_of(self.einsums)}"


@dataclass(frozen=True, slots=True)
class TileLimit:
    """In every store of the `tensors` in `memory`, each of `variables` that index them has one of the extents
    `sizes`."""

    memory: str
    tensors: Selector
    variables: tuple[str, ...]
    sizes: Numbers
    einsums: tuple[str, ...] | None = None

    def __str__(self) -> str:
        return f"tiles of {self.tensors} in {self.memory}: {', '.join(self.variables)} {self.sizes}{_of(self.einsums)}"


@dataclass(frozen=True, slots=True)
class AxisLimit:
    """Each of `variables` takes one of `instances` of `axis`; without variables, all loops on it together do."""

    axis: str
    instances: Numbers
    variables: tuple[str, ...] = ()
    einsums: tuple[str, ...] | None = None

    def __str__(self) -> str:
        who = f"{', '.join(self.variables)}: " if self.variables else ""
        return f"axis {self.axis}: {who}{self.instances} instances{_of(self.einsums)}"


Limit = HoldLimit | BackLimit | LoopLimit | TileLimit | AxisLimit


@dataclass(frozen=True, slots=True)
class Limits:
    """All limits of a mapspace, by kind, in the order of the file."""

    holds: tuple[HoldLimit, ...] = ()
    backs: tuple[BackLimit, ...] = ()
    loops: tuple[LoopLimit, ...] = ()
    tiles: tuple[TileLimit, ...] = ()
    axes: tuple[AxisLimit, ...] = ()

    @property
    def all(self) -> tuple[Limit, ...]:
        return (*self.holds, *self.backs, *self.loops, *self.tiles, *self.axes)

    @staticmethod
    def of(limits: Iterable[Limit]) -> Limits:
        """Limits of any kinds, sorted by kind."""
        every = tuple(limits)
        return Limits(
            tuple(x for x in every if isinstance(x, HoldLimit)),
            tuple(x for x in every if isinstance(x, BackLimit)),
            tuple(x for x in every if isinstance(x, LoopLimit)),
            tuple(x for x in every if isinstance(x, TileLimit)),
            tuple(x for x in every if isinstance(x, AxisLimit)),
        )

    def __bool__(self) -> bool:
        return bool(self.all)

    def __str__(self) -> str:
        return "; ".join(str(limit) for limit in self.all)


UNLIMITED = Limits()


def concerns(einsums: tuple[str, ...] | None, einsum: str) -> bool:
    """True if a limit for `einsums` (None: all) speaks of `einsum`."""
    return einsums is None or einsum in einsums


def _of(einsums: tuple[str, ...] | None) -> str:
    return "" if einsums is None else f" (in {', '.join(einsums)})"
