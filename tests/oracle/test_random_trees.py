"""The oracle on a thousand random trees (slow: two): right numbers, kept invariants, and reasons for what is wrong."""

from __future__ import annotations

from collections import Counter
from functools import cache

import pytest

from einloom.mapping.extents import addressed_paths
from einloom.mapping.tree import Loop, Mapping, Nest, Split
from einloom.oracle import Simulation, simulate
from trees import FEATURES, Case, random_case

HALVES = pytest.mark.parametrize(
    "seeds", [range(1000), pytest.param(range(1000, 2000), marks=pytest.mark.slow)], ids=["few", "more"]
)


@cache
def simulated(seeds: range) -> tuple[tuple[int, Case, Simulation], ...]:
    cases = ((seed, random_case(seed)) for seed in seeds)
    return tuple((seed, case, simulate(case.workload, case.machine, case.mapping)) for seed, case in cases)


def legal(seeds: range) -> list[tuple[int, Case, Simulation]]:
    return [entry for entry in simulated(seeds) if not entry[2].reasons]


def spread(nest: Nest) -> bool:
    """True if any loop of the tree is spatial."""
    return any(
        (isinstance(node, Loop) and node.axis is not None)
        or (isinstance(node, Split) and any(spread(branch) for branch in node.branches))
        for node in nest
    )


@HALVES
def test_most_trees_are_legal_and_every_feature_is_common(seeds: range) -> None:
    assert len(legal(seeds)) > 0.85 * len(seeds)
    common = Counter(feature for _, case, _ in legal(seeds) for feature in case.features)
    assert all(common[feature] >= 75 for feature in FEATURES), common


@HALVES
def test_legal_trees_compute_what_numpy_computes(seeds: range) -> None:
    assert [seed for seed, _, found in legal(seeds) if not found.correct] == []


@HALVES
def test_illegal_trees_have_a_name_for_it(seeds: range) -> None:
    kinds = {reason.split(":")[0] for _, _, found in simulated(seeds) for reason in found.reasons}
    assert kinds <= {"recomputation", "missing", "unfinished", "not simulated"}
    assert "recomputation" in kinds


@HALVES
def test_inputs_are_conserved_without_fanout(seeds: range) -> None:
    """Every value that is read goes into a memory below or into an operation, once."""
    checked = 0
    for seed, case, found in legal(seeds):
        workload = case.workload
        if spread(case.mapping.nest):
            continue
        for tensor in workload.inputs:
            users = workload.consumers[tensor]
            indices = [i for user in users for i in workload.einsum(user).access(tensor).indices]
            if any(i.constant for i in indices) or any(workload.einsum(user).kind == "copy" for user in users):
                continue
            reads = sum(n for (_, _, t, action), n in found.counts.items() if (t, action) == (tensor, "read"))
            writes = sum(n for (_, _, t, action), n in found.counts.items() if (t, action) == (tensor, "write"))
            assert reads - writes == sum(found.operations[user] for user in users), (seed, tensor)
            checked += 1
    assert checked > 100


@HALVES
def test_results_are_conserved_without_fanout(seeds: range) -> None:
    """Of all writes of a result that nobody reads, one per element has no read: the first, into which nothing went."""
    checked = 0
    for seed, case, found in legal(seeds):
        workload = case.workload
        if spread(case.mapping.nest):
            continue
        for tensor in workload.outputs:
            if workload.consumers[tensor] or workload.einsum(workload.producers[tensor]).kind == "copy":
                continue
            reads = sum(n for (_, _, t, action), n in found.counts.items() if (t, action) == (tensor, "read"))
            writes = sum(n for (_, _, t, action), n in found.counts.items() if (t, action) == (tensor, "write"))
            assert writes - reads == workload.tensor(tensor).size * workload.repeat, (seed, tensor)
            checked += 1
    assert checked > 100


@HALVES
def test_busiest_instance_is_between_mean_and_sum(seeds: range) -> None:
    for seed, case, found in legal(seeds):
        for (einsum, component, action), busiest in found.busiest.items():
            if action == "compute":
                total = found.operations[einsum]
            else:
                memory = case.machine.memory(component)
                total = sum(
                    n * memory.bits(case.workload, einsum, t)
                    for (e, c, t, a), n in found.counts.items()
                    if (e, c, a) == (einsum, component, action)
                )
            assert busiest <= total <= busiest * case.machine.instances(component), seed


@HALVES
def test_counts_do_not_depend_on_the_values(seeds: range) -> None:
    for seed, case, found in legal(seeds)[:100]:
        again = simulate(case.workload, case.machine, case.mapping, seed=1)
        assert again == found, seed


@HALVES
def test_consumers_before_producers_are_caught(seeds: range) -> None:
    caught = 0
    for seed, case, _ in legal(seeds):
        at = next((i for i, node in enumerate(case.mapping.nest) if isinstance(node, Split)), None)
        if at is None:
            continue
        split = case.mapping.nest[at]
        assert isinstance(split, Split)
        turned = Mapping((*case.mapping.nest[:at], Split("sequential", split.branches[::-1])))
        found = simulate(case.workload, case.machine, turned)
        assert found.reasons and not (found.correct and not found.reasons), seed
        caught += 1
    assert caught > 50


@pytest.mark.parametrize("seed", [3, 14, 159])
def test_the_generator_is_a_function_of_its_seed(seed: int) -> None:
    first, second = random_case(seed), random_case(seed)
    assert first == second
    assert all(addressed_paths(first.mapping.nest)[einsum.name] for einsum in first.workload.einsums)
