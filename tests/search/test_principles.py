"""The closed forms of `principles`: brute force over all integer tiles and orders, `exact`, and the oracle."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations, product
from random import Random

import numpy as np
import pytest

from einloom.certify.verify import verify
from einloom.errors import Infeasible, SpecError
from einloom.machine.levels import ComputeUnit, Machine, Memory
from einloom.mapspace.space import Mapspace
from einloom.oracle.simulate import simulate
from einloom.problem import Guarantee, Objective, Problem
from einloom.result import Result
from einloom.search.door import searched
from einloom.search.exact import Exact
from einloom.search.exhaustive import Exhaustive
from einloom.search.principles import Principles
from einloom.search.principles.again import least_possible
from einloom.search.principles.matmul import (
    OPERANDS,
    Accounting,
    Matmul,
    best_schedule,
    ceil_div,
    lower_bound,
    tile_sizes,
)
from einloom.search.principles.pairs import SHARED, Pair, best_fused, compared
from einloom.search.principles.roles import roles
from einloom.search.principles.rules import judged, picks, predicted
from einloom.search.principles.told import told
from einloom.search.principles.trees import unfused_tree
from einloom.workload.build import build_workload
from einloom.workload.einsum import Workload
from einloom.workload.selectors import selector

ONE = ("C[m,l] = A[m,k] * B[k,l]",)
TWO = ("C[b,m,l] = A[b,m,k] * B[b,k,l]", "E[b,m,n] = C[b,m,l] * D[b,l,n]")
ACCOUNTINGS: tuple[Accounting, ...] = ("once", "read-modify-write")


def machine(buffer: int, rule: Accounting) -> Machine:
    """DRAM and a buffer of so many values of eight bits."""
    outer = Memory("DRAM", must=selector("~intermediate"))
    inner = Memory("Buffer", size=8 * buffer, must=selector("all"))
    return Machine("one-buffer", (outer, inner, ComputeUnit("MAC", throughput=1.0)), partial_sums=rule)


def asked(workload: Workload, buffer: int, rule: Accounting, space: str = "ffm") -> Problem:
    return Problem(workload, machine(buffer, rule), Mapspace(space), Objective("traffic", "DRAM"))


def principles(problem: Problem) -> Result:
    return searched(Principles(), problem)


def walked(matmul: Matmul, tiles: tuple[int, int, int], order: str, rule: Accounting) -> int:
    """Elements moved, by walking the loop nest tile by tile: an operand moves when its tile changes."""
    sizes = {"M": matmul.m, "K": matmul.k, "L": matmul.l}
    tile = dict(zip("MKL", tiles, strict=True))
    cuts = {d: [range(i, min(i + tile[d], sizes[d])) for i in range(0, sizes[d], tile[d])] for d in "MKL"}
    held: dict[str, tuple[range, ...]] = {}
    seen: set[tuple[range, ...]] = set()
    moved = 0
    for at in product(*(cuts[d] for d in order)):
        here = dict(zip(order, at, strict=True))
        for operand, dimensions in OPERANDS.items():
            box = tuple(here[d] for d in dimensions)
            if held.get(operand) != box:
                size = len(box[0]) * len(box[1])
                again = operand == "C" and box in seen and rule == "read-modify-write"
                moved += size * (2 if again else 1)
                held[operand] = box
                if operand == "C":
                    seen.add(box)
    return moved


def by_formula(matmul: Matmul, rule: Accounting, buffer: int) -> int | None:
    """The least over all tiles and orders that fit, each counted from its trips: redundant loops outside its own."""
    m, k, l = np.meshgrid(*(np.arange(1, d + 1) for d in (matmul.m, matmul.k, matmul.l)), indexing="ij")
    trips = {"M": -(-matmul.m // m), "K": -(-matmul.k // k), "L": -(-matmul.l // l)}
    fits = m * k + k * l + m * l <= buffer
    if not fits.any():
        return None
    best = None
    for order in permutations("MKL"):
        total = np.zeros_like(m)
        for operand, dimensions in OPERANDS.items():
            visits, below = np.ones_like(m), np.zeros(m.shape, bool)
            for d in reversed(order):  # from the inside out: a loop counts once a loop of the operand turns inside it
                turns = trips[d] > 1
                if d in dimensions:
                    below = below | turns
                else:
                    visits = np.where(below, visits * trips[d], visits)
            if operand == "C" and rule == "read-modify-write":
                visits = 2 * visits - 1
            total = total + matmul.size(operand) * visits
        least = int(total[fits].min())
        best = least if best is None else min(best, least)
    return best


def test_counting_trips_is_walking_the_nest() -> None:
    rng = Random(3)
    for _ in range(60):
        matmul = Matmul(*(rng.randint(1, 5) for _ in range(3)))
        rule = rng.choice(ACCOUNTINGS)
        buffer = rng.randint(3, 40)
        every = product(*(range(1, d + 1) for d in (matmul.m, matmul.k, matmul.l)))
        fits = [t for t in every if t[0] * t[1] + t[1] * t[2] + t[0] * t[2] <= buffer]
        least = min(walked(matmul, t, "".join(o), rule) for t in fits for o in permutations("MKL"))
        assert by_formula(matmul, rule, buffer) == least


@pytest.mark.parametrize("rule", ACCOUNTINGS)
def test_closed_form_is_brute_force(rule: Accounting) -> None:
    """2,000 random shapes, all integer tiles, all six orders."""
    rng = Random(7)
    for _ in range(2000):
        matmul = Matmul(*(rng.randint(1, rng.choice((4, 8, 16))) for _ in range(3)))
        buffer = rng.randint(1, rng.choice((12, 60, 200)))
        best = best_schedule(matmul, buffer, rule)
        assert (None if best is None else best.traffic) == by_formula(matmul, rule, buffer), (matmul, buffer)
        assert best is None or best.room <= buffer


def test_tile_sizes_are_the_smallest_of_each_number_of_trips() -> None:
    for extent in (*range(1, 200), 768, 4096):
        every = {ceil_div(extent, t): t for t in range(extent, 0, -1)}
        assert tile_sizes(extent) == tuple(sorted(every.values()))
        assert tile_sizes(extent, "divisors") == tuple(t for t in range(1, extent + 1) if extent % t == 0)


@pytest.mark.parametrize("space", ["ffm", "ragged"])
def test_method_is_the_closed_form_and_its_tree_is_priced(space: str) -> None:
    """The tree's price, what executing it moves, and the formula agree; in `ffm` with `exact` too."""
    rng = Random(11)
    for i in range(24):
        rule, buffer = rng.choice(ACCOUNTINGS), rng.randint(3, 60)
        workload = build_workload("one", ONE, {d: rng.randint(1, 9) for d in "mkl"}, bits=8)
        problem = asked(workload, buffer, rule, space)
        found = principles(problem)
        matmul = roles(workload)[0].matmul(workload)
        cutting = "divisors" if space == "ffm" else "integer"
        best = best_schedule(matmul, buffer, rule, cutting, "apart")
        assert best is not None and found.value == 8 * best.traffic
        assert found.cost.occupancy_of("Buffer") <= 8 * best.room <= 8 * buffer
        assert found.certificate is not None and found.certificate.guarantee is Guarantee.OPTIMAL
        _executes(found, i)
        if space == "ffm" and i % 2:
            assert Exact().search(problem).value == found.value


