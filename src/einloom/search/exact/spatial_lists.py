"""The spatial choices of one Einsum that has very many of them: listed within limits alone.

Comes in: its rank classes, and what is of use. Goes out: the same rank classes with few spatial choices. What a limit
leaves out is found axis by axis (`unlisted/beginnings.py`), so that most choices are never listed.
"""

from __future__ import annotations

from itertools import compress

import numpy as np
from numpy.typing import NDArray

from ...dataclass import dataclass
from .bounds.cutoff import Cutoff
from .einsums.classes import UnitOption
from .einsums.runs import SpatialChoice, TooManyChoices
from .einsums.spatial import FewSpreads, RankClasses
from .fusion.floors import Floors
from .fusion.room_floors import has_room_floors
from .model import Setting
from .numerics.narrow import slices
from .numerics.pareto import FloatArray
from .unlisted.beginnings import Beginnings, Useful, anything

KEPT, LONG = 4, 200_000  # limits of which the choices are remembered; choices that are many to remember


@dataclass(frozen=True, eq=False)
class Beside:
    """What of an Einsum stays within a cutoff beside `rest`, what all others cost at least."""

    cutoff: Cutoff
    rest: FloatArray

    def __call__(self, cost: FloatArray) -> NDArray[np.bool_]:
        return np.asarray(~self.cutoff.beyond(cost + self.rest))

    def admits(self, other: Beside) -> bool:
        """True if whatever the other one admits is admitted, too, as far as that is plain."""
        mine, theirs = self.cutoff, other.cutoff
        plain = mine.front is None and theirs.front is None and mine.weights is None and theirs.weights is None
        within = mine.powers == theirs.powers and mine.limit >= theirs.limit
        return plain and within and bool((self.rest <= other.rest).all())


class SpatialLists:
    """Lists of the spatial choices of one Einsum. every: its rank classes, which list all of them when asked."""

    def __init__(self, every: RankClasses) -> None:
        self.every = every
        self._listed: dict[object, list[tuple[Beside, RankClasses]]] = {}

    def few(self, setting: Setting) -> RankClasses:
        """A few that promise most."""
        units = self.every.signature.units
        begin = {option: Beginnings(setting, self.every, option, anything).sample for option in units}
        return self._with({option: self.every.within(option, sample) for option, sample in begin.items()})

    def near(self, setting: Setting, useful: Useful, most: float = np.inf) -> RankClasses:
        """Those that may be useful. Raises TooManyChoices if more than `most` are."""
        units = self.every.signature.units
        begin = {option: Beginnings(setting, self.every, option, useful).keep for option in units}
        return self._with({option: self.every.within(option, keep, most) for option, keep in begin.items()})

    def within(self, setting: Setting, beside: Beside, most: float = np.inf) -> RankClasses:
        """Those that may stay within a cutoff; of what a higher one has left, if that is known. Raises TooManyChoices
        if more than `most` do."""
        listed = self._listed.setdefault((setting.columns, setting.objective), [])
        wider = [(one, few) for one, few in listed if one.admits(beside)]
        found = next((few for one, few in wider if beside.admits(one)), None)
        if found is None:
            found = self._narrower(setting, beside, [few for _, few in wider]) or self.near(setting, beside, most)
            found = self._closely(setting, beside, found) if has_room_floors(found) else found
            listed[:] = [*_kept(listed), (beside, found)]
        if _size(found) > most:
            raise TooManyChoices(f"more than {int(most):,} spatial choices of an Einsum")
        return found

    def _narrower(self, setting: Setting, beside: Beside, wider: list[RankClasses]) -> RankClasses | None:
        """Those of the shortest of some longer lists."""
        if not wider:
            return None
        known = min(wider, key=_size)
        return self._with({option: _those(setting, known, option, beside) for option in known.signature.units})

    def _with(self, few: dict[UnitOption, tuple[SpatialChoice, ...]]) -> RankClasses:
        return FewSpreads(self.every.signature, self.every.checkpoint, few, self.every)

    def _closely(self, setting: Setting, beside: Beside, classes: RankClasses) -> RankClasses:
        """Those that stay within a cutoff if the room of the memories counts, too."""
        floors, found = Floors(setting, classes), {}
        for option in classes.signature.units:
            spreads = classes.spreads(option)
            good = np.zeros(len(spreads), bool)
            for i in np.flatnonzero(beside(floors.hoped(option))).tolist() if spreads else ():
                good[floors.useful(option, option.held[i], beside)[0]] = True
            found[option] = tuple(compress(spreads, good.tolist()))
        return self._with(found)


def _those(setting: Setting, classes: RankClasses, option: UnitOption, useful: Useful) -> tuple[SpatialChoice, ...]:
    """The spatial choices of some rank classes that may be useful."""
    keep, rows, found = Beginnings(setting, classes, option, useful).keep, classes.instances(option), []
    extents = np.array(classes.extents, np.int64)
    for mine in slices(len(rows)):
        good = keep(rows[mine], extents // rows[mine].prod(axis=1))
        found += list(compress(classes.spreads(option)[mine], good.tolist()))
    return tuple(found)


def _kept(listed: list[tuple[Beside, RankClasses]]) -> list[tuple[Beside, RankClasses]]:
    """What is remembered of some lists beside one more: no long ones, and the shortest, soon made again, goes first."""
    short = [known for known in listed if _size(known[1]) <= LONG]
    return sorted(short, key=lambda known: (_size(known[1]), known[0].cutoff.limit))[1 - KEPT :] if KEPT > 1 else []


def _size(classes: RankClasses) -> int:
    return sum(len(classes.spreads(option)) for option in classes.signature.units)
