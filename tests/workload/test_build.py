"""Cascades put together: order, shapes, outputs, and what does not fit."""

from __future__ import annotations

import doctest
from typing import Any

import numpy as np
import pytest

import einloom.workload.build
from einloom.errors import SpecError
from einloom.workload.build import build_workload
from einloom.workload.einsum import Workload


def build(einsums: list[str], ranks: dict[str, int], **more: object) -> Workload:
    return build_workload("w", einsums, ranks, **{"bits": 8, **more})  # type: ignore[arg-type]


def test_doctests() -> None:
    assert doctest.testmod(einloom.workload.build).failed == 0


def test_shapes_come_from_the_accesses() -> None:
    w = build(["O[p,k] = I[2*p+r,c] * W[r,c,k]"], {"p": 8, "r": 3, "c": 4, "k": 5})
    assert {t.name: t.shape for t in w.tensors} == {"I": (17, 4), "W": (3, 4, 5), "O": (8, 5)}
    assert w.inputs == ("I", "W") and w.outputs == ("O",)


def test_whole_numbers_of_numpy_become_plain() -> None:
    numbers = {"p": np.int32(8), "r": np.int16(3)}
    w = build(["O[p] = I[p+r] * W[r]"], numbers, bits=np.uint8(8), shapes={"W": np.array([3])}, repeat=np.int64(2))
    found = [size for _, size in w.sizes] + [n for t in w.tensors for n in (*t.shape, t.bits)] + [w.repeat]
    assert {type(number) for number in found} == {int}
    assert w == build(["O[p] = I[p+r] * W[r]"], {"p": 8, "r": 3}, shapes={"W": (3,)}, repeat=2)


@pytest.mark.parametrize(
    ("given", "message", "path"),
    [
        ({"ranks": {"m": 4.0}}, "rank variable m has size 4.0; sizes are whole numbers from 1 to 2**40", "ranks.m"),
        ({"ranks": {"m": True}}, "rank variable m has size True", "ranks.m"),
        ({"ranks": {"m": np.True_}}, "rank variable m has size", "ranks.m"),
        ({"ranks": {"m": "4"}}, "rank variable m has size '4'", "ranks.m"),
        ({"ranks": {"m": np.array([4, 4])}}, "rank variable m has size array([4, 4])", "ranks.m"),
        ({"bits": None}, "tensor A has None bits per value; it is a whole number from 1 to 4096", "bits.A"),
        ({"bits": "8 bit"}, "tensor A has '8 bit' bits per value", "bits.A"),
        ({"bits": {"default": 8.0}}, "tensor A has 8.0 bits per value", "bits.A"),
        ({"shapes": {"A": (4.0,)}}, "the shape of A holds 4.0; sizes are whole numbers", "shapes.A"),
        ({"shapes": {"A": (None,)}}, "the shape of A holds None", "shapes.A"),
        ({"shapes": {"A": 4}}, "the shape of A is a list of sizes, not 4", "shapes.A"),
        ({"repeat": 1.5}, "repeat is a whole number of at least 1, not 1.5", "repeat"),
        ({"repeat": True}, "repeat is a whole number of at least 1, not True", "repeat"),
    ],
)
def test_what_is_no_whole_number_is_refused(given: dict[str, Any], message: str, path: str) -> None:
    with pytest.raises(SpecError) as caught:
        build_workload("w", ["B[m] = A[m]"], **{"ranks": {"m": 4}, "bits": 8, **given})
    problem = getattr(caught.value, "problems", (caught.value,))[0]
    assert message in problem.message and problem.path == path


def test_padding_takes_the_producer_s_shape() -> None:
    w = build(["O1[p] = X[p] * S[p]", "O2[p] = O1[p+r-1] * W[r]"], {"p": 28, "r": 3})
    assert w.tensor("O1").shape == (28,) and w.intermediates == ("O1",)


def test_a_declared_shape_counts() -> None:
    w = build(["O[p] = I[p+r-1] * W[r]"], {"p": 28, "r": 3}, shapes={"I": (28,)})
    assert w.tensor("I").shape == (28,)
    w = build(["O[p] = I[2*p+r] * W[r]"], {"p": 4, "r": 1}, shapes={"I": (8,)})
    assert w.tensor("I").shape == (8,)


def test_producers_come_first_and_else_the_given_order_stays() -> None:
    w = build(["C[m] = B[m]", "D[m] = A[m]", "B[m] = A[m]"], {"m": 3})
    assert [e.name for e in w.einsums] == ["D", "B", "C"]
    w = build(["C[m] = A[m]", "B[m] = A[m]"], {"m": 3})
    assert [e.name for e in w.einsums] == ["C", "B"]


