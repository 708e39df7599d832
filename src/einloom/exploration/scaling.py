"""What a proven bound on one machine says of another one: docs/explore.md, "Bounds from other machines".

Comes in: two machines that differ in sizes, throughputs, energies and leakage alone. Goes out: a factor. If every
memory of the first is at least as large, every mapping of the second is one of the first, and costs at least the factor
times what it costs there.
"""

from __future__ import annotations

from dataclasses import fields, replace
from math import inf

from ..dataclass import dataclass
from ..machine.levels import ComputeUnit, Fanout, Level, Machine, Memory, Toll
from ..problem import Objective

_SIZES = ("size",)
_ENERGIES = ("read_energy", "write_energy", "energy")
_THROUGHPUTS = ("read_throughput", "write_throughput", "throughput")
_FREE = {**dict.fromkeys(_SIZES + _THROUGHPUTS), **dict.fromkeys((*_ENERGIES, "leakage", "area"), 0.0)}
"""What a level may differ in, with the value that stands for all."""
SAFE = 1 - 1e-12  # for sums that were rounded


@dataclass(frozen=True, slots=True)
class Profile:
    """A machine apart into what must be equal and what may differ. times: seconds per bit or operation, 0 where a
    throughput is unlimited. leaks: watts of all instances of a component."""

    shape: tuple[object, ...]
    sizes: tuple[float, ...]
    energies: tuple[float, ...]
    times: tuple[float, ...]
    leaks: tuple[float, ...]

    @staticmethod
    def of(machine: Machine) -> Profile:
        levels = [level for level in machine.levels if not isinstance(level, Fanout)]
        shape = (machine.partial_sums, machine.startup, *(_alike(level) for level in machine.levels))
        sizes = tuple(inf if one.size is None else float(one.size) for one in levels if isinstance(one, Memory))
        return Profile(
            shape,
            sizes,
            _all(levels, _ENERGIES),
            tuple(0.0 if one == inf else 1 / one for one in _all(levels, _THROUGHPUTS)),
            tuple(one.leakage * machine.instances(one.name) for one in machine.components),
        )


def _alike(level: Level) -> Level:
    """The level without what it may differ in."""
    names = {one.name for one in fields(level)}
    return replace(level, **{name: value for name, value in _FREE.items() if name in names})  # type: ignore[arg-type]


def _all(levels: list[Memory | Toll | ComputeUnit], names: tuple[str, ...]) -> tuple[float, ...]:
    """The fields of these names of all levels that have them; unlimited is infinite."""
    found = [getattr(level, name) for level in levels for name in names if hasattr(level, name)]
    return tuple(inf if one is None else float(one) for one in found)


def holds_more(known: Profile, other: Profile) -> bool:
    """True if the machines are alike and every memory of `known` is at least as large: what is legal on the other is
    legal there."""
    return known.shape == other.shape and all(a >= b for a, b in zip(known.sizes, other.sizes, strict=True))


def factors(known: Profile, other: Profile, objective: Objective) -> tuple[float, float]:
    """What a lower bound of the objective on `known` is multiplied with to be one on `other`, and 1; for ``pareto`` the
    same of energy and of latency. 0 where it says nothing.

    Energy is a sum of counts times energies, and of leakage times latency; latency is made of sums and maxima of counts
    times seconds. So each is at least the least ratio of its parts times what it was. Traffic depends on neither.
    """
    if not holds_more(known, other):
        return 0.0, 0.0
    slower = _least(known.times, other.times)
    leaks = _least(known.leaks, other.leaks)
    dearer = min(_least(known.energies, other.energies), inf if inf in (leaks, slower) else leaks * slower)
    slower, dearer = (1.0 if one == inf else one for one in (slower, dearer))
    if objective.name == "pareto":
        return dearer * SAFE, slower * SAFE
    powers = {"energy": (1.0, 0.0), "latency": (0.0, 1.0), "edp": (1.0, 1.0), "traffic": (0.0, 0.0)}.get(
        objective.name, objective.powers
    )
    return float(dearer ** powers[0] * slower ** powers[1] * SAFE), 1.0


def _least(known: tuple[float, ...], other: tuple[float, ...]) -> float:
    """The least ratio of what is above 0 on the known machine; infinite where nothing is."""
    return min((b / a for a, b in zip(known, other, strict=True) if a > 0), default=inf)
