"""Many tile choices at once cost what each costs alone."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from math import ceil, floor
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.random import Generator

from cases import arrayed, cascade, dram, machine, simple, tree
from einloom.cost.batch import compiled, program
from einloom.cost.batch.arrays import Arrays, price_many, retile
from einloom.cost.batch.retile import plain_paths, retiled_paths
from einloom.cost.batch.template import largest_count, template
from einloom.cost.breakdown import Action
from einloom.cost.evaluate import evaluate, legality, price
from einloom.cost.formulas import terms
from einloom.cost.formulas.terms import LoopCut
from einloom.cost.room.occupancy import occupancy
from einloom.cost.traffic.paths import Path as LeafPath
from einloom.cost.traffic.paths import paths
from einloom.errors import IllegalMapping, SpecError
from einloom.machine.levels import Axis, ComputeUnit, Fanout, Machine, Memory, Toll
from einloom.mapping.extents import Address, addressed_paths
from einloom.mapping.tree import Loop, Mapping
from einloom.workload.einsum import Workload
from einloom.workload.selectors import selector

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


def tolled() -> Machine:
    """`three` with a toll in front of GLB, one behind the fanout and one before the unit."""
    dram, glb, fanout, reg, unit = three(None).levels
    first = Toll("First", 2.0, 2, 1.0, leakage=0.25)
    behind = Toll("Behind", 5.0, widths=((selector("all"), 1),), down=selector("input"), up=selector("nothing"))
    last = Toll("Last", 0.5, 4, 0.5, down=selector("nothing"), up=selector("output"))
    return machine(dram, first, glb, fanout, behind, reg, last, unit)


SINGLE = (
    (tolled(), "DRAM[A B Z] E.k:2 E.m:2 GLB[A Z] E.m:3@X E.k:3@Y E.n:2 Reg[B] " + LEAF),
    (simple(), "DRAM[A B Z] E.m:2 E.n:2 E.k:2 GLB[A B Z] " + LEAF),
    (simple(), "DRAM[A B Z] E.k:2 E.m:2 GLB[Z] E.n:2 GLB[A B] E.m:2 " + LEAF),
    (three(250), "DRAM[A B Z] E.k:2 E.m:2 GLB[A Z] E.m:3@X E.k:3@Y E.n:2 Reg[B] " + LEAF),
    (three(None, True, "once"), "DRAM[A B Z] E.n:2 GLB[B] E.k:2@Y E.k:2 Reg[Z A] E.n:3 Reg[B] " + LEAF),
    (arrayed("nothing", "nothing"), "DRAM[A B Z] E.m:2 GLB[A B Z] E.k:2 E.n:3@X E.k:2 Reg[Z] E.n:2 Reg[A] " + LEAF),
)
BRANCHES = "{ E0.n:2 GLB[B] E0.m:7/1 E0.n:6/1 E0.k:5/1 !E0@MAC } { E1.q:2 GLB[D Z] E1.m:7/1 E1.n:6/1 E1.q:4/1 !E1@MAC }"
CHOICES = 150  # of each of the nine templates
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


def counted_actions(workload: Workload, on: Machine, choices: tuple[LeafPath, ...]) -> list[Action]:
    return [a for a in price(workload, on, choices, "einsum", ()).actions if a.action != "leak"]


def walked_counts(workload: Workload, on: Machine, mapping: Mapping, tiles: Tiles) -> list[np.ndarray]:
    """The count of every action, from the walk with tiles that are arrays or symbols."""
    return [a.count for a in counted_actions(workload, on, retiled_paths(workload, mapping, tiles))]


def recorded_counts(workload: Workload, on: Machine, mapping: Mapping, tiles: Iterable[Address]) -> program.Program:
    """A program of the counts, recorded as that of the prices is."""
    loops = list(tiles)
    return program.record(
        len(loops), lambda columns: walked_counts(workload, on, mapping, dict(zip(loops, columns, strict=True)))
    )


def count_many(
    workload: Workload, on: Machine, mapping: Mapping, tiles: Tiles
) -> dict[tuple[str, str, str | None, str], np.ndarray]:
    """(Einsum, component, tensor, action) -> values moved, or operations, of every choice."""
    plain, columns = plain_paths(workload, mapping, tiles), list(tiles.values())
    actions = counted_actions(workload, on, plain)
    counts = [np.empty(len(columns[0]), np.int64) for _ in actions]
    if largest_count(workload, on, plain) <= program.EXACT:
        recorded_counts(workload, on, mapping, tiles).run(columns, counts)
    else:
        for count, found in zip(counts, walked_counts(workload, on, mapping, tiles), strict=True):
            count[:] = found
    return {(a.einsum, a.component, a.tensor, a.action): count for a, count in zip(actions, counts, strict=True)}


def agree(workload: Workload, on: Machine, mapping: Mapping, tiles: Tiles, found: Arrays) -> int:
    """Compare every choice with `evaluate`, counts and bits as integers; how many are legal."""
    counts = count_many(workload, on, mapping, tiles)
    for at in range(len(found.legal)):
        one = row(workload, mapping, tiles, at)
        assert found.legal[at] == (not legality(workload, on, one)), (at, one)
        if found.legal[at]:
            cost = evaluate(workload, on, one)
            assert (found.energy[at], found.latency[at]) == (cost.energy, cost.latency)
            moved = {(a.einsum, a.component, a.tensor, a.action): a.count for a in cost.actions if a.action != "leak"}
            assert {key: int(count[at]) for key, count in counts.items()} == moved
            assert {name: int(bits[at]) for name, bits in found.occupancy.items()} == {
                o.memory: o.bits for o in cost.occupancy
            }
    return int(found.legal.sum())


@pytest.mark.parametrize("which", range(len(SINGLE)))
def test_matmul_templates(which: int) -> None:
    on, text = SINGLE[which]
    mapping = tree(text)
    tiles = random_tiles(np.random.default_rng(which), mapping, MATMUL, CHOICES)
    found = price_many(MATMUL, on, mapping, tiles)
    assert agree(MATMUL, on, mapping, tiles, found) >= 20


@pytest.mark.parametrize("which", range(len(FUSED)))
def test_fused_templates(which: int) -> None:
    on, mapping = (
        machine(dram(3.0), Memory("GLB", 160, 1.0, 2.0, 1, 16.0, 8.0), ComputeUnit("MAC", 1.0, 1.0)),
        tree(FUSED[which]),
    )
    tiles = random_tiles(np.random.default_rng(which), mapping, TWO, CHOICES)
    found = price_many(TWO, on, mapping, tiles)
    assert agree(TWO, on, mapping, tiles, found) >= 20
    assert not found.legal.all()


@pytest.mark.parametrize("which", [0, 2])
def test_machine_code_says_the_same(which: int) -> None:
    """Every choice to the last place, legal or not, from one matmul in a buffer and from one spread over two axes."""
    on, text = SINGLE[which]
    mapping = tree(text)
    tiles = random_tiles(np.random.default_rng(which), mapping, MATMUL, 3000)
    plain = price_many(MATMUL, on, mapping, tiles, compiled=False)
    code = price_many(MATMUL, on, mapping, tiles, compiled=True)
    assert np.array_equal(plain.legal, code.legal) and plain.legal.any()
    assert np.array_equal(plain.energy, code.energy) and len(np.unique(plain.energy)) > 10
    assert np.array_equal(plain.latency, code.latency)
    assert all(np.array_equal(plain.occupancy[name], code.occupancy[name]) for name in plain.occupancy)


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
    arrays = tuple(LoopCut(np.array(tiles), once=np.array(flags, dtype=bool)) for tiles, flags in table)
    found = {
        f: np.broadcast_to(f(np.array(extents), arrays), rows) for f in (terms.visits, terms.covered, terms.largest)
    }
    for i, extent in enumerate(extents):
        one = tuple(LoopCut(tiles[i], once=flags[i]) for tiles, flags in table)
        assert [int(values[i]) for values in found.values()] == [f(extent, one) for f in found]


@given(extent=st.integers(1, 60), tiles=st.lists(st.integers(1, 60), max_size=4))
def test_visits_and_covered_are_what_loops_do(extent: int, tiles: list[int]) -> None:
    """Counted by running the loops: pieces that are not empty, and the sum of their extents."""
    pieces = [extent]
    for tile in tiles:
        pieces = [min(tile, piece - start) for piece in pieces for start in range(0, piece, tile)]
    cuts = tuple(LoopCut(tile) for tile in tiles)
    assert terms.visits(extent, cuts) == len(pieces)
    assert terms.covered(extent, cuts) == sum(pieces) == extent
    assert terms.largest(extent, cuts) == pieces[0] == max(pieces)


ARITHMETIC = st.recursive(
    st.one_of(st.sampled_from(("a", "b")), st.integers(1, 9).map(str)),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(("+", "*", "-")), inner).map(lambda t: f"({t[0]} {t[1]} {t[2]})"),
        st.tuples(inner, st.sampled_from(("//", "%")), st.sampled_from(("a", "b", "3", "7"))).map(
            lambda t: f"({t[0]} {t[1]} {t[2]})"
        ),
        inner.map(lambda t: f"(-{t})"),
        st.tuples(st.sampled_from(("min", "max")), inner, inner).map(lambda t: f"{t[0]}({t[1]}, {t[2]})"),
    ),
    max_leaves=6,
)


@given(text=ARITHMETIC, rows=st.lists(st.tuples(st.integers(1, 300), st.integers(1, 300)), min_size=1, max_size=8))
def test_recorded_arithmetic_is_python_s(text: str, rows: list[tuple[int, int]]) -> None:
    """Random formulas of integers, on symbols and on ints; floored division and remainder with any sign above."""

    def formula(a: object, b: object) -> object:
        names = {"a": a, "b": b, "min": terms.minimum, "max": terms.maximum}
        return eval(text, {"__builtins__": {}}, names)  # noqa: S307 - made above

    recorded = program.record(2, lambda tiles: [formula(*tiles)])
    found = np.empty(len(rows), np.int64)
    recorded.run([np.array(column, dtype=np.int64) for column in zip(*rows, strict=True)], [found])
    assert found.tolist() == [formula(a, b) for a, b in rows]


@given(quotient=st.integers(1, 2**26), divisor=st.integers(1, 2**26), off=st.integers(-2, 2))
def test_floored_division_is_exact_up_to_the_limit(quotient: int, divisor: int, off: int) -> None:
    """Next to every multiple, where rounding could reach the wrong integer."""
    dividend = max(quotient * divisor + off, 0)
    recorded = program.record(2, lambda tiles: [tiles[0] // tiles[1], -(-tiles[0] // tiles[1]), tiles[0] % tiles[1]])
    found = [np.empty(1, np.int64) for _ in range(3)]
    recorded.run([np.array([dividend]), np.array([divisor])], found)
    expected = [dividend // divisor, -(-dividend // divisor), dividend % divisor]
    assert [int(column[0]) for column in found] == expected


def test_no_number_on_the_way_passes_the_bound() -> None:
    """Without energies and throughputs every step is a count; run on Python's integers, none is above the bound."""
    on = machine(Memory("DRAM"), Memory("GLB", None), FANOUT, Memory("Reg", None), ComputeUnit("MAC"))
    for text, workload in ((SINGLE[2][1], MATMUL), (SINGLE[3][1], MATMUL), (FUSED[1], TWO)):
        mapping = tree(text)
        bound = largest_count(workload, on, plain_paths(workload, mapping, ()))
        asked = template(workload, on, mapping, tuple(loops_of(mapping, workload)))
        assert asked.prices is not None
        counted = recorded_counts(workload, on, mapping, loops_of(mapping, workload))
        tiles = random_tiles(np.random.default_rng(1), mapping, workload, 60)
        for at in range(60):
            row_tiles = [int(column[at]) for column in tiles.values()]
            for recorded in (asked.prices, counted):
                numbers = interpreted(recorded, row_tiles)
                assert max(map(abs, numbers)) <= max(bound, *row_tiles)


