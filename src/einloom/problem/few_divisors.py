"""What perfect tiles cannot do with the sizes of a problem: a sentence for whoever maps a prime number of tokens.

Comes in: a problem in the space `ffm`, and the value that was found. Goes out: which of its ranks have few divisors,
and what tries other tiles.
"""

from __future__ import annotations

from itertools import pairwise

from ..mapspace.divisors import divisors
from . import Problem
from .compulsory import compulsory

LARGE = 16  # shorter ranks are whole tiles of many mappings
FEW = 3  # times from one divisor to the next that leave out too much between them
NEAR = 0.9  # of the value: where any mapping costs as much, other tiles gain little
LISTED = 3


def few_divisors(problem: Problem, value: float | None = None) -> str:
    """Which ranks have few divisors and what to try, in a sentence; empty if there are none, if the space has uneven
    tiles, or if no mapping at all can be much better than `value`.

    >>> from einloom import questions
    >>> few_divisors(questions.problem("matmul:m=197,n=64,k=64", "simple"))
    '197 (m) has no divisor between 1 and 197; `--space ragged` also tries uneven tiles (docs/mapspace.md)'
    """
    if problem.mapspace.name != "ffm":
        return ""
    sizes: dict[int, list[str]] = {}
    for variable, extent in problem.workload.sizes:
        if extent >= LARGE and _widest(extent)[1] > FEW * _widest(extent)[0]:
            sizes.setdefault(extent, []).append(variable)
    if not sizes or (value is not None and compulsory(problem) > NEAR * value):
        return ""
    first, *more = sorted(sizes, key=lambda extent: -_widest(extent)[1] / _widest(extent)[0])
    told = [f"{_named(sizes, first)} has no divisor between {_words(first)}"]
    told += [f"{_named(sizes, extent)} none between {_words(extent)}" for extent in more[: LISTED - 1]]
    return f"{', '.join(told)}; `--space ragged` also tries uneven tiles (docs/mapspace.md)"


def _widest(extent: int) -> tuple[int, int]:
    """The two divisors next to each other of which one is the most times the other."""
    return max(pairwise(divisors(extent)), key=lambda pair: pair[1] / pair[0])


def _named(sizes: dict[int, list[str]], extent: int) -> str:
    names = sizes[extent]
    return f"{extent} ({', '.join(names[:LISTED])}{', …' if len(names) > LISTED else ''})"


def _words(extent: int) -> str:
    return "{} and {}".format(*_widest(extent))
