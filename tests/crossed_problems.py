"""Problems with too many trees to look at all, each asked in variants whose optima judge each other.

The variants of a problem have the same Einsums and levels, and other objectives, energies, speeds, sizes and limits. So
every tree that one of them ends with is a tree that another one may have to know of: legal there and in its space, it
costs no less than what is proven. Methods without a proof go on from each of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from copy import deepcopy
from dataclasses import replace
from random import Random

from einloom.cost.evaluate import evaluate, legality
from einloom.dataclass import dataclass
from einloom.errors import BudgetExhausted, Infeasible, SpecError
from einloom.machine.levels import Machine
from einloom.mapping.text import print_mapping
from einloom.mapping.tree import Mapping
from einloom.mapspace.ffm.rules import outside
from einloom.problem import Budget, Objective, Problem, keeps_time
from einloom.search.door import ask
from einloom.search.registry import method
from einloom.testing.problems.claims import REFUSED
from einloom.testing.problems.drawing import Effort, sketches, wanted
from einloom.testing.problems.files import Data, Files
from einloom.testing.problems.spaces import space

STEPS = 60_000
MOVES = 300
GROUPS_REFUSED = "exact searches no groups of Einsums"
LIMITS = ("memories", "fusion", "loops", "tiles", "axes")
NARROWER: dict[str, Data] = {
    "max_fused_loops": {"max_fused_loops": 1},
    "stores": {"stores": "own"},
    "order": {"order": "program"},
    "concurrent": {"concurrent": "none"},
    "space": {"space": "ffm"},
    "again": {"max_fused_loops_per_rank_variable": 1},
}
WIDER: dict[str, Data] = {
    "stores": {"stores": "shared"},
    "order": {"order": "free"},
    "space": {"space": "ragged"},
    "again": {"max_fused_loops_per_rank_variable": 2, "max_fused_loops": 2},
    "unit": {"concurrent": "unit"},
    "axis": {"concurrent": "axis"},
    "everywhere": {"concurrent": "everywhere"},
}
DRAWN = {
    "holds": {"keep or bypass", "fetched once"},
    "fusion": {"fusion limit"},
    "loop": {"loop limit"},
    "tile": {"tile limit"},
    "axis": {"axis limit"},
}


def drawn(seed: int) -> Files:
    """A problem of up to five Einsums with ranks of up to sixteen, of some dimensions."""
    want = wanted(seed)
    for attempt in range(40):
        rng = Random(f"crossed {seed} {attempt}")
        on = frozenset((*want.core, *want.more[: rng.randint(0, 4)]))
        found = sketches(rng, on, Effort(rooms=(rng.choice((16, 32, 64, 128)),)))
        try:
            if (files := next(found, None)) is not None:
                _ = files.read
                return files
        except SpecError:  # its axes, say, are not those that limits name
            continue
    raise AssertionError(f"no problem of seed {seed} came up")


def machine_like(rng: Random, machine: Data) -> Data:
    """The machine with some other energies, speeds and sizes."""
    changed = deepcopy(machine)
    for level in changed["levels"]:
        for key in [key for key in level if rng.random() < 0.5]:
            if key in ("read_energy", "write_energy", "energy", "leakage"):
                level[key] *= rng.choice((0, 0.5, 2, 4, 10))
            elif key in ("read_throughput", "write_throughput", "throughput"):
                level[key] *= rng.choice((0.25, 0.5, 2, 4))
            elif key == "size" and "memory" in level:
                level[key] = max(1, int(level[key] * rng.choice((0.5, 0.75, 1.5, 2, 4))))
    return changed


def narrower(rng: Random, files: Files) -> Data:
    """The mapspace with one limit more, or without one of its freedoms."""
    workload, machine, _ = files.read
    kind = rng.choice((*NARROWER, *DRAWN))
    if kind in NARROWER:
        return {**files.mapspace, **NARROWER[kind]}
    new = space(rng, DRAWN[kind], workload, machine)
    return {**{key: new[key] for key in LIMITS if key in new}, **files.mapspace}


def wider(rng: Random, mapspace: Data) -> Data:
    """The mapspace without its limits, or with one freedom more."""
    kind = rng.choice(("unlimited", *WIDER))
    if kind == "unlimited":
        return {key: value for key, value in mapspace.items() if key not in LIMITS}
    return {**mapspace, **WIDER[kind]}


def goal(rng: Random, machine: Machine) -> Objective:
    """Any objective that the machine has."""
    found = [Objective("energy"), Objective("traffic", rng.choice(machine.memories).name)]
    if keeps_time(machine):
        found += [Objective(name) for name in ("latency", "edp", "edp", "pareto")]
        found += [Objective("product", powers=powers) for powers in ((2.0, 1.0), (0.5, 3.0))]
    return rng.choice(found)


def variants(seed: int, count: int) -> Iterator[Problem]:
    """The problem of a seed and `count` others with the same Einsums and levels."""
    rng, files = Random(f"variants {seed}"), drawn(seed)
    for number in range(count + 1):
        changed = files
        if number and rng.random() < 0.6:
            changed = Files(changed.workload, machine_like(rng, changed.machine), changed.mapspace)
        if number and rng.random() < 0.6:
            changed = Files(changed.workload, changed.machine, narrower(rng, changed))
        if number and rng.random() < 0.4:
            changed = Files(changed.workload, changed.machine, wider(rng, changed.mapspace))
        workload, machine, mapspace = changed.read
        yield Problem(workload, machine, mapspace, goal(rng, machine))


@dataclass(frozen=True)
class Asked:
    """What is proven of a problem, and the trees that were found on the way."""

    problem: Problem
    bound: float
    trees: tuple[Mapping, ...]

    def value(self, tree: Mapping) -> float | None:
        """What a tree costs, if it is legal and in the space."""
        workload, machine = self.problem.workload, self.problem.machine
        if legality(workload, machine, tree) or outside(workload, machine, self.problem.mapspace, tree):
            return None
        return self.problem.objective.value(evaluate(workload, machine, tree))


def asked(problem: Problem, name: str) -> Asked:
    """What `exact` proves and finds, and what another method finds from there."""
    try:
        found = ask(method("exact"), problem, Budget(steps=STEPS))
    except Infeasible:
        return Asked(problem, float("inf"), ())
    except BudgetExhausted as ended:
        return Asked(problem, float(ended.bound or 0.0), ())
    except SpecError as error:
        if not any(reason in error.message for reason in (*REFUSED, GROUPS_REFUSED)):
            raise
        return Asked(problem, 0.0, ())
    assert found.certificate is not None
    trees = [found.mapping, *(point.mapping for point in found.front)]
    single = replace(problem, objective=Objective("edp")) if problem.objective.name == "pareto" else problem
    with suppress(BudgetExhausted, Infeasible):
        trees.append(ask(method(name), single, Budget(steps=MOVES), starts=[found.mapping]).mapping)
    return Asked(problem, found.certificate.bound, tuple(trees))


@dataclass
class Crossed:
    """What came of a seed: how many trees were priced in another problem, and what is wrong."""

    priced: int
    wrong: list[str]


def crossed(seed: int, count: int = 6) -> Crossed:
    """Every variant asked, and each of their trees priced in all of them."""
    known = [asked(problem, ("anneal", "genetic", "local")[seed % 3]) for problem in variants(seed, count)]
    found = Crossed(0, [])
    for number, one in enumerate(known):
        for tree in one.trees:
            for place, other in enumerate(known):
                value = other.value(tree)
                found.priced += value is not None and place != number
                if value is not None and value < other.bound * (1 - 1e-9):
                    said = f"{other.problem.objective} is at least {other.bound!r}, the tree of {number} has {value!r}"
                    found.wrong.append(f"{seed}, {place}: {said}: {print_mapping(tree, one.problem.workload)}")
    return found
