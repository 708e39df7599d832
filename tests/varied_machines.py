"""Machines that are like another one but for numbers, and what is asked of them."""

from __future__ import annotations

from dataclasses import fields, replace
from random import Random

from einloom.errors import SpecError
from einloom.machine.levels import Fanout, Machine, Memory
from einloom.mapspace.space import Mapspace
from einloom.problem import Objective
from einloom.search.exact.einsums.orders import refuse_first_readers
from einloom.workload.einsum import Workload

GOALS = (
    Objective("energy"),
    Objective("latency"),
    Objective("edp"),
    Objective("product", powers=(2.0, 1.0)),
    Objective("product", powers=(0.5, 2.0)),
)
PARETO = Objective("pareto")


def varied(machine: Machine, rng: Random) -> Machine:
    """The machine with smaller or equal memories, and other throughputs, energies and leakage."""
    levels = []
    for level in machine.levels:
        if isinstance(level, Fanout):
            levels.append(level)
            continue
        new: dict[str, object] = {}
        for one in fields(level):
            value = getattr(level, one.name)
            if one.name == "size":
                new["size"] = value if value is None else max(1, int(value * rng.choice((1, 1, 0.75, 0.5))))
                if value is None and isinstance(level, Memory) and rng.random() < 0.1:
                    new["size"] = 4096
            elif one.name.endswith("throughput"):
                new[one.name] = rng.choice((None, 3.0)) if value is None else value * rng.choice((0.25, 0.5, 1, 2))
            elif one.name.endswith("energy") or one.name == "leakage":
                new[one.name] = value * rng.choice((0.5, 1, 1, 2, 3)) if value else rng.choice((0.0, 0.0, 0.5))
        levels.append(replace(level, **new))
    return replace(machine, levels=tuple(levels))


def searched(workload: Workload, machine: Machine, space: Mapspace) -> Mapspace:
    """The space; in the program's order where `exact` searches no free one, as one of the thousand problems."""
    try:
        refuse_first_readers(workload, machine)
    except SpecError:
        return replace(space, order="program")
    return space
