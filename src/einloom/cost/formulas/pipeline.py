"""Seconds of one run of a pipeline in steady state: filling, one token after the other, draining.

Comes in: the token time of every stage, who hands a tile to whom and in how many slots, how many tokens run between
two drains. Goes out: the time of one drain (docs/model/bindings.md). For uniform tokens, stages on private components
and slots of at least one more than the stages stand apart this is what happens, to the cycle; where a skipping edge has
fewer slots it is an upper bound of that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache, reduce
from math import inf

from ...dataclass import dataclass
from .terms import Number, maximum


@dataclass(frozen=True, slots=True)
class Edge:
    """Stage `producer` hands a tile to stage `consumer`, in `slots` slots (None: there is room for all tokens)."""

    producer: int
    consumer: int
    slots: int | None = 2


def drain_time(times: Sequence[Number], edges: Sequence[Edge], tokens: Number, busiest: Number = 0.0) -> Number:
    """F + (n - 1) II, with every stage's own longest path where the slowest stage is not on the longest of all.

    II is the time per token that slots allow: around each edge, the stages from producer to consumer over the edge's
    slots. times: per stage and token. busiest: per token, the component that the stages share and that is busiest. All
    of them may be arrays, one entry per pipeline of this shape.

    >>> drain_time((4, 7, 5), (Edge(0, 1), Edge(1, 2)), 12)
    93
    >>> drain_time((3, 5, 4), (Edge(0, 1, 1), Edge(1, 2, 1)), 10)  # II is 9
    93.0
    """
    between = _longest_paths(times, edges)
    count = len(times)
    through = [
        _most(between(i, j) for i in range(j + 1)) + _most(between(j, k) for k in range(j, count)) - times[j]
        for j in range(count)
    ]
    cycles = (between(e.producer, e.consumer) / e.slots for e in edges if e.slots is not None)
    shared = reduce(maximum, cycles, busiest)
    flowing = _most(path + (tokens - 1) * time for path, time in zip(through, times, strict=True))
    return _most((flowing, _most(through) + (tokens - 1) * shared, tokens * shared))


def _most(values: Iterable[Number]) -> Number:
    return reduce(maximum, values)


def full_tokens(chains: Iterable[tuple[Number, Number, Number]]) -> Number:
    """Tokens between two drains, if all were as large as the first: what is cut over what one takes, over the drains.

    chains: (extent, token, drains) of ranks; edges make less than a token, and their drains whole ones. At least one:
    then a pipeline takes what its stages take one after the other.

    >>> full_tokens([(12, 2, 3)]), full_tokens([(5, 2, 1)])
    (2.0, 2.5)
    """
    whole: Number = 1
    parts: Number = 1
    for extent, token, drains in chains:
        whole, parts = whole * extent, parts * token * drains
    return maximum(whole / parts, 1.0)


def _longest_paths(times: Sequence[Number], edges: Sequence[Edge]) -> Callable[[int, int], Number]:
    """The length of the longest path between two stages of the stage graph, which weigh their token times."""
    nexts = [sorted({e.consumer for e in edges if e.producer == i}) for i in range(len(times))]

    @cache
    def between(first: int, last: int) -> Number:
        if first == last:
            return times[first]
        return reduce(maximum, (times[first] + between(n, last) for n in nexts[first] if n <= last), -inf)

    return between
