"""Lower bounds of one Einsum: what it costs at least, wherever its shared tensors live and whatever surrounds it."""

from __future__ import annotations

import numpy as np

from .fused import Explorer, Setting
from .pricing import settle
from .signature import Signature
from .tables import Rows


def least_alone(setting: Setting, signature: Signature) -> float:
    """The least objective value of the Einsum's stores other than backing ones, fused loops and shared room ignored.

    Valid bound: any mapping of the Einsum inside a cascade places the same own stores under at least as many loops, so
    each of its moves costs at least as much.
    """
    explorer = Explorer(setting, signature, np.full(len(setting.columns), np.inf), {})
    best = np.inf
    for rows in explorer.relaxed():
        best = min(best, _least(setting, rows))
    return float(best)


def _least(setting: Setting, rows: Rows) -> float:
    if not len(rows):
        return float("inf")
    return float(settle(setting.machine, setting.columns, rows.cost, setting.objective).min())
