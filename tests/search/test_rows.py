"""Rows of trips of one skeleton in machine code, against `evaluate` of the tree that each makes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice
from random import Random

import numpy as np
import pytest
from numpy.typing import NDArray

from einloom.cost.evaluate import evaluate, legality
from einloom.errors import IllegalMapping
from einloom.machine.levels import Axis, ComputeUnit, Fanout, Machine, Memory
from einloom.mapspace.divisors import primes
from einloom.mapspace.ffm.encoding import State
from einloom.mapspace.ffm.encoding.rooms import overflow
from einloom.mapspace.registry import space_for
from einloom.mapspace.space import Mapspace
from einloom.problem import Problem, objective
from einloom.questions import problem
from einloom.search.evaluator import Evaluator
from einloom.search.heuristics import kernel, row_kernel, window_rows
from einloom.search.heuristics.points import Points
from einloom.search.heuristics.rows import TripRows
from einloom.testing.problems.drawing import draw
from einloom.workload.build import build_workload
from kernels import interpret
from windowed_einsums import CASES

Rows = NDArray[np.int64]


def points_of(asked: Problem) -> Points:
    space = space_for(asked.workload, asked.machine, asked.mapspace)
    return Points(asked, space, Evaluator(asked, space))


def near(rows: TripRows, rng: Random, many: int) -> Rows:
    """The row of the state with trips moved, one to three times each, mostly between loops of one variable."""
    found = np.tile(rows.trips, (many, 1))
    for row in found:
        for _ in range(rng.randint(0, 3)):
            a = rng.randrange(len(row))
            like = [n for n, one in enumerate(rows.loops) if one.variable == rows.loops[a].variable]
            like = [n for n in like if rows.loops[n].einsum == rows.loops[a].einsum]
            b = rng.choice(like) if rng.random() < 0.9 else rng.randrange(len(row))
            if row[a] > 1 and a != b:
                p = int(row[a]) if rng.random() < 0.5 else rng.choice(primes(int(row[a])))
                row[a], row[b] = row[a] // p, row[b] * p
    return found


def value(points: Points, rows: TripRows, row: Rows) -> float:
    """The objective of a row by `evaluate`; infinite for what is no tree of perfect tiles, or does not fit."""
    state = rows.at(row)
    for i, einsum in enumerate(points.facts.einsums):
        for variable in einsum.variables:
            of_it = [n for v, n, _ in state.shared[i] if v == variable]
            of_it += [n for segment in state.owns[i].segments for v, n in segment if v == variable]
            of_it += [n for _, v, n in state.owns[i].spatial if v == variable]
            if np.prod(of_it, dtype=object) != points.facts.extents[variable]:
                return float("inf")
    asked = points.problem
    try:
        cost = evaluate(asked.workload, asked.machine, points.encoding.decode(state), asked.latency_rule)
    except IllegalMapping:
        return float("inf")
    return asked.objective.value(cost)


def drawn_problems() -> Iterator[Problem]:
    yield problem("matmuls:n=3,m=64,kn=64", "simple:glb_bits=16384", "energy")
    yield problem("tileflow-bert-s", "tileflow-edge", "latency")
    yield problem("gpt3-6.7b:batch=1,tokens=2048", "tpu-v4i", "edp")
    for seed in range(120):
        workload, machine, mapspace = draw(seed).files.read
        if mapspace.name == "ffm" and not mapspace.places and mapspace.order == "program" and mapspace.stores == "own":
            yield Problem(workload, machine, mapspace, objective("energy", machine))


def keeps_rules(points: Points, state: State) -> bool:
    """True if the tree of a state is a schedule, but for room."""
    workload, machine = points.problem.workload, points.problem.machine
    return overflow(points.facts, state) is not None or not legality(workload, machine, points.encoding.decode(state))


def compared(asked: Problem, rng: Random, states: int = 3, rows_each: int = 12) -> tuple[int, int]:
    """Rows near some states that are priced as their trees: those that fit, and those that do not."""
    points, finite, overfull = points_of(asked), 0, 0
    for _ in range(states):
        state = points.encoding.sample(rng)
        if state is None or not TripRows.able(points, state) or not keeps_rules(points, state):
            continue
        rows = TripRows(points, state)
        if not rows.loops:
            continue
        tried = near(rows, rng, rows_each)
        for row, found in zip(tried, rows.price(tried), strict=True):
            if any(loop.shared and n < 2 for loop, n in zip(rows.loops, row, strict=True)):
                assert found == float("inf")  # the runs below such a loop would be others
                continue
            true = value(points, rows, row)
            assert found == pytest.approx(true, rel=1e-12), (asked.workload.name, row, found, true)
            finite, overfull = finite + (true < float("inf")), overfull + (true == float("inf"))
    return finite, overfull


@pytest.mark.slow
def test_every_row_is_priced_as_its_tree() -> None:
    rng = Random(5)
    finite, overfull = np.sum([compared(asked, rng) for asked in drawn_problems()], axis=0)
    assert finite > 300 and overfull > 30


def leaky() -> Problem:
    """What takes longer takes more energy."""
    asked = problem("matmuls:n=2,m=16,kn=16", "simple:glb_bits=4096,glb_throughput=4", "energy")
    memories = tuple(replace(one, leakage=7.0) if isinstance(one, Memory) else one for one in asked.machine.levels)
    return replace(asked, machine=replace(asked.machine, levels=memories))


def test_rows_are_priced_as_their_trees_in_python(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a compiler: few rows, on small problems and on one whose machine leaks."""
    assert interpret(monkeypatch) > 10
    rng = Random(5)
    finite, overfull = np.sum([compared(asked, rng, 2, 4) for asked in islice(drawn_problems(), 3, 44)], axis=0)
    assert finite > 60 and overfull > 2
    assert compared(leaky(), rng)[0] > 6


