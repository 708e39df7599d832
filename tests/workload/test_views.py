"""Tensors under other ranks: what is read and written back, and every reason to refuse one."""

from __future__ import annotations

import pytest

from einloom.errors import SpecError
from einloom.oracle.plan import Reshape
from einloom.oracle.reference import evaluate_cascade, random_inputs
from einloom.workload.build import build_workload
from einloom.workload.einsum import Access, Einsum, Index, TensorView, Workload
from einloom.workload.files import parse_workload, workload_text

TEXT = """schema: workload/1
name: shuffle
ranks: {c: 12, p: 2, g: 4, h: 3, q: 2, k: 24}
bits: {default: 8, T: 4}
einsums:
  - T[c,p] = relu(X[c,p])
  - G[h,g,q] = copy U[g,h,q]
  - Y[k] = exp(V[k])
views:
  U: {of: T, shape: [4, 3, 2]}
  V: {of: G, shape: [24]}
persistent: [T]
"""


def test_what_is_read() -> None:
    w = parse_workload(TEXT)
    assert w.views == (TensorView("U", "T", (4, 3, 2)), TensorView("V", "G", (24,)))
    assert [t.name for t in w.tensors] == ["X", "T", "G", "Y"]
    assert w.inputs == ("X",)
    assert w.outputs == ("Y",)
    assert dict(w.consumers) == {"X": ("T",), "T": ("G",), "G": ("Y",), "Y": ()}
    read = w.einsum("G").inputs[0]
    assert (read.tensor, read.view, str(read)) == ("T", "U", "U[g,h,q]")
    assert w.shape(read) == (4, 3, 2)
    assert w.shape(w.einsum("T").output) == (12, 2)
    assert dict(w.parted) == {"T": frozenset({0, 1, 2}), "G": frozenset({0, 1, 2})}
    assert w.viewed == {"T", "G"}
    again = parse_workload(workload_text(w))
    assert again == w
    assert workload_text(again) == workload_text(w)
    assert build_workload("again", w.einsums, w.extents, bits=8, views=w.views).views == w.views


def test_an_input_that_is_read_under_other_ranks_alone() -> None:
    text = "schema: workload/1\nname: x\nbits: 8\nranks: {a: 2, b: 3}\neinsums: ['Z[a,b] = exp(U[a,b])']\n"
    views = "views: {U: {of: T, shape: [2, 3]}}\n"
    w = parse_workload(f"{text}{views}shapes: {{T: [6]}}\n")
    assert w.inputs == ("T",)
    assert w.tensor("T").shape == (6,)
    assert parse_workload(workload_text(w)) == w
    with pytest.raises(
        SpecError, match="view U is of T, which no Einsum accesses; an input that is read through views"
    ):
        parse_workload(text + views)


def test_elements_are_those_of_a_reshape() -> None:
    w = parse_workload(TEXT)
    found = evaluate_cascade(w, random_inputs(w))
    assert (found["G"] == found["T"].reshape(4, 3, 2).transpose(1, 0, 2)).all()
    places = Reshape((4, 3, 2), (12, 2))
    for g in range(4):
        for h in range(3):
            assert places.of((g, h, 1)) == (3 * g + h, 1)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("[4, 3, 2]", "[4, 3, 3]", "10:3: view U [4, 3, 3] has 36 elements, but T [12, 2] has 24"),
        ("[4, 3, 2]", "[4, 6]", "7:5: the shape of U has 2 rank(s), but Einsum G reads U[g,h,q]"),
        ("[4, 3, 2]", "[3, 4, 2]", "7:5: rank of unequal size: tensor U has size 3 by its declared shape"),
        ("[4, 3, 2]", "[4, 0, 2]", "10:25: 0 must be at least 1"),
        ("of: T,", "of: t,", "10:3: view U is of t, which no Einsum accesses; an input that"),
        ("of: G,", "of: U,", "11:3: view V is of U, a view itself (at views.V); did you mean 'T'"),
        ("of: G,", "og: G,", "unknown key 'og'"),
        ("of: G, ", "", "11:6: key 'of' is missing"),
        ("exp(V[k])", "exp(X1[k])", "11:3: no Einsum reads view V"),
        ("  - T[c,p]", "  - U[c,p]", "6:5: Einsum U writes U, a view of T; only the tensor itself is written"),
        ("exp(V[k])", "add(V[k], G[h,g,q])", "8:5: Einsum Y reads G as V[k] and as G[h,g,q]"),
        ("G[h,g,q] = copy U", "T[h,g,q] = copy U", "7:5: Einsum T reads U[g,h,q], a view of T, which it writes"),
        (
            "persistent: [T]",
            "persistent: [U]",
            "12:13: persistent names U, a view of T (at persistent); did you mean 'T'",
        ),
        ("T: 4}", "U: 4}", "4:23: bits names U, a view of T (at bits.U); did you mean 'T'"),
        ("  V:", "  1V:", "'1V'"),
    ],
)
def test_what_is_refused(old: str, new: str, message: str) -> None:
    assert TEXT.count(old) == 1
    with pytest.raises(SpecError) as refused:
        parse_workload(TEXT.replace(old, new), "file")
    assert message in str(refused.value)


def test_an_access_through_no_view() -> None:
    einsum = Einsum("Z", Access("Z", (Index((("a", 1),)),)), (Access("T", (Index((("a", 1),)),), "U"),), "map", "exp")
    with pytest.raises(SpecError, match="Einsum Z reads U\\[a\\] through no view that is listed"):
        build_workload("x", [einsum], {"a": 2}, bits=8)
    twice = [TensorView("U", "T", (2,)), TensorView("U", "T", (2, 1))]
    with pytest.raises(SpecError, match="two views are called U"):
        build_workload("x", [einsum], {"a": 2}, bits=8, views=twice, shapes={"T": [2]})


def test_a_workload_without_views_has_none() -> None:
    w: Workload = build_workload("x", ["Z[m] = exp(A[m])"], {"m": 2}, bits=8)
    assert (w.views, w.viewed, dict(w.parted)) == ((), frozenset(), {})
    assert "views" not in workload_text(w)
