"""Spatial loops, ragged edges and illegal sharing, with numbers worked out by hand."""

from __future__ import annotations

import pytest

from cases import arrayed, cascade, simple, tree
from einloom.oracle import simulate

MATMUL = cascade("E: Z[m,n] = A[m,k] * B[k,n]", {"m": 4, "n": 4, "k": 4})


@pytest.mark.parametrize(
    ("reduce", "reads", "writes"),
    [
        ("output", 16, 32),  # two steps per element: one write each, one refill before the second
        ("nothing", 16 * 2 * (2 - 1), 64),  # |t| S (N - 1) read-backs, one write per instance
    ],
)
def test_two_steps_over_a_reducing_axis(reduce: str, reads: int, writes: int) -> None:
    text = "DRAM[A B Z] GLB[Z] E.m:4 E.n:4 E.k:2 E.k:2@X !E@MAC"
    found = simulate(MATMUL, arrayed("all", reduce), tree(text))
    assert found.reasons == () and found.correct
    assert found.count("GLB", "Z", "read") == reads + 16  # 16 are written up at the end
    assert found.count("GLB", "Z", "write") == writes


def test_refills_of_registers_over_a_reducing_axis() -> None:
    """Each of 4 instances holds a partial sum of every element twice: one refill, one read above, four writes."""
    text = "DRAM[A B Z] GLB[Z] E.k:2 E.m:4 E.n:4 E.k:2@X Reg[Z] !E@MAC"
    found = simulate(MATMUL, arrayed("all", "output"), tree(text))
    assert found.correct
    assert found.count("GLB", "Z", "read") == 16 + 16
    assert found.count("GLB", "Z", "write") == 32
    assert found.count("Reg", "Z", "write") == 64 + 16 * 2
    assert found.count("Reg", "Z", "read") == 32 + 64
    apart = simulate(MATMUL, arrayed("all", "nothing"), tree(text))
    assert apart.count("GLB", "Z", "read") == 16 * 2 * (2 - 1) + 16
    assert apart.count("GLB", "Z", "write") == 64


def test_ragged_instances_do_nothing_where_they_have_no_work() -> None:
    """k = 5 over two instances: tiles of 3 and 2, so the second rests in the third step."""
    workload = cascade("E: Z[m] = A[m,k]", {"m": 2, "k": 5})
    text = "DRAM[A Z] GLB[Z] E.k:2/3@X Reg[Z] E.m:2 E.k:3 !E@MAC"
    found = simulate(workload, arrayed("all", "all"), tree(text))
    assert found.correct
    assert found.busiest["E", "MAC", "compute"] == 6
    assert found.count("Reg", "Z", "write") == 10
    assert found.count("GLB", "Z", "write") == 2
    outside = "DRAM[A Z] GLB[Z] E.k:2/3@X E.k:3 E.m:2 Reg[Z] !E@MAC"
    spilled = simulate(workload, arrayed("all", "all"), tree(outside))
    assert spilled.correct
    assert spilled.count("GLB", "Z", "write") == 2 * 3
    assert spilled.count("Reg", "Z", "write") == 10 + 2 * 2 + 2 * 1


def test_halo_over_instances_is_distinct_data() -> None:
    workload = cascade("E: O[p] = I[p+r] * F[r]", {"p": 4, "r": 3})
    found = simulate(workload, arrayed(), tree("DRAM[I F O] GLB[I F O] E.p:2/2@X Reg[I F] E.p:2 E.r:3 !E@MAC"))
    assert found.correct
    assert found.count("GLB", "I", "read") == 4 + 4
    assert found.count("GLB", "F", "read") == 3