def test_every_tree_of_tiny_spaces() -> None:
    """Enumerating all trees finds what the closed form finds."""
    rng = Random(5)
    for _ in range(3):
        sizes = dict(zip("mkl", rng.choice(((2, 2, 3), (3, 2, 1), (2, 2, 2))), strict=True))
        workload = build_workload("one", ONE, sizes, bits=8)
        problem = asked(workload, rng.randint(3, 9), rng.choice(ACCOUNTINGS))
        assert Exhaustive().search(problem).value == principles(problem).value


@pytest.mark.parametrize("rule", ACCOUNTINGS)
def test_one_common_tile_is_what_its_tree_moves(rule: Accounting) -> None:
    """The paper's schedules, where the three stores stand together."""
    rng = Random(13)
    for _ in range(12):
        workload = build_workload("one", ONE, {d: rng.randint(1, 12) for d in "mkl"}, bits=8)
        part, buffer = roles(workload), rng.randint(3, 80)
        best = best_schedule(part[0].matmul(workload), buffer, rule)
        assert best is not None
        problem = asked(workload, buffer, rule, "ragged")
        found = Result.of(problem, unfused_tree(workload, part, [best], ("DRAM", "Buffer"), {"C": "MAC"}, "together"))
        assert found.value == 8 * best.traffic
        assert found.cost.occupancy_of("Buffer") == 8 * best.room


