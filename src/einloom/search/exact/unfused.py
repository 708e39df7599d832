"""A cascade with nothing fused: the best mapping of every Einsum alone, one after the other.

Comes in: an attempt. Goes out: a solution, which is no optimum but is there soon; equal Einsums are searched once.
"""

from __future__ import annotations

import numpy as np

from ...errors import Infeasible
from .attempt import Attempt, Solution
from .bounds.relaxation import column_limits
from .einsums.classes import EinsumClass
from .einsums.holds import chains_of
from .einsums.spatial import RankClasses
from .fusion.explore import Explorer, PmappingGroup, Wanted
from .fusion.floors import Floors
from .numerics.pareto import FloatArray

# above what an Einsum costs at least, tried one after the other: tables grow fast with what their rows may cost
SHARES = (0.05, 0.2, 0.3, 0.4, 0.6, 1.0, 1.5, 2.2, 3.2, 5.0, 8.0, 16.0, 64.0, float("inf"))


def unfused(attempt: Attempt, known: float = np.inf) -> Solution:
    """Every Einsum at its best, with intermediates in the outermost memory. Infeasible if some Einsum has no such
    mapping, or all of them together cost at least what is known; others may be better, as in all dives."""
    quick = attempt.heuristics()[0]
    quick.forget()
    least: dict[EinsumClass, FloatArray] = {}
    for i, signature in enumerate(quick.signatures):
        quick.watcher.stage("bounding Einsums alone", i, len(quick.signatures))
        if signature not in least:
            least[signature] = _least(quick, i)
    total = np.sum([least[signature] for signature in quick.signatures], axis=0)
    if not quick.cutoff.value(total[None])[0] < known:
        raise Infeasible("a cascade that fuses nothing costs no less than what is known")
    found: dict[EinsumClass, PmappingGroup] = {}
    for i, signature in enumerate(quick.signatures):
        quick.watcher.stage("mapping Einsums alone", i, len(quick.signatures))
        if signature not in found:
            found[signature] = _alone(quick, i, least[signature])
    blocks = [[found[signature]] for signature in quick.signatures]
    return quick.best(quick.joined(quick.join_of(blocks), blocks, quick.cutoff))


def _least(quick: Attempt, i: int) -> FloatArray:
    """What an Einsum that fuses nothing costs at least, of every settled column."""
    signature = quick.signatures[i]
    least: FloatArray = quick.least[i]
    if signature in quick.many:
        return least
    classes, found = quick.classes[signature], np.full(len(least), np.inf)
    floors, apart = Floors(quick.setting, classes), _apart(classes)
    for option in signature.units:
        for held in (one for one, mine in zip(option.held, apart[option.unit], strict=True) if mine.any()):
            found = np.minimum(found, floors.settled(option, held).min(axis=0))
    return np.asarray(np.maximum(found, least))


def _alone(quick: Attempt, i: int, least: FloatArray) -> PmappingGroup:
    """The one best row of an Einsum that fuses nothing. least: what it costs at least."""
    signature = quick.signatures[i]
    for share in SHARES:
        most = np.array([x * (1 + share) if x > 0 else np.inf for x in least])
        classes = _classes(quick, signature, most)
        explorer = Explorer(quick.setting, classes, column_limits(quick.setting, *most), quick.counts)
        explorer.wanted = _apart(classes)
        blocks = [block for block in explorer.blocks() if not block.structure.backings and not block.structure.asks]
        best = [block.take(np.argmin(quick.cutoff.value(block.cost), keepdims=True)) for block in blocks]
        if best:
            return min(best, key=lambda block: float(quick.cutoff.value(block.cost)[0]))
    raise Infeasible(f"Einsum {quick.problem.workload.einsums[i].name} has no mapping that fuses nothing")


def _classes(quick: Attempt, signature: EinsumClass, most: FloatArray) -> RankClasses:
    """The rank classes of an Einsum; of one with very many spatial choices with those that cost no more than this."""
    if signature not in quick.many:
        return quick.classes[signature]
    return quick.many[signature].near(quick.setting, lambda cost: np.asarray((cost <= most).all(axis=1)))


def _apart(classes: RankClasses) -> Wanted:
    """The choices in which the outermost memory backs whatever Einsums share."""
    signature, found = classes.signature, Wanted()
    for option in signature.units:
        chains = chains_of(option.held, len(signature.tensors))
        apart = [all(mine[t][0] == 0 for t in signature.fusable) for mine in chains]
        found[option.unit] = np.broadcast_to(np.array(apart)[:, None], (len(apart), len(classes.spreads(option))))
    return found
