"""How much of the axes with ``use: full`` an Einsum can use: the least work that is left for an instance, axis by axis.

What an axis may take of a variable is in most cases any divisor that fits, or nothing. Variables alike in this are one
pool: a divisor of the product of their extents is a product of divisors of each, so only what is left of the pool
counts. Every other variable is an item of its own. So there are few states, however many choices.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cache, lru_cache
from math import prod

Takes = tuple[tuple[int, tuple[tuple[int, ...], ...]], ...]
"""Per variable its extent, and what it may take of each axis, in ascending order."""
Chosen = tuple[tuple[int, int, int], ...]
"""Axis, variable and instances, of what takes more than one."""
Left = tuple[int, ...]
"""What is left of each item; 0 where one axis cut it unevenly, and no other may take of it."""


@lru_cache(maxsize=4096)
def divisors_up_to(extent: int, limit: int) -> tuple[int, ...]:
    return tuple(f for f in range(1, min(extent, limit) + 1) if extent % f == 0)


@lru_cache(maxsize=4096)
def least_iterations(
    sizes: tuple[int, ...], full: tuple[int, ...], takes: Takes, totals: tuple[tuple[int, ...] | None, ...]
) -> int:
    """The least iterations in an instance of the axes `full`; all of them where no choice is allowed.

    What does not divide an extent one axis takes, and no other. totals: how many instances of an axis all variables may
    take together, if limits say so.
    """
    items = pooled(sizes, takes)
    extents = tuple(extent for extent, _ in items)
    states = {extents: prod(extents)}
    for a, size in enumerate(sizes):
        options = tuple(each[a] for _, each in items)
        allowed, grown = totals[a], dict[Left, int]()
        for left, work in states.items():
            for taken in _taken(left, extents, options, size):
                if allowed is not None and prod(taken) not in allowed:
                    continue
                after, less = [], work
                for rest, n in zip(left, taken, strict=True):
                    if n > 1 and a in full:
                        less = less // rest * -(-rest // n)
                    after.append(rest if n == 1 else rest // n if rest % n == 0 else 0)
                key = tuple(after)
                grown[key] = min(less, grown.get(key, less))
        states = grown
    return min(states.values(), default=prod(extents))


def pooled(sizes: tuple[int, ...], takes: Takes) -> Takes:
    """The takes with pools in the place of their variables."""
    pools, alone = dict[tuple[bool, ...], int](), []
    for extent, options in takes:
        free = tuple(one == divisors_up_to(extent, size) for one, size in zip(options, sizes, strict=True))
        if all(may or one == (1,) for may, one in zip(free, options, strict=True)):
            pools[free] = pools.get(free, 1) * extent
        else:
            alone.append((extent, options))
    made = [
        (extent, tuple(divisors_up_to(extent, size) if may else (1,) for may, size in zip(free, sizes, strict=True)))
        for free, extent in pools.items()
    ]
    return (*made, *alone)


def _taken(left: Left, extents: tuple[int, ...], options: tuple[tuple[int, ...], ...], room: int) -> Iterator[Left]:
    """What an axis with so much room may take of every item."""
    if not left:
        yield ()
        return
    rest, extent = left[0], extents[0]
    for n in options[0]:
        if n > room:
            break
        if n == 1 or (rest and (rest % n == 0 or rest == extent)):
            for others in _taken(left[1:], extents[1:], options[1:], room // n):
                yield (n, *others)


class Reach:
    """How many instances of axes perfect choices can still use, for a search that decides axis by axis, and on each
    variable by variable. It is no less than they can, and just that where no limit speaks of an axis.

    sizes: of the axes. barred: of each variable the axes that take none of it.
    """

    def __init__(self, sizes: tuple[int, ...], barred: tuple[frozenset[int], ...]) -> None:
        self.sizes = sizes
        self.pools = tuple(dict.fromkeys(barred))
        self._of = tuple(self.pools.index(one) for one in barred)
        self._most = cache(self._found)

    def most(self, axis: int, variable: int, left: tuple[int, ...], room: int) -> int:
        """On this axis from this variable on, with so much room, and on all axes after it. left: of each variable."""
        ahead, rest = [1] * len(self.pools), [1] * len(self.pools)
        for v, n in enumerate(left):
            rest[self._of[v]] *= n
            if v >= variable:
                ahead[self._of[v]] *= n
        return self._most(axis, tuple(ahead), tuple(rest), room)

    def _found(self, axis: int, ahead: tuple[int, ...], rest: tuple[int, ...], room: int) -> int:
        if axis == len(self.sizes):
            return 1
        options = tuple(
            (1,) if axis in barred else divisors_up_to(n, room) for barred, n in zip(self.pools, ahead, strict=True)
        )
        following = self.sizes[axis + 1] if axis + 1 < len(self.sizes) else 1
        most = 0
        for taken in _taken(ahead, ahead, options, room):
            after = tuple(n // used for n, used in zip(rest, taken, strict=True))
            most = max(most, prod(taken) * self._most(axis + 1, after, after, following))
        return most


class Fullest:
    """The perfect choices that use so many instances of the axes, without dead ends where `Reach` knows what is left.

    takes: of each axis what it may take of each variable, in ascending order. wanted: instances of all axes together.
    """

    def __init__(
        self, sizes: tuple[int, ...], takes: tuple[tuple[tuple[int, ...], ...], ...], extents: Left, wanted: int
    ) -> None:
        self.sizes, self.takes, self.extents, self.wanted = sizes, takes, extents, wanted
        axes = range(len(sizes))
        barred = tuple(frozenset(a for a in axes if takes[a][v] == (1,)) for v in range(len(extents)))
        self._reach = Reach(sizes, barred)

    def choices(self, order: Callable[[tuple[int, ...]], Iterable[int]]) -> Iterator[Chosen]:
        """All of them. order: in which an axis tries what it may take of a variable."""
        return self._choices(order, 0, 0, (), 1, self.extents, self.sizes[0] if self.sizes else 1)

    def _choices(
        self,
        order: Callable[[tuple[int, ...]], Iterable[int]],
        a: int,
        v: int,
        chosen: Chosen,
        used: int,
        left: Left,
        room: int,
    ) -> Iterator[Chosen]:
        if used * self._reach.most(a, v, left, room) < self.wanted:
            return
        if a == len(self.sizes):
            yield chosen
        elif v == len(left):
            yield from self._choices(order, a + 1, 0, chosen, used, left, (*self.sizes, 1)[a + 1])
        else:
            for n in order(self.takes[a][v]):
                if n <= room and left[v] % n == 0:
                    more = (*chosen, (a, v, n)) if n > 1 else chosen
                    after = left if n == 1 else (*left[:v], left[v] // n, *left[v + 1 :])
                    yield from self._choices(order, a, v + 1, more, used * n, after, room // n)
