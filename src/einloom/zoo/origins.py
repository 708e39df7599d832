"""Where the sizes of zoo entries come from: facts by the handful."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ..reading.facts import Fact, FactKind

Values = Mapping[str, int]
CHOSEN = "a parameter of the zoo entry"
INPUTS = "AccelForge workloads at commit 1c1929c"


def rank_facts(source: str, kind: FactKind, ranks: Iterable[str]) -> tuple[Fact, ...]:
    """One fact for each rank variable."""
    return tuple(Fact(f"ranks.{rank}", source, kind) for rank in ranks)


def chosen_facts(ranks: Iterable[str]) -> tuple[Fact, ...]:
    """Facts of an entry whose sizes and bits are all parameters."""
    return (*rank_facts(CHOSEN, "assumed", ranks), Fact("bits.default", CHOSEN, "assumed"))


def bits_fact(v: Values, printed: int, source: str = INPUTS) -> Fact:
    """Where the bits come from: `source` if they are what it says, else whoever chose them."""
    return Fact("bits.default", source, "code") if v["bits"] == printed else Fact("bits.default", CHOSEN, "assumed")
