"""Random machine files: memories, fanouts, tolls, links and units, with every key that such a file has."""

from __future__ import annotations

from collections.abc import Collection
from random import Random

from ...dataclass import dataclass
from ...workload.einsum import Workload
from .arranged import arrange
from .files import Data
from .words import expression

ROLES = ("input", "weight", "output", "input | output", "~weight", "intermediate", "cascade_output", "persistent")
KEPT = ("intermediate", "output", "input", "weight", "all", "unheld", "intermediate | output", "cascade_input", "copy")
TENTHS = (0.1, 0.3, 1.7, 2.2, 0.7)


@dataclass
class Chip:
    """What the parts of a machine are drawn from. on: names of `dimensions`. tight: inner memories hold little.
    beside: see `arrange`."""

    rng: Random
    on: Collection[str]
    workload: Workload
    tight: bool
    beside: bool = False

    def energy(self, most: int) -> float | int:
        if "nothing costs" in self.on:
            return 0
        if "non-integer energies" in self.on and self.rng.random() < 0.6:
            return self.rng.choice(TENTHS) * self.rng.choice((1, 3, 7))
        return self.rng.randint(0, most)

    def put(self, data: Data, key: str, value: object, probability: float = 1.0) -> None:
        if self.rng.random() < probability:
            data[key] = value

    def among(self, *fitting: str, named: float = 0.4) -> str:
        """A set expression: tensors by name, or words, mostly those that fit."""
        return expression(self.rng, self.on, self.workload, fitting, named)

    def size(self) -> int:
        """Bits: what some of the tensors take, or any number up to what all of them take."""
        each = [t.size * t.bits for t in self.workload.tensors]
        if self.rng.random() < 0.5:
            return self.rng.randint(1, sum(each))
        return sum(x for x in each if self.rng.random() < 0.6) or each[0]

    def widths(self) -> Data:
        words = [name for name in ("widths by role", "widths by tensor") if name in self.on]
        found: Data = {}
        for word in words:
            tensors = [t.name for t in self.workload.tensors]
            which = self.rng.choice(tensors) if word == "widths by tensor" else self.among(*ROLES, named=0)
            found[which] = self.rng.choice((1, 2, 4, 5, 8))
        return found

    def memory(self, name: str, outer: bool) -> Data:
        """A memory; the outermost one is large, dear and slow, and holds what is no intermediate."""
        rng, on = self.rng, self.on
        most = 20 if outer else 5
        data: Data = {"memory": name, "read_energy": self.energy(most), "write_energy": self.energy(most)}
        for key in ("read_throughput", "write_throughput"):
            if rng.random() < (0.9 if outer else 0.6):
                data[key] = rng.choice((1, 2, 3, 4) if outer else (1, 2, 4, 8, 0.5))
        if "small outermost memory" in on if outer else rng.random() < 0.85:
            data["size"] = self.size() * (2 if outer else 1)
        self.put(data, "ports", rng.choice(("separate", "separate", "shared")), 0.4)
        self.put(data, "bits_per_access", rng.choice((2, 3, 8)), 0.1)
        if widths := self.widths():
            self.put(data, "widths", widths, 0.7)
        self._limits(data, outer)
        if "leakage" in on:
            self.put(data, "leakage", rng.choice((1, 0.5)), 0.6)
        if "double buffer" in on and (not outer or "one memory" in on):
            self.put(
                data,
                *rng.choice(
                    (("double_buffer", True), ("double_buffer", True), ("double_buffer", False), ("prefetch", 3))
                ),
                0.6,
            )
        if rng.random() < 0.1:
            data.update(area=0.001, setup=2, release=rng.choice(("start", "end")), through=rng.random() < 0.3)
        return data

    def _limits(self, data: Data, outer: bool) -> None:
        rng, on = self.rng, self.on
        if outer:
            self.put(data, "must", "~intermediate", 0.15)
            if "limited outermost memory" in on:
                inner = self.among("weight", "output", "input", "persistent", "cascade_input")
                data[rng.choice(("may", "backs"))] = f"~({inner})"
                data.pop("must", None)
            elif "unheld" in on and "one memory" in on:
                data["must"] = "unheld"
            return
        words = [word for word in KEPT if word != "unheld" or "unheld" in on]
        if "must" in on or "unheld" in on:
            self.put(data, "must", "unheld" if "unheld" in on else self.among(*words, named=0.3), 0.7)
        if "may" in on:
            self.put(data, "may", self.among(*words, "nothing", "~weight", "output | input"), 0.7)
        if self.tight and "may" not in data:
            tensors = [t.name for t in self.workload.tensors]
            data["may"] = rng.choice(("intermediate", rng.choice(tensors), rng.choice(tensors), "nothing", "output"))
        if "backs" in on:
            self.put(data, "backs", self.among("nothing", "intermediate", "~output", "weight"), 0.7)

    def axis(self, name: str) -> Data:
        rng, on = self.rng, self.on
        data: Data = {"axis": name, "size": rng.choice((2, 2, 3, 4))}
        if "partial multicast" in on:
            self.put(data, "multicast", self.among("nothing", "input", "weight", "all"), 0.8)
            self.put(data, "reduce", self.among("nothing", "output", "all"), 0.8)
        if "barred axis" in on:
            self.put(data, "only_irrelevant_to", self.among("weight", "output", "input", "intermediate"), 0.8)
        if "full use" in on:
            self.put(data, "use", rng.choice(("full", "full", "full", "any")))
        return data

    def toll(self, name: str) -> Data:
        rng = self.rng
        data: Data = {"toll": name, "energy": self.energy(4)}
        self.put(data, "bits_per_access", rng.choice((2, 4)), 0.3)
        self.put(data, "throughput", rng.choice((1, 2, 6)), 0.6)
        self.put(data, "down", self.among(*ROLES, "nothing"), 0.5)
        self.put(data, "up", self.among(*ROLES, "nothing"), 0.5)
        if widths := self.widths():
            self.put(data, "widths", widths, 0.5)
        if "leakage" in self.on:
            self.put(data, "leakage", 1, 0.4)
        self.put(data, "area", 0.002, 0.1)
        return data

    def unit(self, name: str, free: bool) -> Data:
        """A compute unit; a free one takes every Einsum."""
        rng = self.rng
        data: Data = {"compute": name, "energy": self.energy(2)}
        self.put(data, "throughput", rng.choice((0.5, 1, 2, 4)), 0.9)
        if not free:
            self.put(data, "kinds", rng.choice((["map"], ["multiply"])), 0.6)
            self.put(data, "operands", rng.choice(([1], [2], [1, 2])), 0.3)
        if "leakage" in self.on:
            self.put(data, "leakage", rng.choice((1, 0.25)), 0.5)
        if rng.random() < 0.1:
            data.update(area=0.001, setup=1, stationary=self.among("weight", "input"))
        return data

    def levels(self) -> list[Data]:
        """All levels: memories, fanouts and tolls in any order, units in between and at the end."""
        rng, on = self.rng, self.on
        several = (3, 3, 4) if "four or five memories" in on else (1, 1, 1, 2)
        inner = 0 if "one memory" in on else rng.choice(several)
        axes = 2 if "two axes" in on else 1
        spread = ("two axes", "barred axis", "partial multicast", "full use", "axis limit", "link")
        needed = not {"fanout", *spread, "copy held behind a fanout"}.isdisjoint(on)
        fanouts = rng.choice((1, axes)) if needed else 0
        kinds = ["memory"] * inner + ["fanout"] * fanouts + ["toll"] * (rng.choice((1, 2)) if "toll" in on else 0)
        rng.shuffle(kinds)
        levels = [self.memory("D", True)]
        named = iter("xyzw")
        for i, kind in enumerate(kinds):
            if kind == "memory":
                levels.append(self.memory(f"M{i}", False))
            elif kind == "toll":
                levels.append(self.toll(f"P{i}"))
            else:
                levels.append({"fanout": f"F{i}", "axes": [self.axis(next(named)) for _ in range(axes // fanouts)]})
            if "several units" in on and rng.random() < 0.3:
                levels.append(self.unit(f"V{i}", False))
        if "link" in on:
            self._linked(levels)
        more = rng.random() < 0.7 or not any("compute" in level for level in levels)
        if "several units" in on and more:
            levels.append(self.unit("W", rng.random() < 0.5))
        levels.append(self.unit("MAC", True))
        arrange(rng, on, self.workload, levels, self.beside)
        return levels

    def _linked(self, levels: list[Data]) -> None:
        """A link along one of the axes, somewhere before its fanout."""
        rng = self.rng
        at = rng.choice([i for i, level in enumerate(levels) if "fanout" in level])
        link: Data = {"link": "way", "axis": rng.choice(levels[at]["axes"])["axis"], "hops": rng.randint(1, 2)}
        self.put(link, "energy", self.energy(2), 0.8)
        self.put(link, "throughput", rng.choice((1, 4)), 0.6)
        self.put(link, "multicast", rng.random() < 0.3, 0.5)
        levels.insert(rng.randint(1, at), link)


def machine(rng: Random, on: Collection[str], workload: Workload, tight: bool, beside: bool = False) -> Data:
    """A machine file with these dimensions, mostly. tight: its inner memories hold little, so that trees are few.

    beside: dimensions of which each arranges memories get memories of their own.
    """
    levels = Chip(rng, on, workload, tight, beside).levels()
    data: Data = {"schema": "machine/1", "name": "random", "levels": levels}
    if "once" in on:
        data["partial_sums"] = "once"
    elif rng.random() < 0.1:
        data["partial_sums"] = "read-modify-write"
    if rng.random() < 0.05:
        data["startup"] = 1
    return data
