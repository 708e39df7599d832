"""What the choices of one Einsum cost at least: a unit, the tensors that every memory holds, and spatial loops."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from ....once import once_each
from ..einsums.classes import UnitOption
from ..einsums.holds import Placement
from ..einsums.runs import SpatialChoice
from ..einsums.spatial import RankClasses
from ..model import Setting
from ..numerics.narrow import slices
from ..numerics.pareto import FloatArray, IntArray
from ..prices.columns import LinkPrices
from ..prices.traffic import Prices
from ..unlisted.beginnings import Useful
from ..unlisted.points import ROUNDED, OnUnit
from .room_floors import RoomFloors, has_room_floors

KEPT = 1 << 16  # numbers of a unit's floors that are remembered
FEW = 1 << 10  # spatial choices of which it is remembered what each store costs


class Floors:
    """Least costs of the choices of one signature; every spatial choice of a unit is priced at once."""

    def __init__(self, setting: Setting, classes: RankClasses) -> None:
        self.setting = setting
        self.classes = classes
        key = "floors", id(setting.machine), setting.columns, setting.slots
        self._fills: dict[tuple[str | None, int, int, int], FloatArray] = {}
        self._known: dict[object, Any] = classes.remembered.setdefault(key, {"machine": setting.machine})

    def links(self, option: UnitOption, spreads: tuple[SpatialChoice, ...]) -> LinkPrices:
        """Prices of some spatial choices."""
        s = self.setting
        return LinkPrices(s.machine, s.columns, self.classes, option.above, option.fanouts, spreads, option.unit)

    def promised(self, option: UnitOption) -> FloatArray:
        """No more than the floors of every choice of stores [choices, columns], whatever its spatial choice."""
        key = "promised", option
        if key not in self._known:
            unit = OnUnit(self.setting.machine, self.classes.signature, option)
            self._known[key] = unit.promised(self.setting.columns)
        return np.asarray(self._known[key])

    def hoped(self, option: UnitOption) -> FloatArray:
        """The same in the sums that make the objective [choices, settled columns]."""
        return self.setting.settled(self.promised(option))

    def of(self, option: UnitOption, held: Placement) -> FloatArray:
        """Least cost of a choice of stores [spatial choices, columns]: the leaf, and every own store filled once.

        Remembered, where that is little, with the classes: it depends on no limit.
        """
        found: FloatArray | None = self._known.get((option, held))
        if found is None:
            found = self._worked_out(option, held)
            found.flags.writeable = False
            if found.size * len(option.held) <= KEPT:
                self._known[option, held] = found
        return found

    def close(self, option: UnitOption, held: Placement, which: IntArray) -> FloatArray:
        """As `of`, of some spatial choices [which, columns], with what the room of the memories adds where that is
        asked (`has_room_floors`)."""
        cost = self.of(option, held)
        if not self.closer or not len(which):
            return cost[which]
        if ("room", option) not in self._known:
            self._known["room", option] = RoomFloors(self.setting.machine, self.classes, option)
        return np.asarray(cost[which] + self._known["room", option].more(self._priced(option), held, which))

    @cached_property
    def closer(self) -> bool:
        """True if `close` says more than `of`."""
        return self.setting.rules.limits and has_room_floors(self.classes)

    @once_each
    def _priced(self, option: UnitOption) -> Prices:
        """The prices of all spatial choices of a unit."""
        return Prices(self.links(option, self.classes.spreads(option)), self.setting.slots)

    def _worked_out(self, option: UnitOption, held: Placement) -> FloatArray:
        self.classes.checkpoint()
        prices = self._priced(option)
        inner = tuple(max(m for m, h in enumerate(held) if t in h) for t in range(len(self.classes.signature.tensors)))
        total = prices.leaf_cost(inner)
        for m in range(1, len(held)):
            for t in sorted(held[m]):
                self.classes.checkpoint()
                parent = max((p for p in range(m) if t in held[p]), default=-1)
                if parent >= 0:
                    total = total + self._filled(option, t, parent, m)
        return total

    def _filled(self, option: UnitOption, tensor: int, parent: int, memory: int) -> FloatArray:
        """Least cost of filling an own store once [spatial choices, columns]; remembered where choices are few."""
        key = option.unit, tensor, parent, memory
        if key not in self._fills:
            found = self._priced(option).least(tensor, parent, memory)
            if len(found) > FEW:
                return found
            self._fills[key] = found
        return self._fills[key]

    def settled(self, option: UnitOption, held: Placement) -> FloatArray:
        """The same in the sums that make the objective [spatial choices, settled columns]."""
        cost, found = self.of(option, held), []
        for mine in slices(len(cost)):
            self.classes.checkpoint()
            found.append(self.setting.settled(cost[mine]))
        return found[0] if len(found) == 1 else np.concatenate(found)

    def settled_close(self, option: UnitOption, held: Placement, which: IntArray) -> FloatArray:
        """As `close`, in these sums [which, settled columns]; infinite where the stores do not fit."""
        cost = self.close(option, held, which)
        fits = np.asarray(np.isfinite(cost).all(axis=1))
        return np.where(fits[:, None], self.setting.settled(np.where(fits[:, None], cost, 0.0)), np.inf)

    def useful(self, option: UnitOption, held: Placement, useful: Useful) -> tuple[IntArray, FloatArray]:
        """The spatial choices of a choice of stores that may be useful, and `settled_close` of each."""
        which = np.flatnonzero(useful(self.settled(option, held)))
        cost = self.settled_close(option, held, which)
        fits = np.isfinite(cost).all(axis=1)
        which, cost = which[fits], cost[fits]
        good = useful(cost)
        return which[good], cost[good]

    def least(self) -> float:
        """A quick lower bound on the Einsum's objective, over all choices; infinite if there is none."""
        best = float("inf")
        for option in self.classes.signature.units:
            if not self.classes.spreads(option):
                continue
            values = self.setting.settled(self.promised(option))[:, 0]
            for i in np.argsort(values, kind="stable").tolist():
                if values[i] * (1 + 2 * ROUNDED) >= best:
                    break
                best = min(best, self._least(option, option.held[i], best))
        return best

    def _least(self, option: UnitOption, held: Placement, known: float) -> float:
        """The least value of a choice of stores, if it is below what is known: those that look best are looked at
        closely first."""
        values = self.settled(option, held)[:, 0]
        if not self.closer:
            return float(values.min())
        order = np.argsort(values, kind="stable")
        step = max(FEW, 1)
        for some in np.split(order, np.arange(step, len(order), step)):
            if values[some[0]] >= known:
                break
            known = min(known, float(self.settled_close(option, held, some).min()))
        return known
