"""The space `ragged`: what is in it, its enumeration, and the counts of its trees."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice, product
from math import prod
from random import Random

import pytest

from agreement import Subject, differences, priced
from cases import cascade, machine, simple
from einloom.cost.formulas.terms import LoopCut, covered, visits
from einloom.machine.levels import Axis, ComputeUnit, Fanout, Level, Machine, Memory
from einloom.mapping.legality.structure import problems
from einloom.mapping.normal import normal_form
from einloom.mapping.text import parse_mapping
from einloom.mapspace.ffm.enumerate import candidates, enumerate_trees
from einloom.mapspace.ffm.ragged import balanced, shares
from einloom.mapspace.ffm.rules import outside
from einloom.mapspace.space import Mapspace
from einloom.oracle import simulate
from einloom.workload.einsum import Workload
from trees import Case

RAGGED = Mapspace("ragged")
SEVEN = cascade("E: Z[m,n] = A[m,k] * B[k,n]", {"m": 7, "n": 2, "k": 2})
WINDOW = cascade("E: Z[p] = A[p+r] * B[r]", {"p": 5, "r": 3})
REST = "for n in 2\nfor k in 2\n"
END = "compute E @ MAC"
HEAD = "store DRAM: A B Z\n"


def array(size: int = 4, second: int = 2) -> Machine:
    inner = Fanout("G", (Axis("Y", second),))
    levels = (Memory("DRAM"), Fanout("F", (Axis("X", size),)), Memory("GLB"), inner, ComputeUnit("MAC"))
    return machine(*levels)


def two(shared: str, first: str, second: str) -> str:
    lines = ["store DRAM: A Z", *shared.split("; "), "split sequential:"]
    for body, name in ((first, "E0"), (second, "E1")):
        nodes = [*filter(None, body.split("; ")), f"compute {name} @ MAC"]
        lines += [f"  {'- ' if i == 0 else '  '}{node}" for i, node in enumerate(nodes)]
    return "\n".join(lines)


@pytest.mark.parametrize(
    "loops",
    [
        "for m in 2 tile 4\nfor m in 4\n",
        "for m in 3\nfor m in 3\n",
        "for m in 2 tile 6\nstore GLB: A\nfor m in 3\nstore GLB: Z\nfor m in 2\n",
        "par m in 4 @ X\nfor m in 2\n",
        "for m in 2\npar m in 4 tile 1 @ X\n",
        "for m in 2 tile 4\npar m in 2 tile 2 @ X\npar m in 2 @ Y\n",
    ],
)
def test_uneven_trees_in_the_space(loops: str) -> None:
    if "GLB" not in loops:
        loops = loops.replace("for m in 4\n", "store GLB: A\nfor m in 4\n").replace("3\nfor", "3\nstore GLB: A\nfor")
    tree = parse_mapping(f"{HEAD}{loops}{REST}{END}", SEVEN, array())
    assert problems(SEVEN, array(), tree) == ()
    assert outside(SEVEN, array(), RAGGED, tree) == ()
    assert any("rule 2" in reason for reason in outside(SEVEN, array(), Mapspace(), tree))


@pytest.mark.parametrize(
    ("workload", "loops", "reason"),
    [
        (SEVEN, "for m in 2 tile 5\nstore GLB: A\nfor m in 3\nstore GLB: Z\nfor m in 2\n", "below another loop"),
        (SEVEN, "for m in 2 tile 4\npar m in 2 tile 2 @ X\nstore GLB: A\nfor m in 2\n", None),
        (SEVEN, "par m in 3 tile 3 @ X\nfor m in 3\n", None),
        (SEVEN, "par m in 2 tile 5 @ X\nfor m in 5\n", "evenly over its instances"),
        (SEVEN, "par m in 2 tile 4 @ X\npar m in 2 @ Y\nfor m in 2\n", "spreads E.m further"),
        (SEVEN, "par m in 3 tile 3 @ X\npar m in 2 tile 2 @ Y\nfor m in 2\n", "below another loop"),
        (WINDOW, "for p in 3 tile 2\nfor p in 2\nfor r in 3\n", "moves a window"),
    ],
)
def test_uneven_trees_outside_the_space(workload: Workload, loops: str, reason: str | None) -> None:
    on = array()
    rest = REST if workload is SEVEN else ""
    if workload is WINDOW:
        loops = loops.replace("for p in 2", "store GLB: A\nfor p in 2")
    tree = parse_mapping(f"{HEAD}{loops}{rest}{END}", workload, on)
    assert problems(workload, on, tree) == ()
    found = outside(workload, on, RAGGED, tree)
    assert found == () if reason is None else any(reason in one and "rule 2" in one for one in found)


def test_partners_cut_alike_and_derived_cuts_stay_outside() -> None:
    alike = cascade("E0: T[m] = exp(A[m])\nE1: Z[m] = exp(T[m])", {"m": 5})
    text = two("for m in 2; store GLB: T", "for m in 3", "for m in 3")
    assert outside(alike, simple(), RAGGED, parse_mapping(text, alike, simple())) == ()
    shorter = cascade("E0: T[m] = exp(A[m])\nE1: Z[q] = exp(T[q])", {"m": 5, "q": 4}, shapes={"T": (5,)})
    text = two("for E0.m, E1.q in 2; store GLB: T", "for m in 3", "for q in 2")
    tree = parse_mapping(text, shorter, simple())
    assert any("as its consumers need it" in reason for reason in outside(shorter, simple(), RAGGED, tree))


TINY = [
    (cascade("E: Z[m] = A[m,k] * B[k]", {"m": 5, "k": 2}), simple()),
    (cascade("E: Z[m] = exp(A[m])", {"m": 7}), array(3, 2)),
    (cascade("E: Z[m] = A[m] * B[m]", {"m": 6}), array(4, 1)),
    (cascade("E0: T[m] = exp(A[m])\nE1: Z[m] = exp(T[m])", {"m": 5}), simple()),
    pytest.param(cascade("E0: T[m] = exp(A[m])\nE1: Z[m] = exp(T[m])", {"m": 3}), array(2, 2), marks=pytest.mark.slow),
]


@pytest.mark.parametrize(("workload", "on"), TINY)
def test_the_enumeration_has_all_perfect_trees_and_more(workload: Workload, on: Machine) -> None:
    perfect, ragged = (list(enumerate_trees(workload, on, space)) for space in (Mapspace(), RAGGED))
    assert len(set(ragged)) == len(ragged)
    assert {normal_form(tree, workload) for tree in perfect} < {normal_form(tree, workload) for tree in ragged}
    assert all(tree in set(perfect) for tree in ragged if not outside(workload, on, Mapspace(), tree))


def _plainly(level: Level) -> Level:
    """What the tables of `agreement` speak of: one value read in a second, one operation in a second for a joule."""
    if isinstance(level, Memory):
        return replace(level, read_throughput=1.0, write_throughput=None)
    return ComputeUnit(level.name, 1.0, 1.0) if isinstance(level, ComputeUnit) else level


@pytest.mark.parametrize(("workload", "on"), TINY)
def test_analysis_equals_oracle_on_ragged_trees(workload: Workload, on: Machine) -> None:
    on = priced(replace(on, levels=tuple(_plainly(level) for level in on.levels)))
    every = (tree for tree in enumerate_trees(workload, on, RAGGED) if outside(workload, on, Mapspace(), tree))
    rng = Random(0)
    chosen = [tree for tree in islice(every, 600) if rng.random() < 0.1]
    assert chosen
    for tree in chosen:
        case = Case(workload, on, tree, frozenset())
        assert differences(Subject(0, case, (), simulate(workload, on, tree))) == (), tree


def test_the_enumeration_is_looser_than_the_space() -> None:
    workload, on = TINY[1]
    found = [t for t in candidates(workload, on, "ragged") if not problems(workload, on, t)]
    assert any("evenly over" in why for tree in found for why in outside(workload, on, RAGGED, tree))


def chains(whole: int, depth: int) -> list[tuple[tuple[int, int], ...]]:
    """(tile, instances or 0 for a temporal loop) of every chain of the space with so many loops, outermost first."""
    found: list[tuple[tuple[int, int], ...]] = [()]
    for n in range(depth):
        longer = []
        for chain in found:
            extent = chain[-1][0] if chain else whole
            for tile in range(1, extent):
                if n and extent % tile:
                    continue
                trips = -(-extent // tile)
                longer += [(*chain, (tile, spread)) for spread in (0, trips)]
        found = longer
    return [chain for chain in found if spatially_fair(whole, chain)]


def spatially_fair(whole: int, chain: tuple[tuple[int, int], ...]) -> bool:
    spatial = [n for _, n in chain if n]
    if whole % chain[0][0] and chain[0][1] and len(spatial) > 1:
        return False
    return all(
        balanced(share, n, tile)
        for i, (tile, n) in enumerate(chain)
        if n
        for share in shares(whole, [m for _, m in chain[:i] if m])
    )


@pytest.mark.parametrize("whole", [5, 6, 7, 10, 11, 13, 22])
def test_counts_depend_on_the_own_tile_and_the_instances_that_count_once(whole: int) -> None:
    """The closed form that docs/model/pruning.md relies on, against the recursion that prices trees."""
    many = 0
    for chain in (chain for depth in (1, 2, 3) for chain in chains(whole, depth)):
        spatial = [i for i, (_, n) in enumerate(chain) if n]
        for flags in product((0, 1), repeat=len(spatial)):
            once = dict(zip(spatial, flags, strict=True))
            cuts = tuple(LoopCut(tile, once=once.get(i, 0)) for i, (tile, _) in enumerate(chain))
            share = -(-whole // prod(chain[i][1] for i, flag in once.items() if flag))
            assert visits(whole, cuts) == -(-share // chain[-1][0])
            assert covered(whole, cuts) == share
            many += 1
        first = tuple(LoopCut(tile, once=int(not n)) for tile, n in chain)
        assert visits(whole, first) == prod(n for _, n in chain if n)
    assert many > 5