def window_problem(name: str, goal: str) -> Problem:
    """Small memories, two fanouts, and times everywhere, so that the busiest instance counts."""
    einsums, extents, shapes = CASES[name]
    levels = (
        Memory("DRAM", None, 10.0, 12.0, read_throughput=2.0, write_throughput=3.0),
        Fanout("outer", (Axis("X", 4),)),
        Memory("GLB", 240, 2.0, 2.5, read_throughput=5.0, write_throughput=5.0, leakage=0.01),
        Fanout("inner", (Axis("Y", 6), Axis("Z", 4))),
        Memory("REG", 72, 0.1, 0.2, read_throughput=1.0, write_throughput=1.0),
        ComputeUnit("MAC", 1.0, 0.5),
    )
    machine = Machine("m", levels)
    workload = build_workload(name, list(einsums), extents, bits=8, shapes=shapes)
    return Problem(workload, machine, Mapspace(), objective(goal, machine))


@pytest.mark.parametrize(("name", "goal"), list(zip(CASES, ["energy", "edp", "traffic:DRAM", "energy"], strict=True)))
def test_rows_with_windows_are_priced_as_their_trees(name: str, goal: str) -> None:
    finite, overfull = compared(window_problem(name, goal), Random(3), 16)
    assert finite > 60 and overfull > 5


@pytest.mark.slow
@pytest.mark.parametrize("workload", ["mobilenet-block", "resnet18", "tileflow-cc1", "conv-chain"])
@pytest.mark.parametrize("machine", ["two-level", "tpu-v4i", "tileflow-edge"])
def test_rows_of_convolutional_networks_are_priced_as_their_trees(workload: str, machine: str) -> None:
    finite, overfull = compared(problem(workload, machine, "energy"), Random(4), 6)
    assert finite + overfull > 30


def first_for_all(true: Callable[..., Rows]) -> Callable[..., Rows]:
    """What holds of the first row, for every row."""

    def wrong(rows: object, trips: Rows) -> Rows:
        found = true(rows, trips)
        found[:] = found[:1] if len(found) else 0
        return found

    return wrong


def nothing_more(true: Callable[..., Rows]) -> Callable[..., NDArray[np.float64]]:
    return lambda rows, trips: np.ones(len(trips))


def nothing_slides(true: Callable[..., Rows]) -> Callable[..., Rows]:
    return lambda rows, trips: np.full(len(trips), -1)