def fused_by_force(pair: Pair, buffer: int, rule: Accounting) -> int | None:
    """The least over all blocks, orders and choices of what is kept, each counted for itself."""
    found = []
    for m, l, outer in product(range(1, pair.m + 1), range(1, pair.l + 1), "ML"):
        trips, tile = {"M": ceil_div(pair.m, m), "L": ceil_div(pair.l, l)}, {"M": m, "L": l}
        for kept in product((False, True), repeat=4):
            moved, room = 0, {"AB": m * l, "DE": m * l}
            for operand, keep in zip("ABDE", kept, strict=True):
                own = SHARED[operand]
                other = "L" if own == "M" else "M"
                visits = 1 if keep else trips[other]
                moved += pair.size(operand) * (2 * visits - 1 if (operand, rule) == ("E", ACCOUNTINGS[1]) else visits)
                rows = tile[own] if own == outer else pair.extent(own)
                for phase in room:
                    room[phase] += pair.width(operand) * rows if keep else tile[own] * (operand in phase)
            if max(room.values()) <= buffer:
                found.append(moved)
    return min(found, default=None)


@pytest.mark.parametrize("rule", ACCOUNTINGS)
def test_fused_pairs_are_brute_force(rule: Accounting) -> None:
    rng = Random(17)
    for _ in range(80):
        pair = Pair(*(rng.randint(1, 7) for _ in range(4)))
        buffer = rng.randint(2, rng.choice((20, 90)))
        best = best_fused(pair, buffer, rule)
        assert (None if best is None else best.traffic) == fused_by_force(pair, buffer, rule), (pair, buffer)


@pytest.mark.parametrize("space", ["ffm", "ragged"])
def test_pairs_as_trees(space: str) -> None:
    rng = Random(19)
    for i in range(14):
        rule, buffer = rng.choice(ACCOUNTINGS), rng.randint(4, 60)
        workload = build_workload("two", TWO, {d: rng.randint(1, 5) for d in "bmkln"}, bits=8)
        problem = asked(workload, buffer, rule, space)
        found = principles(problem)
        _executes(found, i)
        assert found.certificate is not None and found.certificate.bound <= found.value
        if space == "ffm" and i % 3 == 0:
            assert Exact().search(problem).value <= found.value


@pytest.mark.parametrize("buffer", [6, 14, 40])
def test_a_pair_may_read_the_first_output_turned(buffer: int) -> None:
    """E = (B A)T D moves what E = C D moves where C is written as it is read."""
    extents = {"m": 4, "k": 3, "l": 5, "n": 2}
    turned = ("C[m,l] = A[m,k] * B[k,l]", "E[l,n] = C[m,l] * D[m,n]")
    plain = ("C[l,m] = B[k,l] * A[m,k]", "E[l,n] = C[l,m] * D[m,n]")
    first, second = (
        principles(asked(build_workload("two", texts, extents, bits=8), buffer, "once")) for texts in (turned, plain)
    )
    assert first.value == second.value
    _executes(first, 3)


def _executes(found: Result, seed: int) -> None:
    done = simulate(found.workload, found.machine, found.mapping, seed)
    assert done.correct, done.reasons
    moved = sum(n for (_, component, _, _), n in done.counts.items() if component == "DRAM")
    assert 8 * moved == found.value


