"""A search among few choices: of each Einsum's stores and spatial loops those that promise most.

Comes in: an attempt whose Einsums have too many choices to be listed soon. Goes out: the same attempt with few of them.
What it finds is a mapping of the space; that it finds nothing says nothing (docs/exact.md, few choices).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from math import prod, sqrt
from operator import floordiv

import numpy as np

from ...dataclass import dataclass
from ...errors import Infeasible
from .attempt import Attempt
from .bounds.choices import Agreement, Choices, Keys
from .einsums.classes import AxisSignature, EinsumClass, UnitOption
from .einsums.holds import backing
from .einsums.runs import Row, SpatialChoice
from .einsums.spatial import FewSpreads, RankClasses, Shares, like_axes
from .fusion.floors import Floors
from .numerics.pareto import FloatArray, IntArray

SPARSE = 2  # classes that take more than one instance of an axis, at most
IDLE = 2  # the least instances of an axis that are taken are one part in so many of the most
SAMPLED = 6  # spatial choices by which choices of stores are compared
COMPARED = 8  # choices of stores from which on that is done


@dataclass(frozen=True)
class Few:
    """How many choices stay. spreads: spatial ones of an Einsum, for a start; alike: of those that partners cannot tell
    apart; choices: of stores and spatial loops, of an Einsum in all; fused: fused loops, at most."""

    spreads: int
    alike: int
    choices: int
    fused: int


def crowd(attempt: Attempt) -> int:
    """About how many choices of stores and spatial loops all kinds of Einsums have, without listing any: a measure of
    how hard they are. Axes that one Einsum alone cannot tell apart count as one; those in full use, which few choices
    fill, do not count."""
    return sum(len(option.held) * number for option, number in _spreads(attempt))


def _spreads(attempt: Attempt) -> Iterator[tuple[UnitOption, int]]:
    """About how many spatial choices each kind of Einsum has on each unit."""
    for signature in dict.fromkeys(attempt.signatures):
        attempt.checkpoint()
        classes, seen = attempt.classes[signature], replace(signature, swaps=())
        for option in signature.units:
            axes, shares = signature.visible(option.fanouts), Shares(classes, option, uneven=False)
            groups = [] if signature.copy else like_axes(seen, option, axes)
            merged = [replace(axes[group[0]], size=prod(axes[i].size for i in group)) for group in groups]
            yield option, prod(_number(shares, axis) for axis in merged if not axis.full)


def _number(shares: Shares, axis: AxisSignature) -> int:
    """How many rows an axis has by itself: products of what its classes may take that are no larger than it is."""
    ways = {1: 1}
    for d in range(len(shares.classes.extents)):
        more: dict[int, int] = {}
        takes = shares.allowed(axis, d)
        for product, number in ways.items():
            for z in takes:
                if product * z <= axis.size:
                    more[product * z] = more.get(product * z, 0) + number
        ways = more
    return sum(ways.values())


def among_few(attempt: Attempt, few: Few) -> Attempt:
    """The attempt as a dive into few choices: those through which cascades may cost least, by least costs of single
    choices (`Agreement`)."""
    quick, keys = attempt.hurried(sliding=False), Keys()
    every = {signature: _listed(quick, signature, few, keys) for signature in dict.fromkeys(attempt.signatures)}
    choices = [every[signature][1] for signature in attempt.signatures]
    if not all(map(len, choices)):
        raise Infeasible("an Einsum has none of these choices")
    floors = np.array([np.concatenate([some.cost for some in mine]).min(axis=0) for mine in choices])
    quick.least = np.maximum(attempt.least, floors)
    values = Agreement(quick.problem.workload, keys, quick.least, quick.cutoff, {}).through(choices)
    kept: dict[EinsumClass, tuple[RankClasses, list[Choices]]] = {}
    for signature, (classes, mine) in every.items():
        best = np.min([v for one, v in zip(attempt.signatures, values, strict=True) if one == signature], axis=0)
        kept[signature] = _chosen(classes, mine, best, few.choices)
    quick.signatures = [kept[signature][0].signature for signature in attempt.signatures]
    quick.classes, quick.many = {classes.signature: classes for classes, _ in kept.values()}, {}
    quick.__dict__.update(_keys=keys, _choices=[kept[signature][1] for signature in attempt.signatures])
    quick.setting = replace(quick.setting, max_fused_loops=min(few.fused, quick.setting.max_fused_loops or 0))
    quick.agreed = max([attempt.agreed, *(float(v.min()) for v in values if len(v) and np.isfinite(v.min()))])
    return quick


def _listed(quick: Attempt, signature: EinsumClass, few: Few, keys: Keys) -> tuple[RankClasses, list[Choices]]:
    """Few choices of an Einsum by itself: for each way in which partners may meet its tensors, the least costly."""
    homely = replace(signature, units=tuple(_homely(signature, option) for option in signature.units))
    plain = RankClasses(homely, quick.checkpoint)
    spreads = {option: _spread(plain, option, few.spreads) for option in homely.units}
    thinned = {option: _thinned(quick, homely, option, some, few.alike) for option, some in spreads.items()}
    signature = replace(homely, units=tuple(thinned.values()))
    classes = FewSpreads(signature, quick.checkpoint, {thinned[option]: some for option, some in spreads.items()})
    floors, found = Floors(quick.setting, classes), []
    for option in signature.units:
        if classes.spreads(option):
            choices = keys.on(floors, option)
            order = np.argsort(_weighed(choices.cost), kind="stable")
            some = choices.take(_first_of_each(map(bytes, choices.keys[order]), order, few.alike))
            found += [some] if len(some) else []
    return classes, found


def _homely(signature: EinsumClass, option: UnitOption) -> UnitOption:
    """The unit without choices of stores in which the memory next to it, of several behind fanouts, backs what Einsums
    share: all of them would have to spread alike, and its room is small."""
    last = len(option.above) - 1
    if last < 2 or not option.above[last]:
        return option
    held = tuple(held for held in option.held if all(backing(held, t) < last for t in signature.fusable))
    return replace(option, held=held or option.held)


def _thinned(
    quick: Attempt, signature: EinsumClass, option: UnitOption, spreads: tuple[SpatialChoice, ...], alike: int
) -> UnitOption:
    """The unit with few choices of stores for each choice of what backs shared tensors, by some spatial choices."""
    if len(option.held) <= COMPARED or not spreads:
        return option
    some = spreads[:: -(-len(spreads) // SAMPLED)]
    alone = replace(signature, units=(option,))
    floors = Floors(quick.setting, FewSpreads(alone, quick.checkpoint, {option: some}))
    cost = np.concatenate([floors.of(option, held) for held in option.held])
    values = _weighed(quick.setting.settled(cost)).reshape(len(option.held), -1).min(axis=1)
    order = np.argsort(values, kind="stable")
    backings = (tuple(backing(option.held[i], t) for t in signature.fusable) for i in order)
    return replace(option, held=tuple(option.held[i] for i in sorted(_first_of_each(backings, order, alike))))


def _weighed(cost: FloatArray) -> FloatArray:
    """Settled columns [n, c] added up, each beside its least [n]."""
    least = cost.min(axis=0, initial=np.inf)
    return np.asarray((cost / np.where(least > 0, least, 1.0)).sum(axis=1))


def _first_of_each(keys: Iterable[object], order: IntArray, most: int) -> IntArray:
    """Of numbers in order, the first few of each key."""
    met: dict[object, int] = {}
    found = []
    for number, key in zip(order.tolist(), keys, strict=True):
        met[key] = met.get(key, 0) + 1
        if met[key] <= most:
            found.append(number)
    return np.array(found, np.int64)


def _chosen(
    classes: RankClasses, mine: list[Choices], values: FloatArray, most: int
) -> tuple[RankClasses, list[Choices]]:
    """The choices of the least values, with the rank classes and the stores that they are among."""
    best = np.sort(np.argsort(values, kind="stable")[:most])
    best, start = best[np.isfinite(values[best])], 0
    spreads: dict[UnitOption, tuple[SpatialChoice, ...]] = {}
    kept = []
    options = {option.unit: option for option in classes.signature.units}
    for choices in mine:
        some = choices.take(best[(best >= start) & (best < start + len(choices))] - start)
        start += len(choices)
        if len(some):
            option = options[some.unit]
            held, some.held = np.unique(some.held, return_inverse=True)
            spread, some.spread = np.unique(some.spread, return_inverse=True)
            fewer = replace(option, held=tuple(option.held[i] for i in held))
            spreads[fewer] = tuple(classes.spreads(option)[i] for i in spread)
            kept.append(some)
    return FewSpreads(replace(classes.signature, units=tuple(spreads)), classes.checkpoint, spreads), kept


# -- spatial choices --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Part:
    """Instances of the first axes. left: of each class; taken: in all; reuse: of each tensor, how many instances one
    value serves."""

    rows: SpatialChoice
    left: Row
    taken: int
    reuse: Row

    @property
    def rank(self) -> float:
        """Small where values serve many instances, and many are taken."""
        return sum(1 / n for n in self.reuse) / sqrt(self.taken)


def _spread(classes: RankClasses, option: UnitOption, most: int) -> tuple[SpatialChoice, ...]:
    """Few spatial choices of a unit: many instances, few moves, and different ones above what backs shared tensors."""
    signature = classes.signature
    axes = signature.visible(option.fanouts)
    if signature.copy or any(axis.full for axis in axes):
        every = classes.spreads(option)  # few, and no other fills the axes
        return every[:: -(-len(every) // most)] if every else ()
    upper = max((option.above[backing(held, t)] for held in option.held for t in signature.fusable), default=0)
    outer = sum(axis.fanout < upper for axis in axes)
    shares = Shares(classes, option, uneven=False)
    found = [_Part((), classes.extents, 1, (1,) * len(signature.tensors))]
    for axis in axes:
        groups: dict[SpatialChoice, list[_Part]] = {}
        for part in _extended(classes, shares, axis, found):
            groups.setdefault(part.rows[:outer], []).append(part)
        each = max(4, most // len(groups)) if groups else 0
        best = (sorted(parts, key=lambda part: part.rank)[:each] for parts in groups.values())
        found = sorted((part for parts in best for part in parts), key=lambda part: part.rank)[: 2 * most]
    return tuple(part.rows for part in found)


def _extended(classes: RankClasses, shares: Shares, axis: AxisSignature, parts: list[_Part]) -> Iterator[_Part]:
    """Every part with the instances of one axis more: of most of it, by few classes."""
    known: dict[Row, list[Row]] = {}
    dims = range(len(classes.extents))
    takes = [shares.allowed(axis, d) for d in dims]
    for part in parts:
        classes.checkpoint()
        if part.left not in known:
            rows = [row for row in shares.rows(axis, part.left, takes) if sum(z > 1 for z in row) <= SPARSE]
            most = max(map(prod, rows), default=1)
            known[part.left] = [row for row in rows if prod(row) * IDLE > most]
        for row in known[part.left]:
            reuse = (
                n * prod(row[d] for d in dims if not classes.relevant(t, d)) if t in axis.joined else n
                for t, n in enumerate(part.reuse)
            )
            left = tuple(map(floordiv, part.left, row))
            yield _Part((*part.rows, row), left, part.taken * prod(row), tuple(reuse))
