"""Axes change places in all Einsums at once: nothing is lost, and all users of a tensor lay its loops on the same."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from contextlib import suppress
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from einloom.errors import EinloomError, Infeasible
from einloom.machine.levels import NOTHING, Axis, ComputeUnit, Fanout, Machine, Memory
from einloom.mapping.tree import Loop, Nest, Split
from einloom.mapspace.limits.data import AxisLimit, Limits, Numbers
from einloom.mapspace.space import Mapspace
from einloom.problem import Problem, objective
from einloom.search.exact import Exact, least_costs
from einloom.search.exact.attempt import Attempt
from einloom.search.exact.einsums import exchange
from einloom.search.exact.einsums.classes import EinsumClass
from einloom.search.exact.options import ExactOptions
from einloom.search.exhaustive import Exhaustive
from einloom.search.method import Watcher
from einloom.workload.build import build_workload
from einloom.workload.einsum import Workload
from einloom.workload.selectors import selector

FIRST = ("T[m,n] = A[m,k] * B[k,n]", "T[n,m] = A[m,k] * B[k,n]", "T[m,n] = A[m,n]")
NEXT = {
    "T[m,n]": ("S[m,n] = T[m,n] * D[m,n]", "S[n,m] = T[m,n]", "S[m,p] = T[m,n] * D[n,p]", "S[p,n] = T[m,n] * D[m,p]"),
    "T[n,m]": ("S[m,n] = T[n,m] * D[m,n]", "S[n,m] = T[n,m]", "S[m,p] = T[n,m] * D[n,p]", "S[p,n] = T[n,m] * D[m,p]"),
}
LAST = {
    "S[m,n]": ("Z[m,n] = S[m,n] * E[n]", "Z[n,m] = S[m,n]", "Z[n,q] = S[m,n] * E[m,q]"),
    "S[n,m]": ("Z[m,n] = S[n,m] * E[n]", "Z[m,q] = S[n,m] * E[n,q]"),
    "S[m,p]": ("Z[p,m] = S[m,p]", "Z[q,p] = S[m,p] * E[m,q]"),
    "S[p,n]": ("Z[p] = S[p,n] * E[n]", "Z[n,p] = S[p,n]"),
}
GOALS = ("energy", "latency", "edp")


def cascade(rng: Random, sizes: Sequence[int], most: int) -> Workload:
    """Two or three Einsums, whose tensors have their ranks in any order."""
    first = rng.choice(FIRST)
    second = rng.choice(NEXT[first.split(" ")[0]])
    einsums = [first, second]
    if most > 2 and rng.random() < 0.5:
        einsums.append(rng.choice(LAST[second.split(" ")[0]]))
    text = " ".join(einsums)
    return build_workload("w", einsums, {v: rng.choice(sizes) for v in "mnkpq" if v in text}, bits=1)


def chip(rng: Random, sizes: Sequence[int], alike: bool) -> Machine:
    """Memories before and behind a fanout of two or three axes, alike or with one that joins nothing."""
    speed = lambda: rng.choice((0.5, 1.0, 2.0, 8.0))  # noqa: E731
    kinds: list[dict[str, Any]] = [{}, {}] if alike else [{}, {"multicast": NOTHING}]
    axes = [Axis(f"x{i}", rng.choice(sizes), **kinds[i == 0]) for i in range(rng.choice((2, 2, 3)))]
    rng.shuffle(axes)
    levels: list[Memory | Fanout | ComputeUnit] = [
        Memory("D", None, read_energy=9.0, write_energy=7.0, read_throughput=speed(), write_throughput=speed())
    ]
    if rng.random() < 0.4:
        levels.append(Memory("G", rng.choice((12, 40)), read_energy=2.0, write_energy=3.0, read_throughput=speed()))
    levels.append(Fanout("F", tuple(axes)))
    levels.append(Memory("R", rng.choice((3, 6, 16)), read_energy=0.5, write_energy=1.0, read_throughput=speed()))
    levels.append(ComputeUnit("U", energy=0.1, throughput=rng.choice((0.25, 1.0))))
    return Machine("chip", tuple(levels))


def drawn(seed: int, sizes: Sequence[int] = (2, 4, 6, 8), most: int = 3, alike: bool = True) -> Problem:
    rng = Random(f"like axes {seed}")
    machine = chip(rng, sizes[:3], alike)
    return Problem(cascade(rng, sizes, most), machine, Mapspace(), objective(rng.choice(GOALS), machine))


def value(problem: Problem) -> float | None:
    """What `exact` proves; None for infeasible."""
    try:
        return Exact().search(problem).value
    except Infeasible:
        return None


def kept(workload: Workload, signatures: Sequence[EinsumClass]) -> list[EinsumClass]:
    """No axes change places."""
    return list(signatures)


def apart(problem: Problem, monkeypatch: pytest.MonkeyPatch) -> float | None:
    """The value where no axes change places."""
    with monkeypatch.context() as patched:
        patched.setattr(least_costs, "exchangeable", kept)
        return value(problem)


def equal(one: float | None, other: float | None) -> bool:
    return one == other or (one is not None and other is not None and one == pytest.approx(other, rel=1e-9))


def axes_shared(nest: Nest, above: frozenset[str] = frozenset()) -> int:
    """The most axes with a loop above a split."""
    most = 0
    for node in nest:
        if isinstance(node, Loop) and node.axis is not None:
            above |= {node.axis}
        elif isinstance(node, Split):
            most = max(most, len(above), *(axes_shared(branch, above) for branch in node.branches))
    return most


SEEDS = range(40)


@pytest.mark.parametrize("seed", SEEDS)
def test_nothing_is_lost(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = drawn(seed, alike=seed % 4 > 0)
    assert equal(value(problem), apart(problem, monkeypatch))


def test_optima_share_loops_over_several_axes() -> None:
    """Of the problems above, most ask for what is tried: otherwise nothing could be lost."""
    found = 0
    for seed in SEEDS[:20]:
        with suppress(Infeasible):
            mapping = Exact().search(drawn(seed)).mapping
            found += mapping is not None and axes_shared(mapping.nest) > 1
    assert found >= 10


def tiny(seed: int, reduced: bool) -> Problem:
    """Two Einsums of which all trees are few: behind two axes of two instances a memory for their tensor alone.
    reduced: the first one adds over a rank."""
    rng = Random(f"tiny like axes {seed}")
    head = rng.choice(("T[m,n]", "T[n,m]"))
    first = f"{head} = A[m,k] * B[n]" if reduced else f"{head} = A[m] * B[n]"
    second = rng.choice(("Z[m,n] = {} * D[n]", "Z[n,m] = {} * D[m]", "Z[n] = {} * D[m]", "Z[m] = {} * D[n]"))
    sizes = {v: 2 if v == "k" else rng.choice((2, 2, 4)) for v in ("mnk" if reduced else "mn")}
    fast = [rng.choice((0.5, 1.0, 4.0)) for _ in range(3)]
    machine = Machine(
        "tiny",
        (
            Memory("D", None, read_energy=9.0, write_energy=7.0, read_throughput=fast[0], write_throughput=fast[1]),
            Fanout("F", (Axis("x", 2), Axis("y", 2))),
            Memory("R", rng.choice((1, 2, 4)), may=selector("T"), read_energy=0.5, write_energy=1.0),
            ComputeUnit("U", energy=0.1, throughput=fast[2]),
        ),
    )
    workload = build_workload("w", [first, second.format(head)], sizes, bits=1)
    return Problem(workload, machine, Mapspace(), objective(rng.choice(GOALS), machine))


@pytest.mark.parametrize("seed", range(12))
def test_exact_equals_all_trees(seed: int) -> None:
    problem = tiny(seed, reduced=False)
    assert equal(value(problem), Exhaustive().search(problem).value)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12, 72))
def test_exact_equals_all_trees_in_many(seed: int) -> None:
    problem = tiny(seed, reduced=seed % 2 > 0)
    assert equal(value(problem), Exhaustive().search(problem).value)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1000, 1400))
def test_nothing_is_lost_in_many(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = drawn(seed, alike=seed % 4 > 0)
    assert equal(value(problem), apart(problem, monkeypatch))


# -- users choose the same --------------------------------------------------------------------------------------------


def attempted(problem: Problem) -> Attempt:
    return Attempt(problem, ExactOptions(), Watcher(), {}, lambda: None)


def labelled(attempt: Attempt, position: int, tensor: str) -> dict[Hashable, Hashable]:
    """What the axes take together along each rank of a tensor -> which axis takes what, of an Einsum's choices with
    loops over its ranks alone."""
    einsum, signature = attempt.problem.workload.einsums[position], attempt.signatures[position]
    mine, found = signature.tensors[einsum.tensors.index(tensor)], dict[Hashable, Hashable]()
    for spread in attempt.classes[signature].spreads(signature.units[0]):
        ranks = [
            tuple(
                sorted((mine.fused_rank(v), n) for v, n in enumerate(row) if n > 1 and mine.fused_rank(v) is not None)
            )
            for row in spread
        ]
        if all(n == 1 or mine.fused_rank(v) is not None for row in spread for v, n in enumerate(row)):
            total: dict[int, int] = {}
            for rank, n in (one for row in ranks for one in row):
                total[rank] = total.get(rank, 1) * n
            key = tuple(sorted(total.items()))
            assert key not in found
            found[key] = tuple(ranks)
    return found


def test_users_of_a_tensor_choose_the_same() -> None:
    compared = 0
    for seed in SEEDS:
        problem = drawn(seed)
        attempt = attempted(problem)
        if any(signature.swaps for signature in attempt.signatures):
            names = [einsum.output.tensor for einsum in problem.workload.einsums[:-1]]
            for i, name in enumerate(names):
                one, other = labelled(attempt, i, name), labelled(attempt, i + 1, name)
                assert all(one[key] == other[key] for key in one.keys() & other.keys())
                compared += len(one.keys() & other.keys())
    assert compared > 300


# -- when axes keep their places --------------------------------------------------------------------------------------


def limited(problem: Problem) -> Problem:
    """The problem with a limit on what one of its axes takes for one Einsum."""
    axis, einsum = problem.machine.fanouts[0].axes[0], problem.workload.einsums[0]
    asked = AxisLimit(axis.name, Numbers(most=1), einsum.variables[:1], (einsum.name,))
    return replace(problem, mapspace=Mapspace(limits=Limits(axes=(asked,))))


def test_a_limit_tells_axes_apart() -> None:
    for seed in range(20):
        problem = drawn(seed)
        plain, narrow = attempted(problem), attempted(limited(problem))
        assert plain.signatures[0].swaps and 0 not in narrow.signatures[0].swaps[1:]


@pytest.mark.parametrize("seed", range(20))
def test_nothing_is_lost_below_a_limit(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = limited(drawn(seed))
    assert equal(value(problem), apart(problem, monkeypatch))


def test_ranks_that_contradict_each_other_keep_axes_in_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """T has m before n for its writer; a reader that takes two tensors with the ranks in both orders has none."""
    twice = ["T[m,n] = A[m,n]", "S[m,n] = T[m,n]", "Z[i,j] = T[i,j] * S[j,i]"]
    workload = build_workload("w", twice, dict.fromkeys("mnij", 2), bits=1)
    machine = chip(Random(0), (2, 4), alike=True)
    problem = Problem(workload, machine, Mapspace(), objective("energy", machine))
    assert not any(signature.swaps for signature in attempted(problem).signatures)
    assert equal(value(problem), apart(problem, monkeypatch))


def test_a_rank_that_only_a_later_user_shows_takes_its_place() -> None:
    """The order of T is learnt from the reader that has all its ranks alone."""
    windows = ["T[i,c] = A[i,c]", "S[p,c] = T[p+r,c] * F[r,c]", "Z[i,c] = T[i,c] * E[i]"]
    workload = build_workload("w", windows, {"i": 4, "p": 3, "r": 2, "c": 4}, bits=1)
    machine = chip(Random(1), (2, 4), alike=True)
    attempt = attempted(Problem(workload, machine, Mapspace(), objective("energy", machine)))
    assert all(len(signature.order) == len(signature.extents) for signature in attempt.signatures)


# -- planted mistakes -------------------------------------------------------------------------------------------------

MANY = 3


def turned(signatures: Sequence[EinsumClass], workload: Workload) -> list[EinsumClass]:
    """The mistake: every second Einsum has its variables the other way round."""
    found = exchange.exchangeable(workload, signatures)
    return [replace(one, order=one.order[::-1]) if i % 2 else one for i, one in enumerate(found)]


def every_axis(workload: Workload, signatures: Sequence[EinsumClass]) -> list[EinsumClass]:
    """The mistake: all axes of a fanout are taken for alike, whatever they join."""
    orders = exchange._orders(workload, signatures)
    fanouts = [axis.fanout for axis in signatures[0].axes]
    swaps = tuple(fanouts.index(fanout) for fanout in fanouts)
    if orders is None or any(one.merge for one in signatures):
        return list(signatures)
    return [replace(one, swaps=swaps, order=order) for one, order in zip(signatures, orders, strict=True)]


def noticed(mistake: Callable[..., list[EinsumClass]], alike: bool, monkeypatch: pytest.MonkeyPatch) -> int:
    """How many of some problems have another value with a mistake; no more are tried once it is `MANY`."""
    wrong = 0
    for seed in range(60):
        if wrong == MANY:
            break
        problem = drawn(seed, alike=alike)
        right = value(problem)
        with monkeypatch.context() as patched:
            patched.setattr(least_costs, "exchangeable", mistake)
            try:
                wrong += not equal(value(problem), right)
            except EinloomError:  # what an answer is checked for noticed it
                wrong += 1
    return wrong


def test_users_that_choose_differently_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert noticed(lambda workload, signatures: turned(signatures, workload), True, monkeypatch) == MANY


def test_axes_that_join_different_tensors_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert noticed(every_axis, False, monkeypatch) == MANY
