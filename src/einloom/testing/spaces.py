"""The test kit of a mapspace: what is wrong with it, in sentences."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from random import Random

import numpy as np

from ..cost.evaluate import legality
from ..machine.levels import Machine
from ..mapping.tree import Mapping
from ..mapspace.space import Mapspace, Space
from ..problem import Problem
from ..reading.plugins import FAILURES, reason_of
from ..workload.einsum import Workload
from .tiny import tiny_problem

DRAWS, NEAR, ROWS, LISTED = 3, 10, 10, 100
"""Of every tiny problem: trees that are drawn, neighbours of each, rows of its tiles, and trees that are listed."""
NAMES = ("one", "tight", "chain", "hopeless")
Make = Callable[[Workload, Machine, Mapspace], Space]


def space_faults(make: Make, mapspace: Mapspace | None = None, names: Sequence[str] = NAMES) -> tuple[str, ...]:
    """What is wrong with a space; empty if nothing is. Each fault is told once, of the first problem that shows it.

    make: what the entry point refers to. mapspace: the data that it is made from. names: the tiny problems whose trees
    are drawn, listed and retiled; a tree that comes out of the space must be legal and inside by its own word.
    """
    asked = Mapspace() if mapspace is None else mapspace
    told: dict[str, str] = {}
    for name in names:
        problem = tiny_problem(name)
        for fault in _told(make, problem, asked):
            told.setdefault(fault, f"{name}: {fault}")
    return tuple(told.values())


def _told(make: Make, problem: Problem, asked: Mapspace) -> Iterator[str]:
    """Every fault that one problem shows, and what the space raises instead of an answer."""
    try:
        space, again = (make(problem.workload, problem.machine, asked) for _ in range(2))
        yield from _listed(space)
        yield from _drawn(space, again, problem)
    except FAILURES as error:
        yield f"it raises {reason_of(error)}"


def _drawn(space: Space, again: Space, problem: Problem) -> Iterator[str]:
    listed = list(islice(space.trees(), LISTED))
    known = any(space.contains(tree) for tree in listed)
    for seed in range(DRAWS if known else 1):  # where nothing is legal a draw tries for long: one is enough
        tree = space.sample(Random(seed))
        if tree is None:
            if known:
                yield "it draws nothing, and some of its trees are legal"
            return
        if not isinstance(tree, Mapping):
            yield f"it draws {type(tree).__name__}, not a Mapping"  # type: ignore[unreachable]
            return
        if not listed:
            yield "it draws a tree, and lists none"
        if tree != again.sample(Random(seed)):
            yield "one seed draws two trees"
        yield from _inside(space, problem, tree, "draws a tree that is")
        near = list(islice(space.neighbours(tree, Random(seed)), NEAR))
        if tree in near or len(set(near)) < len(near):
            yield "a tree is its own neighbour, or a neighbour comes twice"
        if near != list(islice(again.neighbours(tree, Random(seed)), NEAR)):
            yield "one seed gives two orders of neighbours"
        for other in near:
            yield from _inside(space, problem, other, "has a neighbour that is")
        yield from _tiled(space, problem, tree)


def _inside(space: Space, problem: Problem, tree: Mapping, what: str) -> Iterator[str]:
    illegal, outside = legality(problem.workload, problem.machine, tree), space.outside(tree)
    yield from (f"it {what} illegal: {reason}" for reason in illegal)
    yield from (f"it {what} outside: {reason}" for reason in (() if illegal else outside))
    if space.contains(tree) != (not illegal and not outside):
        yield f"it {what} {'not ' if illegal or outside else ''}legal and inside, and `contains` says the opposite"


def _listed(space: Space) -> Iterator[str]:
    found = list(islice(space.trees(), LISTED))
    if len(set(found)) < len(found):
        yield "it lists a tree twice"
    if found != list(islice(space.trees(), LISTED)):
        yield "it lists other trees the second time"
    for tree in found:
        for reason in space.outside(tree) if space.contains(tree) else ():
            yield f"it contains a tree that is outside: {reason}"


def _tiled(space: Space, problem: Problem, tree: Mapping) -> Iterator[str]:
    """The tiles of the tree's own skeleton make trees of the space."""
    skeleton = space.skeleton(tree)
    block = next(iter(space.tilings(skeleton)), None)
    if block is None:
        yield "its tilings leave out the tiles of a tree inside"
    elif block.dtype != np.int64 or block.ndim != 2 or block.shape[1] != len(skeleton.loops):
        yield f"its tilings are {block.dtype} of shape {block.shape}, not int64 rows of {len(skeleton.loops)} tiles"
    else:
        for made in (space.tree(skeleton, row) for row in block[:ROWS]):
            if not legality(problem.workload, problem.machine, made):
                yield from (f"its tilings make a tree that is outside: {reason}" for reason in space.outside(made))