@pytest.mark.parametrize(
    ("kind", "name", "mistake", "case"),
    [
        (window_rows.LinkWindows, "factors", first_for_all, "padded chain"),
        (window_rows.TileWindows, "factors", nothing_more, "stride, dilation and padding"),
        (window_rows.LinkWindows, "_slides", nothing_slides, "padded chain"),
    ],
)
def test_mistakes_in_windows_are_noticed(
    kind: type, name: str, mistake: Callable[..., object], case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Planted mistakes: what one row moves for all; tiles of one position; windows that never slide."""
    monkeypatch.setattr(kind, name, mistake(getattr(kind, name)))
    with pytest.raises(AssertionError):
        compared(window_problem(case, "energy"), Random(3), 30)


def test_choices_are_looked_up_alike_however_they_are_numbered(monkeypatch: pytest.MonkeyPatch) -> None:
    choices = np.array([[3, 0], [1, 2], [3, 0], [1, 0]])
    asked: list[tuple[int, ...]] = []

    def ask(one: tuple[int, ...]) -> float:
        asked.append(one)
        return one[0] + 10.0 * one[1]

    assert window_rows.looked_up(choices, ask).tolist() == [3.0, 21.0, 3.0, 1.0]
    assert sorted(asked) == [(1, 0), (1, 2), (3, 0)]
    assert window_rows.looked_up(choices[:, :0], ask=lambda one: 7.0).tolist() == [7.0] * 4
    monkeypatch.setattr(window_rows, "WIDEST", 1)  # no one integer is wide enough
    assert window_rows.looked_up(choices, ask).tolist() == [3.0, 21.0, 3.0, 1.0]
    assert window_rows.looked_up(choices[:, :0], ask=lambda one: 7.0).tolist() == [7.0] * 4
    assert window_rows.looked_up(choices[:0], ask).tolist() == []


@pytest.mark.slow
def test_a_tile_left_out_of_the_room_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A planted mistake: all rows fit."""
    monkeypatch.setattr(TripRows, "_rooms", _roomy)
    with pytest.raises(AssertionError):
        test_every_row_is_priced_as_its_tree()


def _roomy(rows: TripRows) -> None:
    rows._tiles, rows._divided = np.zeros((0, 6), np.int64), np.zeros(0, np.int64)
    rows._bits = np.zeros(0)


def test_a_copy_moves_nothing_below_one_memory() -> None:
    together = kernel._together.py_func
    assert together(np.array([[0, 0, 3, 0], [1, 0, 2, 0], [0, 1, 3, 0]]), 3)
    assert not together(np.array([[0, 0, 3, 0], [1, 0, 2, 0], [0, 1, 1, 0]]), 3)  # tensor 1 stays further out
    assert together(np.array([[0, 0, 1, 0], [0, 1, 3, 0]]), 2)


def test_trips_multiply_to_what_they_cover() -> None:
    """The same machine code as Python."""
    multiply = row_kernel._multiply.py_func
    chain, ends, whole = np.array([0, 2, 1]), np.array([2, 3]), np.array([12.0, 5.0])
    assert multiply(np.array([4, 5, 3]), chain, ends, whole)
    assert not multiply(np.array([2, 5, 3]), chain, ends, whole)  # half of the extent is left
    assert not multiply(np.array([4, 1, 3]), chain, ends, whole)
    assert not multiply(np.array([5, 5, 3]), chain, ends, whole)  # no divisor


def test_tiles_are_fetched_anew_below_loops_that_a_tensor_lacks() -> None:
    """The same machine code as Python: above a loop that it has, or a split; at a leaf always."""
    fill = row_kernel._fetched.py_func
    begin, lacks, has, cut, link = (getattr(row_kernel, name) for name in ("BEGIN", "LACKS", "HAS", "CUT", "LINK"))
    first = [(begin, 0), (lacks, 0), (has, 1), (lacks, 2), (link, 0), (cut, 0), (link, 1)]
    walk = np.array([*first, (begin, 0), (lacks, 2), (link, 2)])
    fetched = np.zeros(3)
    fill(np.array([7, 2, 3]), walk, fetched)
    assert fetched.tolist() == [7.0, 21.0, 1.0]
    fill(np.array([7, 1, 3]), walk, fetched)  # a loop of one trip is none: the tile stays over all of them
    assert fetched.tolist() == [1.0, 21.0, 1.0]
