"""States write every tree of a space and nothing else: reached by moves, legal, inside, priced and weighed alike."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from random import Random

import pytest

from einloom.cost.evaluate import legality
from einloom.machine.levels import Axis, ComputeUnit, Fanout, Level, Machine, Memory
from einloom.mapping.normal import normal_form
from einloom.mapspace.ffm.encoding import Encoding, NoProposal
from einloom.mapspace.ffm.encoding.facts import Facts
from einloom.mapspace.ffm.encoding.moves import adopt, removed
from einloom.mapspace.ffm.encoding.rooms import tile_bits
from einloom.mapspace.ffm.encoding.skeletons import SkeletonDraft
from einloom.mapspace.ffm.encoding.state import SharedLoop, frame_of, products
from einloom.mapspace.ffm.enumerate import enumerate_trees
from einloom.mapspace.ffm.rules import outside
from einloom.mapspace.limits.data import AxisLimit, BackLimit, HoldLimit, Limits, Numbers
from einloom.mapspace.space import Mapspace
from einloom.testing.problems.drawing import Wanted, draw_with
from einloom.testing.problems.files import Read
from einloom.workload.build import build_workload
from einloom.workload.einsum import Workload
from einloom.workload.files import workload_from_data
from einloom.workload.selectors import selector
from einloom.zoo.machine_by_name import load_machine
from einloom.zoo.workload_by_name import load_workload
from state_checks import agrees, crossed, priced_alike, reached
from tiny_problems import tiny_problem
from viewed_problems import ViewedProblem

DRAM = Memory("DRAM", None, 10.0, 12.0, read_throughput=2.0, write_throughput=2.0)
MAC = ComputeUnit("MAC", 1.0, 0.5)
LB = Memory("LB", None, 0.1, 0.1)
MATMUL = ("Z[m,n] = A[m,k] * B[k,n]",)
CHAIN = ("B[m,n] = A[m,k] * W[k,n]", "C[m,p] = B[m,n] * V[n,p]")
COPIES = ("B[m] = A[m]", "C[m] = B[m]", "E[m] = C[m]")


def buffer(may: str = "all", size: int | None = None) -> Memory:
    return Memory("GLB", size, 1.0, 1.0, may=selector(may))


def fan(use: str = "any") -> Fanout:
    return Fanout("PE", (Axis("X", 2, use=use),))  # type: ignore[arg-type]


def case(
    einsums: tuple[str, ...],
    extents: dict[str, int],
    *levels: Level,
    limits: Limits | None = None,
    outer: Memory = DRAM,
    **more: object,
) -> tuple[Workload, Machine, Mapspace]:
    workload = build_workload("tiny", einsums, extents, bits=8, **more)  # type: ignore[arg-type]
    return workload, Machine("tiny", (outer, *levels, MAC)), Mapspace(limits=limits or Limits())


def widened(workload: Workload, machine: Machine, mapspace: Mapspace) -> tuple[Workload, Machine, Mapspace]:
    """Fused loops may cut a rank more than once."""
    return workload, machine, replace(mapspace, max_fused_loops_per_rank_variable=2)


LENT = Limits(axes=(AxisLimit("X", Numbers(values=(1,)), ("n",)),))
BOTH_FULL = Fanout("PE", (Axis("X", 2, use="full"), Axis("Y", 2, use="full")))
TOTALS = (AxisLimit("X", Numbers(most=2)), AxisLimit("Y", Numbers(values=(2,))))
OUTSIDE = Memory("DRAM", None, 10.0, 12.0, read_throughput=2.0, write_throughput=2.0, backs=selector("~output"))
INNER = Memory("DRAM", None, 10.0, 12.0, may=selector("output"))


def parts(
    einsums: dict[str, str], ranks: dict[str, int], outer: Memory = DRAM, may: str = "intermediate", **more: object
) -> tuple[Workload, Machine, Mapspace]:
    """A workload that is written as a file is, with tensors in parts or with views."""
    listed = [{"name": name, "einsum": text} for name, text in einsums.items()]
    data = {"schema": "workload/1", "name": "tiny", "bits": 8, "ranks": ranks, "einsums": listed, **more}
    return workload_from_data(data), Machine("tiny", (outer, buffer(may), MAC)), Mapspace()


WITHOUT_W = Memory("DRAM", None, 10.0, 12.0, may=selector("~W"))
WEIGHTED = ("B[m] = A[m] * W[m]", "Z[m] = B[m] * V[m]")
ONCE = Limits(holds=(HoldLimit("once", "GLB", selector("B")),))
TINY = {
    "matmul": case(MATMUL, {"m": 2, "n": 2, "k": 1}, buffer()),
    "chain": case(CHAIN, {"m": 2, "k": 1, "n": 1, "p": 1}, buffer("intermediate | weight")),
    "longer": case(CHAIN, {"m": 4, "k": 1, "n": 1, "p": 1}, buffer("intermediate")),
    "axis": case(("Z[m] = A[m]",), {"m": 4}, buffer(), fan(), LB),
    "full": case(MATMUL, {"m": 2, "n": 2, "k": 1}, buffer(), fan("full")),
    "map": case(("Z[m,n] = A[m,k] * B[k,n]", "Y[m,n] = exp(Z[m,n])"), {"m": 2, "n": 1, "k": 2}, buffer("intermediate")),
    "three": case(COPIES, {"m": 2}, buffer("intermediate")),
    "window": case(("O[p] = I[p+r] * F[r]",), {"p": 4, "r": 2}, buffer()),
    "diamond": case(("B[m] = A[m]", "C[m] = B[m]", "E[m] = B[m] * C[m]"), {"m": 2}, buffer("intermediate")),
    "fused": case(COPIES, {"m": 2}, buffer("intermediate"), limits=Limits(backs=(BackLimit(selector("B"), ("GLB",)),))),
    "axes": case(MATMUL, {"m": 2, "n": 2, "k": 1}, buffer(), fan(), limits=LENT),
    "totals": case(MATMUL, {"m": 2, "n": 4, "k": 1}, buffer(), BOTH_FULL, limits=Limits(axes=TOTALS)),
    "once": case(MATMUL, {"m": 2, "n": 2, "k": 1}, buffer(), limits=ONCE),
    "kept": case(COPIES, {"m": 2}, buffer(), outputs=("B", "E"), outer=OUTSIDE),
    "concat": parts({"A": "C[m,a] = X[m,a]", "B": "C[m,1] = Y[m]", "Z": "Z[m] = C[m,c]"}, {"m": 2, "a": 1, "c": 2}),
    "sum": parts(
        {"P": "T[2*p+q] = E[p,q]", "Y": "Y[t] = T[t]"}, {"p": 2, "q": 1, "t": 3}, initial=["T"], shapes={"T": [3]}
    ),
    "patches": parts({"P": "T[2*p+q] = E[p,q]", "Y": "Y[t] = T[t]"}, {"p": 2, "q": 2, "t": 4}),
    "written": parts({"A": "C[m,0] = X[m]", "B": "C[m,1] = X[m]"}, {"m": 2}, may="output"),
    "view": parts(
        {"T": "T[m,n] = X[m,n]", "Z": "Z[m,a] = U[m,a,b]"},
        {"m": 2, "n": 2, "a": 1, "b": 2},
        views={"U": {"of": "T", "shape": [2, 1, 2]}},
    ),
    "input view": parts(
        {"Y": "Y[m] = X[m]", "Z": "Z[a,b] = U[a,b]"},
        {"m": 2, "a": 2, "b": 1},
        outer=INNER,
        may="all",
        views={"U": {"of": "X", "shape": [2, 1]}},
    ),
    "persistent": case(WEIGHTED, {"m": 2}, buffer("B | W"), outer=WITHOUT_W, persistent=("W",)),
    "persistent, fanout": case(
        ("Z[m] = A[m] * W[m]",), {"m": 4}, buffer("W"), fan(), LB, outer=WITHOUT_W, persistent=("W",)
    ),
    "levels": widened(*case(("B[m] = A[m]", "Z[m] = B[m]"), {"m": 4}, buffer("all"))),
    "inner": case(COPIES[:2], {"m": 2}, fan(), Memory("LB", None, 0.1, 0.1, may=selector("intermediate"))),
}


def test_trips_of_a_variable_are_those_of_all_its_loops() -> None:
    loops = [("m", 2), ("k", 3), ("m", 5), ("m", 7), ("n", 11)]
    assert list(products(loops).items()) == [("m", 70), ("k", 3), ("n", 11)]


DEAR = ("chain", "diamond")


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.slow if n in DEAR else ()) for n in TINY])
def test_moves_reach_every_tree_and_nothing_else(name: str) -> None:
    workload, machine, mapspace = TINY[name]
    encoding = Encoding(workload, machine, mapspace)
    trees = list(enumerate_trees(workload, machine, mapspace))
    states = {encoding.encode(tree) for tree in trees}
    assert len(states) == len(trees) > 5 and None not in states
    assert reached(encoding, len(trees)) == states


def test_states_write_the_trees_of_random_problems() -> None:
    trees = 0
    for seed in (0, 1, 3, 4, 11, 16, 19, 27, 29, 33, 34):
        problem = tiny_problem(seed)
        workload, machine = problem.workload, problem.machine
        encoding = Encoding(workload, machine, problem.mapspace)
        for number, tree in enumerate(enumerate_trees(workload, machine, problem.mapspace)):
            if number == 40:
                break
            trees += 1
            state = encoding.encode(tree)
            assert state is not None
            assert encoding.decode(state) == normal_form(tree, workload)
            assert encoding.encode(encoding.decode(state)) == state
            assert encoding.fault(state) == ("capacity" if legality(workload, machine, tree) else None)
    assert trees > 250


def reads() -> Iterator[Read]:
    """Random problems with tensors in parts and with views, in sequential trees with perfect tiles."""
    for seed in range(6):
        drawn = draw_with(Wanted(("parts read" if seed % 3 else "parts",)), seed)
        for read in [ViewedProblem(seed).read(), *([] if drawn is None else [drawn.files.read])]:
            if read[2] == Mapspace(limits=read[2].limits, max_fused_loops=read[2].max_fused_loops):
                yield read


def unlike(read: Read, seed: int) -> list[str]:
    """Where states of a problem say something else than legality, the space or `evaluate`."""
    workload, machine, mapspace = read
    encoding, rng, found = Encoding(*read), Random(seed), list[str]()
    for tree in islice(enumerate_trees(*read), 60):
        state = encoding.encode(tree)
        assert state is not None and encoding.decode(state) == normal_form(tree, workload)
        if encoding.fault(state) != ("capacity" if legality(workload, machine, tree) else None):
            found.append(str(tree))
    for _ in range(6):
        state = encoding.sample(rng)
        try:
            state = None if state is None else encoding.propose(state, rng)
        except NoProposal:
            continue
        if state is not None:
            tree, fits = encoding.decode(state), encoding.fits(state)
            if outside(workload, machine, mapspace, tree) or fits != (legality(workload, machine, tree) == ()):
                found.append(str(tree))
            elif fits:
                priced_alike(encoding, state)
    return found


def test_states_of_parts_and_views_are_legal_inside_and_priced_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    """And a backing store that has room for the first Einsum's part alone shows."""
    tight = TINY["concat"][0], Machine("tight", (DRAM, buffer("intermediate", 12), MAC)), Mapspace()
    assert [one for seed, read in enumerate([tight, *reads()]) for one in unlike(read, seed)] == []

    def first(facts: Facts, memory: int, tensor: str, extents: dict[str, int]) -> int:
        return tile_bits(facts, facts.users[tensor][0], memory, tensor, extents)

    monkeypatch.setattr("einloom.mapspace.ffm.encoding.rooms.backing_bits", first)
    assert unlike(tight, 0)


