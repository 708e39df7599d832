"""Where a mapspace demands intermediates in inner memories, draws back them there, fit, and keep its limits."""

from __future__ import annotations

from contextlib import suppress
from math import prod
from random import Random

import pytest

import einloom as el
from einloom.cost.evaluate import legality
from einloom.machine.levels import Axis, ComputeUnit, Fanout, Machine, Memory
from einloom.mapspace.ffm.encoding import Encoding, NoProposal, State
from einloom.mapspace.ffm.encoding.demands import demanded
from einloom.mapspace.ffm.encoding.moves import _finer
from einloom.mapspace.ffm.encoding.skeletons import SkeletonDraft, tile_loops
from einloom.mapspace.limits.checks import fused_trips
from einloom.mapspace.limits.data import BackLimit, Limits, LoopLimit, Numbers
from einloom.mapspace.registry import space_for
from einloom.mapspace.space import Mapspace
from einloom.problem import Problem
from einloom.questions import problems
from einloom.workload.build import build_workload
from einloom.workload.einsum import Workload
from einloom.workload.selectors import selector
from state_checks import agrees

SOFTMAX = (
    "B[h,m] = max[l] A[h,m,l]",
    "C[h,m,l] = sub(A[h,m,l], B[h,m])",
    "D[h,m,l] = exp(C[h,m,l])",
    "E[h,m] = D[h,m,l]",
    "F[h,m,l] = div(D[h,m,l], E[h,m])",
)
ATTENTION = ("A[h,m,l] = Q[h,m,k] * K[h,l,k]", *SOFTMAX, "G[h,m,n] = F[h,m,l] * V[h,l,n]")
GROUPED = (
    "A[h,q,m,l] = Q[h,q,m,k] * K[h,l,k]",
    *(einsum.replace("h,", "h,q,") for einsum in SOFTMAX),
    "G[h,q,m,n] = F[h,q,m,l] * V[h,l,n]",
)
DRAM = Memory("DRAM", None, 10.0, 10.0, read_throughput=1.0, write_throughput=1.0)
MAC = ComputeUnit("MAC", 1.0, 0.1)
CHAIN = ("B[m,n] = A[m,k] * W[k,n]", "C[m,p] = B[m,n] * V[n,p]")


def attention(**more: int) -> Workload:
    return build_workload("attention", ATTENTION, {"h": 2, "m": 8, "l": 16, "k": 4, "n": 4} | more, bits=16)


def grouped() -> Workload:
    extents = {"h": 2, "q": 4, "m": 16, "l": 16, "k": 8, "n": 8}
    return build_workload("grouped", GROUPED, extents, bits=16)


def small(size: int = 2500, *below: Fanout) -> Machine:
    buffer = Memory("GLB", size, 1.0, 1.0, read_throughput=10.0, write_throughput=10.0)
    return Machine("small", (DRAM, buffer, *below, MAC))


def cores(size: int = 20_000) -> Machine:
    """Two cores in full use, each with a buffer and an array in full use."""
    buffer = Memory("GLB", size, 1.0, 1.0)
    array = Fanout("array", (Axis("X", 4, use="full"), Axis("Y", 4, use="full")))
    return Machine("cores", (DRAM, Fanout("cores", (Axis("core", 2, use="full"),)), buffer, array, MAC))


def nested() -> Machine:
    """A buffer in each row of an array inside another buffer: tensors may be backed in either."""
    inner = Memory("RF", 2000, 0.1, 0.1)
    return Machine("nested", (*small().levels[:2], Fanout("rows", (Axis("X", 2),)), inner, MAC))


ARRAY = Fanout("array", (Axis("X", 4, use="full"), Axis("Y", 4, use="full")))
CASES = {
    "one buffer": (attention(), small(), "flash-attention", {}),
    "uneven": (attention(m=9), small(), "flash-attention", {"space": "ragged"}),
    "free order": (attention(), small(), "flash-attention", {"order": "free"}),
    "shared stores": (attention(), small(), "flash-attention", {"stores": "shared"}),
    "at most two loops": (attention(), small(9000), "flash-attention", {"max_fused_loops": 2}),
    "every rank": (attention(), small(), "chimera-online", {}),
    "rows": (attention(), small(), "flat-r", {}),
    "grouped queries": (grouped(), small(12_000, ARRAY), "flash-attention", {}),
    "cores": (attention(m=64), cores(40_000), "flash-attention", {}),
    "cores, grouped queries": (grouped(), cores(60_000), "flash-attention", {}),
    "several inner memories": (attention(), nested(), "tileflow-attention", {}),
}