def test_instances_cannot_see_each_others_halo() -> None:
    text = "E0: T[x] = A[x,k] * B[k]\nE1: O[p] = T[p+r] * F[r]"
    workload = cascade(text, {"x": 6, "k": 2, "p": 4, "r": 3})
    below = "DRAM[A B F O] E0.x,E1.p:2/2@X Reg[T] { E0.x:4/1 E0.k:2 !E0@MAC } { E1.p:2 E1.r:3 !E1@MAC }"
    found = simulate(workload, arrayed(), tree(below))
    assert any(reason.startswith(("missing", "unfinished", "recomputation")) for reason in found.reasons)
    above = below.replace("E0.x,E1.p:2/2@X Reg[T]", "GLB[T] E0.x,E1.p:2/2@X")
    assert simulate(workload, arrayed(), tree(above)).reasons == ()


def test_a_loop_that_leaves_an_einsum_out_repeats_it() -> None:
    text = "E0: T[m,n] = A[m,k] * B[k,n]\nE1: Z[m,q] = T[m,n] * D[n,q]"
    workload = cascade(text, {"m": 2, "n": 2, "k": 2, "q": 2})
    leaves = "{ E0.m:2 E0.n:2 E0.k:2 !E0@MAC } { E1.m:2 E1.n:2 !E1@MAC }"
    found = simulate(workload, simple(), tree("DRAM[A B T D Z] E1.q:2 " + leaves))
    assert any(reason == "recomputation: E0 repeats an operation" for reason in found.reasons)


def test_padding_is_never_moved() -> None:
    workload = cascade("E: O[p] = I[p+r-1] * F[r]", {"p": 4, "r": 3}, shapes={"I": (4,)})
    found = simulate(workload, simple(), tree("DRAM[I F O] E.p:4 GLB[I] E.r:3 !E@MAC"))
    assert found.correct
    assert found.operations == {"E": 12}
    assert found.count("DRAM", "I", "read") == 4
    assert found.count("GLB", "I", "read") == 12 - 2


def test_a_shared_store_above_a_split_serves_the_window_it_kept() -> None:
    """T lives in DRAM and, four and then two new positions at a time, in GLB: nothing is read back."""
    text = "E0: T[x] = exp(A[x])\nE1: O[p] = T[p+r] * F[r]"
    workload = cascade(text, {"x": 6, "p": 4, "r": 3})
    leaves = "{ E0.x:4/1 !E0@MAC } { E1.p:2 E1.r:3 !E1@MAC }"
    found = simulate(workload, simple(), tree("DRAM[A F O T] E0.x,E1.p:2/2 GLB[T] " + leaves))
    assert found.correct and found.reasons == ()
    assert (found.count("DRAM", "T", "read"), found.count("DRAM", "T", "write")) == (0, 6)
    assert (found.count("GLB", "T", "read"), found.count("GLB", "T", "write")) == (6 + 12, 6)


def test_a_large_tree_is_still_quick() -> None:
    workload = cascade("E: Z[m,n] = A[m,k] * B[k,n]", {"m": 16, "n": 16, "k": 16})
    text = "DRAM[A B Z] E.m:4 GLB[A] E.k:4 GLB[B] E.n:4 GLB[Z] E.m:4 E.n:4 E.k:4 !E@MAC"
    assert simulate(workload, simple(), tree(text)).operations == {"E": 4096}


def test_an_einsum_without_work_in_a_step_rests_while_its_partner_goes_on() -> None:
    """The first of four values of Z is padding: T has three steps, and no loop of its own that could tell."""
    asked = cascade("T: T[u] = exp(A[u])\nZ: Z[p] = T[p-1] * W[p]", {"u": 3, "p": 4}, shapes={"T": (3,)})
    for stores, bits in (("T", 1), ("A T", 2)):  # the first step holds nothing of A
        found = simulate(asked, simple(), tree(f"DRAM[A Z W] T.u,Z.p:4 GLB[{stores}] {{ !T@MAC }} {{ !Z@MAC }}"))
        assert found.reasons == () and found.correct
        assert found.operations == {"T": 3, "Z": 4}
        assert (found.count("GLB", "T", "write"), found.count("GLB", "T", "read")) == (3, 3)
        assert found.occupancy["GLB"] == bits
