"""The parts of the methods on states, each alone: prices by Einsum and by machine code, bounds, what comes first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from math import log
from random import Random
from typing import Any

import numpy as np
import pytest

import einloom as el
from einloom.cost.evaluate import evaluate, legality
from einloom.errors import Infeasible, SpecError
from einloom.machine.files import parse_machine
from einloom.mapspace.ffm.encoding import Encoding, NoProposal, State
from einloom.mapspace.ffm.encoding.privates import _fits
from einloom.mapspace.ffm.encoding.rooms import loads, tile_bits
from einloom.mapspace.ffm.encoding.skeletons import SkeletonDraft
from einloom.mapspace.ffm.encoding.state import Own, word
from einloom.mapspace.registry import space_for
from einloom.problem import Budget, Objective, Problem, keeps_time
from einloom.questions import problem
from einloom.search import first
from einloom.search.door import ask
from einloom.search.evaluator import Evaluator
from einloom.search.exact import Exact
from einloom.search.exact.pmappings.prune import weighed
from einloom.search.first import FirstMappings
from einloom.search.heuristics import factors
from einloom.search.heuristics.auto import Auto
from einloom.search.heuristics.bayes import _logarithm
from einloom.search.heuristics.bursts import Bursts, prefix
from einloom.search.heuristics.gradient import Descent, _unfused
from einloom.search.heuristics.local import LocalSearch
from einloom.search.heuristics.points import INFINITE, Points, changed_paths
from einloom.search.heuristics.sampling import RandomSearch
from einloom.search.heuristics.tile_model import TileModel
from einloom.search.method import Watcher
from einloom.search.registry import method
from einloom.testing.problems.drawing import draw
from einloom.workload.files import parse_workload
from kernels import kernel_price

STEPS = 4


def goals(asked: Problem) -> list[Objective]:
    memory = asked.machine.memories[-1].name
    timed = [Objective("latency"), Objective("edp"), Objective("product", powers=(2.0, 1.0))]
    return [Objective("energy"), Objective("traffic", memory), *(timed if keeps_time(asked.machine) else ())]


@pytest.mark.parametrize("seeds", [range(12), pytest.param(range(12, 40), marks=pytest.mark.slow)], ids=["few", "more"])
def test_states_are_priced_as_their_trees(seeds: range) -> None:
    """By Einsum and by machine code, for every objective, on problems with all that files can say."""
    priced = in_machine_code = 0
    for seed in seeds:
        asked = Problem(*draw(seed).files.read, Objective("energy"))
        space, rng = space_for(asked.workload, asked.machine, asked.mapspace), Random(seed)
        points = [
            Points(one, space, Evaluator(one, space))
            for one in (Problem(asked.workload, asked.machine, asked.mapspace, goal) for goal in goals(asked))
        ]
        try:
            state = points[0].encoding.sample(rng)
        except SpecError:
            continue
        bursts = Bursts(asked, points[0].facts)
        for _ in range(STEPS if state else 0):
            assert state is not None
            tree = points[0].encoding.decode(state)
            reasons = legality(asked.workload, asked.machine, tree)
            if any(not reason.startswith("capacity") for reason in reasons):
                with pytest.raises(Infeasible):  # the encoding does not see why, where nothing is legal
                    ask(method("exact"), asked)
                break
            for one in points:
                right = (
                    one.problem.objective.value(evaluate(asked.workload, asked.machine, tree))
                    if not reasons
                    else INFINITE
                )
                assert one.apart(state) == pytest.approx(right, rel=1e-12)
                assert one.value(state) == pytest.approx(right, rel=1e-12)
                priced += 1
            facts = points[0].encoding.of(state)
            for i in range(facts.count):
                if bursts.able(state, i):
                    price = kernel_price(bursts, facts.label[i], word(facts, state, i))
                    assert price == pytest.approx(points[0].cost(state, i), rel=1e-12)
                    in_machine_code += 1
            try:
                state = points[0].encoding.propose(state, rng)
            except NoProposal:
                continue
    assert priced > 150 and in_machine_code > 20


def test_two_stores_of_one_tensor_with_equal_tiles_are_mended() -> None:
    """Of which one is a private store and the other nobody's own: what to make smaller is chosen among both, and where
    nothing fits (`exact` says the same) the draw ends without a state."""
    asked = Problem(*draw(103).files.read, Objective("energy"))
    assert points_of(asked).encoding.sample(Random(103)) is None
    with pytest.raises(Infeasible):
        Exact().search(asked)


def test_the_tree_search_goes_by_the_upper_confidence_bound() -> None:
    """The mean reward and, with the constant, the root of ln N / n (TileFlow, section 6)."""
    assert factors._bound((4, 8.0), 9.0, 0.5) == 2.0 + 0.5 * 1.5
    assert factors._bound((1, -3.0), 4.0, 1.0) == -1.0


def test_rollouts_that_break_a_rule_leave_the_tree_search_with_what_it_had(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = problem("matmuls:n=2,m=8,kn=8", "simple:glb_bits=4096")
    points = Points(asked, space := space_for(asked.workload, asked.machine, asked.mapspace), Evaluator(asked, space))
    state = points.encoding.sample(Random(0))
    assert state is not None
    monkeypatch.setattr(factors.Factors, "made", lambda self, row: None)
    found = (points.value(state), state)
    assert factors.tree_search(points, found, 3, 2, 1.0, Random(0)) == found


def test_the_used_part_of_a_budget_is_that_of_its_seconds_or_of_its_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = problem("matmuls:n=2,m=8,kn=8", "simple:glb_bits=4096")
    prices = Evaluator(asked, space_for(asked.workload, asked.machine, asked.mapspace), Budget(seconds=8.0, steps=100))
    begun = prices._started
    monkeypatch.setattr("einloom.search.evaluator.time.monotonic", lambda: begun + 2.0)
    assert prices.spent == 0.25
    prices.evaluated = 60
    assert prices.spent == 0.6


def test_auto_searches_a_little_before_it_proves_where_points_are_counted() -> None:
    asked = problem("matmuls:n=3,m=64,kn=64", "simple:glb_bits=16384", "energy")
    found = ask(method("auto"), asked, Budget(steps=200))
    assert found.certificate is not None
    counts = dict(found.certificate.counts)
    assert method("auto", {"points": "1"}).points == 1  # type: ignore[attr-defined]
    with pytest.raises(ValueError, match="at least 1"):
        Auto(points=0)
    assert counts["evaluated"] > 50 and any(name.startswith("proposal: ") for name in counts)
    assert found.value == ask(method("auto"), asked).value == ask(method("exact"), asked).value


def test_a_start_in_hand_is_where_a_method_begins() -> None:
    asked = problem("matmuls:n=2,m=16,kn=16", "simple:glb_bits=2048", "energy")
    best = el.map("matmuls:n=2,m=16,kn=16", "simple:glb_bits=2048")
    space = space_for(asked.workload, asked.machine, asked.mapspace)
    points = Points(asked, space, Evaluator(asked, space, starts=(best.mapping,)))
    begun = points.begin()
    assert [points.value(state) for state in begun] == [best.value] and points.best is not None
    assert points.best[0] == best.value


def test_machine_code_leaves_an_einsum_without_loops_alone() -> None:
    workload = parse_workload(
        "schema: workload/1\nname: one\neinsums: ['B[] = exp(A[])', 'D[m] = C[m] * B[]']\nranks: {m: 4}\nbits: 8"
    )
    asked = problem(workload, "two-level", "energy")
    space = space_for(asked.workload, asked.machine, asked.mapspace)
    points = Points(asked, space, Evaluator(asked, space))
    state, bursts = points.encoding.sample(Random(1)), Bursts(asked, points.facts)
    assert state is not None
    assert [bursts.able(state, i) for i in range(2)] == [False, True]
    found = ask(method("anneal"), asked, Budget(steps=3_000))
    assert found.value == ask(method("exact"), asked).value


def small() -> Points:
    return points_of(problem("matmuls:n=2,m=64,kn=64", "simple:glb_bits=16384", "energy"))


def points_of(asked: Problem) -> Points:
    space = space_for(asked.workload, asked.machine, asked.mapspace)
    return Points(asked, space, Evaluator(asked, space))


def test_what_is_too_large_is_mended() -> None:
    points, rng, mended = small(), Random(5), 0
    for _ in range(40):
        state = points.encoding.sample(rng)
        for _ in range(20):
            try:
                state = state and points.encoding.propose(state, rng)
            except NoProposal:
                continue
            if state is not None and not points.encoding.fits(state):
                found = points.encoding.fitted(state, rng)
                assert found is None or (points.encoding.fits(found) and points.encoding.fault(found) is None)
                mended += found is not None
                state = found
    assert mended > 10


def test_what_cannot_be_mended_is_refused_and_counted() -> None:
    """No room for the tiles of a state that fits elsewhere, and no step to mend it in."""
    state = small().encoding.sample(Random(5))
    tight = points_of(problem("matmuls:n=2,m=64,kn=64", "simple:glb_bits=64", "energy"))
    assert state is not None and tight.fitted(state, Random(1), steps=0) is None
    assert tight.evaluator.refused == {"capacity": 1} and tight.evaluator.illegal == 1


def test_what_a_turn_has_met_is_priced_at_its_end() -> None:
    """Also what was no longer due before that."""
    points, rng = small(), Random(5)
    points.evaluator._check_at, points.evaluator._check_by = 10**6, float("inf")
    states = [state for _ in range(8) if (state := points.encoding.sample(rng)) is not None]
    better, worse = sorted(((points.apart(one), one) for one in states), key=lambda one: one[0])[:: len(states) - 1]
    with points.evaluator.turn(Budget(), Watcher()):
        for value, state in (worse, better):
            points.evaluator.offer(value, lambda state=state: points.encoding.decode(state), 1)  # type: ignore[misc]
        assert points.evaluator.best is None
    assert points.evaluator.value == pytest.approx(better[0]) and better[0] < worse[0]


def test_the_part_of_a_search_is_its_points_or_its_seconds_whichever_is_more() -> None:
    points = small()
    points.evaluator.budget, points.evaluator.evaluated = Budget(seconds=1000.0), 5
    assert points.part(10) == 0.5 and 0 < points.part(None) < 0.1
    points.evaluator.budget = Budget(steps=20)
    assert points.part(None) == 0.25
    assert points.part(10) == 0.25


def test_coordinate_descent_betters_the_privates_of_an_einsum() -> None:
    points, rng = small(), Random(2)
    starts = [drawn for _ in range(6) if (drawn := points.draw(rng)) is not None and drawn[0] < INFINITE]
    ends = [LocalSearch()._privates(points, start, 0, 1, rng) for start in starts]
    assert all(end[0] <= start[0] for start, end in zip(starts, ends, strict=True))
    assert sum(end[0] < start[0] for start, end in zip(starts, ends, strict=True)) > 3


def test_long_searches_make_many_proposals_at_once() -> None:
    """One where there is no time to compile; else the root of the points in tens, at most a thousand."""
    points = small()
    sizes = []
    for budget in (Budget(), Budget(seconds=1.0), Budget(seconds=60.0), Budget(steps=10_000), Budget(seconds=9e9)):
        points.evaluator.budget = budget
        sizes.append(points.burst_size(1_000_000))
    assert sizes == [100, 1, 244, 10, 1000]


def test_a_tile_fits_into_its_bits_and_not_into_fewer() -> None:
    facts = small().facts
    tensor, extents = facts.einsums[0].tensors[0], dict(facts.extents)
    bits = tile_bits(facts, 0, 1, tensor, extents)
    assert _fits(facts, 0, 1, tensor, extents, bits) and not _fits(facts, 0, 1, tensor, extents, bits - 1)


RESIDENT = """
schema: machine/1
name: resident
levels:
  - {memory: DRAM, may: nothing, read_energy: 9, write_energy: 9}
  - {memory: GLB, read_energy: 2, write_energy: 3}
  - {memory: Reg, size: 64, read_energy: 1, write_energy: 1}
  - {compute: MAC, energy: 1}
