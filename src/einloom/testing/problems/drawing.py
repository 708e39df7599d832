"""A problem from a seed: which dimensions it shall have, then files that have them, small enough to look at every tree.

Seeds go through the pairs of dimensions, so that every pair comes up equally often; some seeds take one dimension
alone, the others add more by chance. A problem with too many trees is drawn again, with less room.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from random import Random

from ...dataclass import dataclass
from ...mapping.tree import Mapping
from ...mapspace.ffm.enumerate import candidates, ordered
from .cascades import OWN, TRIES, built, cascade
from .dimensions import (
    COMBINED,
    DICE,
    DIMENSIONS,
    LATER,
    LATEST,
    apart_at_first,
    dimensions_of,
    impossible,
    pairs,
    parted,
    possible_pairs,
)
from .files import Files
from .machines import machine
from .spaces import space

ATTEMPTS = 14
MACHINES = 3
ROOMS = (8, 4, 4, 4, 2)
NARROW = 7
"""From this attempt on only the pair of dimensions is wanted, and memories bypass most tensors."""
CANDIDATES = 64
STEPS = 150
LAST = 11
MANY = (600, 1200)
"""Candidates and steps that a problem may have from this attempt on: some pairs have no smaller ones."""
AGAIN = 10_000_000
TOWARDS = 10**12
"""From this seed on each asks for one pair of `possible_pairs` in turn."""
BESIDE = 4
"""So many more dimensions at most has such a seed, if there is room for them."""
ALONE = 8
"""One seed of so many has a single dimension."""
OFTEN = 0.25
"""The share of the seeds with one of two dimensions that are `COMBINED` which have the other as well."""
RARE = 0.05
"""The share of the others that have a dimension of each of `DICE` besides."""


@dataclass(frozen=True)
class DrawnProblem:
    """A problem with its seed. wanted: what it was drawn for; has: what it has."""

    seed: int
    files: Files
    wanted: frozenset[str]
    has: frozenset[str]

    @property
    def lacks(self) -> frozenset[str]:
        """What it was drawn for and does not have."""
        return self.wanted - self.has


class TooLarge(Exception):
    """The problem has more trees than shall be looked at."""


@dataclass(frozen=True)
class Effort:
    """How much a seed may take. rooms: of each attempt, the last one of all that follow. many: candidates and steps
    that there may be at the attempts from `LAST` on. tries: of drawing a workload. beside: see `arranged.arrange`."""

    rooms: tuple[int, ...] = ROOMS
    many: tuple[tuple[int, int], ...] = (MANY,)
    tries: int = TRIES
    beside: bool = False

    def room(self, attempt: int) -> int:
        return self.rooms[min(attempt, len(self.rooms) - 1)]

    def most(self, attempt: int) -> tuple[int, int]:
        """Candidates and steps that a problem may have at this attempt."""
        return (CANDIDATES, STEPS) if attempt < LAST else self.many[min(attempt - LAST, len(self.many) - 1)]


USUAL = Effort()
RARE_PAIR = Effort((8, 4) * (ATTEMPTS // 2), ((1000, 2000),), 400, beside=True)
"""Many rare pairs need more than four points, or have few workloads, or many trees."""


@dataclass(frozen=True)
class Wanted:
    """The dimensions that a problem shall have: these at least, and `more` if there is room for them.

    effort: how much that may take.
    """

    core: tuple[str, ...]
    more: tuple[str, ...] = ()
    effort: Effort = USUAL

    def at(self, attempt: int) -> frozenset[str]:
        """What is wanted at this attempt: everything, then less and less of what there need not be."""
        left = len(self.more) if attempt < 2 else len(self.more) // 2 if attempt < 4 else len(self.more) // 4
        return frozenset((*self.core, *self.more[: left if attempt < NARROW else 0]))


def wanted(seed: int) -> Wanted:
    """The dimensions that the problem of a seed shall have: one alone, or a pair and some more."""
    if seed >= TOWARDS:
        return _wanted_pair(seed)
    names = tuple(name for name in DIMENSIONS if name not in LATER)
    if seed % ALONE == 0:
        return Wanted((names[seed // ALONE % len(names)],))
    rng = Random(f"dimensions {seed}")
    among = pairs()
    Random(seed // len(among)).shuffle(among)
    core: tuple[str, ...] = among[seed % len(among)]
    more: list[str] = []
    chance = rng.choice((0.0, 0.04, 0.08, 0.12))
    for name in rng.sample(names, len(names)):
        if rng.random() < chance and name not in core and not any(apart_at_first(name, o) for o in (*core, *more)):
            more.append(name)
    for dice, later in DICE.items():
        own = Random(f"{dice} {seed}")
        name = own.choice(later)
        if own.random() < RARE and not any(parted(name, other) for other in (*core, *more)):
            core = (*core, name)
    own = Random(f"together {seed}")
    for pair in COMBINED:
        for one, other in (pair, pair[::-1]):
            joins = one in (*core, *more) and other not in core and own.random() < OFTEN
            if joins and not any(parted(other, name) for name in (*core, *more)):
                core = (*core, other)
    return Wanted(core, tuple(more))


def _wanted_pair(seed: int) -> Wanted:
    possible = possible_pairs()
    core = possible[(seed - TOWARDS) % len(possible)]
    more: list[str] = []
    for name in Random(f"beside {seed}").sample(DIMENSIONS, BESIDE):
        if name not in core and not any(impossible(name, other) for other in (*core, *more)):
            more.append(name)
    return Wanted(core, tuple(more), RARE_PAIR)


def draw(seed: int) -> DrawnProblem:
    """The problem of a seed; where no small one with its pair of dimensions is found, one with less of them."""
    found = draw_with(wanted(seed), seed)
    again = AGAIN * (len(possible_pairs()) if seed >= TOWARDS else 1)  # which asks for the same pair
    return draw(seed + again) if found is None else found


def towards(pair: tuple[str, str]) -> Iterator[int]:
    """The seeds that ask for this pair of dimensions, without an end. Raises ValueError for one that cannot be."""
    possible = possible_pairs()
    return count(TOWARDS + possible.index(pair), len(possible))


def draw_with(want: Wanted, seed: int) -> DrawnProblem | None:
    """A small problem with what is wanted, or with less of it; None if none came up."""
    best: DrawnProblem | None = None
    for attempt in range(ATTEMPTS):
        rng = Random(f"problem {seed} {attempt}")
        for files in sketches(rng, want.at(attempt), want.effort, attempt):
            found = DrawnProblem(seed, files, frozenset(want.core), dimensions_of(*files.read))
            if best is None or len(found.lacks) < len(best.lacks):
                try:
                    few(files, *want.effort.most(attempt))
                except TooLarge:
                    continue
                best = found
                if not best.lacks:
                    return best
    return best


def sketches(rng: Random, want: frozenset[str], effort: Effort = USUAL, attempt: int = 0) -> Iterator[Files]:
    """Problems with these dimensions, of any size: some machines and spaces for one workload.

    With each attempt there is less room for trees.
    """
    work = cascade(rng, want, effort.room(attempt), effort.tries)
    if work is None:
        return
    workload = built(work)
    empty = {"schema": "mapspace/1"}
    for _ in range(MACHINES):
        tight = attempt > 0 and len(workload.einsums) > rng.randint(0, 2)
        chip = machine(rng, want - set(OWN), workload, tight, effort.beside)
        alone = Files(work, chip, empty)
        yield Files(work, chip, space(rng, want, *alone.read[:2], narrow=attempt >= NARROW and not want & {*LATEST}))


def few(files: Files, most: int = CANDIDATES, longest: int = STEPS) -> list[Mapping]:
    """The candidates of a problem. Raises TooLarge where there are more than `most`, or steps than `longest`."""
    workload, chip, mapspace = files.read
    steps = 0

    def step() -> None:
        nonlocal steps
        steps += 1
        if steps > longest:
            raise TooLarge

    found = []
    for one in ordered(workload, mapspace):
        for tree in candidates(one, chip, mapspace.name, step, mapspace.stores):
            found.append(tree)
            if len(found) > most:
                raise TooLarge
    return found
