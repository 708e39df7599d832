"""`explain` of mappings, interrupted explanations, the command line, saved files and the report's panel."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

import einloom as el
from commands import run
from einloom.diagnose import Asker, Explanation, explain_problem, explain_result, parse_explanation
from einloom.diagnose.alternatives import forced
from einloom.diagnose.constraints import with_level
from einloom.diagnose.feasibility import Unfinished
from einloom.diagnose.sensitivity import larger, shares, wider
from einloom.errors import Ended, SpecError
from einloom.questions import problem
from einloom.report.page import write_page
from einloom.result.unmapped import Unmapped, read_answer
from einloom.search.exact import Exact
from einloom.search.method import Watcher
from planted_conflicts import CASES

CHAIN, PAIR, BUFFER = (
    "matmuls:n=3,m=8,kn=8",
    "matmuls:n=2,m=8,kn=8",
    "simple:glb_bits=300,dram_energy=10,glb_throughput=24",
)
SAVED = Path(__file__).parents[1] / "report" / "results"


@pytest.fixture(scope="module")
def best() -> el.Result:
    return el.map(CHAIN, BUFFER, "edp")


@pytest.fixture(scope="module")
def found(best: el.Result) -> Explanation:
    return explain_result(best)


def test_shares_are_those_of_the_price(best: el.Result, found: Explanation) -> None:
    for resource in ("time", "energy"):
        assert sum(s.share for s in found.shares if s.resource == resource) == pytest.approx(1)
    (room,) = [s for s in found.shares if s.resource == "capacity"]
    assert room.share == best.cost.occupancy_of("GLB") / 300


def test_a_damaged_answer_may_say_that_a_memory_holds_nothing(best: el.Result) -> None:
    none = tuple(replace(one, size=None if one.size is None else 0) for one in best.cost.occupancy)
    damaged = replace(best, cost=replace(best.cost, occupancy=none))
    full = {one.component: one.share for one in shares(damaged) if one.resource == "capacity"}
    assert full and set(full.values()) <= {0.0, 1.0}


def test_every_fusable_tensor_is_tried_on_its_other_side(best: el.Result, found: Explanation) -> None:
    assert [one.tensor for one in found.alternatives] == list(best.workload.intermediates)
    sides = {one.side for one in found.alternatives}
    assert sides == {"fused", "unfused"}
    for one in found.alternatives:
        problem, _ = forced(best.problem, one.tensor, one.side)
        other = Exact().search(problem)
        assert one.value == pytest.approx(other.value)
        assert one.loss == pytest.approx(other.value / best.value - 1, abs=1e-9)
        assert one.loss >= 0
        assert (one.energy, one.latency, one.traffic) == (other.energy, other.latency, other.cost.traffic("DRAM"))


def test_gains_are_those_of_solving_the_larger_machine(best: el.Result, found: Explanation) -> None:
    by_place = {(gain.place, gain.after): gain for gain in found.gains}
    asked = [more for one in larger(best.problem) for more in (one, one.again) if more is not None]
    asked += wider(best.problem, best.mapping)
    tried = [more for more in asked if (more.place, more.after) in by_place]
    assert {gain.place for gain in found.gains} == {
        "GLB.size",
        "GLB.throughput",
        "MAC.throughput",
        "fused loops per rank",
    }
    assert len(tried) == len(found.gains)
    for more in tried:
        gain = by_place[more.place, more.after]
        value = Exact().search(more.problem).value
        assert gain.value == pytest.approx(value)
        assert gain.gain == pytest.approx(1 - value / best.value, abs=1e-9)
        assert gain.gain >= 0
    assert any(gain.gain for gain in found.gains)


def test_the_explanation_can_be_saved_and_read_and_fits_the_screen(found: Explanation) -> None:
    back = parse_explanation(found.to_json())
    assert back == found
    assert str(back) == str(found)
    assert max(map(len, str(found).splitlines())) <= 100
    assert found.complete
    assert len(found.runs) == len(found.alternatives) + len(found.gains)


def test_more_instances_are_doubled_and_may_be_worse() -> None:
    machine = el.load_machine("nvdla")
    problem = el.map("matmul:m=64,n=64,k=64", machine).problem
    axes = [more for more in larger(problem) if more.place.endswith("(axis)")]
    assert axes
    for more in axes:
        assert int(more.after) == 2 * int(more.before)


def test_a_memory_of_which_a_tenth_is_less_than_a_bit_is_doubled_at_once() -> None:
    asked = problem("matmul:m=2,n=2,k=2", "simple:glb_bits=9")
    more = [(one.before, one.after, one.again) for one in larger(asked) if one.place == "GLB.size"]
    assert more == [("9 bit", "18 bit", None)]


def test_a_larger_machine_is_searched_from_the_known_mapping(best: el.Result) -> None:
    """If that search is cut off, what is known is no worse."""
    looks = iter([False])

    class Soon(Watcher):
        def stopped(self) -> bool:
            return next(looks, True)

    for more in larger(best.problem):
        if more.place == "GLB.size":
            with pytest.raises(Unfinished) as caught:
                Asker(Soon()).optimum(more.problem, "more room", starts=(best.mapping,))
            assert caught.value.best is not None and caught.value.best.value <= best.value * (1 + 1e-12)
            break
    else:
        raise AssertionError("no memory was made larger")


def test_what_forbids_the_other_side_is_named() -> None:
    """The buffer has no room for one value of what would have to be fused."""
    result = el.map("matmuls:n=2,m=4,kn=4", "simple:glb_bits=7")
    (one,) = explain_result(result).alternatives
    assert (one.side, one.value) == ("fused", None)
    assert one.blame is not None
    assert [member.place for member in one.blame.members] == ["GLB.size"]
    assert one.blame.minimal


def test_a_mapping_without_certificate_is_held_against_the_optimum() -> None:
    best, worse = el.map(PAIR, BUFFER, "edp"), el.map(PAIR, BUFFER, "edp", max_fused_loops=0)
    given = el.evaluate(worse.workload, worse.machine, worse.mapping, "edp")
    found = explain_result(given)
    assert found.value == pytest.approx(best.value)
    assert found.base == 1
    assert found.run(1).question == "optimum"
    assert f"{given.value / best.value - 1:.3%} above the optimum" in found.reason


def test_quick_searches_nothing(best: el.Result) -> None:
    found = explain_result(best, quick=True)
    assert found.runs == ()
    assert found.shares
    late = replace(best, problem=replace(best.problem, latency_rule="tile"))
    assert explain_result(late, quick=True).shares
    with pytest.raises(SpecError, match="rule 'einsum'"):
        explain_result(late)


def test_a_problem_that_has_a_mapping_gets_its_optimum_explained() -> None:
    best, found = el.map(PAIR, BUFFER, "edp"), el.explain(PAIR, BUFFER, "edp")
    assert found.status == "mapped"
    assert found.value == pytest.approx(best.value)
    assert [one.tensor for one in found.alternatives] == list(best.workload.intermediates)


class Impatient(Watcher):
    """Wants to stop after so many runs."""

    def __init__(self, runs: int) -> None:
        self.runs = runs

    def count(self, rule: str, number: int = 1) -> None:
        self.runs -= number

    def stopped(self) -> bool:
        return self.runs < 0


def test_what_is_known_stays_when_it_is_interrupted_anywhere(best: el.Result) -> None:
    problem = CASES[5].problem()
    whole = explain_problem(problem)
    before = 0
    for runs in range(len(whole.runs)):
        part = explain_problem(problem, watch=Impatient(runs))
        assert not part.complete
        assert len(part.runs) <= runs + 1
        known = len(part.conflicts) + len(part.relaxations)
        assert known >= before
        before = known
        assert parse_explanation(part.to_json()) == part
        assert "not finished" in str(part)
        for conflict in part.conflicts:
            assert {m.place for m in whole.conflicts[0].members} <= {m.place for m in conflict.members}
    assert before == len(whole.conflicts) + len(whole.relaxations)
    part = explain_result(best, watch=Impatient(1))
    assert len(part.alternatives) == 1
    assert not part.complete


def test_two_independent_causes_need_a_pair() -> None:
    """A kind that no unit executes, and a buffer too small for what it must hold: two conflicts, one relaxation of two
    constraints each."""
    problem = CASES[0].problem()
    unit = replace(problem.machine.unit("MAC"), kinds=("map",))
    found = explain_problem(with_level(problem, unit))
    assert [len(conflict.members) for conflict in found.conflicts] == [1, 2]
    assert found.relaxations
    for one in found.relaxations:
        assert {change.place.partition(".")[0] for change in one.changes} == {"MAC", "GLB"}
        assert one.problem is not None
        assert Exact().search(one.problem).value == pytest.approx(one.value)


def test_nobody_is_to_blame_for_what_is_not_supported() -> None:
    """Windows cannot be blamed on a limit: the problem without all of them has no mapping either."""
    text = "schema: workload/1\nname: w\nbits: 8\nranks: {m: 2, k: 2}\n"
    text += "einsums: [{name: E, einsum: 'Z[m] = X[m,k]', reduction: online_softmax}]\n"
    from einloom.workload.files import parse_workload

    found = el.explain(parse_workload(text), "simple")
    assert found.status == "infeasible"
    assert found.conflicts[0].members == ()
    assert found.relaxations == ()
    assert "no constraint is to blame" in str(found)


def test_the_command_line(tmp_path: Path) -> None:
    saved, page = tmp_path / "why.json", tmp_path / "why.html"
    code, printed = run("explain", SAVED / "infeasible.json", "--quick", "--json", saved)
    assert code == 0
    assert "to blame 3 constraints" in printed
    assert run("explain", saved) == (0, printed)
    code, output = run("explain", saved, "--json", "-")
    assert json.loads(output) == json.loads(saved.read_text(encoding="utf-8"))
    assert run("report", SAVED / "infeasible.json", "--explanation", saved, "-o", page)[0] == 0
    assert 'id="explanation"' in page.read_text(encoding="utf-8")
    code, output = run("report", SAVED / "matmul.json", "--explanation", saved, "-o", page)
    assert (code, "another problem" in output) == (2, True)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("explain", "nothing.json"), "cannot read the file"),
        (("explain", SAVED / "matmul.json", "--objective", "edp"), "brings its own objective"),
        (("explain", "matmul", "simpel"), "did you mean 'simple'"),
        (("explain", "matmul", "simple", "--objective", "enrgy"), "did you mean 'energy'"),
        (("explain", "matmul", "simple", "--json", "/nowhere/x.json"), "there is no folder"),
    ],
)
def test_nonsense_on_the_command_line(arguments: tuple[object, ...], words: str) -> None:
    code, output = run(*arguments)
    assert code == 2
    assert words in output


def test_a_damaged_file_is_refused_with_its_place(found: Explanation, tmp_path: Path) -> None:
    data = json.loads(found.to_json())
    for damage, words in (
        ({"status": "mappped"}, "did you mean 'mapped'"),
        ({"runs": []}, "run 1 is named"),
        ({"shares": [{"component": 3}]}, "shares[0]"),
        ({"surplus": 1}, "surplus"),
        ({"schema": "explanation/9"}, "version '9'"),
    ):
        with pytest.raises(SpecError) as caught:
            parse_explanation(json.dumps({**data, **damage}), "why.json")
        assert words in str(caught.value)
        assert str(caught.value).startswith("why.json")
    edited = parse_explanation(json.dumps({**data, "reason": "magic"}))
    assert edited.recorded_digest != edited.found_digest


def test_the_panel_escapes_names_and_names_the_runs(found: Explanation, best: el.Result, tmp_path: Path) -> None:
    path = tmp_path / "r.html"
    hostile = replace(found, reason="<script>alert(1)</script>")
    write_page(best, path, hostile)
    page = path.read_text(encoding="utf-8")
    assert "<script>alert(1)" not in page
    for one in found.runs:
        assert f'id="run-{one.number}"' in page
    write_page(best, path)
    assert 'id="explanation"' not in path.read_text(encoding="utf-8")
    unmapped = read_answer(SAVED / "infeasible.json")
    assert isinstance(unmapped, Unmapped)
    with pytest.raises(SpecError, match="another problem"):
        write_page(unmapped, path, found)
    with pytest.raises(SpecError, match="another result"):
        write_page(replace(best, recorded_digest="b" * 64), path, replace(found, of="a" * 64))


def test_a_search_that_contradicts_the_definition_of_the_space_settles_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("einloom.diagnose.feasibility.objections", lambda problem, mapping: ("rule 3: wrong",))
    found = el.explain(CHAIN, BUFFER)
    assert (found.status, found.complete) == ("unfinished", False)
    assert "not one: rule 3: wrong" in found.reason
    part = explain_problem(CASES[1].problem())
    assert part.status == "infeasible"
    assert not part.complete
    assert not part.conflicts[0].minimal
    assert "not minimal" in str(part)


def test_a_budget_that_ends_leaves_the_best_mapping_so_far(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether there is any mapping is not known in half of the budget; the rest finds one, with a bound."""
    asked = problem("conv-chain", "tileflow-edge", "edp")
    monkeypatch.setattr(Asker, "_any", late)
    found = explain_problem(asked, seconds=1.5)
    assert (found.status, found.complete, found.base) == ("mapped", False, None)
    assert found.value is not None and found.shares and not found.gains
    assert "not known to be an optimum; no mapping is below" in found.reason
    assert "not finished: the budget of seconds ended [2]" in str(found)
    assert re.search(r"\[2\] +optimum: unfinished; between \S+ and \S+ when the", str(found))
    assert parse_explanation(found.to_json()) == found
    unbounded = explain_problem(problem(CHAIN, BUFFER), seconds=None)
    assert unbounded.status == "unfinished" and unbounded.left == "the budget of seconds ended [1]"


def late(asker: Asker, problem: el.Problem) -> None:
    """A question that takes its whole share of the budget."""
    asker.ended = Ended.SECONDS
    raise Unfinished(Ended.SECONDS.words)


def test_more_choices_than_are_listed_are_searched_in_a_budget(
    best: el.Result, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("einloom.diagnose.feasibility.MAX_SPREADS_SOLVED", 0)
    plain = replace(best, certificate=None)
    refused = explain_result(plain)
    assert not refused.complete and refused.left == "not answered: [1]"
    assert "not finished: not answered: [1]" in str(refused) and "too many to list" in str(refused)
    found = explain_result(plain, seconds=60.0)
    assert found.base == 1 and found.value == best.value


def test_an_interruption_is_named(best: el.Result) -> None:
    part = explain_result(best, watch=Impatient(1))
    assert part.left is not None and part.left.startswith("the search was stopped")
    assert "not finished: the search was stopped" in str(part)
