"""Who maps sizes with few divisors is told what perfect tiles leave out; who maps others is not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from einloom import api, questions
from einloom.diagnose.text import explained
from einloom.problem.few_divisors import few_divisors
from einloom.report.page.explained import panel
from einloom.report.text.results import certificate_lines
from einloom.result import Result

WORDS = "197 (m) has no divisor between 1 and 197; `--space ragged` also tries uneven tiles (docs/mapspace.md)"


def told(found: Result) -> str | None:
    return dict(certificate_lines(found)).get("note")


def product(m: int, n: int = 64, k: int = 64) -> str:
    return f"matmul:m={m},n={n},k={k}"


def test_the_answer_names_the_rank() -> None:
    found = api.map(product(197), "simple", "edp")
    assert told(found) == WORDS
    assert told(api.map(product(197), "simple", "edp", space="ragged")) is None
    assert told(api.map(product(192), "simple", "edp")) is None
    assert told(api.evaluate(found)) is None, "nothing was searched for"


def test_so_does_an_explanation() -> None:
    found = api.explain(product(197), "simple", quick=True)
    assert WORDS in " ".join(explained(found).split())
    assert "197 (m) has no divisor between 1 and 197" in panel(found).drawn


@pytest.mark.parametrize(
    ("extent", "between"),
    [(197, "1 and 197"), (361, "1 and 19"), (50257, "29 and 1733"), (1023, "3 and 11"), (258, "6 and 43")],
)
def test_extents_that_lose(extent: int, between: str) -> None:
    assert f"{extent} (m) has no divisor between {between};" in few_divisors(
        questions.problem(product(extent), "simple")
    )


@pytest.mark.parametrize("extent", [2, 7, 13, 16, 64, 96, 147, 224, 384, 768, 1000, 1500, 2048, 11008, 14336, 128256])
def test_extents_that_do_not(extent: int) -> None:
    assert few_divisors(questions.problem(product(extent), "simple")) == ""


def test_the_worst_comes_first() -> None:
    words = few_divisors(questions.problem(product(361, 1023, 197), "simple"))
    assert words.startswith("197 (k) has no divisor between 1 and 197, 361 (m) none between 1 and 19, 1023 (n) none")


def test_nothing_is_said_where_no_tiles_gain() -> None:
    """All that is compulsory costs nearly as much as what was found."""
    found = api.map("matmul:m=50257,n=16,k=768,bits=16", "ffm-edge", "edp")
    assert few_divisors(found.problem) and not few_divisors(found.problem, found.value) and told(found) is None
    assert few_divisors(found.problem, 2 * found.value)
    assert not few_divisors(replace(found.problem, mapspace=replace(found.mapspace, name="ragged")))
