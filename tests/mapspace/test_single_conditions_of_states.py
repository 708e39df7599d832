"""Single conditions of states, of their moves, of the methods on them and of the space, each alone, whose mistakes no
other test saw."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from itertools import islice
from random import Random
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from einloom.machine.levels import Axis, ComputeUnit, Fanout, Level, Machine, Memory
from einloom.mapping.text import parse_mapping, print_mapping
from einloom.mapspace.ffm.encoding import Encoding, NoProposal
from einloom.mapspace.ffm.encoding.checks import _ties
from einloom.mapspace.ffm.encoding.facts import Facts
from einloom.mapspace.ffm.encoding.grouping import _fused
from einloom.mapspace.ffm.encoding.lending import with_lent
from einloom.mapspace.ffm.encoding.privates import _rest_of
from einloom.mapspace.ffm.encoding.skeletons import SkeletonDraft
from einloom.mapspace.ffm.encoding.spreads import spreads
from einloom.mapspace.ffm.encoding.state import Frame, frame_of
from einloom.mapspace.ffm.rules import outside
from einloom.mapspace.limits.data import AxisLimit, Limits, Numbers
from einloom.mapspace.registry import space_for
from einloom.mapspace.space import Mapspace
from einloom.questions import problem
from einloom.search import first
from einloom.search.evaluator import Evaluator
from einloom.search.first import FirstMappings
from einloom.search.heuristics import uneven_kernel
from einloom.search.heuristics.anneal import Anneal
from einloom.search.heuristics.gradient import _unfused
from einloom.search.heuristics.points import Points
from einloom.search.heuristics.turns import Turns
from einloom.search.method import Recorder, Watcher
from einloom.workload.build import build_workload
from einloom.workload.einsum import Workload
from einloom.workload.selectors import selector
from kernels import interpret

MAC = ComputeUnit("MAC", 1.0, 0.5)


def buffer(may: str) -> Memory:
    return Memory("GLB", None, 1.0, 1.0, may=selector(may))


def read(einsums: tuple[str, ...], extents: dict[str, int], *levels: Level) -> tuple[Workload, Machine]:
    outer = Memory("DRAM", None, 10.0, 12.0, read_throughput=2.0, write_throughput=2.0)
    return build_workload("tiny", einsums, extents, bits=8), Machine("tiny", (outer, *levels, MAC))


THREE_READERS = (
    "S[m,n] = exp(X[m,n])",
    "T[m,n] = exp(S[m,n])",
    "U[m,n] = add(T[m,n], S[m,n])",
    "V[m,n] = add(U[m,n], T[m,n])",
)
PARTED = """
store DRAM: X U V
for m in 2
store GLB: T
split sequential:
  - for n in 2
    store GLB: S
    split sequential:
      - compute S @ MAC
      - compute T @ MAC
      - compute U @ MAC
  - for n in 2
    compute V @ MAC
"""


def test_a_backing_store_stands_above_the_split_where_its_last_user_leaves_the_others() -> None:
    """T's writer and its first reader go on together below the split, its last reader does not."""
    workload, machine = read(THREE_READERS, {"m": 2, "n": 2}, buffer("S | T"))
    encoding, tree = Encoding(workload, machine, Mapspace()), parse_mapping(PARTED, workload, machine)
    state = encoding.encode(tree)
    assert state is not None and encoding.fault(state) is None
    assert encoding.decode(state) == tree
    frame = Frame(encoding.facts, state.homes, state.depths)
    names = [tensor.name for tensor in encoding.facts.floating]
    assert frame.backings[3] == [(names.index("T"), 1, False)]


def test_a_group_around_a_tensor_reaches_to_its_last_reader() -> None:
    """Only B can come home, and the second of its three users is not the last."""
    workload, machine = read(("B[m] = exp(A[m])", "C[m] = exp(B[m])", "E[m] = add(B[m], C[m])"), {"m": 4}, buffer("B"))
    encoding, found = Encoding(workload, machine, Mapspace(concurrent="shared")), set[tuple[int, int]]()
    state = encoding.sample(Random(1), 0.0)
    assert state is not None
    for seed in range(8):
        with suppress(NoProposal):
            found.add(_fused(encoding.facts, SkeletonDraft(encoding.facts, state), Random(seed)))
    assert found == {(0, 2)}


TWO_PAIRS = ("T[m] = mul(A[m], E[m])", "Y[m] = mul(T[m], E[m])", "S[m] = mul(Y[m], E[m])", "Z[m] = mul(S[m], E[m])")
PAIRED = """
store DRAM: A E Y Z
split sequential:
  - for m in 2
    store GLB: T
    split sequential:
      - compute T @ MAC
      - compute Y @ MAC
  - for m in 2
    store GLB: S
    split sequential:
      - compute S @ MAC
      - compute Z @ MAC
"""


