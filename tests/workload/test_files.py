"""Workload files: read, write, and every mistake with its place."""

from __future__ import annotations

import json
import pickle
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from einloom.errors import SpecError, SpecErrors
from einloom.reading.facts import Fact
from einloom.workload.build import build_workload
from einloom.workload.einsum import NetworkNode, Workload
from einloom.workload.files import (
    parse_workload,
    read_workload,
    workload_data,
    workload_from_data,
    workload_text,
    write_workload,
)
from einloom.workload.notation import MODULE_PATH, module_path, module_path_of, parse_einsum
from einloom.workload.orders import reordered

GOOD = """\
schema: workload/1
name: two matmuls
parameters: {tokens: 128, wide: 2 * tokens}
source: a table
kind: printed
ranks: {m: tokens, k: 64, n: {value: wide, source: measured, kind: derived}}
bits: {default: 16, W: 8}
einsums:
  - T[m,n] = X[m,k] * W[k,n]
  - {name: S, einsum: "Y[m] = T[m,n]", reduction: max}
  - {name: P, einsum: "m,m->m", inputs: [Y, V], output: Q, group: head.0,
     nodes: [{output: t 1, name: /a/Mul}, {output: q}]}
outputs: [Q]
persistent: [W]
repeat: 32
absorbed: [2 x Relu, "1 x bias: of P"]
"""


def test_read() -> None:
    w = parse_workload(GOOD)
    assert w.extents == {"m": 128, "n": 256, "k": 64}
    assert [e.name for e in w.einsums] == ["T", "S", "P"]
    assert w.einsum("S").reduction == "max" and w.einsum("P").tensors == ("Q", "Y", "V")
    assert w.tensor("W").bits == 8 and w.tensor("W").persistent and w.repeat == 32
    assert Fact("ranks.n", "measured", "derived") in w.facts and Fact("ranks.m", "a table", "printed") in w.facts


def test_parameters_may_be_set() -> None:
    w = parse_workload(GOOD, parameters={"tokens": "2*8"})
    assert w.extents["m"] == 16 and w.extents["n"] == 32
    with pytest.raises(SpecError, match="did you mean 'tokens'"):
        parse_workload(GOOD, parameters={"token": "3"})


def test_indices_may_have_parameters() -> None:
    """As constants and as factors; a rank variable of the same name goes first."""
    text = """schema: workload/1
name: decode
bits: 8
parameters: {cached: 96, new: 4, stride: 2, p: 100, wide: 8 bit, half: 1/2}
ranks: {s: new, p: p, e: 64, q: 8, r: 3}
shapes: {K: [p, 64], I: [16]}
initial: [K]
einsums:
  - K[s+cached,e] = X[s,e] * W[e]
  - Q[s,p] = Y[s,e] * K[p,e]
  - {name: C, einsum: "O[q] = I[stride*q+r-1] * F[r]"}
"""
    assert [str(e.accesses[n]) for e, n in zip(parse_workload(text).einsums, (0, 2, 1), strict=True)] == [
        "K[s+96,e]", "K[p,e]", "I[2*q+r-1]",
    ]  # fmt: skip
    longer = parse_workload(text, parameters={"cached": "28", "p": "32"})
    assert str(longer.einsums[0].output) == "K[s+28,e]" and longer.tensor("K").shape == (32, 64)
    assert workload_from_data(workload_data(longer)) == longer
    for name in ("wide", "half", "cached2"):
        with pytest.raises(SpecError, match=name):
            parse_workload(text.replace("s+cached", f"s+{name}"))
    with pytest.raises(SpecError, match="at most 2147483648"):
        parse_workload(text, parameters={"cached": "3000000000"})


def test_round_trips(tmp_path: Path) -> None:
    w = parse_workload(GOOD)
    again = parse_workload(workload_text(w))
    assert again == w and set(again.facts) == set(w.facts)
    assert workload_from_data(json.loads(json.dumps(workload_data(w)))) == w
    write_workload(w, tmp_path / "w.yaml")
    assert read_workload(tmp_path / "w.yaml") == w


