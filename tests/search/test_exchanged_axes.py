"""Axes, and loops over one axis, change places in all Einsums at once: nothing is lost, and all users of a tensor lay
its loops on the same axes, in the same order."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from random import Random

import pytest

from axis_problems import ONE, TWO, chip, drawn, tiny
from einloom.errors import EinloomError, Infeasible
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


def few(first: int, end: int, last: int) -> list[object]:
    """Seeds up to `end`, and those up to `last` for runs with the slow tests."""
    return [*range(first, end), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(end, last))]


def value(problem: Problem) -> float | None:
    """What `exact` proves; None for infeasible."""
    try:
        return Exact().search(problem).value
    except Infeasible:
        return None


def kept(workload: Workload, signatures: Sequence[EinsumClass], uneven: bool = False) -> list[EinsumClass]:
    """Nothing changes places."""
    return list(signatures)


def apart(problem: Problem, monkeypatch: pytest.MonkeyPatch) -> float | None:
    """The value where no axes change places."""
    with monkeypatch.context() as patched:
        patched.setattr(least_costs, "exchangeable", kept)
        return value(problem)


def equal(one: float | None, other: float | None) -> bool:
    return one == other or (one is not None and other is not None and one == pytest.approx(other, rel=1e-9))


@pytest.mark.parametrize("seed", few(100, 115, 130))
def test_nothing_is_lost_in_wider_spaces(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Uneven tiles and any order of Einsums: loops over one axis still come in one order."""
    problem = drawn(seed, sizes=(2, 3, 4, 6), most=3 if seed % 3 else 2, alike=seed % 2 > 0)
    space = replace(problem.mapspace, name="ragged" if seed % 3 else "ffm", order="free" if seed % 2 else "program")
    wider = replace(problem, mapspace=space)
    assert all(one.order for one in attempted(wider).signatures)
    assert equal(value(wider), apart(wider, monkeypatch))


def axes_shared(nest: Nest, above: frozenset[str] = frozenset()) -> int:
    """The most axes with a loop above a split."""
    most = 0
    for node in nest:
        if isinstance(node, Loop) and node.axis is not None:
            above |= {node.axis}
        elif isinstance(node, Split):
            most = max(most, len(above), *(axes_shared(branch, above) for branch in node.branches))
    return most


def loops_shared(nest: Nest, above: tuple[str, ...] = ()) -> int:
    """The most loops over one axis above a split."""
    most = 0
    for node in nest:
        if isinstance(node, Loop) and node.axis is not None:
            above = (*above, node.axis)
        elif isinstance(node, Split):
            most = max(most, *map(above.count, above), *(loops_shared(branch, above) for branch in node.branches), 0)
    return most


SEEDS = range(40)


@pytest.mark.parametrize("seed", few(0, 20, 40))
def test_nothing_is_lost(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = drawn(seed, alike=seed % 4 > 0)
    assert equal(value(problem), apart(problem, monkeypatch))


def test_optima_share_loops_over_several_axes() -> None:
    """Of the problems above, most ask for what is tried: otherwise nothing could be lost."""
    several_axes = one_axis = 0
    for seed in SEEDS[:20]:
        with suppress(Infeasible):
            mapping = Exact().search(drawn(seed)).mapping
            several_axes += mapping is not None and axes_shared(mapping.nest) > 1
            one_axis += mapping is not None and loops_shared(mapping.nest) > 1
    assert several_axes >= 10 and one_axis >= 5


@pytest.mark.parametrize("seed", few(0, 6, 12))
def test_exact_equals_all_trees(seed: int) -> None:
    problem = tiny(seed, reduced=False)
    assert equal(value(problem), Exhaustive().search(problem).value)


@pytest.mark.parametrize("seed", few(72, 78, 84))
def test_exact_equals_all_trees_with_loops_on_one_axis(seed: int) -> None:
    problem = tiny(seed, reduced=False, axes=ONE)
    assert equal(value(problem), Exhaustive().search(problem).value)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12, 72))
def test_exact_equals_all_trees_in_many(seed: int) -> None:
    problem = tiny(seed, reduced=seed % 2 > 0, axes=ONE if seed % 3 == 0 else TWO)
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


@pytest.mark.parametrize("seed", few(0, 10, 20))
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


def turned(workload: Workload, signatures: Sequence[EinsumClass], uneven: bool = False) -> list[EinsumClass]:
    """The mistake: every second Einsum has its variables the other way round."""
    found = exchange.exchangeable(workload, signatures, uneven)
    return [replace(one, order=one.order[::-1]) if i % 2 else one for i, one in enumerate(found)]


def crossed(workload: Workload, signatures: Sequence[EinsumClass], uneven: bool = False) -> list[EinsumClass]:
    """The same mistake where all axes keep their places, so that loops over one axis alone show it."""
    return [replace(one, swaps=()) for one in turned(workload, signatures, uneven)]


def every_axis(workload: Workload, signatures: Sequence[EinsumClass], uneven: bool = False) -> list[EinsumClass]:
    """The mistake: all axes of a fanout are taken for alike, whatever they join."""
    orders = exchange._orders(workload, signatures)
    fanouts = [axis.fanout for axis in signatures[0].axes]
    swaps = tuple(fanouts.index(fanout) for fanout in fanouts)
    if orders is None or any(one.merge for one in signatures):
        return list(signatures)
    return [replace(one, swaps=swaps, order=order) for one, order in zip(signatures, orders, strict=True)]


def noticed(
    mistake: Callable[..., list[EinsumClass]], problems: Iterable[Problem], monkeypatch: pytest.MonkeyPatch
) -> int:
    """How many of some problems have another value with a mistake; no more are tried once it is `MANY`."""
    wrong = 0
    for problem in problems:
        if wrong == MANY:
            break
        right = value(problem)
        with monkeypatch.context() as patched:
            patched.setattr(least_costs, "exchangeable", mistake)
            try:
                wrong += not equal(value(problem), right)
            except EinloomError:  # what an answer is checked for noticed it
                wrong += 1
    return wrong


def test_users_that_choose_differently_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert (
        noticed(
            lambda workload, signatures, uneven: turned(signatures, workload, uneven),
            map(drawn, range(60)),
            monkeypatch,
        )
        == MANY
    )


def test_axes_that_join_different_tensors_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    problems = (drawn(seed, alike=False) for seed in range(60))
    assert noticed(every_axis, problems, monkeypatch) == MANY


def test_users_that_order_loops_differently_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    problems = (tiny(seed, reduced=True, axes=ONE) for seed in range(200))
    assert noticed(crossed, problems, monkeypatch) == MANY
