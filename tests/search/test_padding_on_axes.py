"""Padded ranks on axes: the rule, what the busiest instance moves, and that the optimum is that of all trees."""

from __future__ import annotations

from itertools import product
from random import Random

import numpy as np
import pytest

from einloom.api import map as solve
from einloom.errors import EinloomError, Infeasible
from einloom.machine.levels import Axis, ComputeUnit, Fanout, Machine, Memory
from einloom.mapping.analysed import Analysed
from einloom.mapping.text import parse_mapping
from einloom.mapping.tree import Loop, Mapping
from einloom.mapspace.ffm.rules import outside
from einloom.mapspace.space import Mapspace
from einloom.problem import Objective, Problem
from einloom.report.text.results import summary
from einloom.search.exact.attempt import Attempt
from einloom.search.exact.einsums import exchange, spatial
from einloom.search.exact.fusion.floors import Floors
from einloom.search.exact.options import ExactOptions
from einloom.search.exact.prices import traffic
from einloom.search.exact.prices.traffic import Prices
from einloom.search.exhaustive import Exhaustive
from einloom.search.method import Watcher
from einloom.workload.build import build_workload
from einloom.workload.padding import only_padding, padding_reach
from optima import optimum, same, searched
from padded_problems import padded_problem, timed_convolution

QUICK = (
    3,
    4,
    12,
    15,
    26,
    27,
    31,
    32,
    34,
    37,
    43,
    46,
    48,
    52,
    56,
    59,
    81,
    82,
    84,
    85,
    87,
    88,
    91,
    94,
    99,
    103,
    120,
    126,
)
SLOW = tuple(range(130, 200))
TIMED = tuple(range(60))


def enumerated(problem: Problem) -> float | None:
    try:
        return Exhaustive().search(problem).value
    except Infeasible:
        return None


def spread(problem: Problem, mapping: Mapping) -> bool:
    """True if a spatial loop cuts a variable of a padded rank."""
    workload, tree = problem.workload, Analysed(problem.workload, mapping)
    loops = ((name, node) for name in workload.names for node in tree.paths[name] if isinstance(node, Loop))
    return any(
        loop.axis is not None and loop.trips > 1 and loop.variable(name) in padding_reach(workload, name)
        for name, loop in loops
    )


@pytest.mark.parametrize("text", ["O[p] = I[p+r-1] * F[r]", "O[p] = I[2*p+3*r-2] * F[r]", "O[p,r] = exp(I[p+r-1])"])
@pytest.mark.parametrize("size", [3, 5, 7, 9, 14])
def test_positions_that_reach_padding(text: str, size: int) -> None:
    """A position counts if some window from it has an element outside."""
    workload = build_workload("w", [text], {"p": 6, "r": 3}, bits=8, shapes={"I": (size,)})
    index = workload.einsum("O").access("I").indices[0]
    factors = [dict(index.terms)[v] for v in "pr"]
    every = {
        at: index.constant + sum(c * n for c, n in zip(factors, at, strict=True)) for at in product(range(6), range(3))
    }
    beyond = [at for at, place in every.items() if not 0 <= place < size]
    expected = {v: len({at[i] for at in beyond}) for i, v in enumerate("pr")} if beyond else {}
    assert padding_reach(workload, "O") == expected


@pytest.mark.parametrize(("text", "size"), [("O[p] = I[p+r-1] * F[r]", 2), ("O[p] = I[2*p+3*r-9] * F[r]", 14)])
def test_positions_at_which_nothing_is_read(text: str, size: int) -> None:
    workload = build_workload("w", [text], {"p": 6, "r": 3}, bits=8, shapes={"I": (size,)})
    index = workload.einsum("O").access("I").indices[0]
    (_, a), (_, b) = index.terms
    bare = [p for p in range(6) if not any(0 <= a * p + b * r + index.constant < size for r in range(3))]
    kernel = [r for r in range(3) if not any(0 <= a * p + b * r + index.constant < size for p in range(6))]
    expected = {("I", v): len(positions) for v, positions in (("p", bare), ("r", kernel)) if positions}
    assert only_padding(workload, "O") == expected and expected
    told = summary(solve(workload, "two-level", "energy"))
    assert f"nothing is read but padding of I at {len(bare)} of 6 positions of p (O)" in " ".join(told.split())


