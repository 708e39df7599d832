"""Lower bounds of one Einsum: what it costs at least, wherever its shared tensors live and whatever surrounds it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from ..einsums.spatial import RankClasses
from ..fusion.explore import Explorer
from ..fusion.floors import Floors
from ..model import Setting
from .cutoff import TIE

RELAXATION_CUTOFFS = (1e-9, 0.03, 0.08, 0.15, 0.25, 0.4, 0.6, 0.85, 1.2, 1.6, 2.2, 3.0, 4.5, 8.0, 20.0, 100.0, np.inf)
DIVES = (0.25, 1.2, 4.5, 20.0, np.inf)  # limits of a dive for a row that shows how far the exact pass has to look
SLIDING = 300  # spatial choices under which windows slide, each some 20 ms
ALONE_CUTOFFS = (1e-6, 0.1, 0.25, 0.4, 0.6, 0.8, 1.0, 1.3, 1.6, 2.0, 3.0, 4.0, 6.0, 8.0, 16.0, 64.0, np.inf)


def einsum_bound(setting: Setting, classes: RankClasses, most: float = float("inf")) -> float:
    """The least objective value of the Einsum's stores other than backing ones, fused loops and shared room ignored.

    A valid bound: any mapping of the Einsum inside a cascade places the same own stores under at least as many loops
    that count, so each of its moves costs at least as much. Where it is above `Floors.least`, the best row of a dive
    says how far to look for the least; without one a limit is raised, and where memories stand side by side, of which a
    dive, which puts no charges off, knows little. So it is where windows slide under many spatial choices, each of
    which has tables of its own, as long as few stay within it. Infinite if nothing fits. For latency
    the floor itself is nearly always attained and is returned; so it is where a store may be filled by another Einsum,
    which a row does not know. most: nothing above it is looked for."""
    floor = Floors(setting, classes).least()
    if setting.objective.name == "latency" or any(tensor.joins for tensor in classes.signature.tensors):
        return floor
    limits = [floor * (1 + step) if np.isfinite(step) and floor > 0 else np.inf for step in RELAXATION_CUTOFFS]
    best = _within(setting, classes, limits[0])
    if best <= limits[0] or not np.isfinite(limits[0]):
        return max(best, floor)
    slides = setting.rules.sliding and any(tensor.slides for tensor in classes.signature.tensors)
    if slides and _spread(setting, classes, floor * (1 + DIVES[1])) > SLIDING:
        return max(_climbed(setting, classes, limits), floor)
    dives = most == np.inf and not any(option.side_by_side for option in classes.signature.units)
    known = _dived(setting, classes, floor) if dives else most
    if np.isfinite(known):  # a row of the dive may leave less room than its stores need: then no choice is within it
        best = _within(setting, classes, known)
        return max(best, floor) if best <= known or most < np.inf else max(known, floor)
    for limit in limits[1:]:
        best = _within(setting, classes, limit)
        if best <= limit:
            break
    return max(best, floor)


def _spread(setting: Setting, classes: RankClasses, limit: float) -> int:
    """How many spatial choices can stay within the limit."""
    return Explorer(setting, classes, column_limits(setting, limit), {}).spread()


def _climbed(setting: Setting, classes: RankClasses, limits: list[float]) -> float:
    """The least value of a row, or the last of these limits within which none is and few spatial choices can stay; the
    first was tried in vain."""
    last = limits[0]
    for limit in limits[1:]:
        if _spread(setting, classes, limit) > SLIDING:
            break
        last = limit
    return last if last == limits[0] else min(last, _within(setting, classes, last))


def _dived(setting: Setting, classes: RankClasses, floor: float) -> float:
    """What some row costs, quickly found; infinite if none is."""
    quick = replace(setting, rules=replace(setting.rules, heuristic=True, deferral=False))
    for step in DIVES:
        limit = floor * (1 + step) if floor > 0 else np.inf
        best = _within(quick, classes, limit)
        if np.isfinite(best) or not np.isfinite(limit):
            return best * (1 + TIE)
    return float("inf")


def _within(setting: Setting, classes: RankClasses, limit: float) -> float:
    """The least value of a row of the relaxation that stays within the limit; infinite without one."""
    explorer = Explorer(setting, classes, column_limits(setting, limit), {})
    return min((float(setting.settled(rows.cost).min(initial=np.inf)) for rows in explorer.relaxed()), default=np.inf)


def alone_bound(
    setting: Setting, classes: RankClasses, floor: float, proven: Callable[[float], None] = lambda least: None
) -> float:
    """The least objective value of the Einsum with its backing stores, the room that they take and fused loops, its
    partners ignored; infinite if it has no mapping. floor: a lower bound of it. proven: hears of it as it rises.

    Every row of an Einsum in a cascade is one of these. Much above `einsum_bound` where memories are small.
    """
    for step in ALONE_CUTOFFS:
        limit = floor * (1 + step) if np.isfinite(step) and floor > 0 else np.inf
        explorer = Explorer(setting, classes, column_limits(setting, limit), {})
        best = min((float(group.cost.min()) for group in explorer.blocks()), default=np.inf)
        if best <= limit:
            return max(best, floor)
        if np.isfinite(limit):
            proven(max(limit, floor))
    return float("inf")


def column_limits(setting: Setting, limit: float, latency: float | None = None) -> np.ndarray:
    """Largest useful value of each column when the settled objective may not exceed `limit`, or, where that is energy
    beside latency, the other one `latency`."""
    if latency is None and setting.objective.name != "energy":
        return np.full(len(setting.columns), limit)
    watts = setting.machine.leakage
    alone = limit / watts if watts > 0 else np.inf
    return np.array([limit if c.kind == "energy" else alone if latency is None else latency for c in setting.columns])
