"""What `verify` compares instead of leaving loops out by the rule *lowering*: rows of smaller extents (`smaller`), and
in `ragged` stores with one loop more below them (`checked`). docs/model/pruning.md, "Without lowering"."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from itertools import product
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from crowded import workload
from einloom.certify import again
from einloom.certify.again import below_rules
from einloom.errors import Defect, Infeasible
from einloom.machine.levels import ComputeUnit, Machine, Memory
from einloom.mapspace.space import Mapspace
from einloom.problem import Guarantee, Objective, Problem
from einloom.search.exact import Exact, ExactOptions, Rules
from einloom.search.exact.attempt import Attempt
from einloom.search.exact.fusion.explore import Explorer
from einloom.search.exact.pmappings import prune
from einloom.search.exact.pmappings.cost_to_go import CostToGo
from einloom.search.exact.pmappings.expand import Expansion
from einloom.search.exact.pmappings.prune import Pruner
from einloom.search.exact.pmappings.rows import ABSORBED, FRESH, NEXT, OPEN, PLACED, Rows
from einloom.search.exact.pmappings.sweep import _Sweep, sweep
from einloom.search.exact.prices.traffic import Prices
from einloom.search.method import Watcher
from einloom.testing.problems.files import read_folder
from varied_problems import SOURCES, Answer, same

TELLING = 0, 1, 5, 24  # seeds of `asked` that show mistakes
FOUND = Path(__file__).parent / "found" / "exact-is-all-trees-8365"

WORKLOADS = (
    ("Z[m,n] = A[m,k] * B[k,n]", "m=12 n=6 k=6"),
    ("Z[m,n] = A[m,k] * B[k,n]", "m=6 n=9 k=4"),
    ("Y[m,n] = A[m,k] * B[k,n]; Z[m,j] = Y[m,n] * C[n,j]", "m=6 n=6 k=4 j=3"),
    ("Z[h,m,n] = A[h,m,k] * B[h,k,n]", "h=2 m=6 n=4 k=6"),
    ("O[p,k] = I[p+r,c] * W[k,r,c]", "p=6 r=3 k=2 c=2"),
    ("Y[p,k] = X[p+r] * W[r,k]; Z[p,j] = Y[p,k] * V[k,j]", "p=6 r=2 k=2 j=6"),
)
EVERY_LOOP = Rules(stationary=False, lowering=False, settled=False)
SEEDS = [*range(6), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(6, 400))]
FEW = [0, 7, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 40) if seed != 7)]


def asked(seed: int) -> Problem:
    """One or two Einsums with extents of two primes, on two or three memories that are nearly full."""
    rng = Random(f"smaller rows {seed}")

    def memory(name: str, size: int | None, cost: int) -> Memory:
        rate = rng.choice((1.0, 2.0, 4.0))
        return Memory(name, size, cost, rng.choice((cost, cost + 1)), 1, rate, rate)

    levels: list[Any] = [memory("MM", None, rng.choice((5, 20)))]
    if rng.random() < 0.5:
        levels.append(memory("GLB", rng.choice((10, 20, 40)), rng.choice((2, 4))))
    levels += [memory("RF", rng.randint(4, 14), rng.choice((0, 1))), ComputeUnit("MAC", 1.0, 1.0)]
    goal = Objective(rng.choice(("energy", "latency", "edp")))
    space = Mapspace(name="ragged") if seed % 4 == 3 else Mapspace()
    return Problem(workload(*WORKLOADS[seed % len(WORKLOADS)]), Machine("m", tuple(levels)), space, goal)


def answer(problem: Problem, rules: Rules) -> Answer:
    """By a search without bounds."""
    try:
        found = Exact(ExactOptions(rules, incumbent=False)).search(problem)
    except Infeasible:
        return None
    if problem.objective.name == "pareto":
        return sorted((point.energy, point.latency) for point in found.front)
    return found.value


@cache
def optimum(seed: int) -> Answer:
    return answer(asked(seed), EVERY_LOOP)


@pytest.mark.parametrize("uneven", [False, True])
@pytest.mark.parametrize("seed", SEEDS)
def test_the_optimum_is_the_same(seed: int, uneven: bool) -> None:
    assert same(optimum(seed), answer(asked(seed), below_rules(uneven)))
    assert same(optimum(seed), answer(asked(seed), Rules(smaller=not uneven, checked=uneven)))


@pytest.mark.parametrize("source", sorted(SOURCES))
@pytest.mark.parametrize("seed", FEW)
def test_the_answer_is_the_same(source: str, seed: int) -> None:
    problem = SOURCES[source](seed)
    every = answer(problem, EVERY_LOOP)
    assert all(same(every, answer(problem, below_rules(uneven))) for uneven in (False, True))


def tables(problem: Problem, rules: Rules) -> list[set[tuple[float, ...]]]:
    """The complete rows of every Einsum, fused or not: extents, marks, costs and occupancies."""
    attempt = Attempt(problem, ExactOptions(replace(rules, limits=False)), Watcher(), {}, lambda: None)
    found, limits = [], np.full(len(attempt.setting.columns), np.inf)
    for signature in dict.fromkeys(attempt.signatures):
        explorer = Explorer(attempt.setting, attempt.classes[signature], limits, {})
        for option, fused in product(signature.units, (False, True)):
            for expansion in explorer._batches(option, fused=fused):
                rows = sweep(expansion).bases[0]
                parts = rows.x, rows.marks[:, : PLACED + 1], rows.cost.round(6), rows.occupied
                found.append({*map(tuple, np.column_stack(parts).tolist())})
    return found


def differs(seed: int) -> bool:
    """True if a problem of `asked` has other tables than without the rule."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Pruner, "extended", lambda self, rows, coming: rows)
        every = tables(asked(seed), below_rules(False))
    return every != tables(asked(seed), below_rules(False))


