"""Problems whose tensor has ranks in common with a view, on machines that have little room but for that tensor."""

from __future__ import annotations

from math import prod
from random import Random

from einloom.machine.files import machine_from_data
from einloom.mapspace.files import mapspace_from_data
from einloom.testing.problems.files import Data, Read
from einloom.workload.files import workload_from_data

MIDDLES = (
    ([4], [2, 2]),
    ([2, 2], [4]),
    ([4, 1], [2, 2]),
    ([2, 2], [1, 4]),
    ([2, 2], [4, 1]),
    ([2, 3], [3, 2]),
    ([2], [2, 1]),
)
HELD = ("T", "T", "T", "intermediate", "T | Z")
SPACES: tuple[Data, ...] = (*[{}] * 6, {"order": "free"}, {"stores": "shared"}, {"name": "ragged"}, {"name": "ragged"})


class ViewedProblem:
    """A problem as it is drawn. ranks: extents of the variables so far, of `made` that were there."""

    def __init__(self, seed: int) -> None:
        self.rng = Random(f"viewed {seed}")
        self.ranks: dict[str, int] = {}
        self.made = 0

    def variables(self, sizes: list[int]) -> list[str]:
        """A new variable for each size."""
        names = [f"v{self.made + i}" for i in range(len(sizes))]
        self.made += len(sizes)
        self.ranks.update(zip(names, sizes, strict=True))
        return names

    def read(self) -> Read:
        """The workload, the machine and the space."""
        before, after = self.rng.choice((([2], []), ([3], []), ([], [2]), ([], [3]), ([], [])))
        shapes = [[*before, *middle, *after] for middle in self.rng.choice(MIDDLES)]
        written, viewed = shapes if self.rng.random() < 0.7 else shapes[::-1]
        machine = machine_from_data(self.machine(prod(written)))
        space = mapspace_from_data({"schema": "mapspace/1", **self.rng.choice(SPACES)}, machine)
        return workload_from_data(self.workload(written, viewed)), machine, space

    def workload(self, written: list[int], viewed: list[int]) -> Data:
        """One Einsum writes T, one reads it as U, and sometimes a third one reads T or goes on from there."""
        rng, mine, theirs = self.rng, self.variables(written), self.variables(viewed)
        index, kept, at = list(theirs), list(theirs), rng.randrange(len(viewed))
        way = rng.choice(("whole", "whole", "sum", "window", "constant"))
        if way != "whole" and (way != "window" or viewed[at] > 2):
            kept.remove(theirs[at])
        if way == "window" and viewed[at] > 2:
            del self.ranks[theirs[at]]
            position, tap = self.variables([viewed[at] - 1, 2])
            index[at] = f"{position}+{tap}"
            kept.insert(0, position)
        elif way == "constant":
            del self.ranks[theirs[at]]
            index[at] = str(rng.randrange(viewed[at]))
        read, first = f"U[{','.join(index)}]", f"T[{','.join(mine)}]"
        einsums = [f"{first} = {rng.choice(('', 'copy '))}X[{','.join(mine)}]", f"Z[{','.join(kept)}] = {read}"]
        if kept and rng.random() < 0.3:
            einsums[1] += f" * W[{rng.choice(kept)}]"
        third = rng.random()
        if third < 0.4:
            again = self.variables(written if third < 0.2 else [self.ranks[v] for v in kept])
            einsums.append(f"Y[{','.join(again)}] = relu({'T' if third < 0.2 else 'Z'}[{','.join(again)}])")
        return {
            "schema": "workload/1",
            "name": "viewed",
            "bits": rng.choice((1, {"default": 1, "T": 2})),
            "ranks": self.ranks,
            "einsums": einsums,
            "views": {"U": {"of": "T", "shape": viewed}},
        }

    def machine(self, size: int) -> Data:
        """A memory of about the tensor's size inside a large one, sometimes behind a fanout or with one in front."""
        rng = self.rng
        room = rng.choice((max(1, size // 2), size, size + 2, size // 2 + 2, 2 * size))
        inner = {"memory": "GLB", "size": room, "may": rng.choice(HELD), "read_energy": 1, "write_energy": 1}
        fanout: Data = {"fanout": "F", "axes": [{"axis": "x", "size": 2}]}
        levels = [
            {"memory": "MM", "read_energy": 10, "write_energy": 10, "read_throughput": 1, "write_throughput": 1},
            inner,
        ]
        if rng.random() < 0.3:
            levels.insert(rng.choice((1, 2)), fanout)
        if rng.random() < 0.1:
            levels.append({"memory": "REG", "size": 2, "may": rng.choice(("input", "T")), "read_energy": 0.1})
        return {"schema": "machine/1", "name": "small", "levels": [*levels, {"compute": "MAC", "throughput": 1}]}
