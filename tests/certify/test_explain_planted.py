"""Planted infeasibilities: `explain` names exactly the planted cause, and every relaxation that it offers works."""

from __future__ import annotations

import pytest

from einloom.diagnose import Explanation, explain_problem, parse_explanation
from einloom.diagnose.feasibility import objections
from einloom.diagnose.record import Relaxation
from einloom.mapping.text import parse_mapping
from einloom.search.exact import Exact
from planted_conflicts import CASES, Planted


def blamed(found: Explanation) -> set[tuple[str, str]]:
    return {(member.place, member.text) for member in found.conflicts[0].members}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_planted_cause_is_named(case: Planted) -> None:
    found = explain_problem(case.problem())
    assert found.status == "infeasible"
    assert found.complete
    assert len(found.conflicts) == 1
    members = blamed(found)
    assert len(members) == len(case.blamed), members
    for place, text in case.blamed:
        assert any(where == place and text in said for where, said in members), (place, text, members)
    assert found.conflicts[0].minimal
    assert found.conflicts[0].smallest
    offered = {(one.changes[0].place, one.changes[0].after) for one in found.relaxations}
    assert set(case.helps) <= offered, offered
    for one in found.relaxations:
        assert len(one.changes) == 1
        shown_to_work(found, one)
    written_and_printed(found)


def shown_to_work(found: Explanation, one: Relaxation) -> None:
    """The relaxed problem has an optimum, and the mapping that was kept as a witness is legal and of its space."""
    assert one.problem is not None
    solved = Exact().search(one.problem)
    assert solved.value == pytest.approx(one.value, rel=1e-9)
    witness = parse_mapping(one.mapping, one.problem.workload, one.problem.machine)
    assert objections(one.problem, witness) == ()
    assert found.run(one.shown).outcome == "feasible"
    assert one.refused is None or found.run(one.refused).outcome == "infeasible"
    assert one.solved is not None
    assert found.run(one.solved).outcome == "solved"


def written_and_printed(found: Explanation) -> None:
    back = parse_explanation(found.to_json())
    assert back == found
    assert back.recorded_digest == back.found_digest
    text = str(found)
    assert str(back) == text
    assert max(map(len, text.splitlines())) <= 100
    for member in found.conflicts[0].members:
        assert member.without is not None
        assert found.run(member.without).outcome == "feasible"
    assert found.run(found.conflicts[0].shown).outcome == "infeasible"
