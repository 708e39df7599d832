"""Random set expressions: tensors by name, the words that suit a key, and any other word that may stand there."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from random import Random

from ...workload.einsum import Workload
from ...workload.selectors import KEYWORDS


def expression(
    rng: Random,
    on: Collection[str],
    workload: Workload,
    fitting: Sequence[str],
    named: float = 0.4,
    any_word: float = 0.25,
) -> str:
    """A set expression. fitting: words that suit; named, any_word: how often a tensor or any word is taken instead.

    The word ``unheld`` is taken only if the dimension of that name is on.
    """
    first = _one(rng, on, workload, fitting, named, any_word)
    dice = rng.random()
    if dice > 0.12:
        return first
    other = _one(rng, on, workload, fitting, named, any_word)
    return f"{first} | {other}" if dice < 0.06 else f"{first} & ~({other})"


def _one(
    rng: Random, on: Collection[str], workload: Workload, fitting: Sequence[str], named: float, any_word: float
) -> str:
    dice = rng.random()
    if dice < any_word:
        return rng.choice([word for word in KEYWORDS if word != "unheld" or "unheld" in on])
    if dice < any_word + (1 - any_word) * named:
        tensor = rng.choice(workload.tensors).name
        return f"~{tensor}" if rng.random() < 0.4 else tensor
    return rng.choice(fitting)