@pytest.mark.parametrize(
    ("workload", "machine"),
    [
        ("gpt3-6.7b:batch=1,tokens=2048", "tpu-v4i"),
        ("matmuls:n=4,m=64,kn=64", "simple:glb_bits=65536"),
        ("tileflow-bert-s", "tileflow-edge"),
        ("mobilenet-block", "two-level"),
    ],
)
def test_samples_and_moves_are_legal_inside_and_weighed_alike(workload: str, machine: str) -> None:
    w, m, space = load_workload(workload), load_machine(machine), Mapspace()
    encoding, rng = Encoding(w, m, space), Random(5)
    state = encoding.sample(rng)
    looked = 0
    while looked < 6:
        assert state is not None
        for _ in range(8):
            try:
                found = encoding.propose(state, rng)
            except NoProposal:
                continue
            state = found if encoding.fits(found) else state
        looked += 1
        agrees(encoding, state)


@pytest.mark.parametrize(("outputs", "trees"), [(("E",), 55), (("B", "E"), 0)])
def test_a_home_that_may_not_back_its_tensor_is_a_fault(outputs: tuple[str, ...], trees: int) -> None:
    """DRAM backs no inputs: not A, whose home is the buffer, and not B, which DRAM would back where it is an output."""
    outer = Memory("DRAM", None, 10.0, 12.0, backs=selector("~input"))
    problem = case(COPIES, {"m": 2}, buffer(), outer=outer, outputs=outputs)
    assert sum(1 for _ in enumerate_trees(*problem)) == trees
    encoding, rng = Encoding(*problem), Random(6)
    assert all((encoding.sample(rng) is None) == (trees == 0) for _ in range(20))
    elsewhere = Encoding(*case(COPIES, {"m": 2}, buffer(), outputs=outputs)).sample(rng)
    assert elsewhere is not None and encoding.fault(elsewhere) is not None


