"""How much of the axes with ``use: full`` an Einsum can use: the least work that is left for an instance, axis by axis.

What an axis may take of a variable is in most cases any divisor that fits, or nothing. Variables alike in this are one
pool: a divisor of the product of their extents is a product of divisors of each, so only what is left of the pool
counts. Every other variable is an item of its own. So there are few states, however many choices.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cache, lru_cache
from math import prod

from ..divisors import divisors_up_to

Takes = tuple[tuple[int, tuple[tuple[int, ...], ...]], ...]
"""Per variable its extent, and what it may take of each axis, in ascending order."""
Chosen = tuple[tuple[int, int, int], ...]
"""Axis, variable and instances, of what takes more than one."""
Left = tuple[int, ...]
"""What is left of each item; 0 where one axis cut it unevenly, and no other may take of it."""

FURTHER = 1.5  # a limit of iterations that no choice stays within is raised by this factor
ROUNDED = 1 + 1e-9  # quotients of a limit may be off by a last place


@lru_cache(maxsize=4096)
def least_iterations(
    sizes: tuple[int, ...], full: tuple[int, ...], takes: Takes, totals: tuple[tuple[int, ...] | None, ...]
) -> int:
    """The least iterations in an instance of the axes `full`; all of them where no choice is allowed.

    What does not divide an extent one axis takes, and no other. totals: how many instances of an axis all variables may
    take together, if limits say so.
    """
    items = pooled(sizes, takes)
    whole = prod(extent for extent, _ in items)
    limit = whole / prod(sizes[a] for a in full)
    while limit < whole:
        if (found := _least_within(limit, sizes, full, items, totals)) is not None:
            return found
        limit *= FURTHER
    return _least_within(whole, sizes, full, items, totals) or whole


def _least_within(
    limit: float,
    sizes: tuple[int, ...],
    full: tuple[int, ...],
    items: Takes,
    totals: tuple[tuple[int, ...] | None, ...],
) -> int | None:
    """The least iterations of items, if they are no more than a limit: an axis with n instances leaves an nth at least,
    so that axes further out have to take as much as the limit asks of them."""
    extents = tuple(extent for extent, _ in items)
    states = {extents: prod(extents)}
    for a, size in enumerate(sizes):
        options = tuple(each[a] for _, each in items)
        most = limit * prod(sizes[b] for b in full if b > a)
        allowed, grown = totals[a], dict[Left, int]()
        for left, work in states.items():
            fewest = options if allowed is not None else tuple(map(_fewest, left, options))
            for taken in _taken(left, extents, fewest, size, work / most if a in full else 1.0):
                if allowed is not None and prod(taken) not in allowed:
                    continue
                after, less = [], work
                for rest, n in zip(left, taken, strict=True):
                    if n > 1 and a in full:
                        less = less // rest * -(-rest // n)
                    after.append(rest if n == 1 else rest // n if rest % n == 0 else 0)
                key = tuple(after)
                if less <= most * ROUNDED:
                    grown[key] = min(less, grown.get(key, less))
        states = grown
    return min(states.values(), default=None)


@lru_cache(maxsize=4096)
def _fewest(rest: int, options: tuple[int, ...]) -> tuple[int, ...]:
    """Of what an axis may take of an item, the fewest instances for each number of iterations that they leave: more of
    them take room that others may have, and leave no more of the item to other axes."""
    return tuple({-(-rest // n): n for n in reversed(options) if n <= max(rest, 1)}.values())[::-1]


def pooled(sizes: tuple[int, ...], takes: Takes) -> Takes:
    """The takes with pools in the place of their variables."""
    pools, alone = dict[tuple[bool, ...], int](), []
    for extent, options in takes:
        free = _free(sizes, extent, options)
        if free is None:
            alone.append((extent, options))
        else:
            pools[free] = pools.get(free, 1) * extent
    made = [
        (extent, tuple(divisors_up_to(extent, size) if may else (1,) for may, size in zip(free, sizes, strict=True)))
        for free, extent in pools.items()
    ]
    return (*made, *alone)


def _free(sizes: tuple[int, ...], extent: int, options: tuple[tuple[int, ...], ...]) -> tuple[bool, ...] | None:
    """For each axis whether it takes any divisor that fits, or nothing; None if some axis takes anything else."""
    free = tuple(one == divisors_up_to(extent, size) for one, size in zip(options, sizes, strict=True))
    return free if all(may or one == (1,) for may, one in zip(free, options, strict=True)) else None


def _taken(
    left: Left, extents: tuple[int, ...], options: tuple[tuple[int, ...], ...], room: int, least: float = 1.0
) -> Iterator[Left]:
    """What an axis with so much room may take of every item. least: instances of all items together."""
    if not left:
        yield ()
        return
    if room < least / ROUNDED:
        return
    rest, extent = left[0], extents[0]
    for n in options[0]:
        if n > room:
            break
        if n == 1 or (rest and (rest % n == 0 or rest == extent)):
            for others in _taken(left[1:], extents[1:], options[1:], room // n, least / n):
                yield (n, *others)


class Reach:
    """The most instances of axes that perfect choices can still use, for a search that decides axis by axis, and on
    each variable by variable; 0 if there is no choice.

    sizes: of the axes. takes: of each variable; what does not divide its extent counts for nothing.
    """

    def __init__(self, sizes: tuple[int, ...], takes: Takes) -> None:
        self.sizes = sizes
        even = [tuple(tuple(n for n in one if extent % n == 0) for one in options) for extent, options in takes]
        kinds = [_free(sizes, extent, options) for (extent, _), options in zip(takes, even, strict=True)]
        items = [
            (v, options) if kind is None else kind for v, (kind, options) in enumerate(zip(kinds, even, strict=True))
        ]
        self._items = tuple(dict.fromkeys(items))
        self._of = tuple(self._items.index(one) for one in items)
        self._limited = {self._items.index(items[v]): even[v] for v, kind in enumerate(kinds) if kind is None}
        self._most = cache(self._found)

    def most(self, axis: int, variable: int, left: Left, room: int) -> int:
        """On this axis from this variable on, with so much room, and on all axes after it. left: of each variable."""
        ahead, rest = [1] * len(self._items), [1] * len(self._items)
        for v, n in enumerate(left):
            item = self._of[v]
            rest[item] *= n
            if v >= variable:
                ahead[item] *= n
            elif item in self._limited:
                ahead[item] = 0  # this axis has taken of it
        return self._most(axis, tuple(ahead), tuple(rest), room)

    def _found(self, axis: int, ahead: Left, rest: Left, room: int) -> int:
        if axis == len(self.sizes):
            return 1
        options = tuple(self._options(axis, item, n, room) for item, n in enumerate(ahead))
        following, most = (*self.sizes, 1)[axis + 1], 0
        for taken in _taken(ahead, ahead, options, room):
            after = tuple(n // used for n, used in zip(rest, taken, strict=True))
            most = max(most, prod(taken) * self._most(axis + 1, after, after, following))
        return most

    def _options(self, axis: int, item: int, ahead: int, room: int) -> tuple[int, ...]:
        """What the axis may take of what is ahead of an item."""
        if item in self._limited:
            return tuple(n for n in self._limited[item][axis] if ahead % n == 0) if ahead else (1,)
        return divisors_up_to(ahead, room) if self._items[item][axis] else (1,)


class Fullest:
    """The perfect choices that use so many instances of the axes, found without dead ends.

    takes: of each variable. wanted: instances of all axes together.
    """

    def __init__(self, sizes: tuple[int, ...], takes: Takes, wanted: int) -> None:
        self.sizes, self.takes, self.wanted = sizes, takes, wanted
        self._reach = Reach(sizes, takes)

    def choices(self, order: Callable[[tuple[int, ...]], Iterable[int]]) -> Iterator[Chosen]:
        """All of them. order: in which an axis tries what it may take of a variable."""

        def choose(a: int, v: int, chosen: Chosen, used: int, left: Left, room: int) -> Iterator[Chosen]:
            if used * self._reach.most(a, v, left, room) < self.wanted:
                return
            if a == len(self.sizes):
                yield chosen
            elif v == len(left):
                yield from choose(a + 1, 0, chosen, used, left, (*self.sizes, 1)[a + 1])
            else:
                for n in order(self.takes[v][1][a]):
                    if n <= room and left[v] % n == 0:
                        more = (*chosen, (a, v, n)) if n > 1 else chosen
                        after = left if n == 1 else (*left[:v], left[v] // n, *left[v + 1 :])
                        yield from choose(a, v + 1, more, used * n, after, room // n)

        return choose(0, 0, (), 1, tuple(extent for extent, _ in self.takes), (*self.sizes, 1)[0])