def test_bits_outputs_persistent_repeat() -> None:
    w = build(
        ["B[m] = A[m] * W[m]", "C[m] = B[m]"],
        {"m": 3},
        bits={"default": 16, "W": 4},
        outputs=["C", "B"],
        persistent=["W"],
        repeat=7,
    )
    assert [(t.name, t.bits, t.persistent) for t in w.tensors] == [
        ("A", 16, False),
        ("W", 4, True),
        ("B", 16, False),
        ("C", 16, False),
    ]
    assert w.outputs == ("B", "C") and w.repeat == 7


CHAIN = ["B[m] = A[m]", "C[m] = B[m]"]


@pytest.mark.parametrize(
    ("einsums", "ranks", "more", "message", "path"),
    [
        (["B[m] = A[m]", "C[p] = B[p]"], {"m": 3, "p": 4}, {}, "rank of unequal size: tensor B", "einsums.C"),
        (["B[p] = A[p]", "C[p] = B[p+r]*W[r]"], {"p": 8, "r": 3}, {}, "size 8 in Einsum B", "einsums.C"),
        (["B[p] = A[p+r]*W[r]", "C[q] = A[q]"], {"p": 8, "q": 8, "r": 3}, {}, "size 10", "einsums.C"),
        (["B[m] = A[m]", "C[m] = B[m,m2]"], {"m": 3, "m2": 3}, {}, "1 rank(s) in Einsum B", "einsums.C"),
        (["O[p] = I[p+r-1]*W[r]"], {"p": 8, "r": 3}, {}, "declare its shape", "einsums.O"),
        (["O[p] = I[p+9]"], {"p": 8}, {"shapes": {"I": (5,)}}, "reaches", "einsums.O"),
        (CHAIN, {"m": 3}, {"shapes": {"A": (2,)}}, "size 2 by its declared shape", "einsums.B"),
        (CHAIN, {"m": 3}, {"shapes": {"B": (4,)}}, "size 4 by its declared shape", "einsums.B"),
        (CHAIN, {"m": 3}, {"shapes": {"A": (3, 3)}}, "2 rank(s)", "shapes.A"),
        (CHAIN, {"m": 3}, {"shapes": {"A": (0,)}}, "holds 0", "shapes.A"),
        (CHAIN, {"m": 3}, {"shapes": {"X": (3,)}}, "no Einsum accesses", "shapes.X"),
        (["A[m] = B[m]", "B[m] = A[m]"], {"m": 3}, {}, "form a cycle", "einsums.A"),
        (["B[m] = A[m]", "B[m] = C[m]"], {"m": 3}, {}, "two Einsums are called B", "einsums.B"),
        ([], {"m": 3}, {}, "at least one Einsum", "einsums"),
        (CHAIN, {"m": 0}, {}, "size 0", "ranks.m"),
        (CHAIN, {"m": 2**50}, {}, "1 to 2**40", "ranks.m"),
        (CHAIN, {}, {}, "rank variable m of Einsum B has no size", "einsums.B"),
        (CHAIN, {"m": 3, "n": 3}, {}, "used by no Einsum", "ranks.n"),
        (CHAIN, {"m": 3}, {"outputs": ["D"]}, "no Einsum accesses", "outputs"),
        (CHAIN, {"m": 3}, {"outputs": ["A"]}, "which no Einsum writes", "outputs"),
        ([*CHAIN, "D[m] = B[m]"], {"m": 3}, {"outputs": ["C"]}, "tensor D is written, but no Einsum reads", "outputs"),
        (CHAIN, {"m": 3}, {"persistent": ["W"]}, "no Einsum accesses", "persistent"),
        (CHAIN, {"m": 3}, {"bits": {"A": 3}}, "has no default", "bits"),
        (CHAIN, {"m": 3}, {"bits": 0}, "0 bits", "bits.A"),
        (CHAIN, {"m": 3}, {"repeat": 0}, "at least 1", "repeat"),
    ],
)
def test_refused(einsums: list[str], ranks: dict[str, int], more: dict[str, object], message: str, path: str) -> None:
    with pytest.raises(SpecError) as caught:
        build(einsums, ranks, **more)
    assert message in caught.value.message and caught.value.path == path


def test_names_are_suggested() -> None:
    with pytest.raises(SpecError, match="did you mean 'Weights'"):
        build(["Z[m] = A[m] * Weights[m]"], {"m": 3}, persistent=["Weight"])


@pytest.mark.parametrize("einsums", [["Y[n] = T[0] * W[n]", "T[m] = X[m]"], ["Y[n] = X[0] * W[n]", "T[m] = X[m]"]])
def test_a_constant_does_not_say_the_size_of_a_rank(einsums: list[str]) -> None:
    """As with any other constant: the size is what a producer or an access by a variable says."""
    w = build(einsums, {"m": 3, "n": 2})
    assert (w.tensor("X").shape, w.tensor("T").shape) == ((3,), (3,))
    with pytest.raises(SpecError, match="rank of unequal size"):
        build([text.replace("[0]", "[3]") for text in einsums], {"m": 3, "n": 2})