def test_no_loop_stands_above_a_persistent_tensor_that_an_inner_memory_backs() -> None:
    """Its store holds all of it, for each repeat, from the first leaf to the last."""
    more = {"persistent": ("W",), "repeat": 3}
    encoding = Encoding(*case(WEIGHTED, {"m": 4}, buffer("B | W", 120), outer=WITHOUT_W, **more))
    trees = list(enumerate_trees(encoding.workload, encoding.machine, encoding.mapspace))
    states = [state for tree in trees if (state := encoding.encode(tree)) is not None]
    assert len(states) == len(trees) and {encoding.fits(state) for state in states} == {True, False}
    for state in states:
        agrees(encoding, state)
    free = Encoding(*case(WEIGHTED, {"m": 4}, buffer("B | W", 120), outer=WITHOUT_W))
    every = (free.encode(t) for t in enumerate_trees(free.workload, free.machine, free.mapspace))
    assert "loop above a persistent tensor" in {encoding.fault(state) for state in every if state is not None}


def test_crossover_keeps_the_rules() -> None:
    encoding, rng = Encoding(*TINY["three"]), Random(2)
    children = sum(child not in (one, other) for one, other, child in crossed(encoding, rng, 200))
    assert children > 20


FLAT = ("B[m,n] = A[m,n]", "C[m,n] = B[m,n]", "E[m,n] = C[m,n]")


