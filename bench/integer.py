"""Random trees with any integer tiles against the bound over all of them: ``python -m bench.integer --trees 10000``.

Each problem has odd sizes, at most two fanouts, memories that hold little. Its trees are those of the same problem with
sizes that have many divisors, each given other tiles at random, and the best of them better ones as long as that helps.
Every tree is in the space `integer` and priced by `evaluate`. Says how many are below the bound (none may be), and how
near the best ones come.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, count
from random import Random
from statistics import median

from einloom.cost.evaluate import evaluate, legality
from einloom.errors import Infeasible
from einloom.machine.levels import Axis, ComputeUnit, Fanout, Level, Machine, Memory
from einloom.mapping.legality.structure import problems
from einloom.mapping.normal import normal_form
from einloom.mapping.tree import Compute, Loop, Mapping, Nest, Node, Split
from einloom.mapspace.ffm.rules import outside
from einloom.mapspace.ffm.space import Ffm
from einloom.mapspace.space import Mapspace
from einloom.problem import Objective, Problem
from einloom.result import Result
from einloom.search.exact import Exact
from einloom.search.exact.integer import integer_bound
from einloom.workload.build import build_workload
from einloom.workload.einsum import Workload
from einloom.workload.selectors import selector

CASCADES = (
    ("Z[m,n] = A[m,k] * B[k,n]",),
    ("Z[m] = A[m,k] * B[k]",),
    ("Z[m,n] = A[m] * B[n]",),
    ("T[m] = A[m,k] * B[k]", "Z[m] = exp(T[m])"),
    ("T[m,n] = A[m] * B[n]", "Z[m] = T[m,n] * C[n]"),
    ("T[m,n] = A[m,k] * B[k,n]", "Z[m,q] = T[m,n] * C[n,q]"),
    ("T[m] = exp(A[m])", "S[m] = exp(T[m])", "Z[m] = add(S[m], T[m])"),
)
GOALS = ("energy", "latency", "edp", "edp")
SIZES = (1, 2, 3, 5, 7, 9, 10, 11, 13)
RICH = (8, 12, 16, 24)  # sizes from which trees are drawn
SAME = 1e-9
STALE = 30  # better tiles are looked for until so many others were no better


def drawn(rng: Random) -> Problem:
    """A random problem in `ragged`."""
    workload = _workload(
        rng.randrange(len(CASCADES)), {rank: rng.choice(SIZES) for rank in "mnkq"}, rng.choice((1, 1, 8))
    )
    return Problem(workload, _machine(rng, workload), Mapspace("ragged"), Objective(rng.choice(GOALS)))


def _workload(number: int, sizes: dict[str, int], bits: int) -> Workload:
    texts = CASCADES[number]
    used = {letter for text in texts for letter in "".join(text.replace("[", "]").split("]")[1::2])}
    ranks = {rank: sizes[rank] for rank in sorted(used & sizes.keys())}
    return build_workload(f"integer-{number}", texts, ranks, bits=bits)


def _memory(rng: Random, name: str, workload: Workload, backs: str) -> Memory:
    largest = [tensor.size * tensor.bits for tensor in workload.tensors]
    size = rng.choice((rng.randint(3, sum(largest)), rng.choice(largest) + 3 * workload.tensors[0].bits))
    speed = rng.choice((None, 2.0, 8.0, 32.0))
    return Memory(
        name, size, float(rng.randint(0, 5)), float(rng.randint(0, 5)), 1, speed, speed, backs=selector(backs)
    )


def _fanout(rng: Random, name: str) -> Fanout:
    words = ("all", "all", "nothing")
    joins = selector(rng.choice(words)), selector(rng.choice(words))
    axes = []
    for i in range(rng.choice((1, 2, 2))):
        if i and rng.random() < 0.4:
            joins = selector(rng.choice(words)), selector(rng.choice(words))
        axes.append(Axis(f"{name}{i}", rng.choice((2, 3, 4, 5, 7)), *joins, use=rng.choice(("any", "any", "full"))))
    return Fanout(name, tuple(axes))


def _machine(rng: Random, workload: Workload) -> Machine:
    speed = rng.choice((1.0, 8.0, 64.0))
    levels: list[Level] = [Memory("DRAM", None, 10.0, 12.0, 1, speed, speed), _memory(rng, "GLB", workload, "all")]
    for name in rng.choice(("F", "F", "FG", "N", "NF")):
        if name != "N":
            levels.append(_fanout(rng, name))
        if name == "N" or rng.random() < 0.6:
            levels.append(_memory(rng, f"{name}-LB", workload, "nothing"))
    levels.append(ComputeUnit("MAC", rng.choice((0.5, 1.0, 8.0)), float(rng.randint(0, 2))))
    sums = rng.choice(("read-modify-write", "read-modify-write", "once"))
    return Machine("random", tuple(levels), partial_sums=sums)


def skeletons(problem: Problem, rng: Random, number: int) -> Iterator[Mapping]:
    """Trees of the same problem with sizes that have many divisors and memories that hold everything."""
    workload, machine = problem.workload, problem.machine
    levels = tuple(replace(x, size=None) if isinstance(x, Memory) else x for x in machine.levels)
    levels = tuple(
        replace(x, axes=tuple(replace(axis, use="any") for axis in x.axes)) if isinstance(x, Fanout) else x
        for x in levels
    )
    roomy = replace(machine, levels=levels)
    rich = _workload(int(workload.name.split("-")[1]), {rank: rng.choice(RICH) for rank in "mnkq"}, 1)
    space = Ffm(rich, roomy, Mapspace("ffm"))
    for _ in range(number):
        tree = space.sample(rng)
        if tree is not None:
            yield tree


@dataclass(frozen=True)
class Cutter:
    """Gives the loops of a tree other tiles, by a function of a loop's number and of the extent that it meets."""

    problem: Problem
    rng: Random

    def tree(self, skeleton: Mapping, wanted: dict[int, int] | None) -> tuple[Mapping, dict[int, int]] | None:
        """A tree of the space `integer` with these tiles (None: its own) and random ones elsewhere, and the tiles that
        it has; None if it is illegal or outside."""
        tiles: dict[int, int] = {}
        workload, machine = self.problem.workload, self.problem.machine
        extents = {(e.name, v): workload.extents[v] for e in workload.einsums for v in e.variables}
        made = Mapping(self._nest(skeleton.nest, extents, tiles, wanted, {}))
        if problems(workload, machine, made):
            return None
        made = normal_form(made, workload)
        space = replace(self.problem.mapspace, name="integer")
        if outside(workload, machine, space, made) or legality(workload, machine, made):
            return None
        return made, tiles

    def _nest(
        self,
        nest: Nest,
        extents: dict[tuple[str, str], int],
        tiles: dict[int, int],
        wanted: dict[int, int] | None,
        taken: dict[str, int],
    ) -> Nest:
        nodes: list[Node] = []
        met: list[int] = []  # the extent above each node that is a loop
        for node in nest:
            if isinstance(node, Loop):
                extent = extents[node.binds[0]]
                if extent == 1:
                    continue
                number = len(tiles)
                room = extent
                if node.axis is not None:
                    room = self.problem.machine.axes[node.axis].size // taken.get(node.axis, 1)
                    if room < 2:
                        continue
                least = -(-extent // room)
                own = node.tile or -(-extent // node.trips)
                tile = own if wanted is None else wanted.get(number, 0)
                tile = tile if least <= tile < extent else self.rng.randint(least, extent - 1)
                tiles[number] = tile
                trips = -(-extent // tile)
                if node.axis is not None:
                    taken = {**taken, node.axis: taken.get(node.axis, 1) * trips}
                extents = {**extents, **dict.fromkeys(node.binds, tile)}
                nodes.append(Loop(node.binds, trips, tile, node.axis))
                met.append(extent)
            elif isinstance(node, Split):
                branches = tuple(self._nest(branch, extents, tiles, wanted, taken) for branch in node.branches)
                nodes.append(Split(node.kind, branches, node.where))
            else:
                if isinstance(node, Compute):
                    left = [bind for bind, extent in extents.items() if bind[0] == node.einsum and extent > 1]
                    nodes = self._ended(nodes, met, left, extents)
                nodes.append(node)
                met.append(0)
        return tuple(nodes)

    @staticmethod
    def _ended(
        nodes: list[Node], met: list[int], left: list[tuple[str, str]], extents: dict[tuple[str, str], int]
    ) -> list[Node]:
        """The nodes above a leaf, with loops that bring what is left to one iteration."""
        start = max((i + 1 for i, node in enumerate(nodes) if not isinstance(node, Loop)), default=0)
        ended = list(nodes)
        for bind in left:
            mine = [i for i in range(start, len(nodes)) if bind in getattr(nodes[i], "binds", ())]
            last = nodes[mine[-1]] if mine else None
            if isinstance(last, Loop) and last.axis is None:
                ended[mine[-1]] = replace(last, trips=met[mine[-1]], tile=1)
            else:
                ended.append(Loop((bind,), extents[bind], 1))
        return ended


def priced(problem: Problem, tree: Mapping) -> float:
    """What a tree costs."""
    return problem.objective.value(evaluate(problem.workload, problem.machine, tree))


def trees(problem: Problem, rng: Random, number: int, known: Mapping | None = None) -> Iterator[tuple[float, Mapping]]:
    """So many trees of the space `integer` with their prices, or as many as turn up. known: a tree to begin with."""
    cutter, found, best = Cutter(problem, rng), 0, None
    for skeleton in chain([known] if known else [], skeletons(problem, rng, 3 * number)):
        made = cutter.tree(skeleton, None if skeleton is known else {})
        if found >= number:
            return
        if made is None:
            continue
        stale, value = 0, priced(problem, made[0])
        yield value, made[0]
        found += 1
        while found < number and stale < STALE and (best is None or value < 4 * best):
            loop = rng.choice(sorted(made[1]) or [0])
            other = cutter.tree(skeleton, {**made[1], loop: made[1].get(loop, 1) + rng.choice((-2, -1, 1, 2, 3))})
            stale += 1
            if other is None:
                continue
            price = priced(problem, other[0])
            yield price, other[0]
            found += 1
            if price < value:
                made, value, stale = other, price, 0
        best = value if best is None else min(best, value)


def uneven(problem: Problem, tree: Mapping) -> bool:
    """True if the tree is not one of `ragged`."""
    return bool(outside(problem.workload, problem.machine, problem.mapspace, tree))


def ragged(problem: Problem) -> Result | None:
    """The optimum of `ragged`, if there is one."""
    try:
        return Exact().search(problem)
    except Infeasible:
        return None


@dataclass(frozen=True)
class Comparison:
    """The problem of a seed: priced trees of the space `integer`, and the bound over all of them."""

    problem: Problem
    trees: tuple[tuple[float, Mapping], ...]
    bound: float

    @property
    def least(self) -> float:
        return min(value for value, _ in self.trees)

    @property
    def holds(self) -> bool:
        """True if no tree is below the bound."""
        return self.least >= self.bound * (1 - SAME)


def compared(seed: int, number: int) -> Comparison | None:
    """So many trees of the problem of a seed, beside its bound; None if there is no tree."""
    rng = Random(f"integer {seed}")
    problem = drawn(rng)
    known = ragged(problem)
    found = tuple(trees(problem, rng, number, known.mapping if known else None))
    return Comparison(problem, found, integer_bound(problem, float("inf"))[0]) if found else None


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trees", type=int, default=10000)
    parser.add_argument("--each", type=int, default=60, help="trees of one problem at most")
    parser.add_argument("--first", type=int, default=0, help="first seed")
    asked = parser.parse_args(arguments)
    number = wide = wrong = 0
    near: list[float] = []
    for seed in count(asked.first):
        if number >= asked.trees:
            break
        found = compared(seed, min(asked.each, asked.trees - number))
        if found is None:
            continue
        number += len(found.trees)
        wide += sum(uneven(found.problem, tree) for _, tree in found.trees)
        if not found.holds:
            wrong += 1
            print(f"seed {seed}: the bound is {found.bound!r}, a tree costs {found.least!r}", flush=True)
        near.append(found.least / found.bound if found.bound > 0 else 1.0)
    print(
        f"{number} trees of {len(near)} problems, {wide} of them outside ragged; {wrong} bounds are above a tree; the "
        f"best of a problem costs {median(near):.3f} times its bound in the median, {max(near):.3f} at most"
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
