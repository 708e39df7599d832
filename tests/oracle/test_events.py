"""Discrete events against pencil and paper, and against the closed forms of a steady pipeline."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import pytest

from einloom.cost.formulas.pipeline import Edge, drain_time
from einloom.oracle.time.events import Operation, execute

CHAIN = (Edge(0, 1), Edge(1, 2))


def pipeline(
    durations: Sequence[Sequence[float]], edges: Sequence[Edge], components: Sequence[str] | None = None
) -> float:
    """End of a pipeline whose stage j takes durations[j][t] for token t, each stage one engine."""
    tokens = len(durations[0])
    stages = range(len(durations))
    number = {(t, j): t * len(durations) + j for t in range(tokens) for j in stages}
    operations = []
    for t, j in number:
        after = {number[t, e.producer] for e in edges if e.consumer == j}
        for e in edges:
            if e.producer == j and e.slots is not None and t >= e.slots:
                after.add(number[t - e.slots, e.consumer])
        held = () if components is None else (components[j],)
        operations.append(Operation(j, durations[j][t], held, after, rank=j))
    return execute(operations).end


def uniform(times: Sequence[float], tokens: int) -> list[list[float]]:
    return [[time] * tokens for time in times]


@pytest.mark.parametrize(
    ("durations", "edges", "components", "cycles"),
    [
        (uniform((4, 7, 5), 12), CHAIN, None, 93),
        (uniform((3, 5, 4), 10), (Edge(0, 1, 1), Edge(1, 2, 1)), None, 93),
        (uniform((4, 4, 4), 10), CHAIN, None, 48),
        (uniform((4, 8), 10), (Edge(0, 1),), None, 84),
        (uniform((2, 3), 5), (Edge(0, 1),), None, 17),
        (uniform((10, 17), 6), (Edge(0, 1),), None, 112),
        (uniform((3, 5, 4), 10), (*CHAIN, Edge(0, 2, 1)), None, 120),
        (uniform((3, 5, 4), 10), (*CHAIN, Edge(0, 2, 2)), None, 65),
        (uniform((3, 5, 4), 10), (*CHAIN, Edge(0, 2, 3)), None, 57),
        (uniform((2, 6, 3, 4), 10), (Edge(0, 1), Edge(0, 2), Edge(1, 3), Edge(2, 3)), None, 66),
        (uniform((4, 7), 10), (), None, 70),
        ([[4, 4, 4, 2], [5, 5, 5, 3]], (Edge(0, 1),), None, 22),
        (uniform((4, 5, 4), 10), CHAIN, ("M", "V", "M"), 82),
        (uniform((4, 5, 4), 10), (Edge(0, 1, 3), Edge(1, 2, 3)), ("M", "V", "M"), 80),
        (
            [[12, 4, 4, 4], [11] * 4, [4] * 4, [12, 4, 4, 4], [32] * 4, [4] * 4],
            [Edge(i, i + 1) for i in range(5)],
            None,
            171,
        ),
        (
            [[12, 4, 4, 4], [32] * 4, [4] * 4, [12, 4, 4, 4], [11] * 4, [4] * 4],
            [Edge(i, i + 1) for i in range(5)],
            None,
            163,
        ),
        (
            [[12, 4, 4, 4], [16] * 4, [4] * 4, [8, 0, 0, 0], [16] * 4, [4] * 4],
            [Edge(i, i + 1) for i in range(5)],
            None,
            108,
        ),
    ],
)
def test_worked_pipelines(
    durations: Sequence[Sequence[float]], edges: Sequence[Edge], components: Sequence[str] | None, cycles: int
) -> None:
    assert pipeline(durations, edges, components) == cycles


def test_three_drains_take_three_times_as_long() -> None:
    assert 3 * pipeline(uniform((4, 7, 5), 4), CHAIN) == 111


@pytest.mark.parametrize(("tokens", "cycles"), [(10, 108), (1, 18)])
def test_two_branches_in_turns_overlap_only_their_loads(tokens: int, cycles: int) -> None:
    """Loads of 8 and 2 on one port, work of 2 and 8, one work after the other, loads running ahead."""
    operations: list[Operation] = []
    works: list[int] = []
    for token in range(tokens):
        for load, work in ((8, 2), (2, 8)):
            operations.append(Operation("load", load, ("port",)))
            operations.append(Operation("work", work, ("unit",), {len(operations) - 1}))
            works.append(len(operations) - 1)
        assert len(works) == 2 * (token + 1)
    assert execute(operations).end == cycles


def test_chains_and_skips_with_room_are_closed_forms() -> None:
    rng = Random(1)
    for _ in range(300):
        stages, tokens = rng.randint(2, 5), rng.randint(1, 12)
        times = [rng.randint(1, 9) for _ in range(stages)]
        edges = [Edge(i, i + 1, rng.randint(1, 3)) for i in range(stages - 1)]
        if stages > 2 and rng.random() < 0.5:
            first = rng.randint(0, stages - 3)
            last = rng.randint(first + 2, stages - 1)
            edges = [Edge(i, i + 1, 2) for i in range(stages - 1)] + [Edge(first, last, 1 + last - first)]
        assert pipeline(uniform(times, tokens), edges) == drain_time(times, edges, tokens), (times, edges, tokens)


def test_skips_without_room_and_shared_components_are_bounds() -> None:
    rng = Random(2)
    tight = 0
    for _ in range(200):
        stages, tokens = rng.randint(3, 5), rng.randint(1, 12)
        times = [rng.randint(1, 9) for _ in range(stages)]
        edges = [Edge(i, i + 1) for i in range(stages - 1)] + [Edge(0, stages - 1, rng.randint(1, stages - 1))]
        found, bound = pipeline(uniform(times, tokens), edges), drain_time(times, edges, tokens)
        assert found <= bound
        tight += found == bound
    assert tight > 150


def test_operations_that_wait_for_one_another_are_refused() -> None:
    with pytest.raises(ValueError, match="2 of 2 operations"):
        execute([Operation("a", 1, after={1}), Operation("b", 1, after={0})])


def test_begun_is_enough_where_it_is_asked_for() -> None:
    assert execute([Operation("a", 5), Operation("b", 1, begun={0})]).end == 5
    assert execute([Operation("a", 5), Operation("b", 1, after={0})]).end == 6