def test_worked_example_of_the_paper() -> None:
    """Section III-A.4: 1024 x 768 x 768 with 512 KB; A stationary, B twice."""
    matmul = Matmul(1024, 768, 768)
    best = best_schedule(matmul, 512 * 1024)
    assert best is not None and best.traffic == matmul.size("A") + matmul.size("C") + 2 * matmul.size("B")
    assert best.non_redundant == 2
    assert lower_bound(matmul, 512 * 1024) <= best.traffic
    small = best_schedule(matmul, 4096)
    assert small is not None and predicted(matmul, 4096) <= small.traffic * 1.001


def test_principle_four_is_not_the_rule() -> None:
    """Fusion pays here by a factor of sixteen, and the classes differ."""
    found = compared(Pair(16384, 512, 16384, 200), 8 * 2**20)
    assert found is not None and found.profitable and not found.principle()
    assert found.regret() > 15


def test_verified_both_ways() -> None:
    for space, sizes in (("ffm", (6, 4, 8)), ("ragged", (7, 5, 6))):
        workload = build_workload("one", ONE, dict(zip("mkl", sizes, strict=True)), bits=8)
        found = principles(asked(workload, 20, "once", space))
        assert verify(found).ok, verify(found).reasons


@pytest.mark.parametrize("space", ["ffm", "ragged"])
@pytest.mark.parametrize("buffer", [16, 30])
@pytest.mark.parametrize("repeat", [1, 3])
def test_one_and_two_are_verified_whatever_is_repeated(repeat: int, buffer: int, space: str) -> None:
    """A pair is optimal where it moves what every mapping moves (30 values), else bounded."""
    for einsums, extents in ((ONE, {"m": 6, "k": 4, "l": 6}), (TWO, {"b": 2, "m": 4, "k": 2, "l": 4, "n": 2})):
        problem = asked(build_workload("w", einsums, extents, bits=8, repeat=repeat), buffer, "once", space)
        found = principles(problem)
        assert found.certificate is not None and found.value == Exact().search(problem).value
        assert (found.certificate.guarantee is Guarantee.OPTIMAL) == (einsums == ONE or buffer == 30)
        assert verify(found).ok, verify(found).reasons


def test_a_pair_that_claims_more_than_its_proof_is_refused() -> None:
    """768 bits are the best for 16 values, but only 512 are proven: nobody has tried the tiles of a pair."""
    problem = asked(build_workload("w", TWO, {"b": 2, "m": 4, "k": 2, "l": 4, "n": 2}, bits=8), 16, "once", "ragged")
    found = principles(problem)
    assert found.certificate is not None and found.certificate.bound < found.value
    forged = replace(found.certificate, guarantee=Guarantee.OPTIMAL, bound=found.value)
    said = verify(replace(found, certificate=forged))
    assert not said.ok and any("no second solution" in reason for reason in said.reasons)


def test_told_of_a_pair() -> None:
    """What `einloom explain --principles` says is what the closed forms are."""
    workload = build_workload("two", TWO, dict(zip("bmkln", (2, 8, 4, 8, 4), strict=True)), bits=8)
    said = told(asked(workload, 24, "once"))
    pair = compared(Pair(8, 4, 8, 4), 24, "once", "divisors")
    assert pair is not None and said.data["pair"]["apart"] == pair.apart
    assert said.data["multiplications"][0]["optimum"] == pair.unfused[0].traffic
    assert "principle 4" in str(said) and "one of 2 batches" in str(said)


REFUSED = (
    (("Z[m] = A[m,k] * B[k]",), "mk", "0 rank variables as L"),
    (("Z[m,n] = exp(A[m,n])",), "mn", "no product of two tensors"),
    (("Z[m,n,o] = A[m,k] * B[k,n,o]",), "mkno", "2 rank variables as L"),
    (("C[m,l] = A[m,k] * B[k,l]", "E[m,n] = C[m,l] * D[l,n]", "F[m,p] = E[m,n] * G[n,p]"), "mklnp", "3 Einsums"),
    (("C[m,l] = A[m,k] * B[k,l]", "E[m,n] = G[m,l] * D[l,n]"), "mkln", "E is not the only reader of what C writes"),
)


