"""Where iterations end: by hand for the documented cases, by brute force for random windows."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from cases import cascade
from einloom.mapping.analysed import Analysed
from einloom.mapping.extents import Cuts
from einloom.mapping.tree import Compute, Loop, Mapping, Node, Split, Store
from einloom.workload.einsum import Workload


def convs(size: int = 8, kernel: int = 3, stride: int = 1) -> Workload:
    index = f"{stride}*p+r" if stride > 1 else "p+r"
    reach = stride * (size - 1) + kernel
    return cascade(f"E0: T[u] = exp(A[u])\nE1: Z[p] = T[{index}] * W[r]", {"u": reach, "p": size, "r": kernel})


def fused(*loops: Loop, own: tuple[Loop, ...] = ()) -> Mapping:
    nodes: tuple[Node, ...] = (*loops, Store("GLB", ("T",)))
    return Mapping((*nodes, Split("sequential", ((*own, Compute("E0", "MAC")), (Compute("E1", "MAC"),)))))


def cuts_of(workload: Workload, mapping: Mapping) -> Cuts:
    return Analysed(workload, mapping).cuts


SHARED = (("E0", "u"), ("E1", "p"))


def test_first_tile_with_its_halo_then_one_stride() -> None:
    mapping = fused(Loop(SHARED, 4, 2))
    cuts = cuts_of(convs(), mapping)
    assert cuts == {("E0", 0): (4, 6, 8, 10)}
    assert Analysed(convs(), mapping).below("E0")[0] == {"u": 4}
    assert Analysed(convs(), mapping).below("E1")[0] == {"p": 2, "r": 3}


def test_loops_of_the_producer_alone_cut_each_extent_from_its_start() -> None:
    mapping = fused(Loop(SHARED, 4, 2), own=(Loop((("E0", "u"),), 2),))
    assert cuts_of(convs(), mapping)["E0", 3] == (2, 4, 6, 6, 8, 8, 10, 10)


def test_two_shared_loops_give_absolute_ends() -> None:
    mapping = fused(Loop(SHARED, 2), Loop(SHARED, 2))
    assert cuts_of(convs(), mapping) == {("E0", 0): (6, 10), ("E0", 1): (4, 6, 8, 10)}


def test_stride_without_halo_leaves_the_rest_for_the_last_iteration() -> None:
    assert cuts_of(convs(8, 1, 2), fused(Loop(SHARED, 4))) == {("E0", 0): (3, 7, 11, 15)}


def test_a_chain_of_windows_is_derived_from_its_last_consumer() -> None:
    workload = cascade(
        "E0: S[t] = exp(A[t])\nE1: T[u] = S[u+s] * V[s]\nE2: Z[p] = T[p+r] * W[r]",
        {"t": 12, "u": 10, "p": 8, "r": 3, "s": 3},
    )
    loop = Loop((("E0", "t"), ("E1", "u"), ("E2", "p")), 4)
    leaves = tuple((Compute(e, "MAC"),) for e in ("E0", "E1", "E2"))
    mapping = Mapping((loop, Store("GLB", ("S", "T")), Split("sequential", leaves)))
    assert cuts_of(workload, mapping) == {("E0", 0): (6, 8, 10, 12), ("E1", 0): (4, 6, 8, 10)}


def test_the_farthest_consumer_decides() -> None:
    workload = cascade(
        "E0: T[u] = exp(A[u])\nE1: X[u] = exp(T[u])\nE2: Z[p] = T[p+r] * W[r]", {"u": 10, "p": 8, "r": 3}
    )
    loop = Loop((("E0", "u"), ("E1", "u"), ("E2", "p")), 4)
    leaves = tuple((Compute(e, "MAC"),) for e in ("E0", "E1", "E2"))
    cuts = cuts_of(workload, Mapping((loop, Store("GLB", ("T",)), Split("sequential", leaves))))
    assert cuts == {("E0", 0): (4, 6, 9, 10)}  # E1 reads to 3, 6, 9, 10; E2 to 4, 6, 8, 10


def test_plain_loops_have_no_entry() -> None:
    workload = cascade("E0: T[m] = exp(A[m])\nE1: Z[m] = exp(T[m])", {"m": 8})
    assert cuts_of(workload, fused(Loop((("E0", "m"), ("E1", "m")), 3))) == {}


@given(st.integers(1, 9), st.integers(1, 4), st.integers(1, 3), st.integers(1, 9))
def test_every_element_once_and_never_too_late(size: int, kernel: int, stride: int, tile: int) -> None:
    workload = convs(size, kernel, stride)
    trips = -(-size // tile)
    cuts = cuts_of(workload, fused(Loop(SHARED, trips, tile)))
    reach = workload.extents["u"]
    ends = cuts.get(("E0", 0)) or tuple(min(reach, (i + 1) * tile) for i in range(trips))
    assert list(ends) == sorted(ends)
    assert ends[-1] == reach
    for i, end in enumerate(ends):
        read = [stride * p + r for p in range(min(size, (i + 1) * tile)) for r in range(kernel)]
        assert end == (max(read) + 1 if i < trips - 1 else reach)