ROWS = build_workload("rows", ["O[p] = I[p+r-1] * F[r]"], {"p": 6, "r": 3}, bits=1, shapes={"I": (6,)})
SPREAD = "store DRAM: O I F\npar p in {} @ x\nfor p in {}\nfor r in 3\ncompute O @ MAC\n"


@pytest.mark.parametrize(("instances", "inside"), [(1, True), (2, False), (3, True), (6, True)])
@pytest.mark.parametrize("space", ["ffm", "ragged"])
def test_more_instances_than_positions_with_padding(instances: int, inside: bool, space: str) -> None:
    machine = Machine("m", (Memory("DRAM"), Fanout("F", (Axis("x", 6),)), ComputeUnit("MAC")))
    text = SPREAD.format(instances, 6 // instances)
    if instances == 1:
        text = text.replace("par p in 1 @ x\n", "")
    if instances == 6:
        text = text.replace("for p in 1\n", "")
    reasons = outside(ROWS, machine, Mapspace(space), parse_mapping(text, ROWS, machine))
    assert bool(reasons) == (not inside)
    if reasons:
        assert reasons == (
            "rule 11: 'par p in 2 @ x' spreads p of O; 2 of its positions reach padding, it needs more instances",
        )


@pytest.mark.parametrize("seed", [*QUICK, *(pytest.param(n, marks=pytest.mark.slow) for n in SLOW)])
def test_the_optimum_is_that_of_all_trees(seed: int) -> None:
    problem = padded_problem(seed)
    assert same(optimum(problem), enumerated(problem))


def test_most_optima_have_padding_on_an_axis() -> None:
    found = [(problem, searched(problem)) for problem in map(padded_problem, QUICK)]
    assert sum(spread(problem, one.mapping) for problem, one in found if one is not None) > len(QUICK) // 2


def the_mean(patch: pytest.MonkeyPatch) -> None:
    """The busiest instance moves no more than the mean of all."""
    patch.setattr(Prices, "more", lambda *_, **__: None)
    patch.setattr(Prices, "of_busiest", lambda self, part, tensor, pieces, *_: pieces)


def one_too_few(patch: pytest.MonkeyPatch) -> None:
    """As many instances as positions with padding are taken for enough."""
    padded = spatial.padded
    patch.setattr(spatial, "padded", lambda s: {v: n - 1 for v, n in padded(s).items()})


def all_as_the_first(patch: pytest.MonkeyPatch) -> None:
    """Every instance accesses at least as many places as the first does."""
    inside = traffic.inside
    patch.setattr(traffic, "inside", lambda steps, starts, size: len(starts) * inside(steps, starts[:1], size))


@pytest.mark.parametrize("mistake", [the_mean, one_too_few, all_as_the_first], ids=lambda f: str(f.__name__))
def test_planted_mistakes_are_caught(mistake, monkeypatch: pytest.MonkeyPatch) -> None:  # type: ignore[no-untyped-def]
    right = {seed: optimum(timed_convolution(seed)) for seed in TIMED}
    mistake(monkeypatch)
    spatial._every_spread.cache_clear()  # what is remembered knows of no mistake
    try:
        assert any(shown(seed, value) for seed, value in right.items())
    finally:
        spatial._every_spread.cache_clear()


def shown(seed: int, value: float | None) -> bool:
    """True if a problem has another answer now, or none that holds."""
    try:
        return not same(optimum(timed_convolution(seed)), value)
    except (EinloomError, AssertionError):
        return True


def tiles(extent: int, instances: int, trips: int) -> list[set[int]]:
    """The positions of each instance, with so many temporal trips outside them."""
    each = extent // trips // instances
    return [{at for at in range(extent) if at // each % instances == i} for i in range(instances)]


@pytest.mark.parametrize("shape", [4, 6, 9, 13])
@pytest.mark.parametrize("text", ["O[p] = I[p+r-1] * F[r]", "O[p] = I[p+r] * F[r]", "O[p] = I[2*p+r-2] * F[r]"])
def test_what_instances_access_at_least(text: str, shape: int) -> None:
    """The sum over instances of the places inside, of the order of temporal and spatial loops with the least."""
    workload = build_workload("w", [text], {"p": 6, "r": 4}, bits=1, shapes={"I": (shape,)})
    levels = Memory("DRAM"), Fanout("F", (Axis("X", 24),)), Memory("GLB"), ComputeUnit("MAC")
    problem = Problem(workload, Machine("m", levels), Mapspace(), Objective("energy"))
    attempt = Attempt(problem, ExactOptions(), Watcher(), {}, lambda: None)
    classes = attempt.classes[attempt.signatures[0]]
    option = classes.signature.units[0]
    prices = Prices(Floors(attempt.setting, classes).links(option, classes.spreads(option)), attempt.setting.slots)
    index, least = workload.einsum("O").access("I").indices[0], {}
    stride = index.terms[0][1]
    for p, r in product((1, 2, 3, 6), (1, 2, 4)):
        ways = product(*([n for n in range(1, 7) if extent // z % n == 0] for extent, z in ((6, p), (4, r))))
        least[p, r] = min(
            sum(
                len({n for a, b in product(mine, its) if 0 <= (n := stride * a + b + index.constant) < shape})
                for mine, its in product(tiles(6, p, outer), tiles(4, r, inner))
            )
            for outer, inner in ways
            if 6 % (p * outer) == 0 and 4 % (r * inner) == 0
        )
    assert {taken: prices._reached(1, 0, np.array(taken)) for taken in least} == least


def exchanged(seed: int | None = None) -> Problem:
    """Twelve positions on two like axes of six: 2 by 6 is the first way to lay them, and leaves too few instances of
    the second Einsum without padding on one of them. Others by seed."""
    rng = Random(seed)
    texts, n, less, sizes = ["T[x] = exp(X[x])", "O[p] = T[p] * I[p-1]"], 12, 2, [6, 6]
    if seed is not None:
        more = rng.choice(("U[z] = U1[z] * T[z]", "U[z] = T[z] * J[z-2]", "U[z] = T[z] * J[z+w-1]"))
        texts += [more] if rng.random() < 0.7 else []
        n, less = rng.choice((8, 12, 16, 18)), rng.choice((0, 1, 2))
        sizes = rng.choices((4, 6, 9), k=rng.choice((2, 3)))
    together = "".join(texts)
    ranks = {v: 3 if v == "w" else n for v in "xpzw" if v in together.replace("exp", "")}
    shapes = {tensor: size for tensor, size in (("I", (n - less,)), ("J", (n,))) if f"{tensor}[" in together}
    used = build_workload("exchanged", texts, ranks, bits={"default": 1, "T": 8}, shapes=shapes)
    levels = (
        Memory("DRAM", None, 10.0, 10.0),
        Fanout("F", tuple(Axis(f"a{i}", size) for i, size in enumerate(sizes))),
        Memory("L", 64, 1.0, 1.0),
        ComputeUnit("MAC", 1.0, 1.0),
    )
    return Problem(used, Machine("m", levels), Mapspace(), Objective("edp"))


def test_axes_that_change_places_beside_padding(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is lost, and something would be if partners did not tell the axes apart."""
    problems = [exchanged(), *map(exchanged, range(24))]
    values = [optimum(problem) for problem in problems]
    with monkeypatch.context() as patch:
        patch.setattr(exchange, "_swaps", lambda _: ())
        assert all(same(optimum(problem), value) for problem, value in zip(problems, values, strict=True))
    monkeypatch.setattr(exchange, "padded", lambda _: {})
    without = [optimum(problem) for problem in problems]
    assert sum(not same(one, other) for one, other in zip(values, without, strict=True)) >= 3
