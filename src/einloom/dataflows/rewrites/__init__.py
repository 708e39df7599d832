"""Rewrites of a cascade: equivalent cascades with ranks that the plain one lacks, so that more can be fused.

A rewrite and numbers of tiles come in with a workload, one equivalent workload per choice of numbers goes out. Neither
prices nor searches: what a rewritten cascade costs is what its Einsums cost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import product
from types import MappingProxyType

from ...dataclass import dataclass
from ...errors import SpecError, unknown
from ...workload.einsum import Workload
from ..casts import Cast
from .online_softmax import attention, online_softmax
from .stored_padding import stored_padding
from .windows import chain, windows

__all__ = [
    "REWRITES",
    "Rewrite",
    "RewriteChoice",
    "RewriteRule",
    "online_softmax",
    "rewrite",
    "stored_padding",
    "windows",
]


@dataclass(frozen=True, slots=True)
class RewriteRule:
    """A kind of rewrite, from family `source` to `target`. cuts: the rank (of an Einsum) that each number cuts.

    players: who plays which role in a workload that is rewritten; it raises SpecError for one of another family.
    """

    apply: Callable[..., Workload]
    players: Callable[[Workload], Cast]
    source: str
    target: str
    cuts: Mapping[str, tuple[str, str]]


REWRITES: Mapping[str, RewriteRule] = MappingProxyType(
    {
        "online_softmax": RewriteRule(
            online_softmax, attention, "attention", "online-attention", {"tiles": ("QK", "l")}
        ),
        "windows": RewriteRule(
            windows,
            chain,
            "convolution-chain",
            "tiled-convolution-chain",
            {"height": ("second", "h"), "width": ("second", "w")},
        ),
    }
)


FOR_ANY: Mapping[str, Callable[[Workload], Workload]] = MappingProxyType({"stored_padding": stored_padding})
"""Rewrites of workloads of any family, which have no numbers and no dataflow."""


@dataclass(frozen=True, slots=True)
class RewriteChoice:
    """One rewritten workload and the numbers of tiles that made it; none if it is as it was given."""

    workload: Workload
    numbers: tuple[tuple[str, int], ...] = ()

    @property
    def label(self) -> str:
        """The numbers as text: ``height=8, width=4``."""
        return ", ".join(f"{key}={number}" for key, number in self.numbers)


@dataclass(frozen=True, slots=True)
class Rewrite:
    """A rewrite with the numbers of tiles to try; None stands for all divisors. Absent ones are 1."""

    name: str
    numbers: tuple[tuple[str, tuple[int, ...] | None], ...]

    @property
    def rule(self) -> RewriteRule:
        return REWRITES[self.name]

    def choices(self, workload: Workload) -> Iterator[RewriteChoice]:
        """The rewritten workloads, fewest operations first; numbers that divide nothing are left out.

        Raises SpecError for a workload that the rewrite does not fit, and where no number divides.
        """
        players = self.rule.players(workload)
        options = []
        for key, numbers in self.numbers:
            einsum, role = self.rule.cuts[key]
            extent = workload.extents[players.variables[einsum][role]]
            fitting = tuple(n for n in numbers or range(1, extent + 1) if extent % n == 0)
            if not fitting:
                listed = ", ".join(map(str, numbers or ()))
                raise SpecError(f"{self.name}: {key} is {listed}, but {workload.name} has {extent} to divide")
            options.append([(key, number) for number in fitting])
        made = [RewriteChoice(rewrite(workload, self.name, **dict(chosen)), chosen) for chosen in product(*options)]
        yield from sorted(made, key=lambda choice: sum(map(choice.workload.operations, choice.workload.names)))


def known_rule(name: str, numbers: Iterable[str]) -> RewriteRule:
    """The rule of that name, which has these numbers. Raises SpecError with a suggestion for others."""
    if name not in REWRITES:
        raise unknown("rewrite", name, REWRITES)
    for key in numbers:
        if key not in REWRITES[name].cuts:
            raise unknown(f"number of {name}", key, REWRITES[name].cuts)
    return REWRITES[name]


def rewrite(workload: Workload, name: str, **numbers: int) -> Workload:
    """The workload after the rewrite of this name.

    >>> from einloom.zoo.workload_by_name import load_workload
    >>> rewrite(load_workload("tileflow-bert-s"), "online_softmax", tiles=4).name
    'tileflow-bert-s (online softmax, 4 tiles)'

    Raises SpecError with a suggestion for an unknown name or number, and for a workload that the rewrite does not fit.
    """
    if not isinstance(workload, Workload):
        raise SpecError(f"a workload is rewritten, not {workload!r:.80}; load_workload gives that of a name or a file")
    if not isinstance(name, str):
        raise SpecError(f"a rewrite is named by a text, not {name!r:.80}")
    if name in FOR_ANY:
        if numbers:
            raise SpecError(f"{name} takes no numbers, but {', '.join(numbers)} is given", suggestion=name)
        return FOR_ANY[name](workload)
    if name not in REWRITES:
        raise unknown("rewrite", name, (*REWRITES, *FOR_ANY))
    rule = known_rule(name, numbers)
    if name == "online_softmax" and not numbers:
        raise SpecError("online_softmax needs a number of tiles", suggestion="online_softmax:tiles=4")
    return rule.apply(workload, **numbers)