"""


def test_machine_code_prices_an_einsum_that_has_nothing_above_its_branch() -> None:
    """Where all tensors live in an inner memory no store and no loop is shared."""
    asked = problem("matmul:m=8,n=6,k=4", parse_machine(RESIDENT), "energy")
    points = points_of(asked)
    state, bursts = points.encoding.sample(Random(1)), Bursts(asked, points.facts)
    assert state is not None and prefix(points.facts, state, 0) == ()
    assert bursts.able(state, 0) and bursts.price(0, word(points.facts, state, 0)) == points.cost(state, 0)


class Told(Watcher):
    """Adds up what it is told."""

    def __init__(self) -> None:
        self.told = Counter[str]()

    def count(self, rule: str, number: int = 1) -> None:
        self.told[rule] += number


def test_points_are_told_one_by_one_and_many_at_once() -> None:
    asked = problem("matmul:m=8,n=8,k=8", "simple:glb_bits=512", "energy")
    space, watch = space_for(asked.workload, asked.machine, asked.mapspace), Told()
    price = Evaluator(asked, space, watch=watch)
    rng = Random(1)
    for _ in range(30):
        skeleton = space.skeleton(space.sample(rng))
        for rows in space.tilings(skeleton):
            values = price.many(skeleton, np.concatenate([rows, rows + 1]))  # the others have not the extents' trips
            price.of(space.tree(skeleton, rows[-1]))
            assert len(values) == 2 * len(rows)
    assert price.evaluated > 30 and price.illegal > 30
    assert watch.told == {"evaluated": price.evaluated, "illegal": price.illegal}


def test_refused_proposals_are_counted_by_rule() -> None:
    points, watch = small(), Told()
    points.evaluator.watch = watch
    for rule, *number in (("trips",), ("depth", 5), ("trips", 3)):
        points.note(rule, *number)
    assert points.evaluator.refused == watch.told == {"proposal: trips": 4, "proposal: depth": 5}


@pytest.mark.parametrize("name", ["anneal", "genetic", "local", "bayes"])
def test_a_method_counts_every_proposal_that_is_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """By rule; the budget may end the search between the last refusal and its count."""
    refused = Counter[str]()

    def seen(real: Callable[..., State]) -> Callable[..., State]:
        def proposed(*arguments: object) -> State:
            try:
                return real(*arguments)
            except NoProposal as rule:
                refused[f"proposal: {rule}"] += 1
                raise

        return proposed

    monkeypatch.setattr(Encoding, "propose", seen(Encoding.propose))
    monkeypatch.setattr(Encoding, "cross", seen(Encoding.cross))
    asked = problem("matmuls:n=3,m=64,kn=64", "simple:glb_bits=16384", "energy")
    found = ask(method(name, {"seed": "1"}), asked, Budget(steps=60))
    assert found.certificate is not None
    counted = Counter({rule: n for rule, n in found.certificate.counts.items() if rule.startswith("proposal: ")})
    assert sum((refused - counted).values()) <= 1 and not counted - refused and counted.total() > 40


def test_a_descent_counts_a_tensor_that_could_not_be_unfused(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: SkeletonDraft, rng: Random) -> State:
        raise NoProposal("loop not of the tensor")

    points, rng = small(), Random(1)
    state = points.encoding.sample(rng)
    monkeypatch.setattr(SkeletonDraft, "settled", refuse)
    assert state is not None and _unfused(points, state, 0, rng) == state
    assert points.evaluator.refused == {"proposal: loop not of the tensor": 1}


ROOMS = """
schema: machine/1
name: rooms
levels:
  - {memory: DRAM, read_energy: 9, write_energy: 9, read_throughput: 1, write_throughput: 1}
  - {memory: L2, size: 32768, read_energy: 4, write_energy: 4}
  - {memory: GLB, size: 16384, read_energy: 2, write_energy: 3}
  - {compute: MAC, energy: 1, throughput: 1}
