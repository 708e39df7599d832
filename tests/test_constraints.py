"""Selectors: what they read, what they select, what they refuse."""

from __future__ import annotations

import doctest

import pytest
from hypothesis import given
from hypothesis import strategies as st

import einloom.workload.selectors
from einloom.errors import SpecError
from einloom.workload.build import build_workload
from einloom.workload.selectors import select, selector, unknown_names

W = build_workload(
    "w",
    ["I[m,d] = copy X[m,d]", "Q[m,e] = I[m,d] * WQ[d,e]", "Y[m] = Q[m,e] * V[e]"],
    {"m": 2, "d": 3, "e": 4},
    bits=8,
    persistent=["WQ"],
)


def test_doctests() -> None:
    assert doctest.testmod(einloom.workload.selectors).failed == 0


@pytest.mark.parametrize(
    ("text", "einsum", "expected"),
    [
        ("all", "Q", {"Q", "I", "WQ"}),
        ("nothing", "Q", set()),
        ("input", "Q", {"I"}),
        ("weight", "Q", {"WQ"}),
        ("output", "Q", {"Q"}),
        ("intermediate", "Q", {"Q", "I"}),
        ("~intermediate", "Q", {"WQ"}),
        ("cascade_input", "I", {"X"}),
        ("cascade_output", "Y", {"Y"}),
        ("persistent", "Q", {"WQ"}),
        ("copy", "I", {"I", "X"}),
        ("copy", "Q", set()),
        ("unheld", "Q", {"Q"}),
        ("V | output", "Y", {"V", "Y"}),
        ("V", "Q", set()),
        ("(input | output) & ~copy", "Q", {"I", "Q"}),
        ("(input | output) & ~copy", "I", set()),
        ("input | output & nothing", "Q", {"I"}),
        ("~~input", "Q", {"I"}),
    ],
)
def test_select(text: str, einsum: str, expected: set[str]) -> None:
    assert select(selector(text), W, einsum, held_above={"I", "WQ"}) == expected


@pytest.mark.parametrize(
    "text", ["", "  ", "a b", "a |", "& a", "(a", "a)", "a ? b", "~", "()", "(" * 60 + "a", "a" * 3000]
)
def test_refused(text: str) -> None:
    with pytest.raises(SpecError):
        selector(text)


def test_unknown_names() -> None:
    assert unknown_names(selector("input | Q | R"), W) == ("R",)


NAMES = st.sampled_from(("input", "output", "weight", "intermediate", "Q", "V", "all"))
TREES = st.recursive(NAMES, lambda inner: st.tuples(st.sampled_from("&|"), inner, inner), max_leaves=8)


@given(TREES, st.sampled_from(("I", "Q", "Y")))
def test_selection_is_set_algebra(tree: object, einsum: str) -> None:
    def text(node: object) -> str:
        return node if isinstance(node, str) else f"({text(node[1])}{node[0]}{text(node[2])})"  # type: ignore[index]

    def expected(node: object) -> frozenset[str]:
        if isinstance(node, str):
            return select(selector(node), W, einsum)
        left, right = expected(node[1]), expected(node[2])  # type: ignore[index]
        return left & right if node[0] == "&" else left | right  # type: ignore[index]

    assert select(selector(text(tree)), W, einsum) == expected(tree)
    assert select(selector(f"~({text(tree)})"), W, einsum) == frozenset(W.einsum(einsum).tensors) - expected(tree)