@pytest.mark.parametrize("seed", [seed for seed in range(40) if seed % 4 < 3])
def test_no_row_of_a_table_is_lost(seed: int) -> None:
    assert not differs(seed)


_grow = _Sweep._grow


def test_it_leaves_as_many_rows_to_extend_as_lowering_does() -> None:
    """Of two products on one buffer; without either there are many times more."""
    problem = Problem(
        workload("Y[m,n] = A[m,k] * B[k,n]; Z[m,j] = Y[m,n] * C[n,j]", "m=32 n=32 k=32 j=32"),
        Machine("m", (Memory("MM", None, 9, 9, 1), Memory("GLB", 600, 1, 1, 1), ComputeUnit("MAC"))),
        Mapspace(),
        Objective("energy"),
    )

    def extended(rules: Rules) -> int:
        """Rows from which others with one more store are made."""
        rows = []
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(
                _Sweep, "_grow", lambda self, some, memory: rows.append(len(some)) or _grow(self, some, memory)
            )
            Exact(ExactOptions(rules)).search(problem)
        return sum(rows)

    lowered, smaller = extended(replace(EVERY_LOOP, lowering=True)), extended(replace(EVERY_LOOP, smaller=True))
    assert smaller < 2 * lowered < extended(EVERY_LOOP) / 5


_factored, _values, _extended, _key = prune._factored, Pruner.values, Pruner.extended, Pruner.key


def _bare(rows: Rows) -> Rows:
    """The same rows as if nothing were put off or promised."""
    bare = rows.take(np.arange(len(rows)))
    bare.marks[:, [OPEN, FRESH, ABSORBED, *range(NEXT, rows.marks.shape[1])]] = 0
    bare.trail.row[:] = np.arange(len(rows))
    return bare


def _without_room(self: Pruner, rows: Rows, coming: CostToGo | None) -> Any:
    costs = Rows(rows.cost, np.zeros_like(rows.occupied), rows.trail)
    return _values(self, costs if inspect.stack()[1].function == "extended" else rows, coming)


