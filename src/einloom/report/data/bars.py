"""Energy, traffic and busy time by Einsum, level, tensor and action: what bars are drawn from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

from ...cost.breakdown import Action, ActionName
from ...dataclass import dataclass
from ...errors import SpecError, unknown
from ...machine.levels import Toll
from ...result import Result

Key = Literal["einsum", "component", "tensor", "action"]
Quantity = Literal["energy", "traffic", "latency"]
KEYS: tuple[Key, ...] = get_args(Key)
MOVED = ("read", "write")


@dataclass(frozen=True, slots=True)
class Row:
    """One bar, or a bar for each of its parts: (name, number of its look, value); limit: the latency it stands for."""

    name: str
    parts: tuple[tuple[str, int, float], ...]
    limit: float | None = None


def rows_of(results: Sequence[Result], labels: Sequence[str], what: Quantity, rows: Key, parts: Key) -> tuple[Row, ...]:
    """A row for each Einsum (level, tensor, action) of the one result, or a row for each of several results.

    Raises SpecError for an unknown key, and where two of several results have the same label.
    """
    for key in (rows, parts):
        if key not in KEYS:
            raise unknown("way to group bars", key, KEYS)
    several = len(results) > 1
    if several and len(set(labels)) < len(labels):
        raise SpecError(f"two results have the same label: {', '.join(labels)}")
    table: dict[str, dict[str, float]] = {}
    for label, result in zip(labels, results, strict=True):
        for row, part, value in _values(result, what, rows, parts):
            bar = table.setdefault(label if several else row, {})
            bar[part] = bar.get(part, 0.0) + value
    names = list(labels) if several else names_of(results, rows)
    number = {name: i for i, name in enumerate(names_of(results, parts))}
    limits: dict[str, float] = {}
    if what == "latency":
        limits = dict(results[0].cost.einsum_latency)
        if several:
            limits = {label: result.latency for label, result in zip(labels, results, strict=True)}
    kept = [name for name in names if table.get(name) or limits.get(name)]
    ordered = {name: sorted(table.get(name, {}).items(), key=lambda pair: number[pair[0]]) for name in kept}
    return tuple(Row(n, tuple((p, number[p], v) for p, v in ordered[n]), limits.get(n)) for n in kept)


def _values(result: Result, what: Quantity, rows: Key, parts: Key) -> list[tuple[str, str, float]]:
    """(row, part, value) of everything that is not nothing."""
    if what == "latency":
        found = [(einsum, component, seconds) for einsum, component, seconds in result.cost.busy]
    else:
        actions = [a for a in result.cost.actions if what == "energy" or a.action in MOVED]
        pairs = [(a, a.energy if what == "energy" else float(a.bits)) for a in actions]
        found = [(_name(a, rows), _name(a, parts), value) for a, value in pairs]
    return [one for one in found if one[2]]


def _name(action: Action, key: Key) -> str:
    value = getattr(action, key)
    return "operations" if value is None else str(value)


def names_of(results: Sequence[Result], key: Key) -> list[str]:
    """Every name of a kind, in the order in which the report counts them."""
    found: dict[str, None] = {}
    for result in results:
        workload, machine = result.workload, result.machine
        names: Sequence[str] = get_args(ActionName)
        if key == "einsum":
            names = result.mapping.einsums
        elif key == "component":
            names = [component.name for component in machine.components]
        elif key == "tensor":
            names = [*workload.intermediates, *(tensor.name for tensor in workload.tensors), "operations"]
        found |= dict.fromkeys(names)
    return list(found)


def sums(result: Result, *keys: Key) -> dict[tuple[str, ...], tuple[int, int, float]]:
    """(count, bits, joules) of all actions that have the same `keys`, where these are not nothing."""
    found: dict[tuple[str, ...], tuple[int, int, float]] = {}
    for a in result.cost.actions:
        key = tuple(getattr(a, name) or "-" for name in keys)
        count, bits, joules = found.get(key, (0, 0, 0.0))
        found[key] = (count + a.count, bits + a.bits, joules + a.energy)
    return {key: one for key, one in found.items() if one[0] or one[2]}


def busy_seconds(result: Result) -> list[float]:
    """For each action the seconds for which it keeps the busiest instance of its component busy.

    Where reads and writes have ports of their own only the slower of the two counts, so that the seconds of an Einsum
    and a component add up to `Cost.busy`.
    """
    alone = [_alone(result, action) for action in result.cost.actions]
    sums: dict[tuple[str, str, str], float] = {}
    for action, seconds in zip(result.cost.actions, alone, strict=True):
        key = (action.einsum, action.component, action.action)
        sums[key] = sums.get(key, 0.0) + seconds
    separate = {memory.name for memory in result.machine.memories if memory.ports == "separate"}

    def counts(action: Action) -> bool:
        if action.component not in separate or action.action not in ("read", "write"):
            return True
        read, written = (sums.get((action.einsum, action.component, way), 0.0) for way in ("read", "write"))
        return (read >= written) == (action.action == "read")

    return [seconds if counts(a) else 0.0 for a, seconds in zip(result.cost.actions, alone, strict=True)]


def _alone(result: Result, action: Action) -> float:
    """Seconds of one action by itself."""
    if action.action == "leak":
        return 0.0
    if action.action == "compute":
        rate = result.machine.unit(action.component).throughput
    elif isinstance(way := result.machine.way(action.component), Toll):
        rate = way.throughput
    else:
        rate = way.read_throughput if action.action == "read" else way.write_throughput
    return action.busiest / rate if rate else 0.0