def test_modules_nodes_and_absorbed_operators_are_kept_and_mean_nothing() -> None:
    w = parse_workload(GOOD)
    said = ", group: head.0,\n     nodes: [{output: t 1, name: /a/Mul}, {output: q}]"
    plain = parse_workload(GOOD.replace(said, "").partition("absorbed")[0])
    assert plain == w and hash(plain) == hash(w)
    for same in (w, parse_workload(workload_text(w)), pickle.loads(pickle.dumps(w)), reordered(w, list(w.names))):
        assert [e.group for e in same.einsums] == ["", "", "head.0"] and same.absorbed == ("2 x Relu", "1 x bias: of P")
        assert [e.nodes for e in same.einsums] == [(), (), (NetworkNode("t 1", "/a/Mul"), NetworkNode("q"))]
    assert not any(word in workload_text(plain) for word in ("group", "nodes", "absorbed"))


HEAD = "schema: workload/1\nname: x\nbits: 8\n"


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        (HEAD + "ranks: {m: 3}\neinsums: ['A[m] = B[m]']\nrepaet: 3\n", "w.yaml:6:1:", "did you mean 'repeat'"),
        (HEAD + "ranks: {m: 3, m: 4}\n", "w.yaml:4:15:", "stands here twice"),
        (HEAD + "ranks: {m: 3, p: 4}\neinsums:\n- A[m] = B[m]\n- C[p] = A[p]\n", "w.yaml:7:3:", "unequal size"),
        (HEAD + "ranks: {m: 3}\neinsums:\n- A[m] = B[m\n", "w.yaml:6:3:", "expected ',' or ']'"),
        (HEAD + "ranks: {m: 3}\neinsums:\n- A[m] = B[m]\noutputs: [B]\n", "w.yaml:7:10:", "which no Einsum writes"),
        (
            HEAD + "ranks: {m: 3}\neinsums:\n- A[m] = B[m]\n- C[m] = B[m]\noutputs: [A]\n",
            "w.yaml:8:10:",
            "tensor C is written, but no Einsum reads it",
        ),
        (HEAD + "ranks: {m: 3, n: 3}\neinsums: ['A[m] = B[m]']\n", "w.yaml:4:15:", "used by no Einsum"),
        (HEAD + "ranks: {m: -3}\neinsums: ['A[m] = B[m]']\n", "w.yaml:4:12:", "at least 1"),
        (HEAD + "ranks: {m: 1.5}\neinsums: ['A[m] = B[m]']\n", "w.yaml:4:12:", "not a whole number"),
        (
            HEAD + "ranks: {m: __import__('os').system('x')}\neinsums: ['A[m] = B[m]']\n",
            "w.yaml:4:12:",
            "not arithmetic",
        ),
        (HEAD + "ranks: {m: 3}\neinsums: [{einsum: 'A[m] = B[m]', nam: E}]\n", "w.yaml:5:35:", "did you mean 'name'"),
        (HEAD + "ranks: {m: 3}\neinsums: []\n", "w.yaml:5:10:", "at least one Einsum"),
        (HEAD + "ranks: {m: 3}\n", "w.yaml:1:1:", "key 'einsums' is missing"),
        (
            HEAD + "ranks: {m: 3}\neinsums: [{einsum: 'A[m] = B[m]', group: /layers.0/self attn}]\n",
            "w.yaml:5:42:",
            "'/layers.0/self attn' is no path of a module: names of letters, digits, '_' and '-' with a dot between, "
            "at most 200 characters (at einsums[0].group); did you mean 'layers.0.self_attn'?",
        ),
        (HEAD + "ranks: {m: 3}\neinsums: [{einsum: 'A[m] = B[m]', group: 0.5}]\n", "w.yaml:5:42:", "found 0.5"),
        (
            HEAD + "ranks: {m: 3}\neinsums: [{einsum: 'A[m] = B[m]', nodes: [{name: /a}]}]\n",
            "w.yaml:5:43:",
            "key 'output' is missing",
        ),
        (HEAD + "ranks: {m: 3}\neinsums: ['A[m] = B[m]']\nabsorbed: [1 x Relu, [x]]\n", "w.yaml:6:22:", "found a list"),
        (HEAD + "ranks: {m: 3}\neinsums: ['A[m] = B[m]']\nabsorbed: Relu\n", "w.yaml:6:11:", "expected a list"),
        ("schema: machine/1\n", "w.yaml:1:9:", "a workload file is expected"),
        ("- 3\n", "w.yaml:1:1:", "expected a mapping"),
    ],
)
def test_mistakes_have_a_place(text: str, place: str, message: str) -> None:
    with pytest.raises(SpecError) as caught:
        parse_workload(text, "w.yaml")
    assert str(caught.value).startswith(place) and message in str(caught.value)


