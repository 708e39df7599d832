"""What a breakdown says when it is asked: sums over its lines."""

from __future__ import annotations

from itertools import product

from einloom.cost.evaluate import evaluate, legality
from trees import random_case


def test_counts_traffic_and_energies_are_sums_of_lines() -> None:
    asked = 0
    for seed in range(20):
        case = random_case(seed)
        if legality(case.workload, case.machine, case.mapping):
            continue
        cost = evaluate(case.workload, case.machine, case.mapping)
        lines = [(a.einsum, a.component, a.tensor, a.action) for a in cost.actions]
        einsums, components, tensors, actions = (list(dict.fromkeys(column)) for column in zip(*lines, strict=True))
        for component, tensor, action in product(components, tensors, actions):
            like = [a for a in cost.actions if (a.component, a.tensor, a.action) == (component, tensor, action)]
            assert cost.count(component, tensor, action) == sum(a.count for a in like)
            for einsum in einsums:
                mine = sum(a.count for a in like if a.einsum == einsum)
                assert cost.count(component, tensor, action, einsum) == mine
            asked += bool(like)
        for memory in case.machine.memories:
            moved = [a.bits for a in cost.actions if a.component == memory.name and a.action in ("read", "write")]
            held = [o.bits for o in cost.occupancy if o.memory == memory.name]
            assert (cost.traffic(memory.name), cost.occupancy_of(memory.name)) == (sum(moved), sum(held))
        by_two = cost.energy_by("component", "action")
        for component, action in product(components, actions):
            energy = sum(a.energy for a in cost.actions if (a.component, a.action) == (component, action))
            assert by_two.get((component, action), 0) == energy
        assert (cost.edp, tuple(cost)) == (cost.energy * cost.latency, (cost.energy, cost.latency))
    assert asked > 100
