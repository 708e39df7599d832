"""Random set expressions: tensors by name, the words that suit a key, and any other word that may stand there."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from random import Random

from ...workload.einsum import Workload
from ...workload.selectors import KEYWORDS

ANY_WORD = 0.25  # how often any word is taken


def expression(
    rng: Random,
    on: Collection[str],
    workload: Workload,
    fitting: Sequence[str],
    named: float = 0.4,
) -> str:
    """A set expression. fitting: words that suit; named: how often a tensor is taken instead.

    The word ``unheld`` is taken only if the dimension of that name is on.
    """
    first = _one(rng, on, workload, fitting, named)
    dice = rng.random()
    if dice > 0.12:
        return first
    other = _one(rng, on, workload, fitting, named)
    return f"{first} | {other}" if dice < 0.06 else f"{first} & ~({other})"


def _one(rng: Random, on: Collection[str], workload: Workload, fitting: Sequence[str], named: float) -> str:
    dice = rng.random()
    if dice < ANY_WORD:
        return rng.choice([word for word in KEYWORDS if word != "unheld" or "unheld" in on])
    if dice < ANY_WORD + (1 - ANY_WORD) * named:
        tensor = rng.choice(workload.tensors).name
        return f"~{tensor}" if rng.random() < 0.4 else tensor
    return rng.choice(fitting)