def test_several_mistakes_come_at_once() -> None:
    text = HEAD + "ranks: {m: x, n: 0}\neinsums: ['A[m] = ', 'B[m] = exq(C[m])']\nreapeat: 1\n"
    with pytest.raises(SpecErrors) as caught:
        parse_workload(text, "w.yaml")
    assert [error.line for error in caught.value.problems] == [4, 4, 5, 5, 6]


words = st.text(min_size=1, max_size=12).filter(str.strip)
nodes = st.lists(st.builds(NetworkNode, words, st.just("") | words), max_size=2).map(tuple)
modules = st.from_regex(MODULE_PATH, fullmatch=True).filter(lambda path: len(path) <= 200)


@st.composite
def cascades(draw: st.DrawFn) -> Workload:
    """Chains of maps, matmuls and padded convolutions with random bits, outputs and repeats."""
    length = draw(st.integers(1, 4))
    einsums, ranks = [], {"m": draw(st.integers(1, 9)), "n": draw(st.integers(1, 9)), "r": 3}
    used = {"m", "n"}
    for i in range(length):
        kind = draw(st.sampled_from(("matmul", "map", "copy", "convolution")))
        if kind == "convolution" and i:
            einsums.append(f"T{i + 1}[m,n] = T{i}[m+r-1,n] * W{i}[r]")
            used.add("r")
        elif kind == "matmul":
            ranks[f"k{i}"] = draw(st.integers(1, 9))
            used.add(f"k{i}")
            einsums.append(f"T{i + 1}[m,n] = T{i}[m,n] * W{i}[n,k{i}]")
        else:
            einsums.append(f"T{i + 1}[m,n] = {'copy' if kind == 'copy' else 'exp'}(T{i}[m,n])")
    return build_workload(
        draw(st.text(min_size=1, max_size=12).filter(str.strip)),
        [replace(parse_einsum(t), group=draw(st.just("") | modules), nodes=draw(nodes)) for t in einsums],
        {rank: size for rank, size in ranks.items() if rank in used},
        bits={"default": draw(st.integers(1, 32)), "T0": draw(st.integers(1, 32))},
        outputs=[f"T{length}", *draw(st.lists(st.sampled_from([f"T{i + 1}" for i in range(length)]), max_size=2))],
        persistent=draw(st.sampled_from(((), ("T0",)))),
        repeat=draw(st.integers(1, 3)),
        facts=draw(st.sampled_from(((), (Fact("ranks.m", "somewhere: a table", "assumed"),)))),
        absorbed=draw(st.lists(st.text(min_size=1, max_size=12).filter(str.strip), max_size=2)),
    )


@given(cascades())
def test_written_workloads_read_back(workload: Workload) -> None:
    again = parse_workload(workload_text(workload))
    assert again == workload and again.facts == workload.facts and again.absorbed == workload.absorbed
    assert [(e.group, e.nodes) for e in again.einsums] == [(e.group, e.nodes) for e in workload.einsums]


@given(st.text(max_size=300))
def test_a_module_path_is_made_of_any_text(text: str) -> None:
    path = module_path_of(text)
    assert not path or module_path(path) == path == module_path_of(path)
