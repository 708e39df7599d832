"""Memories side by side behind a fanout, as in Eyeriss: a search goes another way there, to the same."""

from __future__ import annotations

from collections.abc import Generator
from operator import itemgetter
from random import Random

import pytest

from einloom.mapping.text import print_mapping
from einloom.mapspace.ffm.encoding import Encoding
from einloom.mapspace.ffm.encoding.rooms import overflow
from einloom.mapspace.ffm.encoding.sample import MENDS, plain
from einloom.problem import Budget, Guarantee, Objective, Problem
from einloom.questions import problem
from einloom.search.exact import Exact, head_starts
from einloom.search.exact import branch_and_bound as engine
from einloom.search.exact.attempt import Attempt, Solution
from einloom.search.exact.bounds import relaxation
from einloom.search.exact.einsums.classes import UnitOption
from einloom.search.exact.einsums.spatial import RankClasses
from einloom.search.exact.incumbent import Incumbent
from einloom.search.exact.model import Setting
from einloom.search.first import FirstMappings
from einloom.search.heuristics.points import Valued
from einloom.search.method import Watcher
from einloom.testing.problems.drawing import draw
from einloom.workload.files import parse_workload
from optima import same, searched


def attempt_of(asked: Problem) -> Attempt:
    return engine.Run(asked, engine.ExactOptions(), Budget(), Watcher(), None).attempt()


def setting_of(attempt: Attempt) -> Setting:
    """As `lower_bound` asks for one Einsum alone."""
    whole = attempt.setting
    return Setting(attempt.problem.machine, attempt.objectives[0], (), whole.capacities, 0, attempt.options.rules)


@pytest.mark.parametrize(
    ("machine", "beside"),
    [("eyeriss", True), ("tpu-v4i", False), ("nvdla", False), ("tileflow-fused", False), ("tileflow-cloud", False)],
)
def test_only_there_a_dive_puts_charges_off(machine: str, beside: bool) -> None:
    attempt = attempt_of(problem("matmul:m=8,n=8,k=8", machine, "energy", quiet=True))
    assert attempt.side_by_side is beside
    assert attempt.hurried(sliding=False).options.rules.deferral is beside
    assert attempt.hurried().options.rules.deferral


def least(dives: bool, monkeypatch: pytest.MonkeyPatch) -> tuple[list[float], int]:
    """What Einsums cost at least on Eyeriss, and how many dives were asked for it."""
    found, asked, right = list[float](), list[float](), relaxation._dived

    def dived(setting: Setting, classes: RankClasses, floor: float) -> float:
        asked.append(right(setting, classes, floor))
        return asked[-1]

    with monkeypatch.context() as patch:
        patch.setattr(UnitOption, "side_by_side", not dives)
        patch.setattr(relaxation, "_dived", dived)
        for workload in ("matmul:m=12,n=8,k=30", "conv-chain:h=3,w=3", "matmul:m=7,n=48,k=24"):
            attempt = attempt_of(problem(workload, "eyeriss", "energy"))
            for signature in attempt.signatures:
                found.append(relaxation.einsum_bound(setting_of(attempt), attempt.classes[signature]))
    return found, len(asked)


def test_the_least_cost_is_found_from_either_side(monkeypatch: pytest.MonkeyPatch) -> None:
    """From what a dive finds down, and from the floor up."""
    down, dives = least(True, monkeypatch)
    up, none = least(False, monkeypatch)
    assert up == pytest.approx(down, rel=1e-12) and min(up) > 1000
    assert dives >= 3 and none == 0


