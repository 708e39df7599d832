"""Spatial choices on the axes to be used in full, for one Einsum: all of few, some of many, always the same ones.

Comes in: the tables of a problem. Goes out: lists that its moves pick from. Those of a network of many Einsums grow,
some at each question, so that its first mapping does not wait for hundreds of choices of every Einsum.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, product, zip_longest
from math import prod
from random import Random

from ..full_use import Chosen, Fullest
from .facts import Facts, Spread

MOST_SPREADS = 1_000  # choices of one Einsum that are listed, in about 0.1 s
DRAWN_FULLEST = 300  # of more, so many are drawn, in as long
FEW_SPREADS = 20_000  # choices that are all looked at where tiles may be uneven
MOST_DRAWS = 8000  # of more than those so many are drawn to find `DRAWN_FULLEST` in full use
IDLE_DRAWS = 500  # draws in a row that bring nothing new, after which no more are drawn
NETWORK = 100  # Einsums above which draws begin with what alike ones share, and choices are drawn when asked for
FEW_OF_NETWORK = 100  # choices of one of its Einsums that are listed
AT_ONCE, UNEVEN = 64, 16  # even and uneven ones that are drawn there at once; of ten uneven draws one is in full use


def spreads(facts: Facts, i: int, unit: str) -> Sequence[Spread]:
    """Choices for Einsum i on the unit that use the full-use axes as the space asks."""
    batches = _uneven(facts, i, unit) if facts.ragged else _perfect(facts, i, unit)
    known, more = facts.spread_lists.setdefault((facts.label[i], unit), ([], batches))
    for some in islice(more, 1 if facts.count > NETWORK else None):
        known.extend(some)
    return known


def used_on(spread: Spread, axis: str) -> int:
    """Instances of the axis that a choice uses."""
    return prod(n for name, _, n in spread if name == axis)


def _perfect(facts: Facts, i: int, unit: str) -> Iterator[tuple[Spread, ...]]:
    """Choices that cut evenly: all of full use if they are few, else `DRAWN_FULLEST` at random."""
    names = _names(facts, i, unit)
    sizes, variables = tuple(facts.machine.axes[axis].size for axis in names), facts.einsums[i].variables
    takes = tuple(
        (facts.extents[v], tuple(tuple(n for n in facts.takes(i, a, v) if facts.extents[v] % n == 0) for a in names))
        for v in variables
    )
    fullest = Fullest(sizes, takes, facts.most(i, unit))

    def allowed(choices: Iterable[Chosen]) -> Iterator[Spread]:
        found = set[Spread]()
        for choice in choices:
            one = tuple((names[a], variables[v], n) for a, v, n in choice)
            if one not in found and all(facts.total_allowed(i, a, used_on(one, a)) for a in names):
                found.add(one)
                yield one

    few = FEW_OF_NETWORK if facts.count > NETWORK else MOST_SPREADS
    listed, rng, drawn = tuple(islice(fullest.choices(reversed), few + 1)), Random(0), False
    if len(listed) > few:
        draws = (next(fullest.choices(lambda n: rng.sample(n, len(n)))) for _ in range(DRAWN_FULLEST))
        for some in _batches(facts, allowed(draws), AT_ONCE):
            drawn = True
            yield some
    if not drawn:
        yield tuple(allowed(listed))


def _uneven(facts: Facts, i: int, unit: str) -> Iterator[tuple[Spread, ...]]:
    """Those of `ragged`: all of them if they are few, else perfect ones and `DRAWN_FULLEST` at random."""
    names = _names(facts, i, unit)
    slots = [(axis, v) for axis in names for v in facts.einsums[i].variables if len(facts.takes(i, axis, v)) > 1]
    if prod(len(facts.takes(i, *slot)) for slot in slots) > (MOST_SPREADS if facts.count > NETWORK else FEW_SPREADS):
        rng = Random(0)
        draws = (_drawn(facts, i, slots, rng) for _ in range(MOST_DRAWS))
        found = islice(_full_ones(facts, i, unit, slots, draws, IDLE_DRAWS), DRAWN_FULLEST)
        for even, uneven in zip_longest(_perfect(facts, i, unit), _batches(facts, found, UNEVEN), fillvalue=()):
            yield (*even, *uneven)
    else:
        choices = product(*(facts.takes(i, *slot) for slot in slots))
        yield tuple(islice(_full_ones(facts, i, unit, slots, choices), MOST_SPREADS))


def _batches(facts: Facts, found: Iterator[Spread], at_once: int) -> Iterator[tuple[Spread, ...]]:
    """All together; for a network so many at a time."""
    while some := tuple(islice(found, at_once if facts.count > NETWORK else None)):
        yield some


def _names(facts: Facts, i: int, unit: str) -> list[str]:
    return [axis for axis in facts.axes_of(i, unit) if facts.machine.axes[axis].use == "full"]


def _full_ones(
    facts: Facts,
    i: int,
    unit: str,
    slots: list[tuple[str, str]],
    choices: Iterable[tuple[int, ...]],
    idle: int | None = None,
) -> Iterator[Spread]:
    """The choices of instances for each slot that are in full use, each once; until so many in a row bring nothing."""
    names, found, before = _names(facts, i, unit), set[Spread](), 0
    for choice in choices:
        spread = tuple((axis, v, n) for (axis, v), n in zip(slots, choice, strict=True) if n > 1)
        if spread not in found and _full_enough(facts, i, unit, spread, names):
            found.add(spread)
            before = 0
            yield spread
        else:
            before += 1
        if before == idle:
            return


def _drawn(facts: Facts, i: int, slots: list[tuple[str, str]], rng: Random) -> tuple[int, ...]:
    """Instances of each slot at random: mostly as many as fit, or as few as make as many passes."""
    room = {axis: facts.machine.axes[axis].size for axis, _ in slots}
    left, chosen = dict(facts.full[i]), dict[tuple[str, str], int]()
    for axis, v in rng.sample(slots, len(slots)):
        options = facts.takes(i, axis, v)  # ascending, often of hundreds
        fit = bisect_right(options, min(room[axis], left[v]))
        n = options[fit - 1] if rng.random() < 0.7 else options[rng.randrange(fit)]
        fewer = -(-left[v] // -(-left[v] // n))
        n = fewer if options[bisect_left(options, fewer)] == fewer and rng.random() < 0.5 else n
        chosen[axis, v] = n
        room[axis] //= n
        left[v] = -(-left[v] // n)
    return tuple(chosen[slot] for slot in slots)


def _full_enough(facts: Facts, i: int, unit: str, spread: Spread, names: list[str]) -> bool:
    used = dict.fromkeys(names, 1)
    for axis, _, n in spread:
        used[axis] *= n
    if any(n > facts.machine.axes[axis].size or not facts.total_allowed(i, axis, n) for axis, n in used.items()):
        return False
    work, windows, shares = 1, False, dict.fromkeys(facts.full[i], 1)
    for _, v, n in spread:
        shares[v] *= n
    for v, extent in facts.full[i].items():
        n = shares[v]
        work *= -(-extent // n)
        windows = windows or (extent % n > 0 and v in facts.windows(i))
    return work <= facts.least_work(i, unit, windows)