"""


def test_the_tile_model_knows_what_every_memory_holds_and_what_may_leave_the_chip() -> None:
    """At a state's own tiles each memory holds at each leaf what the encoding says; each fused tensor has a gate."""
    points, rng = points_of(problem("matmuls:n=3,m=64,kn=64", parse_machine(ROOMS), "edp")), Random(3)
    memories, gates = points.facts.memories, Counter[int]()
    for _ in range(20):
        drawn = points.draw(rng)
        assert drawn is not None
        state = drawn[1]
        model = TileModel(points, state)
        at = np.append(model.coordinates(), 1.0)
        found = [(size, round(sum(f * 2 ** float(row @ at) for f, row in tiles), 6)) for size, tiles in model.rooms]
        rows = zip(memories, loads(points.facts, state), strict=True)
        right = [(memory.size, bits) for memory, row in rows if memory.size for bits in row if bits]
        assert sorted(found) == sorted(right)
        descent = Descent(model, state)
        chosen = descent.gates
        assert chosen == [n for n, home in enumerate(state.homes) if home > 0]
        assert descent.outside == [64 * 64 * 8 * (9.0 + 9.0)] * len(chosen)  # written once and read once
        gates[len(chosen)] += 1
    assert len(gates) > 1


def test_bayesian_search_learns_logarithms() -> None:
    assert _logarithm(200.0) - _logarithm(2.0) == pytest.approx(log(100.0))
    assert _logarithm(0.0) < _logarithm(1e-200)