@pytest.mark.parametrize("seed", [189, 401, 460, 699, 901, 955, 2190, 2199, 2326, 3019, 3775, 3947])
def test_small_problems_have_the_same_optimum_either_way(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Random problems with such machines that are soon proven; other tests set their like beside all trees."""
    asked = Problem(*draw(seed).files.read, Objective(("energy", "edp")[seed % 2]))
    assert attempt_of(asked).side_by_side
    found = searched(asked, budget=Budget(steps=10**9))
    monkeypatch.setattr(UnitOption, "side_by_side", False)
    other = searched(asked, budget=Budget(steps=10**9))
    assert found is not None and other is not None and same(found.value, other.value)


def test_windows_are_searched_from_the_bound_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a dive, and to the same optimum as with one."""
    asked, dives = problem("conv-chain:h=3,w=3", "eyeriss", "energy"), list[Attempt]()
    right = engine.heuristic

    def dived(incumbent: Incumbent, attempt: Attempt) -> Solution | None:
        dives.append(attempt)
        return right(incumbent, attempt)

    monkeypatch.setattr(engine, "heuristic", dived)
    monkeypatch.setattr(engine.Run, "_soonest", lambda *_: None)
    assert attempt_of(asked).crowded and not attempt_of(problem("matmul:m=8,n=8,k=8", "eyeriss", "energy")).crowded
    assert not attempt_of(problem("conv-chain:h=3,w=3", "tpu-v4i", "energy")).crowded
    up = searched(asked, budget=Budget(steps=10**9))
    assert up is not None and not dives
    monkeypatch.setattr(Attempt, "crowded", False)
    down = searched(asked, budget=Budget(steps=10**9))
    assert down is not None and dives and same(up.value, down.value)


@pytest.mark.parametrize(("machine", "few"), [("eyeriss", True), ("nvdla", False)])
def test_a_network_is_mapped_among_few_choices_when_bounding_takes_long(
    machine: str, few: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Met(Exception):
        pass

    def met(*_: object) -> None:
        raise Met

    monkeypatch.setattr(head_starts, "LATE", -1.0)
    monkeypatch.setattr(head_starts, "first_among_few", met)
    asked = problem("resnet18:stages=1,width=4,image=16", machine, "energy")
    try:
        Exact().search(asked, Budget(seconds=5.0))
        assert not few
    except Met:
        assert few


def test_every_einsum_of_a_network_is_mended() -> None:
    """Small scratchpads hold next to nothing that is drawn: more steps are needed than one Einsum has."""
    asked = problem("resnet18", "eyeriss", "energy")
    encoding = Encoding(asked.workload, asked.machine, asked.mapspace)
    rng = Random(0)
    drawn = plain(encoding.facts, rng)
    assert drawn is not None and overflow(encoding.facts, drawn) is not None
    assert any(encoding.fitted(drawn, Random(n), MENDS) is None for n in range(4))
    assert all(encoding.sample(rng) is not None for _ in range(3))


def test_optima_of_alexnet_on_eyeriss() -> None:
    """Its third layer, a sixteenth of the channels: the kernel's columns lie on rows of the array, its rows stay in an
    element."""
    ranks = "{c: 16, k: 24, p: 13, q: 13, r: 3, s: 3}"
    text = f"schema: workload/1\nname: third\nranks: {ranks}\nbits: {{default: 16}}\neinsums:\n"
    layer = parse_workload(text + "  - O[k,p,q] = I[c,p+r,q+s] * W[k,c,r,s]\n")
    found = Exact().search(problem(layer, "eyeriss", "energy"))
    lines = print_mapping(found.mapping, layer).splitlines()
    inside = [line.strip() for line in lines]
    assert found.certificate.guarantee is Guarantee.OPTIMAL
    assert "par s in 3 @ rows" in inside and inside.index("for r in 3") > inside.index("store weights: W")


@pytest.mark.parametrize("machine", ["eyeriss", "two-level:glb_bits=6000"])
def test_a_known_mapping_takes_the_better_privates_of_what_was_drawn(machine: str) -> None:
    """The other way round, too; where Einsums share something else, each keeps its own."""
    asked = problem("matmuls:n=4,m=24,kn=24,bits=16", machine, "energy")
    first = FirstMappings(asked, Watcher())
    points = first._begun()
    assert points is not None
    better, everywhere = 0, 0
    for seed in range(8):
        rng = Random(seed)
        one, other = (
            points.encoding.fitted(state, rng) for state in (plain(points.facts, rng), plain(points.facts, rng))
        )
        assert one is not None and other is not None
        pair = sorted(((points.apart(state), state) for state in (one, other)), key=itemgetter(0))
        value, state = last(first._crossed(points, *pair))
        each = [min(points.cost(one, i)[0], points.cost(other, i)[0]) for i in range(points.facts.count)]
        assert points.encoding.fault(state) is None and value == points.apart(state) <= pair[0][0]
        assert value >= sum(each) * (1 - 1e-9)
        better += value < pair[0][0]
        everywhere += value == pytest.approx(sum(each), rel=1e-9)
    assert better >= 4 and everywhere >= 4


def last(steps: Generator[None, None, Valued]) -> Valued:
    while True:
        try:
            next(steps)
        except StopIteration as end:
            found: Valued = end.value
            return found