MISTAKES: dict[str, tuple[Any, str, Callable[..., Any]]] = {
    "larger extents, divided or not": (prune, "_factored", lambda x: (np.ones_like(x), x[:, None])),
    "larger for smaller": (prune, "_factored", lambda x: (_factored(x)[0], -_factored(x)[1])),
    "room is forgotten": (Pruner, "values", _without_room),
    "charges that are put off": (
        Pruner,
        "extended",
        lambda self, rows, coming: rows.take(_extended(self, _bare(rows), coming).trail.row),
    ),
    "other stores placed": (
        Pruner,
        "key",
        lambda self, rows, marks, x=None: _key(self, rows, tuple(m for m in marks if x is None or m != PLACED), x),
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_seen(mistake: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(*MISTAKES[mistake])
    assert any(map(differs, TELLING))


def test_a_mistake_loses_an_optimum(monkeypatch: pytest.MonkeyPatch) -> None:
    optima = {seed: optimum(seed) for seed in range(24)}
    monkeypatch.setattr(*MISTAKES["larger for smaller"])
    assert not all(same(known, answer(asked(seed), below_rules(False))) for seed, known in optima.items())


# ---- stores with one loop more ----------------------------------------------------------------------------------


def test_loops_that_a_store_wants_below_it_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if stores wanted no loop below them over what they lack, which is what serves them."""
    monkeypatch.setattr(Expansion, "rest", property(lambda self: self.prices.relevant))
    with pytest.raises(Defect, match="cheaper with a loop below it that the rule lowering leaves out"):
        answer(asked(3), below_rules(True))


@pytest.mark.parametrize("wrong", ["tile_bits", "again", "charged"])
def test_prices_that_fall_are_noticed(wrong: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each store of a larger tile takes less room, comes but once, or costs less."""
    true = getattr(Prices, wrong)
    if wrong == "tile_bits":
        monkeypatch.setattr(Prices, wrong, lambda self, t, x, *rest: -x.max(axis=1))
    elif wrong == "again":
        monkeypatch.setattr(Prices, wrong, lambda self, memory, t, x, *rest: x.max(axis=1) < 2)
    else:

        def charged(self: Prices, place: Any, x: Any, *rest: Any) -> Any:
            return true(self, place, x, *rest) * (1 - 1e-6 * x.max(axis=1, keepdims=True))

        monkeypatch.setattr(Prices, wrong, charged)
    with pytest.raises(Defect, match="the rule lowering leaves out"):
        answer(asked(3), below_rules(True))


def test_charges_that_are_put_off_keep_all_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    """The problem that was lost once (`test_kept_over_stores.py`): without them it is lost again."""
    problem = Problem(*read_folder(FOUND), Objective("latency"))
    best = answer(problem, EVERY_LOOP)
    assert same(best, answer(problem, below_rules(True)))
    monkeypatch.setattr(Expansion, "below_kept", lambda self, memory: None)
    assert not same(best, answer(problem, below_rules(True)))


@pytest.mark.parametrize("uneven", [False, True])
def test_a_mistake_of_lowering_in_search_and_verification_is_noticed(
    uneven: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The search loses the optimum; by the same engine, with the same mistake, the second solution does not agree."""
    problem = replace(asked(0), mapspace=Mapspace(name="ragged")) if uneven else asked(0)
    true = Expansion.rest.func

    def rest(self: Expansion) -> Any:
        return self.prices.relevant if self.pruner.rules.lowering else true(self)

    best = answer(problem, EVERY_LOOP)
    monkeypatch.setattr(Expansion, "rest", property(rest))
    monkeypatch.setattr(again, "_tiny", lambda problem: False)
    monkeypatch.setattr(again, "_small", lambda problem: False)
    wrong = Exact().search(problem)
    assert wrong.certificate is not None and wrong.certificate.guarantee is Guarantee.OPTIMAL
    assert isinstance(best, float) and wrong.value > best * (1 + 1e-6)
    if uneven:
        with pytest.raises(Defect, match="the rule lowering leaves out"):
            again.solve_again(wrong)
    else:
        assert again.solve_again(wrong).value == pytest.approx(best)
