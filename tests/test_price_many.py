"""Many tile choices at once cost what each costs alone."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.random import Generator

from cases import arrayed, cascade, dram, machine, simple, tree
from einloom.constraints import selector
from einloom.cost import terms
from einloom.cost.arrays import Arrays, price_many, retile
from einloom.cost.evaluate import evaluate, legality
from einloom.cost.occupancy import occupancy
from einloom.cost.paths import paths
from einloom.cost.terms import Cut
from einloom.errors import IllegalMapping, SpecError
from einloom.machine.levels import Axis, ComputeUnit, Fanout, Machine, Memory
from einloom.mapping.extents import Address, addressed_paths
from einloom.mapping.tree import Loop, Mapping
from einloom.workload.einsum import Workload

Tiles = dict[Address, np.ndarray]
MATMUL = cascade("E: Z[m,n] = A[m,k] * B[k,n]", {"m": 7, "n": 6, "k": 5}, bits=3)
TWO = cascade(
    "E0: T[m,n] = A[m,k] * B[k,n]\nE1: Z[m,q] = T[m,n] * D[n,q]", {"m": 7, "n": 6, "k": 5, "q": 4}, bits=2, repeat=3
)
LEAF = "E.m:7/1 E.n:6/1 E.k:5/1 !E@MAC"
FANOUT = Fanout(
    "PE", (Axis("X", 4, selector("input"), selector("all")), Axis("Y", 3, selector("all"), selector("nothing")))
)


def three(size: int | None, double: bool = False, partial_sums: str = "read-modify-write") -> Machine:
    """DRAM, GLB, a fanout of two axes, Reg and MAC, all with energies, throughputs and leakage."""
    return machine(
        Memory("DRAM", None, 7.0, 9.0, 4, 3.0, 2.0, leakage=0.5),
        Memory("GLB", size, 1.5, 1.25, 2, 16.0, 8.0, "separate", double_buffer=double),
        FANOUT,
        Memory("Reg", 180, 0.1, 0.2, 1, 1.0, 1.0, leakage=0.125),
        ComputeUnit("MAC", 1.0, 0.3),
        partial_sums=partial_sums,
    )


SINGLE = (
    (simple(), "DRAM[A B Z] E.m:2 E.n:2 E.k:2 GLB[A B Z] " + LEAF),
    (simple(), "DRAM[A B Z] E.k:2 E.m:2 GLB[Z] E.n:2 GLB[A B] E.m:2 " + LEAF),
    (three(250), "DRAM[A B Z] E.k:2 E.m:2 GLB[A Z] E.m:3@X E.k:3@Y E.n:2 Reg[B] " + LEAF),
    (three(None, True, "once"), "DRAM[A B Z] E.n:2 GLB[B] E.k:2@Y E.k:2 Reg[Z A] E.n:3 Reg[B] " + LEAF),
    (arrayed("nothing", "nothing"), "DRAM[A B Z] E.m:2 GLB[A B Z] E.k:2 E.n:3@X E.k:2 Reg[Z] E.n:2 Reg[A] " + LEAF),
)
BRANCHES = "{ E0.n:2 GLB[B] E0.m:7/1 E0.n:6/1 E0.k:5/1 !E0@MAC } { E1.q:2 GLB[D Z] E1.m:7/1 E1.n:6/1 E1.q:4/1 !E1@MAC }"
FUSED = (
    "DRAM[A B D Z] E0.m,E1.m:2 GLB[T] E0.m,E1.m:2 GLB[A] " + BRANCHES,
    "DRAM[A B D Z] GLB[D] E0.m,E1.m:2 GLB[T Z] E0.n,E1.n:2 GLB[B] "
    + BRANCHES.replace("GLB[B]", "").replace("GLB[D Z]", ""),
    "DRAM[A B D Z T] E0.n,E1.n:2 GLB[D] E0.m,E1.m:2 GLB[T] " + BRANCHES.replace("D Z", "Z"),
)


def loops_of(mapping: Mapping, workload: Workload) -> dict[Address, int]:
    """Address of every loop above the innermost ones -> extent of the variable that it iterates."""
    found = {}
    for name, steps in addressed_paths(mapping.nest).items():
        for address, node in steps:
            if isinstance(node, Loop) and node.tile != 1:
                found[address] = workload.extents[str(node.variable(name))]
    return found


def random_tiles(random: Generator, mapping: Mapping, workload: Workload, count: int) -> Tiles:
    return {address: random.integers(1, extent + 2, count) for address, extent in loops_of(mapping, workload).items()}


def row(workload: Workload, mapping: Mapping, tiles: Tiles, at: int) -> Mapping:
    return retile(workload, mapping, {address: int(tile[at]) for address, tile in tiles.items()})


def agree(workload: Workload, on: Machine, mapping: Mapping, tiles: Tiles, found: Arrays) -> int:
    """Compare every choice with `evaluate`; how many are legal."""
    for at in range(len(found.legal)):
        one = row(workload, mapping, tiles, at)
        assert found.legal[at] == (not legality(workload, on, one)), (at, one)
        if found.legal[at]:
            cost = evaluate(workload, on, one)
            assert found.energy[at] == pytest.approx(cost.energy, rel=1e-12, abs=0)
            assert found.latency[at] == pytest.approx(cost.latency, rel=1e-12, abs=0)
            assert {name: int(bits[at]) for name, bits in found.occupancy.items()} == {
                o.memory: o.bits for o in cost.occupancy
            }
    return int(found.legal.sum())


@pytest.mark.parametrize("which", range(len(SINGLE)))
def test_matmul_templates(which: int) -> None:
    on, text = SINGLE[which]
    mapping = tree(text)
    tiles = random_tiles(np.random.default_rng(which), mapping, MATMUL, 120)
    found = price_many(MATMUL, on, mapping, tiles)
    assert agree(MATMUL, on, mapping, tiles, found) >= 20


@pytest.mark.parametrize("which", range(len(FUSED)))
def test_fused_templates(which: int) -> None:
    on, mapping = (
        machine(dram(3.0), Memory("GLB", 160, 1.0, 2.0, 1, 16.0, 8.0), ComputeUnit("MAC", 1.0, 1.0)),
        tree(FUSED[which]),
    )
    tiles = random_tiles(np.random.default_rng(which), mapping, TWO, 120)
    found = price_many(TWO, on, mapping, tiles)
    assert agree(TWO, on, mapping, tiles, found) >= 20
    assert not found.legal.all()


def test_some_tiles_are_ragged_and_some_loops_have_one_trip() -> None:
    """The templates above would test little if every tile divided its extent."""
    on, text = SINGLE[2]
    tiles = random_tiles(np.random.default_rng(2), tree(text), MATMUL, 120)
    tile = tiles[1,]
    assert (MATMUL.extents["k"] % tile != 0).any() and (tile >= MATMUL.extents["k"]).any()
    assert price_many(MATMUL, on, tree(text), tiles).legal.any()


def test_a_loop_that_is_not_named_keeps_its_tile() -> None:
    mapping = tree("DRAM[A B Z] E.m:2/4 E.n:2/3 GLB[A B Z] " + LEAF)
    tiles = {(2,): np.array([1, 2, 3, 4, 5, 6])}
    found = price_many(MATMUL, simple(), mapping, tiles)
    assert agree(MATMUL, simple(), mapping, tiles, found) == 6
    loop = row(MATMUL, mapping, tiles, 3).nest[1]
    assert isinstance(loop, Loop) and (loop.trips, loop.tile) == (2, 4)


def test_what_does_not_fit_is_priced_but_not_legal() -> None:
    mapping = tree("DRAM[A B Z] E.m:2 GLB[A B Z] " + LEAF)
    tiles = {(1,): np.array([1, 7])}
    small = machine(dram(), Memory("GLB", 200, 1.0, 1.0), ComputeUnit("MAC", 1.0, 1.0))
    found = price_many(MATMUL, small, mapping, tiles)
    assert found.legal.tolist() == [True, False]
    whole = row(MATMUL, mapping, tiles, 1)
    assert found.occupancy["GLB"][1] == occupancy(MATMUL, small, paths(MATMUL, whole))[1].bits == 3 * (35 + 30 + 42)


def test_no_choice_is_a_schedule() -> None:
    with pytest.raises(IllegalMapping, match="leaf"):
        price_many(MATMUL, simple(), tree("DRAM[A B Z] E.m:2 E.n:6/1 E.k:5/1 !E@MAC"), {(1,): np.array([2, 3])})


def test_windows_are_refused_by_name() -> None:
    workload = cascade("E: O[p] = I[p+r] * F[r]", {"p": 4, "r": 3})
    mapping = tree("DRAM[I F O] E.p:2 GLB[I] E.p:4/1 E.r:3/1 !E@MAC")
    with pytest.raises(SpecError, match=r"E\.p is in a window"):
        price_many(workload, simple(), mapping, {(1,): np.array([1, 2])})


@pytest.mark.parametrize(
    ("tiles", "words"),
    [
        ({}, "common length"),
        ({(1,): np.array([1, 2]), (2,): np.array([1])}, "common length"),
        ({(1,): np.array([0, 2])}, "at least 1"),
        ({(0,): np.array([1, 2])}, "no loop of the template stands at"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(tiles: Tiles, words: str) -> None:
    with pytest.raises(SpecError, match=words):
        price_many(MATMUL, simple(), tree("DRAM[A B Z] E.m:2 E.n:2 GLB[A B Z] " + LEAF), tiles)


ROWS = st.integers(1, 6)


@given(data=st.data(), rows=ROWS, cuts=st.integers(0, 4))
def test_terms_over_arrays_equal_terms_over_ints(data: st.DataObject, rows: int, cuts: int) -> None:
    """`visits`, `covered` and `largest`, with arrays of extents, tiles and flags, against one row at a time."""

    def column(low: int, high: int) -> list[int]:
        return data.draw(st.lists(st.integers(low, high), min_size=rows, max_size=rows))

    extents = column(0, 40)
    table = [(column(1, 40), column(0, 1)) for _ in range(cuts)]
    arrays = tuple(Cut(np.array(tiles), once=np.array(flags, dtype=bool)) for tiles, flags in table)
    found = {
        f: np.broadcast_to(f(np.array(extents), arrays), rows) for f in (terms.visits, terms.covered, terms.largest)
    }
    for i, extent in enumerate(extents):
        one = tuple(Cut(tiles[i], once=flags[i]) for tiles, flags in table)
        assert [int(values[i]) for values in found.values()] == [f(extent, one) for f in found]


@given(extent=st.integers(1, 60), tiles=st.lists(st.integers(1, 60), max_size=4))
def test_visits_and_covered_are_what_loops_do(extent: int, tiles: list[int]) -> None:
    """Counted by running the loops: pieces that are not empty, and the sum of their extents."""
    pieces = [extent]
    for tile in tiles:
        pieces = [min(tile, piece - start) for piece in pieces for start in range(0, piece, tile)]
    cuts = tuple(Cut(tile) for tile in tiles)
    assert terms.visits(extent, cuts) == len(pieces)
    assert terms.covered(extent, cuts) == sum(pieces) == extent
    assert terms.largest(extent, cuts) == pieces[0] == max(pieces)