def test_columns_without_a_limit_are_shares_of_the_largest() -> None:
    """The first of a half and a whole of its limit, the second of a whole and a fifth of what is there."""
    found = weighed(np.array([[5.0, 10.0], [10.0, 2.0]]), np.array([10.0, np.inf]))
    assert found.ravel().tolist() == pytest.approx([0.5 + 0.5**4 + 1.0 + 1.0, 1.0 + 1.0 + 0.2 + 0.2**4])


def test_the_paths_that_differ_are_those_of_the_changed_einsums() -> None:
    points, rng = small(), Random(8)
    state = points.encoding.sample(rng)
    other = next(one for _ in range(200) if (one := points.encoding.sample(rng)) is not None and one != state)
    assert state is not None
    assert changed_paths(state, state) == [] and changed_paths(state, state.with_own(1, Own("other"))) == [1]
    right = [i for i in range(2) if word(points.facts, state, i) != word(points.facts, other, i)]
    assert set(changed_paths(state, other)) >= set(right) != set()


def test_random_draws_end_where_nothing_can_be_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = iter([None])  # another one would be a StopIteration
    points = small()
    monkeypatch.setattr(points, "draw", lambda *_: next(answers))
    RandomSearch(points=10).run(points, Random(1), Watcher())
    assert points.best is None and points.evaluator.evaluated == 0