@pytest.mark.parametrize(("texts", "ranks", "why"), REFUSED)
def test_other_workloads_are_refused(texts: tuple[str, ...], ranks: str, why: str) -> None:
    workload = build_workload("w", texts, dict.fromkeys(ranks, 4), bits=8)
    with pytest.raises(SpecError, match=why):
        principles(asked(workload, 20, "once"))


def test_a_pair_whose_first_output_is_wanted_too_is_refused() -> None:
    workload = build_workload("two", TWO, dict.fromkeys("bmkln", 4), bits=8)
    both = replace(workload, outputs=tuple(einsum.output.tensor for einsum in workload.einsums))
    with pytest.raises(SpecError, match="is not the only reader of what"):
        principles(asked(both, 20, "once"))


def test_other_problems_are_refused() -> None:
    workload = build_workload("one", ONE, dict.fromkeys("mkl", 4), bits=8)
    problem = asked(workload, 20, "once")
    energy = Problem(workload, problem.machine, Mapspace(), Objective("energy"))
    for answer in (principles, least_possible):
        with pytest.raises(SpecError, match="traffic:DRAM"):
            answer(energy)
    assert least_possible(problem) == 8 * 3 * 16
    with pytest.raises(Infeasible, match="smaller than one value"):
        principles(asked(workload, 2, "once"))


@pytest.mark.parametrize("buffer", [5, 12, 20])
def test_exact_finds_the_same_uneven_optimum(buffer: int) -> None:
    workload = build_workload("one", ONE, {"m": 7, "k": 5, "l": 6}, bits=8)
    problem = asked(workload, buffer, "once", "ragged")
    assert Exact().search(problem).value == principles(problem).value


@pytest.mark.parametrize(("m", "k", "l"), [(8, 16, 16), (16, 16, 8), (16, 8, 16)])
def test_of_two_equal_operands_the_better_one_stays(m: int, k: int, l: int) -> None:
    """Counted once both move as much; where partial sums are read back the output has to stay."""
    matmul = Matmul(m, k, l)
    least = min(map(matmul.size, OPERANDS))
    smallest = {x for x in OPERANDS if matmul.size(x) == least}
    assert len(smallest) == 2
    assert {one.schedule.stationary for one in picks(matmul, 25, "divisors")} == smallest
    found = judged(matmul, 25, "read-modify-write", "divisors")
    assert found is not None and found.equal == picks(matmul, 25, "divisors")
    assert found.moved == min(one.moved(matmul, "read-modify-write") for one in found.equal)
    assert (found.pick.schedule.stationary == "C") is ("C" in smallest)
    assert (found.regret == 0) is ("C" in smallest)


def test_of_two_equal_operands_that_fit_whole_both_are_picked() -> None:
    found = picks(Matmul(4, 9, 9), 80)
    assert [(one.principle, one.schedule.stationary, one.feasible) for one in found] == [
        (3, "A", True),
        (3, "C", True),
    ]
    (one,) = picks(Matmul(4, 4, 9), 80)
    assert one.schedule.stationary == "A"


def test_a_tie_is_told() -> None:
    workload = build_workload("one", ("Z[m,n] = A[m,k] * B[k,n]",), {"m": 8, "k": 16, "n": 16}, bits=8)
    found = told(asked(workload, 25, "read-modify-write"))
    (data,) = found.data["multiplications"]
    assert (data["equal_picks"], data["moved"], data["regret"]) == (2, 1152, 0)
    assert "  or           A stays, tiles m 4 x k 4 x n 1: 1536 values moved; the principle" in str(found)
    workload = build_workload("one", ("Z[m,n] = A[m,k] * B[k,n]",), {"m": 4, "k": 4, "n": 9}, bits=8)
    assert "leaves that open" not in str(told(asked(workload, 80, "read-modify-write")))
