"""`dat`: DAT's form of a tree, and the integer program that finds its tiles."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from itertools import product
from math import log2
from random import Random

import numpy as np
import pytest

from einloom.machine.files import parse_machine
from einloom.mapspace.ffm.encoding import State
from einloom.mapspace.registry import space_for
from einloom.problem import Budget
from einloom.questions import problem
from einloom.search.door import ask
from einloom.search.evaluator import Evaluator
from einloom.search.heuristics.blocks import in_blocks
from einloom.search.heuristics.dat import solved
from einloom.search.heuristics.points import Points
from einloom.search.heuristics.tile_model import TileModel
from einloom.search.registry import method

pytest.importorskip("scipy")
CHAIN = ("matmuls:n=3,m=48,kn=24,bits=8", "simple:glb_bits=8192,dram_energy=10")
SPREAD = """
schema: machine/1
name: spread
levels:
  - {memory: DRAM, read_energy: 9, write_energy: 9, read_throughput: 1 GB/s, write_throughput: 1 GB/s}
  - {fanout: cores, axes: [{axis: core, size: 4}]}
  - {memory: GLB, size: 4096, read_energy: 2, write_energy: 3}
  - {compute: MAC, energy: 1, throughput: 1 GHz}
"""


def points_of(workload: str, machine: object, goal: str) -> Points:
    asked = problem(workload, machine, goal)  # type: ignore[arg-type]
    space = space_for(asked.workload, asked.machine, asked.mapspace)
    return Points(asked, space, Evaluator(asked, space))


def drawn(points: Points, rng: Random) -> State:
    found = points.draw(rng)
    assert found is not None
    return found[1]


def test_blocks_are_everywhere_and_break_no_rule() -> None:
    points, rng, fused = points_of(*CHAIN, "energy"), Random(4), 0
    for _ in range(30):
        state = in_blocks(points.facts, drawn(points, rng), rng)
        assert points.encoding.fault(state) in (None, "capacity")
        for i, own in enumerate(state.owns):
            held = {*own.stores, *(one[:2] for one in own.raised)}
            backed = {tensor.name for tensor, home in zip(points.facts.floating, state.homes, strict=True) if home}
            assert {tensor for _, tensor in held} >= points.facts.tensors[i] - backed
        for number, home in enumerate(state.homes):
            tensor = points.facts.floating[number]
            loops = state.shared[tensor.users[0]][: state.depths[number]]
            ranks = {points.facts.simple_rank(tensor.users[0], tensor.name, v) for v, _, _ in loops}
            fused += home > 0 and ranks == {0, 1}
    assert fused > 10


@pytest.mark.parametrize("goal", ["energy", "traffic:DRAM"])
def test_the_program_finds_the_least_of_all_tiles(goal: str) -> None:
    """Of one Einsum by enumeration, as the model prices them; extents are powers of two, so chords are exact."""
    points, rng = points_of("matmuls:n=1,m=8,kn=4,bits=8", "simple:glb_bits=256,dram_energy=10", goal), Random(2)
    for _ in range(2):
        state = in_blocks(points.facts, drawn(points, rng), rng)
        model = TileModel(points, state, 1)
        x = solved(model, 100_000)
        assert x is not None
        every = [range(int(log2(points.facts.extents[v])) + 1) for _, v, _ in model.factors.private]
        least = min(priced(model, np.array(row, float)) for row in product(*every))
        assert priced(model, x) == pytest.approx(least, rel=0.011)  # its gap is a hundredth
        rounded = model.rounded(x)
        assert rounded is not None and points.encoding.fits(rounded)


def priced(model: TileModel, x: np.ndarray) -> float:
    """Joules, or bits, of tiles at these logarithms; infinite if they are none or do not fit."""
    at = np.append(x, 1.0)
    if any(row @ at < -1e-9 for row in model.rests):
        return float("inf")
    if any(sum(f * 2 ** (row @ at) for f, row in tiles) > size * (1 + 1e-9) for size, tiles in model.rooms):
        return float("inf")
    return float(sum(f * 2 ** (row @ at) for f, row in model.energy))


def test_traffic_is_what_crosses_its_memory() -> None:
    """Where every partial sum stays on chip, the model says the bits of the tree; a loop of one trip may only add."""
    machine = parse_machine(
        "schema: machine/1\nname: m\nlevels:\n"
        "  - {memory: DRAM, read_energy: 5, write_energy: 7}\n"
        "  - {memory: GLB, size: 1000000, read_energy: 1, write_energy: 2}\n"
        "  - {compute: MAC, energy: 1}\npartial_sums: once\n"
    )
    points, rng, equal = points_of("matmuls:n=2,m=16,kn=8,bits=8", machine, "traffic:DRAM"), Random(1), 0
    for _ in range(20):
        state = in_blocks(points.facts, drawn(points, rng), rng)
        model = TileModel(points, state)
        said, right = priced(model, model.coordinates()), points.sums(state)[2]
        assert said >= right * (1 - 1e-9)
        equal += said == pytest.approx(right)
    assert equal > 5


def test_trips_divide_extents_that_are_no_powers_of_two() -> None:
    points, rng = points_of(*CHAIN, "edp"), Random(6)
    for _ in range(10):
        model = TileModel(points, in_blocks(points.facts, drawn(points, rng), rng), 1)
        x = solved(model, 20)
        state = None if x is None else model.rounded(x)
        if state is not None:
            assert x is not None and points.encoding.fits(state)
            trips = 2.0 ** x[len(model.factors.shared) :]
            assert all(abs(n - round(n)) < 1e-6 for n in trips)
            assert all(
                points.facts.extents[v] % round(n) == 0
                for (_, v, _), n in zip(model.factors.private, trips, strict=True)
            )


def test_shared_spatial_loops_stay_and_others_may_go() -> None:
    points, rng = points_of("matmuls:n=2,m=64,kn=16,bits=8", parse_machine(SPREAD), "latency"), Random(3)
    kept = gone = 0
    for _ in range(60):
        state = in_blocks(points.facts, drawn(points, rng), rng)
        loops = [loop for loop in state.shared[0] if loop[2] is not None]
        x = solved(model := TileModel(points, state, 1), 20)
        found = None if x is None else model.rounded(x)
        if found is not None:
            assert [loop for loop in found.shared[0] if loop[2] is not None] == loops
            assert points.encoding.fault(found) is None
            kept += bool(loops)
            gone += len(found.shared[0]) < len(state.shared[0])
    assert kept > 3 and gone > 3


def test_dat_finds_what_is_proven_of_a_chain() -> None:
    """Under traffic, too, where its trees once had the tiles that they were drawn with."""
    asked = problem(*CHAIN, "traffic:DRAM")
    best = ask(method("exact"), asked).value
    found = ask(method("dat"), asked, Budget(steps=60)).value
    assert best <= found <= 1.3 * best


def test_what_the_solver_prints_by_itself_is_dropped(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """HiGHS prints some lines with C's printf, which keeps them in a buffer, and some directly."""
    from scipy import optimize

    libc, solve, called = ctypes.CDLL(None), optimize.milp, list[object]()

    def loud(**asked: object) -> object:
        libc.puts(b"a line in C's buffer")
        os.write(1, b"a line on standard output\n")
        os.write(2, b"a line on standard error\n")
        called.append(asked["options"])
        return solve(**asked)

    monkeypatch.setattr(optimize, "milp", loud)
    libc.puts(b"before")
    found = ask(method("dat", {"seed": 0}), problem(*CHAIN, "energy"), Budget(steps=30))
    libc.puts(b"after")
    libc.fflush(None)
    print("told")
    out, err = capfd.readouterr()
    assert called and found.value > 0
    assert out.split() == ["before", "after", "told"] and not err


def test_closed_standard_streams_stay_closed() -> None:
    code = """
import os
from einloom.search.heuristics.quiet import silenced
os.close(1)
with silenced():
    pass
try:
    os.write(1, b"?")
except OSError:
    os._exit(3)
"""
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == 3
