"""Results as pandas DataFrames: the one module that imports pandas, and only when a frame is asked for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from ..errors import need, unknown
from ..result import Result

if TYPE_CHECKING:
    import pandas


def frame(records: Iterable[dict[str, Any] | Sequence[object]], heads: Sequence[str] = ()) -> pandas.DataFrame:
    """A DataFrame of records, or of rows below their heads. Raises MissingExtra without pandas."""
    need("pandas", "notebook")
    import pandas as found

    return found.DataFrame.from_records(list(records), columns=list(heads) or None)


def actions(result: Result) -> pandas.DataFrame:
    """A row per Einsum, component, tensor and action: count, bits, bits of the busiest instance, joules."""
    heads = ("einsum", "component", "tensor", "action", "count", "bits", "busiest", "energy")
    return frame(map(attrgetter(*heads), result.cost.actions), heads)


def energy(result: Result) -> pandas.DataFrame:
    """Joules: a row per Einsum, a column per component."""
    table = actions(result).pivot_table(index="einsum", columns="component", values="energy", aggfunc="sum", sort=False)
    order = [component.name for component in result.machine.components]
    return table.fillna(0.0)[[name for name in order if name in table.columns]]


def traffic(result: Result) -> pandas.DataFrame:
    """Bits moved: a row per memory and tensor, a column each for reads and writes."""
    need("pandas", "notebook")
    import pandas as found

    moved = [one for one in result.cost.actions if one.action in ("read", "write")]
    ways = dict.fromkeys(one.action for one in moved)
    sums = {(one.component, one.tensor): dict.fromkeys(ways, 0) for one in moved}
    for one in moved:
        sums[one.component, one.tensor][one.action] += one.bits  # whole numbers, which may be larger than NumPy's
    names = list(dict.fromkeys(component for component, _ in sums))
    rows = sorted(sums, key=lambda row: names.index(row[0]))
    index = found.MultiIndex.from_tuples(rows, names=["component", "tensor"])
    return found.DataFrame([list(sums[row].values()) for row in rows], index, found.Index(list(ways), name="action"))


def latency(result: Result) -> pandas.DataFrame:
    """Seconds: a row per Einsum and component that it keeps busy."""
    return frame(result.cost.busy, ("einsum", "component", "seconds"))


def occupancy(result: Result) -> pandas.DataFrame:
    """Bits in one instance at the worst moment: a row per memory and tensor alive then, with the memory's size."""
    rows = [(o.memory, tensor, number, o.bits, o.size) for o in result.cost.occupancy for tensor, number in o.tensors]
    return frame(rows, ("memory", "tensor", "bits", "peak", "size"))


def trace(result: Result) -> pandas.DataFrame:
    """Best value and proven bound over time: a row per change."""
    heads = ("seconds", "best", "bound")
    return frame(map(attrgetter(*heads), result.trace), heads)


def front(result: Result) -> pandas.DataFrame:
    """The Pareto set: a row per mapping, with its tree as text; empty if the result has none."""
    rows = [(p.energy, p.latency, p.energy * p.latency, str(p.mapping)) for p in result.front]
    return frame(rows, ("energy", "latency", "edp", "mapping"))


FRAMES = {
    "actions": actions,
    "energy": energy,
    "traffic": traffic,
    "latency": latency,
    "occupancy": occupancy,
    "trace": trace,
    "front": front,
}


def frame_of(result: Result, what: str) -> pandas.DataFrame:
    """The DataFrame called `what`. Raises SpecError with a suggestion for an unknown name."""
    if what not in FRAMES:
        raise unknown("frame", what, FRAMES)
    return FRAMES[what](result)