def test_first_mappings_are_looked_for_near_others() -> None:
    """A proposal that keeps the rules, with its value; None for a refused one."""
    points, rng = small(), Random(6)
    state = points.encoding.sample(rng)
    assert state is not None
    near = [FirstMappings._near(points, state, rng, 0.5) for _ in range(60)]
    moved = [one for one in near if one is not None]
    assert len(moved) > 20 and all(found != state and value == points.apart(found) for value, found in moved)


def test_no_step_leads_to_what_has_no_value(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the present state has none."""
    points, rng = small(), Random(6)
    state, other = points.encoding.sample(rng), points.encoding.sample(rng)
    assert state is not None and other is not None
    drawing, before = FirstMappings(points.problem, Watcher()), (INFINITE, state)
    monkeypatch.setattr(FirstMappings, "_fast", lambda *_: False)
    monkeypatch.setattr(FirstMappings, "_near", lambda *_: (INFINITE, other))
    assert drawing._stepped(points, before, rng, 0, 1.0) is before


def test_drawing_anneals_after_a_second_from_the_best_and_from_new_states(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each round begins at the best state or at a drawn one, and what is kept is legal and never gets worse."""
    asked = problem("conv-chain:c=4,h=8,w=8,l=4,k=4", "tileflow-edge", "edp")
    drawing, begun, cooled = FirstMappings(asked, Watcher()), list[tuple[float, float, float]](), FirstMappings._cooled

    def counted(self: Any, points: Points, now: Any, rng: Random, steps: int, hot: float) -> Any:
        begun.append((hot, now[0], self._top[0]))
        return cooled(self, points, now, rng, 5, hot)

    monkeypatch.setattr(FirstMappings, "_cooled", counted)
    drawing._spent = first.DESCENDING
    values = []
    while len(begun) < 6:
        drawing.work(0.0)
        values.append(drawing.value)
    assert drawing.best is not None and legality(asked.workload, asked.machine, drawing.best) == ()
    assert all(later <= sooner for sooner, later in pairwise(values))
    assert [hot for hot, _, _ in begun] == [first.WARM, first.HOT] * 3
    assert all(value == best for hot, value, best in begun if hot == first.WARM)
    assert any(value > best for hot, value, best in begun if hot == first.HOT)
