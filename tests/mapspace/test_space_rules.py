"""`ffm.outside` and a second reading of its page say the same of thousands of changed trees."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from itertools import chain, count, islice
from pathlib import Path
from random import Random
from typing import Any

import pytest

from cases import cascade, machine, tree
from einloom.machine.levels import ComputeUnit, Machine, Memory
from einloom.mapping.legality.structure import problems
from einloom.mapping.tree import Mapping, Store
from einloom.mapspace.ffm import rules as ffm
from einloom.mapspace.ffm.enumerate import enumerate_trees
from einloom.mapspace.space import Mapspace
from einloom.workload.einsum import Workload
from space_rules import Reading
from tiny_problems import tiny_problem
from tree_edits import edited
from trees import Case, random_case
from wide_trees import wide_case

Subject = tuple[Workload, Machine, Mapspace, Mapping]
SEEDS = json.loads((Path(__file__).parents[1] / "search" / "quick_seeds.json").read_text(encoding="utf-8"))
PROBLEMS = 52


def bases(seeds: Sequence[int]) -> Iterator[Subject]:
    """Trees of the space, trees that know nothing of it, and both with changes; all of them well-formed."""
    for seed in seeds:
        rng = Random(f"rules {seed}")
        tiny = tiny_problem(seed)
        every = list(islice(enumerate_trees(tiny.workload, tiny.machine, tiny.mapspace), 400))
        space = Mapspace(max_fused_loops=rng.choice((None, None, 0, 1)))
        space = replace(space, max_fused_loops_per_rank_variable=Random(f"levels {seed}").choice((1, 2, 3)))
        starts = [(tiny.workload, tiny.machine, m) for m in rng.sample(every, min(len(every), 4))]
        starts += [(c.workload, c.machine, c.mapping) for c in (random_case(seed), wide_case(seed), fused_window(seed))]
        for workload, on, start in starts:
            for i in range(12):
                one = edited(rng, workload, on, start) if i else start
                if not problems(workload, on, one):
                    yield workload, on, space, one


def fused_window(seed: int) -> Case:
    """The next random tree of a cascade with an intermediate that is read through a window."""
    for one in count(10 * seed):
        case = random_case(one)
        einsums = case.workload.einsums
        if any(
            not i.simple for e in einsums for a in e.inputs if a.tensor in case.workload.producers for i in a.indices
        ):
            return case
    raise AssertionError


def beside_a_copy() -> Iterator[Subject]:
    """A store above the split in a memory that the copy does not see: it holds B, which the copy does not touch."""
    workload = cascade("E0: I[m] = copy(X[m])\nE1: Z[n] = I[n] * B[n]", {"m": 4, "n": 4})
    levels = (Memory("M"), Memory("GLB"), ComputeUnit("V", kinds=("map",)), Memory("LB"), ComputeUnit("MAC"))
    start = tree("M[X B Z] E0.m,E1.n:4 GLB[I] LB[B] { !E0 } { !E1@MAC }")
    rng, on = Random("copy"), machine(*levels)
    for i in range(60):
        one = edited(rng, workload, on, start) if i else start
        if not problems(workload, on, one):
            yield workload, on, Mapspace(), one


@cache
def subjects() -> tuple[tuple[Subject, frozenset[int]], ...]:
    """Trees, each with the rules that it breaks by the second reading."""
    found = []
    for subject in chain(beside_a_copy(), bases(SEEDS[:PROBLEMS])):
        workload, on, space, one = subject
        again = space.max_fused_loops_per_rank_variable
        found.append((subject, frozenset(Reading(workload, on, space.max_fused_loops, one, again).broken)))
    return tuple(found)


def rules(reasons: tuple[str, ...]) -> set[int]:
    """Their numbers."""
    return {int(number) for reason in reasons for number in re.findall(r"^rule (\d+)", reason)}


def differs(subject: Subject, mine: frozenset[int]) -> bool:
    """Does `ffm` say something else? Rule 7 speaks of trees in program order."""
    theirs = rules(ffm.outside(*subject))
    return bool((mine ^ theirs) - ({7} if 1 in mine else set()))


def test_both_readings_say_the_same_of_two_thousand_trees() -> None:
    broken = Counter[int]()
    for subject, mine in subjects():
        assert not differs(subject, mine), f"{subject[3]}\n{ffm.outside(*subject)}\n{sorted(mine)}"
        broken.update(mine or {0})
    print("trees in the space (0), and of those outside how many break each rule:", sorted(broken.items()))
    assert len(subjects()) >= 1900 and broken[0] >= 800
    assert all(broken[rule] >= 20 for rule in (2, 3, 4, 6, 7, 8, 9, 10, 11)), broken


def other_stores_count_for_a_copy(patch: pytest.MonkeyPatch) -> None:
    """Rule 10 asks of every store above the copy, not of those that hold its tensors."""
    right = ffm._copies

    def copies(tree: Any, einsum: str) -> Iterator[str]:
        yield from right(tree, einsum)
        seen = {memory.name for memory in ffm.visible_memories(tree.machine, None)}
        for node in tree.paths[einsum]:
            if tree.workload.einsum(einsum).kind == "copy" and isinstance(node, Store) and node.memory not in seen:
                yield f"rule 10: {node.memory}"

    patch.setattr(ffm, "_copies", copies)


def without(rule: str) -> Callable[[pytest.MonkeyPatch], None]:
    def mistake(patch: pytest.MonkeyPatch) -> None:
        patch.setattr(ffm, rule, lambda *_: iter(()))

    mistake.__name__ = f"without{rule}"
    return mistake


NAMES = "_tiled _hierarchical _block_order _one_loop _no_recomputation _own_stores _limits _copies _windows _fusion"
MISTAKES = (other_stores_count_for_a_copy, *map(without, NAMES.split()))


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.__name__)
def test_a_mistake_in_one_reading_is_seen(
    mistake: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    everything = subjects()
    mistake(monkeypatch)
    assert any(differs(subject, mine) for subject, mine in everything)
