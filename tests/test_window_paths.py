"""The closed price of a path with windows is the tree walk's, and sees each of its mistakes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from einloom.cost.evaluate import price
from einloom.cost.traffic import windowed
from einloom.cost.traffic.paths import paths
from einloom.cost.traffic.windowed import WindowPaths
from einloom.machine.levels import Axis, ComputeUnit, Fanout, Machine, Memory, Toll
from einloom.mapping.text import parse_mapping
from einloom.mapping.tree import Mapping
from einloom.mapspace.ffm.encoding import Encoding, NoProposal
from einloom.mapspace.ffm.encoding.state import KnownPath, path_of
from einloom.mapspace.ffm.encoding.trees import nodes_of
from einloom.mapspace.space import Mapspace
from einloom.testing.problems.drawing import Wanted, draw_with
from einloom.workload.build import build_workload
from einloom.workload.einsum import Workload
from einloom.workload.selectors import selector
from windowed_einsums import CASES


def machine(ports: Any = "shared", partial_sums: Any = "read-modify-write") -> Machine:
    """Two fanouts, one of which shares nothing; times everywhere, so that the busiest instance counts."""
    levels = (
        Memory("DRAM", None, 10.0, 12.0, read_throughput=2.0, write_throughput=3.0, ports=ports),
        Fanout("outer", (Axis("X", 4),)),
        Memory("GLB", None, 2.0, 2.5, read_throughput=5.0, write_throughput=5.0, leakage=0.01),
        Fanout("inner", (Axis("Y", 6, multicast=selector("weight")), Axis("Z", 4))),
        Memory("REG", None, 0.1, 0.2, read_throughput=1.0, write_throughput=1.0, ports=ports),
        ComputeUnit("MAC", 1.0, 0.5),
    )
    return Machine("m", levels, partial_sums=partial_sums)


def seen(
    workload: Workload, hardware: Machine, seed: int, moves: int = 250
) -> Iterator[tuple[str, KnownPath, float, float, Any]]:
    """(Einsum, path, joules, seconds, traffic by the tree walk) of what draws and moves come to."""
    encoding, rng = Encoding(workload, hardware, Mapspace()), Random(seed)
    state = encoding.sample(rng)
    for _ in range(moves):
        if state is None or rng.random() < 0.1:
            state = encoding.sample(rng)
            continue
        try:
            state = encoding.propose(state, rng)
        except NoProposal:
            continue
        facts = encoding.of(state)
        for i, einsum in enumerate(facts.einsums):
            path = path_of(facts, state, i)
            if path.filled:
                continue
            one = price(workload, hardware, paths(workload, Mapping(nodes_of(facts, i, path.word))), "einsum", ())
            yield einsum.name, path, one.energy, one.latency, tuple(one.traffic(m.name) for m in hardware.memories)


def differences(name: str, seed: int, hardware: Machine) -> Counter[str]:
    """How many paths were priced, and how many otherwise than by the walk."""
    einsums, extents, shapes = CASES[name]
    workload = build_workload(name, list(einsums), extents, bits=8, shapes=shapes)
    closed = {e.name: WindowPaths(workload, hardware, e.name) for e in workload.einsums}
    assert all(WindowPaths.able(workload, hardware, e) for e in closed)
    found: Counter[str] = Counter()
    for einsum, path, energy, latency, traffic in seen(workload, hardware, seed):
        if not closed[einsum].takes(path.word, path.filled):
            continue
        one = closed[einsum].cost(path.word, path.filled)
        alike = (one.energy, one.latency) == pytest.approx((energy, latency), rel=1e-12) and one.traffic == traffic
        found["paths"] += 1
        found["other"] += not alike
        found["spread"] += bool(closed[einsum].spread(path.word))
    return found


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("ports", ["shared", "separate"])
@pytest.mark.parametrize("sums", ["read-modify-write", "once"])
def test_paths_with_windows_are_priced_as_by_the_walk(name: str, ports: str, sums: str) -> None:
    found = differences(name, 2, machine(ports, sums))
    assert found["other"] == 0 and found["paths"] > 100
    assert found["spread"] > 30 or name not in ("stride, dilation and padding", "padded chain")


def mistaken(counted: Any, **changes: Any) -> Any:
    """`_moved` asked for something else."""

    def wrong(terms: Any, constant: int, size: int, slides: int | None) -> Any:
        asked = {"terms": terms, "constant": constant, "size": size, "slides": slides, **changes}
        return counted(*asked.values())

    return wrong


@pytest.mark.parametrize("changes", [{"slides": None}, {"constant": 0}, {"size": 10**6}])
def test_a_mistake_in_windows_is_seen(monkeypatch: pytest.MonkeyPatch, changes: dict[str, Any]) -> None:
    """Nothing slides; no padding; no end of the shape."""
    monkeypatch.setattr(windowed, "_moved", mistaken(windowed._moved, **changes))
    assert sum((differences(name, 1, machine()) for name in CASES), Counter[str]())["other"] > 0


def test_instances_that_differ_are_left_to_the_walk() -> None:
    """Two instances, and two positions with padding, one of each: none has as much to do as if there were none."""
    workload = build_workload("w", ["O[p] = W[r] * I[p+r-1]"], {"p": 6, "r": 2}, bits=8, shapes={"I": [5]})
    levels = (
        Memory("DRAM", None, 10.0, 12.0),
        Fanout("outer", (Axis("X", 2),)),
        Memory("REG", None, 0.1, 0.2, read_throughput=1.0, write_throughput=1.0),
        ComputeUnit("MAC"),
    )
    hardware, closed = Machine("m", levels), WindowPaths(workload, Machine("m", levels), "O")
    stores = ("store", 0, ("O", "W", "I")), ("par", "X", "p", 2), ("store", 1, ("I",))
    steps = (*stores, ("for", "p", 3), ("for", "r", 2), ("leaf", "MAC", ()))
    whole = (*stores[:1], ("for", "p", 2), *stores[2:], *steps[3:])
    assert closed.takes(whole, frozenset()) and not closed.takes(steps, frozenset())
    text = "store DRAM: O W I\npar p in 2 @ X\nstore REG: I\nfor p in 3\nfor r in 2\ncompute O @ MAC\n"
    found = price(workload, hardware, paths(workload, parse_mapping(text, workload, hardware)), "einsum", ())
    alike = closed.cost(steps)
    assert tuple(found.traffic(m.name) for m in hardware.memories) == alike.traffic
    assert found.latency < alike.latency


@pytest.mark.parametrize("dimension", ["window", "padding", "partial multicast", "persistent input"])
def test_random_problems_with_windows_are_priced_as_by_the_walk(dimension: str) -> None:
    paths_seen = 0
    for seed in range(12):
        drawn = draw_with(Wanted((dimension, "window")), seed)
        read = None if drawn is None else drawn.files.read
        if read is None:
            continue
        workload, hardware, _ = read
        able = [e.name for e in workload.einsums if WindowPaths.able(workload, hardware, e.name)]
        closed = {name: WindowPaths(workload, hardware, name) for name in able}
        for einsum, path, energy, latency, traffic in seen(workload, hardware, seed, 40):
            if einsum not in closed or not closed[einsum].takes(path.word, path.filled):
                continue
            one = closed[einsum].cost(path.word, path.filled)
            assert (one.energy, one.latency) == pytest.approx((energy, latency), rel=1e-12)
            assert one.traffic == traffic
            paths_seen += 1
    assert paths_seen > 50


TOLLED = replace(machine(), levels=(machine().levels[0], Toll("noc", energy=1.0), *machine().levels[1:]))


@pytest.mark.parametrize(
    ("einsum", "hardware", "able"),
    [
        ("O[p,r] = I[p+r]", machine(), True),
        ("O[p] = I[p+r] * I[p+r]", machine(), True),
        ("O[p+2*r] = I[p,r]", machine(), False),
        ("O[p,r] = I[p+r]", TOLLED, False),
    ],
)
def test_what_is_no_product_of_ranks_is_left_to_the_walk(einsum: str, hardware: Machine, able: bool) -> None:
    workload = build_workload("w", [einsum], {"p": 2, "r": 2}, bits=8)
    assert WindowPaths.able(workload, hardware, "O") == able
