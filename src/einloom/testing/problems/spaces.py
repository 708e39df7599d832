"""Random mapspace files: every kind of limit, and where groups of Einsums may run at the same time."""

from __future__ import annotations

from collections.abc import Collection
from random import Random

from ...dataclass import dataclass
from ...machine.levels import Link, Machine
from ...workload.einsum import Workload
from ...workload.selectors import select
from .files import Data
from .words import expression

NUMBERS: tuple[object, ...] = (1, 2, [1, 2], [1, 3], {"least": 2}, {"most": 2}, {"least": 1, "most": 2})


@dataclass
class ProblemSpace:
    """What the limits of a mapspace are drawn from. on: names of `dimensions`."""

    rng: Random
    on: Collection[str]
    workload: Workload
    machine: Machine

    @property
    def memories(self) -> list[str]:
        return [memory.name for memory in self.machine.memories if not isinstance(memory, Link)]

    def memory(self) -> str:
        return self.rng.choice(self.memories[1:] or self.memories)

    def tensors(self) -> str:
        return expression(self.rng, self.on, self.workload, ("input", "output", "weight", "all"), 0.5)

    def fused(self) -> str:
        return expression(self.rng, self.on, self.workload, ("intermediate", "all", *self.workload.intermediates), 0.2)

    def variables(self) -> list[str]:
        known = sorted({v for e in self.workload.einsums for v in e.variables})
        return self.rng.sample(known, min(len(known), self.rng.choice((1, 1, 2))))

    def spoken(self, data: Data) -> Data:
        """The limit, perhaps of some Einsums only."""
        if self.rng.random() < 0.3:
            data["einsums"] = [self.rng.choice(self.workload.einsums).name]
        return data

    def holds(self) -> Data:
        found: Data = {}
        for _ in range(self.rng.choice((1, 1, 2))):
            one: Data = {}
            if "keep or bypass" in self.on:
                one[self.rng.choice(("keep", "may_keep", "bypass"))] = self.tensors()
            if "fetched once" in self.on:
                one["once"] = self.tensors()
            found.setdefault(self.memory(), []).append(self.spoken(one))
        return {m: limits[0] if len(limits) == 1 else limits for m, limits in found.items()}

    def fusion(self) -> Data:
        kinds = ("unfused", "backed", "within", "fused") if len(self.memories) > 1 else ("unfused", "backed", "within")
        kind = self.rng.choice(kinds)
        if kind == "backed":
            return {"backed": {self.memory(): self.fused()}}
        if kind == "within":
            among = self.rng.sample(self.memories, self.rng.randint(1, len(self.memories)))
            return {"within": [{"tensors": self.fused(), "memories": among}]}
        return {kind: self.fused()}

    def loop(self) -> Data:
        numbers = self.rng.choice(NUMBERS)
        return self.spoken({"tensors": self.fused(), "variables": self.variables(), "trips": numbers})

    def tile(self) -> Data:
        found: Data = {"memory": self.memory(), "variables": self.variables(), "sizes": self.rng.choice(NUMBERS)}
        if self.rng.random() < 0.8:
            found["tensors"] = self.tensors()
        return self.spoken(found)

    def axis(self) -> Data:
        found: Data = {"axis": self.rng.choice(sorted(self.machine.axes)), "instances": self.rng.choice(NUMBERS)}
        if self.rng.random() < 0.5 and (variables := self.variables()):
            found["variables"] = variables
        return self.spoken(found)

    def bypasses(self) -> Data:
        """Every inner memory bypasses what it need not hold, but for one tensor, so that trees are few."""
        found: Data = {}
        for memory in self.machine.memories[1:]:
            if isinstance(memory, Link):
                continue
            asked = [(select(memory.must, self.workload, e.name), e.tensors) for e in self.workload.einsums]
            must = set[str]().union(*(set(held) & set(mine) for held, mine in asked))
            free = [t.name for t in self.workload.tensors if t.name not in must]
            self.rng.shuffle(free)
            if free[1:]:
                found[memory.name] = {"bypass": " | ".join(free[1:])}
        return found


def space(rng: Random, on: Collection[str], workload: Workload, machine: Machine, narrow: bool = False) -> Data:
    """A mapspace file with these dimensions, as far as workload and machine let it have them.

    narrow: inner memories bypass most tensors.
    """
    drawn = ProblemSpace(rng, on, workload, machine)
    data: Data = {"schema": "mapspace/1"}
    if "uneven tiles" in on:
        data["space"] = "ragged"
    elif rng.random() < 0.2:
        data["space"] = "ffm"
    if "fewer fused loops" in on:
        data["max_fused_loops"] = rng.choice((0, 1, 1, 2))
    if "groups" in on or "shares" in on:
        both = "groups" in on and "shares" in on
        data["concurrent"] = (
            "everywhere" if both else "axis" if "shares" in on else rng.choice(("unit", "shared", "any"))
        )
        if rng.random() < 0.5:
            data["max_group"] = rng.choice((2, 3, 4))
    elif rng.random() < 0.1:
        data["concurrent"] = "none"
    if "free order" in on:
        data["order"] = "free"
    elif rng.random() < 0.1:
        data["order"] = "program"
    if "shared stores" in on:
        data["stores"] = "shared"
    elif rng.random() < 0.1:
        data["stores"] = "own"
    if "fused again" in on:
        data["max_fused_loops_per_rank_variable"] = 2
    if "keep or bypass" in on or "fetched once" in on:
        data["memories"] = drawn.holds()
    elif narrow and (bypassed := drawn.bypasses()):
        data["memories"] = bypassed
    if "fusion limit" in on:
        data["fusion"] = drawn.fusion()
    if "loop limit" in on and any(e.variables for e in workload.einsums):
        data["loops"] = [drawn.loop()]
    if "tile limit" in on and any(e.variables for e in workload.einsums):
        data["tiles"] = [drawn.tile() for _ in range(rng.choice((1, 1, 2)))]
    if "axis limit" in on and machine.axes:
        data["axes"] = [drawn.axis()]
    return data
