"""Damaged results, reasons and explanations through the verbs that read them: no traceback (bench/answers.py)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    monkeypatch.syspath_prepend(str(ROOT))
    monkeypatch.chdir(tmp_path)
    from bench import answers

    return answers


def check(answers: Any, files: int, seed: int, folder: Path) -> None:
    outcome = answers.run(files, seed, folder)
    assert outcome.broken == []
    assert sum(outcome.codes.values()) == files * 4
    read = sum(count for (_, code), count in outcome.codes.items() if code != 2)
    assert read > files / 4, "the damage leaves some files intact enough to be shown"


def test_some_files(answers: Any, tmp_path: Path) -> None:
    check(answers, 60, 5, tmp_path)


@pytest.mark.slow
def test_thousands_of_files(answers: Any, tmp_path: Path) -> None:
    check(answers, 3000, 0, tmp_path)


def test_intact_files_are_read(answers: Any, tmp_path: Path) -> None:
    """Each by the verbs that are made for it, or what is damaged would prove little."""
    outcome = answers.Outcome()
    for name, content in answers.originals().items():
        path = tmp_path / f"{name}.json"
        path.write_text(content, encoding="utf-8")
        kind = json.loads(content)["schema"].split("/")[0]
        verbs = {
            "result": [["show"], ["report"], ["verify", "--quick"], ["evaluate"], ["compare"], ["explain", "--quick"]],
            "unmapped": [["show"], ["report"], ["explain", "--quick"]],
            "explanation": [["explain"]],
        }[kind]
        for words in verbs:
            answers.ask([words[0], str(path), *words[1:]], name, outcome)
    assert outcome.broken == [] and {code for _, code in outcome.codes} == {0}, outcome


def test_the_same_seed_damages_the_same_way(answers: Any) -> None:
    original = json.dumps({"schema": "result/1", "energy": 1.0, "busy": [{"einsum": "E0"}], "digest": ""})
    assert answers.damaged(original, "1/a") == answers.damaged(original, "1/a")
    assert len({answers.damaged(original, str(i)) for i in range(50)}) > 30


@pytest.mark.parametrize("bad", [KeyError("E9"), KeyboardInterrupt(), SystemExit(2)])
def test_what_a_verb_must_not_do_is_noticed(answers: Any, monkeypatch: pytest.MonkeyPatch, bad: BaseException) -> None:
    def command(words: list[str]) -> None:
        raise bad

    monkeypatch.setattr(answers, "command", command)
    outcome = answers.Outcome()
    answers.ask(["show", "r.json"], "label", outcome)
    assert len(outcome.broken) == 1 and "label: show r.json" in outcome.broken[0]
