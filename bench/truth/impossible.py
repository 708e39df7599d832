"""Whether pairs of dimensions that are said to be impossible are: no file says both, or `exact` refuses it by name."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from einloom.errors import SpecError
from einloom.problem import Objective, Problem
from einloom.search.exact.answer import refuse_uncarried
from einloom.testing.problems.cascades import built
from einloom.testing.problems.dimensions import DIMENSIONS, dimensions_of, impossible, impossible_pairs
from einloom.testing.problems.drawing import RARE_PAIR, sketches
from einloom.testing.problems.files import Files

SKETCHES = 12
"""So many files are drawn for each pair."""
BESIDE = 6
COPIES = {
    "repeated operand": ("T[i] = copy A[i] * A[i]", "T[i] = copy(A[i], A[i])"),
    "constant index": ("T[i] = copy A[2]", "T[i] = copy A[i,0]"),
    "window": ("T[i,j] = copy A[i+j]",),
    "padding": ("T[i,j] = copy A[i+j-1]", "T[i] = copy A[i+1]"),
    "maximum": ("T[i] = copy A[i,j]", "T[i] = max[j] copy A[i,j]"),
}
"""What a copy would have to say for these dimensions."""
UNLIKE = ("T[i,j] = copy A[i]", "T[i] = copy A[i,j]", "T[i] = copy A[j]")
"""Copies with a variable on one side alone: what every other dimension that copies lack needs."""


@dataclass(frozen=True)
class Looked:
    """What came of a pair. sentences: that would need both, each refused by the notation, or not: `accepted`.
    files: that have the first dimension, every other one drawn for the second one, too. both: that have both. refused:
    those of them that `exact` refuses by name."""

    one: str
    other: str
    sentences: int
    accepted: int
    files: int
    both: int
    refused: int

    @property
    def holds(self) -> bool:
        return self.accepted == 0 and self.refused == self.both and self.files > 0


def looked(one: str, other: str, most: int = SKETCHES) -> Looked:
    """Draw files for a pair that is said to be impossible, and read the sentences that would need it."""
    sentences = COPIES.get(other, UNLIKE) if one == "copies only" else ()
    accepted = sum(_accepted(text) for text in sentences)
    files = both = refused = 0
    for seed in range(most):
        rng = Random(f"impossible {one} {other} {seed}")
        on = frozenset((one, other)) if seed % 2 else _beside(rng, one)
        found = next(sketches(rng, on, RARE_PAIR), None)
        if found is not None:
            has = dimensions_of(*found.read)
            files += one in has
            both += {one, other} <= has
            refused += {one, other} <= has and _refused(found)
    return Looked(one, other, len(sentences), accepted, files, both, refused)


def every_pair(most: int = SKETCHES) -> list[Looked]:
    return [looked(one, other, most) for one, other in impossible_pairs()]


def _beside(rng: Random, one: str) -> frozenset[str]:
    """The dimension and some others that it may come with."""
    return frozenset((one, *(name for name in rng.sample(DIMENSIONS, BESIDE) if not impossible(one, name))))


def _accepted(text: str) -> bool:
    sizes = {name: 2 for name in "ij" if name in text}
    data = {"name": "copied", "einsums": [text], "ranks": sizes, "bits": {"default": 1}}
    try:
        built(data)
    except SpecError:
        return False
    return True


def _refused(files: Files) -> bool:
    try:
        refuse_uncarried(Problem(*files.read, Objective("energy")))
    except SpecError:
        return True
    return False