def test_a_new_store_of_several_readers_leaves_that_of_other_readers_alone() -> None:
    """E's store for the last two of four readers comes beside that for the first two; one for all takes their place."""
    workload, machine = read(TWO_PAIRS, {"m": 2}, buffer("T | S | E"))
    encoding = Encoding(workload, machine, Mapspace(stores="shared"))
    state, rng = encoding.encode(parse_mapping(PAIRED, workload, machine)), Random(0)
    assert state is not None
    front, back, every = (1, "E", 1, False, 0), (1, "E", 1, False, 2), (1, "E", 0, False, 0)
    held = []
    for new in (front, back, every):
        state = with_lent(encoding.facts, state, SkeletonDraft(encoding.facts, state), new, rng)
        assert encoding.fault(state) is None
        held.append(sorted(state.lent))
    assert held == [[front], [front, back], [every]]


def test_uneven_choices_of_full_use_leave_other_axes_alone() -> None:
    """Both instances of X must work; Y is chosen elsewhere."""
    fan = Fanout("PE", (Axis("X", 2, use="full"), Axis("Y", 2)))
    workload, machine = read(("Z[m] = exp(A[m])",), {"m": 4}, fan)
    assert spreads(Facts(workload, machine, Mapspace("ragged")), 0, "MAC") == [(("X", "m", 2),)]


def test_uneven_choices_of_full_use_stay_within_limits_of_their_axis() -> None:
    """Three of four instances may work: six values in two passes."""
    workload, machine = read(("Z[m] = exp(A[m])",), {"m": 6}, Fanout("PE", (Axis("X", 4, use="full"),)))
    limits = Limits(axes=(AxisLimit("X", Numbers(most=3)),))
    assert spreads(Facts(workload, machine, Mapspace("ragged", limits=limits)), 0, "MAC") == [(("X", "m", 3),)]


TWICE = """
store DRAM: A Z
for m in 2
for m in 2
store GLB: A Z
for m in 2
compute Z @ MAC
"""


def test_a_neighbour_to_which_two_steps_lead_comes_once() -> None:
    """A tree outside the space, where each of the two outer loops may take the trips of the other, or give its own."""
    workload, machine = read(("Z[m] = exp(A[m])",), {"m": 8}, buffer("all"))
    space = space_for(workload, machine, Mapspace())
    near = [print_mapping(t, workload) for t in space.neighbours(parse_mapping(TWICE, workload, machine), Random(0))]
    text = "store DRAM: A Z\nfor m in {}\nstore GLB: A Z\nfor m in {}\ncompute Z @ MAC\n"
    assert sorted(near) == [text.format(2, 4), text.format(4, 2)]


PIPELINED = """
store DRAM: X Z
for m in 2
store GLB: T{}
split pipelined shared:
  - for m in 2
    compute T @ MAC
  - for m in 2
    store GLB: Z{}
    compute Z @ MAC
"""


@pytest.mark.parametrize(("above", "inside"), [("", ""), (" slots 3", ""), ("", " slots 3")])
def test_in_a_space_with_groups_no_store_says_how_many_slots_it_has(above: str, inside: str) -> None:
    """Neither above the split nor in a branch of it."""
    workload, machine = read(("T[m] = exp(X[m])", "Z[m] = exp(T[m])"), {"m": 4}, buffer("all"))
    tree = parse_mapping(PIPELINED.format(above, inside), workload, machine)
    said = ("rule 13: store GLB says how many slots it has",) if above or inside else ()
    assert outside(workload, machine, Mapspace(concurrent="shared"), tree) == said


def test_turns_are_longer_by_half_after_each_round_and_two_seconds_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = problem("matmuls:n=2,m=8,kn=8", "simple:glb_bits=4096", "energy")
    turns, seconds = Turns(asked, Recorder()), list[float]()
    turns.__dict__["_turns"] = ((Anneal(), 0.8), (Anneal(), 0.4))
    monkeypatch.setattr(turns, "_take", lambda method, time, rng: seconds.append(time))
    for _ in islice(turns._by_turns(), 9):
        pass
    assert seconds == pytest.approx([0.8, 0.4, 1.2, 0.6, 1.8, 0.9, 2.0, 1.35])