def interpreted(recorded: program.Program, tiles: list[int]) -> list[Fraction]:
    """Every step of a program in exact arithmetic."""
    rules = {
        "add": lambda a, b: a + b,
        "subtract": lambda a, b: a - b,
        "multiply": lambda a, b: a * b,
        "divide": lambda a, b: Fraction(a) / Fraction(b),
        "minimum": min,
        "maximum": max,
        "negative": lambda a: -a,
        "floor": floor,
        "ceil": ceil,
        "less_equal": lambda a, b: a <= b,
        "greater": lambda a, b: a > b,
        "equal": lambda a, b: a == b,
        "not_equal": lambda a, b: a != b,
        "logical_and": lambda a, b: a and b,
        "where": lambda a, b, c: b if a else c,
        "number": int,
    }
    values: list[Fraction] = [Fraction(tile) for tile in tiles]
    for step in recorded.steps:
        given_values = [values[o] if isinstance(o, int) else Fraction(o) for o in step.operands]
        values.append(Fraction(rules[step.name](*given_values)))
    return values


def test_counts_beyond_floats_are_counted_in_integers() -> None:
    big = cascade("E: Z[m,n] = A[m,k] * B[k,n]", {"m": 2**17 + 1, "n": 2**17 - 1, "k": 2**17}, bits=8)
    mapping = tree(f"DRAM[A B Z] E.m:2 E.n:2 GLB[A B Z] E.m:{2**17 + 1}/1 E.n:{2**17 - 1}/1 E.k:{2**17}/1 !E@MAC")
    on = three(None)
    on = machine(*(level for level in on.levels if not isinstance(level, Fanout) and level.name != "Reg"))
    tiles = {(1,): np.array([2**17 + 1, 3, 1000]), (2,): np.array([5, 2**17 - 1, 77])}
    assert template(big, on, mapping, tuple(tiles)).prices is None
    found = price_many(big, on, mapping, tiles)
    assert agree(big, on, mapping, tiles, found) == 3
    bits = max(int(count.max()) for count in count_many(big, on, mapping, tiles).values())
    assert bits * 8 > program.EXACT


def test_counts_beyond_integers_are_refused() -> None:
    huge = cascade("E: Z[m,n] = A[m,k] * B[k,n]", {"m": 2**22, "n": 2**22, "k": 2**22})
    mapping = tree(f"DRAM[A B Z] E.m:2 GLB[A B Z] E.m:{2**22}/1 E.n:{2**22}/1 E.k:{2**22}/1 !E@MAC")
    with pytest.raises(SpecError, match="64-bit"):
        price_many(huge, simple(), mapping, {(1,): np.array([2])})


def test_decisions_by_a_tile_are_not_recorded() -> None:
    with pytest.raises(TypeError, match="cannot be recorded"):
        program.record(1, lambda tiles: [1 if tiles[0] > 2 else 0])


def test_without_a_place_for_the_source_nothing_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "file"))
    assert compiled._source_file("def kernel():\n") is None
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    path = compiled._source_file("def kernel():\n")
    assert path is not None and path.read_text() == "def kernel():\n"
