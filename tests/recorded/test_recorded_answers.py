"""Small problems answer today as they did when all trees, the oracle and the second reading agreed with every answer.

`python -m bench.recorded` records them anew; bench/README.md says when.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest

from einloom.cost.breakdown import Cost
from einloom.testing.problems.dimensions import DIMENSIONS, dimensions_of

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted((Path(__file__).parent / "answers").glob("*.json"))
CASES = [  # but for every third file only with the slow tests
    pytest.param(
        path.stem,
        key.removeprefix("answer "),
        id=f"{path.stem}-{key.removeprefix('answer ')}",
        marks=[pytest.mark.slow] if number % 3 and path.stem.split("-")[-1].isdigit() else [],
    )
    for number, path in enumerate(FILES)
    for key in json.loads(path.read_text(encoding="utf-8"))
    if key.startswith("answer ")
]
SHOWN = 20
QUICK = "problem-40205"


@pytest.fixture(autouse=True)
def _bench_on_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT))


@lru_cache(2)
def subject_of(name: str) -> Any:
    """The file's problem, with its trees, which all questions about it share."""
    from bench.recorded.subjects import ANSWERS, read

    return read(ANSWERS / f"{name}.json")


@pytest.mark.parametrize(("name", "question"), CASES)
def test_the_answer_is_the_recorded_one(name: str, question: str) -> None:
    from bench.recorded.asked import QUESTIONS, plain
    from bench.recorded.compared import differences

    subject = subject_of(name)
    now = plain(QUESTIONS[question](subject))
    wrong = list(differences(subject.answers[question], now))
    shown = "\n".join(wrong[:SHOWN])
    hint = f"if this is meant: python -m bench.recorded {name} (bench/README.md, recorded answers)"
    assert not wrong, f"{len(wrong)} differences\n{shown}\n{hint}"


def test_each_file_has_the_answers_to_all_questions_of_its_kind() -> None:
    from bench.recorded.asked import KINDS
    from bench.recorded.subjects import ANSWERS, read

    asked = Counter[str]()
    for path in sorted(ANSWERS.glob("*.json")):
        subject = read(path)
        assert tuple(subject.answers) == KINDS[subject.kind]
        asked[subject.kind] += 1
    assert asked["problem"] >= 50 and asked["tree"] >= 60 and min(asked.values()) >= 2


def test_dimensions_of_problems_are_there() -> None:
    """All but a few that are new: `python -m bench.recorded --draw problem-SEED` adds a problem that has them."""
    from bench.recorded.subjects import ANSWERS, read

    seen: set[str] = set()
    for path in sorted(ANSWERS.glob("problem-*.json")):
        about = read(path).all_trees
        seen |= dimensions_of(about.workload, about.machine, about.mapspace)
    missing = set(DIMENSIONS) - seen
    assert seen <= set(DIMENSIONS) and len(missing) <= 3, missing


def test_a_difference_is_named_by_its_field() -> None:
    from bench.recorded.compared import differences

    recorded = {"a": [1, {"b": 2.0, "c": "words"}], "gone": 1, "inf": float("inf")}
    assert not list(differences(recorded, {**recorded, "a": [1, {"b": 2.0 + 1e-12, "c": "words"}]}))
    now = {"a": [True, {"b": 2.1, "c": "other"}, 3], "new": 0, "inf": float("inf")}
    assert list(differences(recorded, now)) == [
        "a[0]: recorded 1, now True",
        "a[1].b: recorded 2.0, now 2.1",
        "a[1].c: recorded 'words', now 'other'",
        "a[2]: not recorded, now 3",
        "gone: recorded 1, now gone",
        "new: not recorded, now 0",
    ]


def test_nothing_is_recorded_that_a_source_contradicts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bound above the optimum, a method below it, and one value moved too many."""
    from bench.recorded import __main__ as command
    from bench.recorded import asked, sources
    from bench.recorded.subjects import ANSWERS, read

    monkeypatch.syspath_prepend(str(ROOT / "tests"))
    subject = read(ANSWERS / f"{QUICK}.json")
    assert not list(sources.disagreements(subject, subject.answers))
    for question, field, times in (("exact", "bound", 4.0), ("methods", "value", 0.5)):
        answers = json.loads(json.dumps(subject.answers))
        next(iter(answers[question].values()))["certificate"][field] *= times
        assert len(list(sources.disagreements(subject, answers))) == 1

    wider = json.loads(json.dumps(subject.answers))
    certificate = next(iter(wider["exact elsewhere"].values()))["certificate"]
    certificate["value"], certificate["bound"] = certificate["value"] * 4.0, certificate["bound"] * 4.0
    said = list(sources.disagreements(subject, wider))
    assert any("in the space that it holds" in one for one in said) and any("the bound is" in one for one in said)
    wider = json.loads(json.dumps(subject.answers))
    wider["machine code"]["here"]["wrong"] = ["a tree"]
    assert list(sources.disagreements(subject, wider)) == ["machine code, here: 'a tree'"]

    right = asked.evaluate

    def dearer(*given: object) -> Cost:
        cost = right(*given)
        return replace(cost, actions=tuple(a._replace(count=a.count + 1) for a in cost.actions))

    monkeypatch.setattr(asked, "evaluate", dearer)
    monkeypatch.setattr(command, "ANSWERS", tmp_path)
    assert command.one(subject, only_check=False) and not list(tmp_path.iterdir())