def test_a_round_of_annealing_goes_from_hot_to_cold(monkeypatch: pytest.MonkeyPatch) -> None:
    """From sixteen times the last temperature in four steps: each has half of the one before it."""
    asked = problem("matmuls:n=2,m=8,kn=8", "simple:glb_bits=4096", "energy")
    drawn, points, heats = FirstMappings(asked, Watcher()), SimpleNamespace(), list[float]()
    points.facts = SimpleNamespace(floating=(), count=1)

    def stepped(points: Any, found: Any, rng: Random, i: int, heat: float) -> None:
        heats.append(heat)

    monkeypatch.setattr(drawn, "_stepped", stepped)
    for _ in drawn._cooled(points, (1.0, None), Random(0), 4, 16 * first.COLD):  # type: ignore[arg-type]
        pass
    assert heats == pytest.approx([16 * first.COLD, 8 * first.COLD, 4 * first.COLD, 2 * first.COLD])


def test_what_crosses_a_link_is_the_product_over_the_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    """Below loops over m in 2 and n in 3: four values of m for each of six of n, or in each of three iterations."""
    assert interpret(monkeypatch) > 10
    items = np.array([(uneven_kernel.FOR, 0, 2, 0), (uneven_kernel.FOR, 1, 3, 0)])
    rel, extents = np.array([(True, True), (True, False)]), np.array([4, 6])
    joined, kept = np.zeros((2, 1), dtype=np.bool_), np.zeros(2, dtype=np.bool_)

    def crossed(t: int) -> float:
        return uneven_kernel.crossed(items, 2, 0, t, 0, rel, joined, kept, extents, extents)

    assert (crossed(0), crossed(1)) == (4 * 6, 4 * 3)


def test_a_loop_gets_no_more_trips_than_the_loops_below_leave_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """12 values, 3 x 2 trips, two instances: up to 3 for the outer loop above 2 x 2, up to 6 for the inner above 2."""
    assert interpret(monkeypatch) > 10
    spread, whole, seen = np.array([[2]]), np.array([12]), set[tuple[int, int]]()
    np.random.seed(0)
    for _ in range(300):
        trips = np.array([[3], [2]])
        assert uneven_kernel.retile(1, trips, spread, whole, np.array([0])) == 1
        seen.add((int(trips[0, 0]), int(trips[1, 0])))
    assert seen == {(1, 2), (2, 2), (3, 2)} | {(3, trips) for trips in range(1, 7)}


def test_a_gate_that_is_shut_brings_its_tensor_to_the_outermost_memory() -> None:
    """And leaves what else is fused as it is."""
    asked, rng, seen = problem("matmuls:n=4,m=8,kn=8", "two-level", "energy"), Random(3), 0
    space = space_for(asked.workload, asked.machine, asked.mapspace)
    points = Points(asked, space, Evaluator(asked, space))
    while seen < 5:
        found = points.draw(rng)
        assert found is not None
        state = found[1]
        for number in (n for n, home in enumerate(state.homes) if home > 0):
            apart = _unfused(points, state, number, rng)
            others = [n for n in range(len(state.homes)) if n != number]
            assert apart.homes[number] == apart.depths[number] == 0
            assert [apart.homes[n] for n in others] == [state.homes[n] for n in others]
            seen += 1


def test_spatial_loops_of_one_variable_share_what_it_has() -> None:
    """Of four values two axes may take two each, not four and two."""
    workload, machine = read(("Z[m] = exp(A[m])",), {"m": 4}, Fanout("PE", (Axis("X", 4), Axis("Y", 2))))
    encoding = Encoding(workload, machine, Mapspace())
    state = encoding.sample(Random(1))
    assert state is not None
    halves = (("X", "m", 2), ("Y", "m", 2))
    assert _rest_of(encoding.facts, state, 0, halves) == halves
    assert _rest_of(encoding.facts, state, 0, (("X", "m", 4), ("Y", "m", 2))) is None


def test_loops_of_variables_that_the_tensor_between_them_lacks_are_no_shared_loops() -> None:
    """k of its writer and n of its reader are alike in that it has neither."""
    workload = build_workload("two", ("T[m] = A[m,k]", "Z[m,n] = T[m] * B[n]"), {"m": 4, "k": 4, "n": 4}, bits=8)
    levels = (Memory("DRAM", None, 1.0, 1.0), Memory("GLB", None, 1.0, 1.0), ComputeUnit("MAC"))
    encoding, rng = Encoding(workload, Machine("m", levels), Mapspace()), Random(2)
    facts, state = encoding.facts, None
    while state is None or state.depths != (1,):
        state = encoding.sample(rng, 1.0)
    trips = state.shared[0][0][1]
    apart = replace(state, shared=((("k", trips, None),), (("n", trips, None),)))
    assert list(_ties(facts, state, frame_of(facts, state))) == []
    assert list(_ties(facts, apart, frame_of(facts, apart))) == ["loop not of the tensor"]