def stands_below(draft: SkeletonDraft) -> dict[object, list[SharedLoop]]:
    """The shared loops above every backing store, as its tensor's first user has them, and above every raised one."""
    floating = enumerate(draft.facts.floating)
    found: dict[object, list[SharedLoop]] = {n: draft.shared[t.users[0]][: draft.depths[n]] for n, t in floating}
    for i, own in enumerate(draft.owns):
        found |= {(i, *store): draft.shared[i][:at] for *store, at, _ in own.raised}
    return found


def test_what_stands_below_a_shared_loop_stays_below_the_others() -> None:
    encoding, rng = Encoding(*case(FLAT, {"m": 4, "n": 4}, buffer())), Random(3)
    facts, seen = encoding.facts, Counter[str]()
    state = encoding.sample(rng)
    for _ in range(6000):
        assert state is not None
        try:
            state = encoding.propose(state, rng)
        except NoProposal:
            continue
        frame = frame_of(facts, state)
        runs = [(first, last, level) for level in range(max(frame.lengths)) for first, last in frame.runs(level)]
        for first, last, level in runs:
            draft = SkeletonDraft(facts, state)
            before = stands_below(draft)
            removed(facts, state, draft, first, last, level)
            after = stands_below(draft)
            for what, loops in before.items():
                user = facts.floating[what].users[0] if isinstance(what, int) else what[0]  # type: ignore[index]
                touched = first <= user <= last and len(loops) > level
                assert after[what] == [*loops[:level], *loops[level + 1 :]] if touched else after[what] == loops
                seen[type(what).__name__] += touched
    assert min(seen["int"], seen["tuple"]) > 50, seen


def test_draws_have_every_choice_of_stores() -> None:
    """All, some and none of a matmul's three tensors have a store in the buffer."""
    encoding, rng = Encoding(*TINY["matmul"]), Random(4)
    drawn = {frozenset(state.owns[0].stores) for _ in range(200) if (state := encoding.sample(rng)) is not None}
    assert len(drawn) == 8


def test_a_tensor_is_adopted_below_the_loops_of_one_of_its_einsums() -> None:
    """It comes home below shared loops, in the memory that was chosen; nothing else moves."""
    encoding, rng = Encoding(*case(FLAT, {"m": 4, "n": 4}, buffer())), Random(5)
    adopted = 0
    for _ in range(200):
        state = encoding.sample(rng)
        assert state is not None
        try:
            found = adopt(encoding.facts, state, rng)
        except NoProposal:
            continue
        pairs = zip(
            zip(state.homes, state.depths, strict=True), zip(found.homes, found.depths, strict=True), strict=True
        )
        moved = [new for old, new in pairs if old != new]
        assert len(moved) <= 1 and encoding.fault(found) in (None, "capacity")
        adopted += any(home > 0 and depth > 0 for home, depth in moved)
    assert adopted > 20
