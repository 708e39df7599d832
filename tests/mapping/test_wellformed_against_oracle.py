"""`problems` against the oracle: what passes computes the right values; what is refused for its data does not."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

import trees
from einloom.mapping.legality.structure import problems
from einloom.mapping.tree import Loop, Mapping, Nest, Node, Split, Store
from einloom.oracle import simulate

CONVENTIONS = ("but is listed", "must be backed by", "is persistent", "has no common backing store")


def mutated(nest: Nest, rng: Random) -> Nest:
    """`nest` with some neighbours swapped, some stores thinned out and some loops changed."""
    nodes = list(nest)
    for i in range(len(nodes) - 2):
        if rng.random() < 0.25:
            nodes[i], nodes[i + 1] = nodes[i + 1], nodes[i]
    made: list[Node] = []
    for node in nodes:
        if isinstance(node, Split):
            node = replace(node, branches=tuple(mutated(branch, rng) for branch in node.branches))
        elif isinstance(node, Store) and len(node.tensors) > 1 and rng.random() < 0.05:
            node = replace(node, tensors=node.tensors[1:])
        elif isinstance(node, Loop) and rng.random() < 0.05:
            node = replace(node, trips=node.trips + 1)
        elif isinstance(node, Loop) and rng.random() < 0.03:
            node = replace(node, tile=None)
        made.append(node)
    return tuple(made)


@pytest.mark.parametrize("block", range(4))
def test_legal_if_and_only_if_the_values_come_out_right(block: int) -> None:
    seen = {True: 0, False: 0}
    for seed in range(block * 150, block * 150 + 150):
        case, rng = trees.random_case(seed), Random(seed)
        mapping = Mapping(mutated(case.mapping.nest, rng)) if rng.random() < 0.7 else case.mapping
        reasons = problems(case.workload, case.machine, mapping)
        run = simulate(case.workload, case.machine, mapping)
        right = not run.reasons and run.correct
        if not reasons:
            assert right, (seed, run.reasons)
        elif right:
            assert all(any(word in reason for word in CONVENTIONS) for reason in reasons), (seed, reasons)
        seen[not reasons] += 1
    assert min(seen.values()) > 20
