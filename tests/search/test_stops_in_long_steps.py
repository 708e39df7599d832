"""The long steps of the search ask again and again whether to go on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from einloom.errors import BudgetExhausted, Ended
from einloom.mapspace.ffm.space import Ffm
from einloom.mapspace.space import Mapspace
from einloom.problem import Budget, Objective, Problem
from einloom.search.exact import ExactOptions
from einloom.search.exact.attempt import Attempt
from einloom.search.exact.bounds.choices import Keys
from einloom.search.exact.einsums import spatial
from einloom.search.exact.einsums.runs import OFTEN
from einloom.search.exact.einsums.spatial import RankClasses
from einloom.search.exact.fusion.explore import Explorer
from einloom.search.exact.fusion.floors import Floors
from einloom.search.exact.fusion.templates import Stacker
from einloom.search.exact.pmappings import backpointers, expand
from einloom.search.exact.pmappings import sweep as sweep_module
from einloom.search.exact.pmappings.backpointers import Compactor
from einloom.search.exact.pmappings.expand import Expansion
from einloom.search.exact.pmappings.rows import Backpointers, Rows, union, wrapped
from einloom.search.exact.pmappings.sweep import PmappingTable, relaxed
from einloom.search.exact.prices import columns
from einloom.search.exhaustive import Exhaustive
from einloom.search.method import Watcher
from einloom.workload.build import build_workload
from einloom.zoo.machine_by_name import load_machine
from einloom.zoo.workload_by_name import load_workload


class Enough(Exception):
    """The search was told to stop."""


def after(calls: int) -> Callable[[], None]:
    """A checkpoint that stops at the call after so many."""
    left = [calls]

    def checkpoint() -> None:
        left[0] -= 1
        if left[0] < 0:
            raise Enough

    return checkpoint


def stopping(classes: RankClasses, calls: int) -> RankClasses:
    """The same rank classes, whose spatial choices are listed, with such a checkpoint from now on."""
    for option in classes.signature.units:
        classes.spreads(option)
    object.__setattr__(classes, "checkpoint", after(calls))
    return classes


def on(machine: str) -> Attempt:
    problem = Problem(load_workload("tileflow-cc3"), load_machine(machine), Mapspace(), Objective("latency"))
    return Attempt(problem, ExactOptions(), Watcher(), {}, lambda: None)


@pytest.fixture(scope="module")
def attempt() -> Attempt:
    return on("tileflow-edge")


def test_listing_spatial_choices(attempt: Attempt) -> None:
    signature = attempt.signatures[0]
    for calls in (0, 10):
        spatial._every_spread.cache_clear()  # equal classes of an earlier test may have it
        with pytest.raises(Enough):
            RankClasses(signature, after(calls)).spreads(signature.units[0])
    assert RankClasses(signature, after(0)) == RankClasses(signature)


def test_spatial_choices_as_an_array(attempt: Attempt, monkeypatch: pytest.MonkeyPatch) -> None:
    signature = attempt.signatures[0]
    classes, option = attempt.classes[signature], signature.units[0]
    whole = Floors(attempt.setting, classes).links(option, classes.spreads(option)[:100]).between(0, option.fanouts)
    monkeypatch.setattr(columns, "LISTED", 10)
    asked = RankClasses(signature, after(9))
    with pytest.raises(Enough):  # at the tenth part
        Floors(attempt.setting, asked).links(option, classes.spreads(option)[:100])._axes  # noqa: B018
    parts = Floors(attempt.setting, classes).links(option, classes.spreads(option)[:100])
    assert np.array_equal(parts.between(0, option.fanouts), whole)


@pytest.mark.parametrize("machine", ["simple", "tileflow-cloud"])
def test_looking_for_the_next_tree(machine: str) -> None:
    """The first tree of such a problem takes minutes; there was no look at the budget before it."""
    asked = Problem(load_workload("residual-diamond"), load_machine(machine), Mapspace(), Objective("energy"))
    with pytest.raises(BudgetExhausted) as caught:
        Exhaustive().search(asked, Budget(memory=1))
    assert caught.value.ended is Ended.MEMORY
    for calls in (0, 1000):
        with pytest.raises(Enough):
            next(Ffm(asked.workload, asked.machine, asked.mapspace, after(calls)).trees())


def test_pricing_choices() -> None:
    attempt = on("nvdla")
    classes = attempt.classes[attempt.signatures[0]]
    with pytest.raises(Enough):
        Floors(attempt.setting, stopping(classes, 1)).least()
    with pytest.raises(Enough):
        Keys().choices(Floors(attempt.setting, stopping(classes, 1)))


def test_pricing_one_choice_of_stores() -> None:
    """Of many spatial choices each product is an array: the questions come between them."""
    attempt, asked = on("nvdla"), list[int]()
    classes = RankClasses(attempt.signatures[0], lambda: asked.append(1))
    option = classes.signature.units[0]
    classes.spreads(option)
    before = len(asked)
    Floors(attempt.setting, classes).of(option, option.held[0])
    assert len(asked) - before > len(classes.signature.tensors)


def test_growing_rows(attempt: Attempt) -> None:
    """A single table, without the question before it."""
    classes = attempt.classes[attempt.signatures[0]]
    endless = np.full(len(attempt.setting.columns), np.inf)
    explorer = Explorer(attempt.setting, classes, endless, {})
    expansion = next(explorer._batches(classes.signature.units[0], fused=False))
    stopping(classes, 2)
    with pytest.raises(Enough):
        relaxed(expansion)


def test_rows_grow_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each piece has few rows, and together they are the same rows in the same order."""
    attempt = on("nvdla")
    classes = attempt.classes[attempt.signatures[0]]
    endless = np.full(len(attempt.setting.columns), np.inf)
    expansion = next(Explorer(attempt.setting, classes, endless, {})._batches(classes.signature.units[0], fused=False))
    x = np.ones((40, len(classes.members)), np.int64)
    spread, may = np.zeros(40, np.int64), np.ones_like(x, bool)
    pieces = {}
    for most in (1 << 16, 8000):
        monkeypatch.setattr(expand, "GROWN", most)
        pieces[most] = list(expansion.loops(x, spread, may, 1))
    whole, small = pieces[1 << 16], pieces[8000]
    assert len(small) > len(whole) and all(len(rows) <= 8000 for rows, _ in small)
    for at in (0, 1):
        assert np.array_equal(np.concatenate([one[at] for one in whole]), np.concatenate([one[at] for one in small]))