def asked(name: str) -> list[Problem]:
    workload, machine, flow, more = CASES[name]
    found = problems(workload, machine, dataflow=flow, **more)  # type: ignore[arg-type]
    return [one.problem for one in (found[0], found[len(found) // 2])]


def drawn(name: str) -> tuple[Encoding, State]:
    """The encoding of a case's first problem, and a state with shared loops that leave something to cut."""
    problem = asked(name)[0]
    encoding, rng = Encoding(problem.workload, problem.machine, problem.mapspace), Random(0)
    while (state := encoding.sample(rng)) is None or ("m", 8, None) in state.shared[0]:
        pass
    return encoding, state


@pytest.mark.parametrize("name", CASES)
def test_every_draw_is_a_mapping_of_the_space(name: str) -> None:
    for problem in asked(name):
        encoding = Encoding(problem.workload, problem.machine, problem.mapspace)
        rng = Random(0)
        states = [state for _ in range(10) if (state := encoding.sample(rng)) is not None]
        assert len(states) == 10
        for state in states:
            assert encoding.fault(state) is None
            agrees(encoding, state)
        assert len({(state.shared, state.owns) for state in states}) > 1


def test_every_method_finds_a_mapping_of_flash_attention() -> None:
    problem = asked("one buffer")[0]
    for method in ("random", "genetic", "local", "anneal", "dat", "tileflow"):
        found = el.map(problem.workload, problem.machine, mapspace=problem.mapspace, method=method, steps=60)
        assert found.mapping is not None and legality(problem.workload, problem.machine, found.mapping) == ()


def test_draws_have_loops_that_limits_ask_for() -> None:
    workload = build_workload("chain", CHAIN, {"m": 8, "k": 4, "n": 4, "p": 4}, bits=8)
    limits = Limits(
        backs=(BackLimit(selector("intermediate"), ("GLB",)),),
        loops=(LoopLimit(selector("intermediate"), ("m",), Numbers(values=(4,))),),
    )
    encoding = Encoding(workload, small(), Mapspace(limits=limits))
    space, rng = space_for(workload, small(), Mapspace(limits=limits)), Random(0)
    for _ in range(20):
        state = encoding.sample(rng)
        assert state is not None and space.outside(encoding.decode(state)) == ()
        assert all(("m", 4, None) in loops for loops in state.shared)


def test_a_loop_that_limits_forbid_is_refused_before_any_privates_are_drawn() -> None:
    encoding, state = drawn("one buffer")
    facts, number = encoding.facts, encoding.facts.floats["C"]
    draft = SkeletonDraft(facts, state)
    draft.shared, draft.depths = [[] for _ in draft.shared], [0] * len(draft.depths)
    draft.fuse(number, 1, [(3, 2, None)])  # over l_s
    with pytest.raises(NoProposal, match="limits of the mapspace"):
        draft.settled(Random(0))


def test_a_tensor_comes_home_below_loops_that_limits_allow() -> None:
    encoding, _ = drawn("one buffer")
    facts, rng = encoding.facts, Random(0)
    for number, tensor in enumerate(facts.floating):
        for _ in range(10):
            for rank, trips, _axis in tile_loops(facts, number, 1, [], 1.0, {}, rng):
                bound = [(i, facts.variable_at(i, tensor.name, rank)) for i in tensor.users]
                assert all(v in ("h", "m", "l_t") and facts.loop_allowed(i, tensor.name, v, trips) for i, v in bound)


def test_a_shared_tile_that_is_too_large_gets_more_trips() -> None:
    encoding, state = drawn("rows")
    facts, rng, finer = encoding.facts, Random(0), 0
    for _ in range(40):
        number = rng.randrange(len(facts.floating))
        with suppress(NoProposal):
            found = _finer(facts, state, number, rng)
            assert encoding.fault(found) in (None, "capacity") and found.homes == state.homes
            user = facts.floating[number].users[0]
            before, after = (prod(n for _, n, _ in one.shared[user]) for one in (state, found))
            assert after > before
            finer += 1
    assert finer > 10


def test_nothing_is_demanded_without_limits() -> None:
    free = Encoding(attention(), small(), Mapspace())
    outer = Encoding(
        attention(), small(), Mapspace(limits=Limits(backs=(BackLimit(selector("intermediate"), ("DRAM",)),)))
    )
    assert free.facts.demanded == outer.facts.demanded == ()


def test_no_state_is_drawn_where_none_fits() -> None:
    workload = attention()
    limits = Limits(backs=(BackLimit(selector("intermediate"), ("GLB",)),))
    assert demanded(Encoding(workload, small(8), Mapspace(limits=limits)).facts, Random(0)) is None


def test_trips_of_fused_loops_are_limited_tensor_by_tensor() -> None:
    two = LoopLimit(selector("B"), ("m",), Numbers(most=2))
    other = LoopLimit(selector("all"), ("m",), Numbers(values=(4,)), ("C",))
    limits, workload = Limits(loops=(two, other)), build_workload("chain", CHAIN, dict.fromkeys("mknp", 4), bits=8)
    assert fused_trips(limits, workload, "B", "B", "m") == (two.trips,)
    assert fused_trips(limits, workload, "C", "B", "m") == (two.trips, other.trips)
    assert fused_trips(limits, workload, "B", "B", "n") == fused_trips(limits, workload, "B", "A", "m") == ()
