"""Fourteen plausible rules that are wrong, one crafted case each: what the rule would answer, and what is true.

Every case writes down the trees that the rule confuses, prices them with `evaluate`, computes the rule's answer from
them (or as the optimum of the problem that the rule would really solve), and holds `exact` against the true one. DRAM
costs 10 J per bit and the buffer next to nothing, so that most numbers can be added up by hand.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from cases import cascade, machine, tree
from einloom.cost.breakdown import Cost
from einloom.cost.evaluate import evaluate, legality
from einloom.errors import Infeasible
from einloom.machine.levels import Axis, ComputeUnit, Fanout, Machine, Memory
from einloom.mapping.tree import Mapping
from einloom.mapspace.ffm.enumerate import enumerate_trees
from einloom.mapspace.limits.data import AxisLimit, HoldLimit, Limits, Numbers
from einloom.mapspace.space import Mapspace
from einloom.problem import Objective, Problem
from einloom.search.exact import Exact, ExactOptions
from einloom.search.exhaustive import Exhaustive
from einloom.workload.einsum import Workload
from einloom.workload.selectors import selector

FREE = 2.0**-10  # joules per access of a buffer: counts, but never against an access of DRAM
MAC = ComputeUnit("MAC", 1.0, 0.0)


def bits(workload: Workload, **widths: int) -> Workload:
    """The workload with other bits per value for some tensors."""
    return replace(workload, tensors=tuple(replace(t, bits=widths.get(t.name, t.bits)) for t in workload.tensors))


def buffered(size: int | None, may: str = "all", dram: int | None = None) -> Machine:
    """DRAM at 10 J per bit, which must hold the ends of the cascade, and a nearly free buffer."""
    return machine(
        Memory("DRAM", dram, 10.0, 10.0, must=selector("~intermediate")),
        Memory("GLB", size, FREE, FREE, may=selector(may)),
        MAC,
    )


def problem(workload: Workload, on: Machine, objective: str = "energy", space: Mapspace | None = None) -> Problem:
    return Problem(workload, on, space or Mapspace(), Objective(objective))


def optimum(asked: Problem, options: ExactOptions | None = None) -> float:
    return Exact(options).search(asked).value


def without(*tensors: str) -> Mapspace:
    """The space in which the buffer holds none of these."""
    return Mapspace(limits=Limits(holds=(HoldLimit("bypass", "GLB", selector(" | ".join(tensors))),)))


def cost(workload: Workload, on: Machine, text: str) -> Cost:
    """The price of a legal tree."""
    return evaluate(workload, on, tree(text))


def of(priced: Cost, einsum: str) -> float:
    """Joules of one Einsum."""
    return priced.energy_by("einsum")[einsum,]


def alone(priced: Cost, memory: str, *tensors: str) -> int:
    """Bits of some tensors at the fullest moment of a memory."""
    found = next(o for o in priced.occupancy if o.memory == memory)
    return sum(count for name, count in found.tensors if name in tensors)


# -- 1


def test_trap_01_capacity_in_32_bit_floats() -> None:
    """A tile one bit larger than a buffer of 2**24 fills 1.0 of it in 32-bit floats; in integers it does not fit."""
    size = 2**24
    workload = bits(cascade("E0: T[m] = exp(A[m])\nE1: Z[m] = exp(T[m])", {"m": 1}), T=size + 1)
    fused = tree("DRAM[A Z] GLB[T] { !E0@MAC } { !E1@MAC }")
    apart = tree("DRAM[A T Z] { !E0@MAC } { !E1@MAC }")
    assert np.float32(size + 1) / np.float32(size) <= np.float32(1.0)
    assert legality(workload, buffered(size), fused)
    wrong = evaluate(workload, buffered(size + 1), fused).energy
    right = evaluate(workload, buffered(size), apart).energy
    assert wrong < right
    assert optimum(problem(workload, buffered(size))) == right
    assert optimum(problem(workload, buffered(size + 1))) == wrong


# -- 2 and 3

SLOW = machine(
    Memory("DRAM", None, 2.0, 2.0, 1, 2.0, 2.0), Memory("GLB", None, 0.25, 0.25, 1, 0.5, 0.5), ComputeUnit("MAC", 4.0)
)
PRODUCT = cascade("E: Z[m,n] = A[m] * B[n]", {"m": 2, "n": 2})


def every(workload: Workload, on: Machine) -> list[Cost]:
    """The prices of all legal trees of the space."""
    trees: list[Mapping] = [t for t in enumerate_trees(workload, on, Mapspace()) if not legality(workload, on, t)]
    return [evaluate(workload, on, t) for t in trees]


def test_trap_02_pruning_by_energy_alone() -> None:
    """The buffer saves energy and is slow: among the trees of least energy none has the least energy-delay product."""
    priced = every(PRODUCT, SLOW)
    least = min(c.energy for c in priced)
    wrong = min(c.edp for c in priced if c.energy == least)
    right = min(c.edp for c in priced)
    assert right < wrong
    assert optimum(problem(PRODUCT, SLOW, "edp")) == right
    assert optimum(problem(PRODUCT, SLOW, "energy")) == least


def test_trap_03_best_energy_times_best_latency() -> None:
    """Their product belongs to no tree. Taken for an upper bound it would prune everything: nothing is left."""
    priced = every(PRODUCT, SLOW)
    wrong = min(c.energy for c in priced) * min(c.latency for c in priced)
    right = min(c.edp for c in priced)
    assert wrong < right
    asked = problem(PRODUCT, SLOW, "edp")
    assert optimum(asked) == right
    assert optimum(asked, ExactOptions(limit=right)) == right
    with pytest.raises(Infeasible):
        optimum(asked, ExactOptions(limit=wrong))


# -- 4


def test_trap_04_the_first_read_is_skipped_in_every_instance() -> None:
    """Rows of different spatial reductions compared before the skipped first reads are subtracted.

    Each instance along an axis that does not add keeps a partial sum, and skips its first read: 2 instances over k skip
    2 |Z| reads, over m only |Z|. Before that is subtracted m looks better, because B is multicast.
    """
    workload = bits(cascade("E: Z[m] = A[m,k] * B[k]", {"m": 2, "k": 4}), Z=4)
    on = machine(
        Memory("DRAM", None, 10.0, 10.0),
        Fanout("PE", (Axis("X", 2, selector("all"), selector("nothing")),)),
        MAC,
    )
    over_m = cost(workload, on, "DRAM[A B Z] E.m:2@X E.k:4 !E@MAC")
    over_k = cost(workload, on, "DRAM[A B Z] E.k:2@X E.m:2 E.k:2 !E@MAC")

    def skipped(priced: Cost) -> int:
        return 4 * (priced.count("DRAM", "Z", "write") - priced.count("DRAM", "Z", "read"))

    assert (skipped(over_m), skipped(over_k)) == (4 * 2, 4 * 4)
    assert over_m.energy + 10 * skipped(over_m) < over_k.energy + 10 * skipped(over_k)
    assert over_k.energy < over_m.energy
    assert optimum(problem(workload, on)) == Exhaustive().search(problem(workload, on)).value == over_k.energy


# -- 5


def test_trap_05_equal_einsums_need_the_loosest_limit() -> None:
    """E1 and E2 look the same and share their tables, but in the optimum E1 pays more than E2 ever may.

    The buffer holds one intermediate at a time: S and U are fused, T is not, and writing T (E1) costs twice what
    reading it (E2) does. Tables cut at what E2 pays have no row for E1: no mapping would be left.
    """
    text = "E0: S[m] = exp(X[m])\nE1: T[m] = exp(S[m])\nE2: U[m] = exp(T[m])\nE3: Z[m] = exp(U[m])"
    workload = cascade(text, {"m": 1}, bits=4)
    on = machine(
        Memory("DRAM", None, 10.0, 20.0, must=selector("~intermediate")),
        Memory("GLB", 4, may=selector("intermediate")),
        MAC,
    )
    best = cost(workload, on, "DRAM[X T Z] { GLB[S] { !E0@MAC } { !E1@MAC } } { GLB[U] { !E2@MAC } { !E3@MAC } }")
    assert of(best, "E2") < of(best, "E1")
    assert not [c for c in every(workload, on) if max(of(c, "E1"), of(c, "E2")) <= of(best, "E2")]
    assert optimum(problem(workload, on)) == best.energy


# -- 6, 7 and 8: what is alive

ROW_BY_ROW = cascade("E0: T[m] = A[m,k] * B[k]\nE1: Z[m,q] = T[m] * C[q]", {"m": 2, "k": 2, "q": 3})


def test_trap_06_pruning_by_objective_without_reservations() -> None:
    """For each way to meet its partner every Einsum keeps its cheapest row only, and the two rows do not fit together.

    E0 wants B kept over the shared loop, E1 wants C; the buffer holds T's tile and one of them. The rule is left with
    unfused T (all of T does not fit).
    """
    workload = bits(ROW_BY_ROW, T=6, B=2)
    on = buffered(11)
    end = " { E0.k:2 !E0@MAC } { E1.q:3 !E1@MAC }"
    with_b = cost(workload, on, "DRAM[A B C Z] GLB[B] E0.m,E1.m:2 GLB[T]" + end)
    with_c = cost(workload, on, "DRAM[A B C Z] GLB[C] E0.m,E1.m:2 GLB[T]" + end)
    neither = cost(workload, on, "DRAM[A B C Z] E0.m,E1.m:2 GLB[T]" + end)
    assert of(with_b, "E0") < of(neither, "E0") and of(with_c, "E1") < of(neither, "E1")
    assert not legality(workload, buffered(13), tree("DRAM[A B C Z] GLB[B C] E0.m,E1.m:2 GLB[T]" + end))
    assert legality(workload, on, tree("DRAM[A B C Z] GLB[B C] E0.m,E1.m:2 GLB[T]" + end))
    wrong = optimum(problem(workload, on, space=Mapspace("ffm", 0)))
    right = min(with_b.energy, with_c.energy)
    assert right < wrong
    assert optimum(problem(workload, on)) == right
    both = optimum(problem(workload, buffered(13)))
    assert both < right


LOCAL = cascade("E0: T[m] = X[k] * Y[m,j]\nE1: Z[m,q] = T[m] * V[m,p]", {"m": 2, "k": 2, "j": 2, "q": 8, "p": 2})
E1_PLAIN = " { E1.q:8 E1.p:2 !E1@MAC }"
E1_WITH_V = " { GLB[V] E1.q:8 E1.p:2 !E1@MAC }"


def test_trap_07_one_total_of_what_is_reserved() -> None:
    """X above the shared loop is smaller and saves more than Y below it, so that by one total Y's row looks worse.

    But X lives through E1's branch, where V needs the room; Y is gone by then.
    """
    workload = bits(LOCAL, X=3, Y=4, V=4, T=1)
    on = buffered(9)
    e0 = "{ E0.k:2 E0.j:2 !E0@MAC }"
    x_above = cost(workload, on, f"DRAM[X Y V Z] GLB[X] E0.m,E1.m:2 GLB[T] {e0}{E1_PLAIN}")
    y_below = cost(workload, on, f"DRAM[X Y V Z] E0.m,E1.m:2 GLB[T] {{ GLB[Y] E0.k:2 E0.j:2 !E0@MAC }}{E1_WITH_V}")
    assert of(x_above, "E0") < of(y_below, "E0")
    assert (alone(x_above, "GLB", "X"), alone(y_below, "GLB", "Y")) == (6, 8)
    assert legality(workload, on, tree(f"DRAM[X Y V Z] GLB[X] E0.m,E1.m:2 GLB[T] {e0}{E1_WITH_V}"))
    wrong = optimum(problem(workload, on, space=without("Y")))
    right = optimum(problem(workload, on))
    assert right < wrong
    assert right <= y_below.energy


def test_trap_08_raising_a_store_above_a_shared_loop() -> None:
    """Above a loop that its tensor lacks a store reads less, but above a shared loop it lives through other branches.

    A rule that always raises X leaves: X above the shared loop and V not kept, or X not kept.
    """
    workload = bits(LOCAL, X=4, Y=1, V=4, T=1)
    on = buffered(9)
    below = f"DRAM[X Y V Z] E0.m,E1.m:2 GLB[T] {{ GLB[X] E0.k:2 E0.j:2 !E0@MAC }}{E1_WITH_V}"
    raised = f"DRAM[X Y V Z] GLB[X] E0.m,E1.m:2 GLB[T] {{ E0.k:2 E0.j:2 !E0@MAC }}{E1_WITH_V}"
    assert legality(workload, on, tree(raised)) and not legality(workload, on, tree(below))
    assert evaluate(workload, buffered(17), tree(raised)).energy < cost(workload, on, below).energy
    wrong = min(optimum(problem(workload, on, space=without(t))) for t in ("V", "X"))
    right = optimum(problem(workload, on))
    assert right < wrong
    assert right <= cost(workload, on, below).energy


# -- 9


def test_trap_09_shared_loops_have_an_order() -> None:
    """E0 keeps A between m and n, E1 keeps C between n and m. As sets the loops match; as a tree they cannot."""
    workload = bits(cascade("E0: T[m,n] = A[m] * B[m,n]\nE1: Z[m,n] = T[m,n] * C[n]", {"m": 2, "n": 2}), A=2, C=2, T=1)
    on = buffered(5, may="~B & ~Z")
    ends = " GLB[T] { !E0@MAC } { !E1@MAC }"
    rows = cost(workload, on, "DRAM[A B C Z] E0.m,E1.m:2 GLB[A] E0.n,E1.n:2" + ends)
    columns = cost(workload, on, "DRAM[A B C Z] E0.n,E1.n:2 GLB[C] E0.m,E1.m:2" + ends)
    wrong = of(rows, "E0") + of(columns, "E1")
    right = optimum(problem(workload, on))
    assert wrong < right
    assert right == pytest.approx(min(rows.energy, columns.energy), abs=0.1)  # up to accesses of the buffer


# -- 10


def test_trap_10_classes_of_windows() -> None:
    """p and q index the same tensors, but p slides: a tile of 2 p needs 3 values of I, a tile of 2 q needs 4.

    Merged, the two tiles would be one row, and whichever stands for both is wrong for the other.
    """
    window = cascade("E: O[p,q] = I[p+r,q] * F[r]", {"p": 2, "q": 2, "r": 2}, bits=1)
    tile_of_p = "DRAM[I F O] E.q:2 GLB[I] E.p:2 E.r:2 !E@MAC"
    tile_of_q = "DRAM[I F O] E.p:2 GLB[I] E.q:2 E.r:2 !E@MAC"
    roomy, small = buffered(4, may="I"), buffered(3, may="I")
    assert alone(cost(window, roomy, tile_of_p), "GLB", "I") == 3
    assert alone(cost(window, roomy, tile_of_q), "GLB", "I") == 4
    assert legality(window, small, tree(tile_of_q)) and not legality(window, small, tree(tile_of_p))
    right = optimum(problem(window, small))
    wrong = optimum(problem(window, small, space=without("I")))
    assert right < wrong
    assert right == cost(window, small, tile_of_p).energy == Exhaustive().search(problem(window, small)).value


def test_trap_10_classes_of_shared_loops() -> None:
    """b and m are one class of E0, but the loop that it shares with E1 is not the same for E1, which has Z[b] and D[m].

    With b, the representative of the class, as the only shared loop, D is read again for every b.
    """
    workload = bits(cascade("E0: T[b,m] = A[b,m] * B[b,m]\nE1: Z[b] = T[b,m] * D[m]", {"b": 2, "m": 2}), T=2, D=3)
    on = buffered(7, may="T | D")
    over_b = cost(workload, on, "DRAM[A B D Z] E0.b,E1.b:2 GLB[T] { E0.m:2 !E0@MAC } { E1.m:2 !E1@MAC }")
    over_m = cost(workload, on, "DRAM[A B D Z] E0.m,E1.m:2 GLB[T] { E0.b:2 !E0@MAC } { GLB[D] E1.b:2 !E1@MAC }")
    assert of(over_b, "E0") == of(over_m, "E0")
    assert over_m.energy < over_b.energy - 50
    assert optimum(problem(workload, on)) == over_m.energy


# -- 11


def test_trap_11_what_is_held_above_decides_what_to_hold_below() -> None:
    """With A in the global buffer, a copy of it in the local one only costs; if A bypasses the former, it pays.

    A table of the local buffer made for a global buffer that holds everything, reused where A bypasses it, has no row
    that holds A.
    """
    workload = bits(cascade("E: Z[m,n] = A[m] * B[n]", {"m": 2, "n": 4}), A=4, B=1)

    def levels(size: int | None, may: str = "all") -> Machine:
        return machine(
            Memory("DRAM", None, 10.0, 10.0),
            Memory("GLB", size, 1.0, 1.0, may=selector("A | B")),
            Memory("LB", 4, 1.0, 1.0, may=selector(f"A & ({may})")),
            MAC,
        )

    roomy, tight = levels(None), levels(3)
    keep = Mapspace(limits=Limits(holds=(HoldLimit("keep", "GLB", selector("A | B")),)))
    assert "store LB" not in Exact().search(problem(workload, roomy, space=keep)).mapping_text
    right = optimum(problem(workload, tight))
    wrong = optimum(problem(workload, levels(3, "nothing")))
    assert right < wrong
    assert right == Exhaustive().search(problem(workload, tight)).value


# -- 12


def test_trap_12_a_limit_on_one_rank_breaks_its_class() -> None:
    """b and m index the same tensors, but only b may be spread over the axis: two instances work, not four."""
    workload = cascade("E: Z[b,m] = A[b,m] * B[b,m]", {"b": 2, "m": 2})
    on = machine(Memory("DRAM", None, 1.0, 1.0), Fanout("PE", (Axis("X", 4),)), ComputeUnit("MAC", 1.0, 1.0))
    limited = Mapspace(limits=Limits(axes=(AxisLimit("X", Numbers(most=1), ("m",)),)))
    wrong = optimum(problem(workload, on, "latency"))
    right = optimum(problem(workload, on, "latency", limited))
    assert (wrong, right) == (1.0, 2.0)


# -- 13


def test_trap_13_persistent_tensors_live_through_everything() -> None:
    """The weights stay in a finite outermost memory for the whole run, so that T has no room there: it is fused."""
    text = "E0: T[m] = A[m] * W0[m]\nE1: Z[m] = T[m] * W1[m]"
    plain = bits(cascade(text, {"m": 2}), T=4)
    stays = bits(cascade(text, {"m": 2}, persistent=("W0", "W1")), T=4)
    on = machine(Memory("DRAM", 12, 1.0, 1.0), Memory("GLB", None, 10.0, 10.0, may=selector("intermediate")), MAC)
    apart = tree("DRAM[A W0 W1 T Z] { E0.m:2 !E0@MAC } { E1.m:2 !E1@MAC }")
    assert not legality(plain, on, apart) and legality(stays, on, apart)
    fused = cost(stays, on, "DRAM[A W0 W1 Z] GLB[T] { E0.m:2 !E0@MAC } { E1.m:2 !E1@MAC }")
    wrong = evaluate(plain, on, apart).energy
    assert wrong < fused.energy
    assert optimum(problem(plain, on)) == wrong
    assert optimum(problem(stays, on)) == fused.energy


# -- 14


def test_trap_14_the_last_place_of_equal_costs() -> None:
    """Costs that are equal on paper differ in the last place by the order of their sum.

    A comparison without tolerance would drop the optimum when asked for nothing worse than its own cost, added up in
    another order.
    """
    workload = bits(cascade("E0: S[m] = exp(X[m])\nE1: Z[m] = exp(S[m])", {"m": 3}), S=3, Z=7)
    on = machine(Memory("DRAM", None, 0.1, 0.3, must=selector("~intermediate")), Memory("GLB", 7, 0.7, 0.1), MAC)
    asked = problem(workload, on)
    found = Exact().search(asked)
    sums = {sum(order) for order in _orders([a.energy for a in found.cost.actions])}
    assert len(sums) > 1 and max(sums) - min(sums) < 1e-12
    assert found.value == pytest.approx(Exhaustive().search(asked).value, rel=1e-12)
    for limit in sums:
        assert optimum(asked, ExactOptions(limit=limit)) == pytest.approx(found.value, rel=1e-12)
    with pytest.raises(Infeasible):
        optimum(asked, ExactOptions(limit=min(sums) * (1 - 1e-6)))


def _orders(terms: list[float]) -> list[list[float]]:
    """The terms forwards, backwards and by size."""
    return [terms, terms[::-1], sorted(terms), sorted(terms, reverse=True)]