def uneven() -> Expansion:
    """Of an Einsum whose ranks are cut unevenly, with stores that keep their tiles over loops of the buffer."""
    asked = Problem(load_workload("matmul:m=97,n=24,k=89"), load_machine("nvdla"), Mapspace("ragged"), Objective("edp"))
    attempt = Attempt(asked, ExactOptions(), Watcher(), {}, lambda: None)
    classes = attempt.classes[attempt.signatures[0]]
    endless = np.full(len(attempt.setting.columns), np.inf)
    return next(Explorer(attempt.setting, classes, endless, {})._batches(classes.signature.units[0], fused=False))


def unused(table: PmappingTable) -> int:
    """Rows in the histories of a table from which none of its rows was made."""
    order: dict[int, Backpointers] = {}
    tops = [rows.trail for levels in table.levels.values() for rows in levels]

    def visit(trail: Backpointers) -> None:
        if id(trail) not in order:
            for source in trail.sources:
                visit(source)
            order[id(trail)] = trail

    for trail in tops:
        visit(trail)
    made = {number: np.zeros(len(trail.x), bool) for number, trail in order.items()}
    for trail in tops:
        made[id(trail)][:] = True
    for trail in reversed(order.values()):
        for number, source in enumerate(trail.sources):
            mine = made[id(trail)] & (trail.source == number)
            made[id(source)][trail.row[mine]] = True
    return sum(int((~used).sum()) for used in made.values())


def test_histories_hold_nothing_that_led_to_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loops that were tried above kept tiles go with the rows that lost, where they are many."""
    short = unused(sweep_module.sweep(uneven()))
    monkeypatch.setattr(backpointers, "SHORT", 0)
    table = sweep_module.sweep(uneven())
    rows = sum(len(one) for levels in table.levels.values() for one in levels)
    monkeypatch.setattr(sweep_module, "shed", lambda rows, since: rows)
    before = unused(sweep_module.sweep(uneven()))
    assert before > rows > 1000 and unused(table) == 0
    assert 0 < short <= before


def test_loops_above_kept_tiles_come_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many rows there are, few get loops at a time; and the table has the same rows."""
    tables, most = [], list[int]()
    real = Expansion._looped

    def looped(self: Expansion, *asked: Any) -> Iterator[Rows]:
        for rows in real(self, *asked):
            most.append(len(rows))
            yield rows

    monkeypatch.setattr(Expansion, "_looped", looped)
    for number in (1 << 16, 100):
        for module in (expand, sweep_module):
            monkeypatch.setattr(module, "GROWN", number)
        most.clear()
        tables.append((sweep_module.sweep(uneven()), max(most)))
    (whole, large), (parts, small) = tables
    assert large > 1000 and small <= 100
    for memory, levels in whole.levels.items():
        for one, other in zip(levels, parts.levels[memory], strict=True):
            assert sorted(map(tuple, one.cost.tolist())) == sorted(map(tuple, other.cost.tolist()))


def test_sources_of_a_block_keep_their_numbers() -> None:
    """They say which links a row has: where no row of the first source is left, the second is still the second."""
    table = sweep_module.sweep(uneven())
    parts = [wrapped(rows) for rows in table.levels[1][:2]]
    columns: list[None] = []
    both, last = union(parts, lambda: columns.append(None)), len(parts[0]) + len(parts[1]) - 1
    compactor = Compactor([(both.trail, np.array([last]))])
    trail = compactor.trail(both.trail)
    assert trail.source.tolist() == [1] and len(trail.sources) == 2
    assert len(columns) >= 4  # before each it is asked whether to go on
    assert compactor.rows(both.trail, np.array([last])).tolist() == [0]
    assert np.array_equal(trail.sources[1].x[trail.row], both.x[[last]])


def test_orders_of_many_fused_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    """An Einsum of six variables has thousands of fused parts, which hardly have rows: they are asked about, too."""
    ranks = {"b": 2, "t": 3, "h": 2, "g": 2, "s": 2, "e": 4}
    text = ["M[b,t,h,g,s,e] = exp(C[b,t,h,g,s,e])", "Y[b,t,h,g] = max[s,e] M[b,t,h,g,s,e]"]
    problem = Problem(
        build_workload("wide", text, ranks, bits=8), load_machine("simple"), Mapspace(), Objective("energy")
    )
    made, most, structures = [0, 0], [0], Stacker.structures

    def counted(stacker: Stacker) -> Iterator[Any]:
        for one in structures(stacker):
            made[0] += 1
            made[1] += 1
            most[0] = max(most[0], made[0])
            yield one

    def look() -> None:
        made[0] = 0

    monkeypatch.setattr(Stacker, "structures", counted)
    attempt = Attempt(problem, ExactOptions(), Watcher(), {}, look)
    attempt.run(attempt.lower_bound(float("inf"), lambda bound: None) * 1.5)
    assert made[1] > 4 * OFTEN and most[0] <= OFTEN
