"""Searches with small budgets: every option is drawn, and what leaves the engine or lies about itself is noticed."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest
from bench import budgets

from einloom import api as verbs
from einloom.result import Result

ASKED = budgets.Asked("matmul", "tpu-v4i", "edp", {"space": "ragged", "full_use": True}, {"seconds": 0.5})


def test_every_option_is_drawn() -> None:
    asked = [budgets.drawn(1, number) for number in range(300)]
    assert [budgets.drawn(1, number) for number in range(300)] == asked
    assert {name for one in asked for name in one.space} == {"space", "full_use", "order", "stores", "dataflow"}
    assert {name for one in asked for name in one.budget} == {"seconds", "memory", "steps"}
    assert {one.objective for one in asked} == set(budgets.GOALS)


def test_an_answer_in_time_is_right() -> None:
    assert budgets.run(ASKED) == ("optimal", False)
    assert budgets.run(replace(ASKED, machine="nothing"))[1] is False


@pytest.mark.parametrize("error", [ValueError, KeyError, AssertionError])
def test_what_leaves_the_engine_is_noticed(error: type[Exception], monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> Result:
        raise error("planted")

    monkeypatch.setattr(verbs, "map", broken)
    said, mistaken = budgets.run(ASKED)
    assert mistaken and "planted" in said


def test_a_wrong_price_and_a_tree_outside_the_space_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = replace(ASKED, workload="matmul:m=1000,n=1000,k=1000", machine="nvdla", space={"space": "ragged"})
    found = verbs.map(asked.workload, asked.machine, asked.objective, space="ragged")
    assert budgets.wrong(asked, found) is None
    assert "rule 2" in str(budgets.wrong(replace(asked, space={"space": "ffm"}), found))
    monkeypatch.setattr(verbs, "evaluate", lambda *_: SimpleNamespace(energy=0.0, latency=found.latency))
    assert "evaluate says" in str(budgets.wrong(asked, found))
