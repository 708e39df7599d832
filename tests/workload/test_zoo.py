"""The workloads that ship: sizes that papers print, and how they are called."""

from __future__ import annotations

import doctest
from math import prod
from pathlib import Path

import pytest

import einloom as el
import einloom.zoo.catalogue
import einloom.zoo.workload_by_name
import einloom.zoo.workload_entries
from einloom.errors import SpecError
from einloom.workload.files import parse_workload, workload_text, write_workload
from einloom.zoo.index import listed
from einloom.zoo.workload_by_name import load_workload


@pytest.mark.parametrize("module", [einloom.zoo.workload_by_name, einloom.zoo.catalogue, einloom.zoo.workload_entries])
def test_doctests(module: object) -> None:
    assert doctest.testmod(module).failed == 0  # type: ignore[arg-type]


LARGE = ("mixtral-8x7b",)


@pytest.mark.parametrize(
    "name", [pytest.param(one.name, marks=pytest.mark.slow if one.name in LARGE else ()) for one in listed("workloads")]
)
def test_every_entry_builds_has_sources_and_round_trips(name: str) -> None:
    w = load_workload(name)
    assert {f"ranks.{rank}" for rank in w.extents} | {"bits.default"} == {fact.path for fact in w.facts}
    again = parse_workload(workload_text(w))
    assert again == w and set(again.facts) == set(w.facts)


def compulsory(name: str) -> int:
    w = load_workload(name)
    return sum(w.tensor(tensor).size for tensor in w.inputs + w.outputs)


def unfused_bits(name: str) -> int:
    """Each Einsum reads its inputs and writes its output once; copies are free."""
    w = load_workload(name)
    return sum(w.tensor(t).size * w.tensor(t).bits for e in w.einsums if e.kind != "copy" for t in e.tensors)


def test_mobilenet_block_moves_59520_values() -> None:
    assert compulsory("mobilenet-block") == 59520
    assert load_workload("mobilenet-block").tensor("E1").shape == (192, 28, 28)


def test_gpt3_unfused_traffic_is_the_peer_s() -> None:
    assert unfused_bits("gpt3-6.7b:batch=1,tokens=256") == 3724541952


def test_gpt3_prefill() -> None:
    w = load_workload("gpt3-6.7b:batch=1,tokens=2048")
    assert [e.name for e in w.einsums] == "I V K Q QK QK_softmax AV Z FFA FFB".split()
    assert w.inputs == tuple("I_in WV WK WQ WZ WFFA WFFB".split()) and w.outputs == ("FFB",)
    assert w.role("QK", "Q") == "input" and w.role("QK", "K") == "weight"
    assert w.role("AV", "QK_softmax") == "input" and w.role("V", "WV") == "weight"
    assert w.operations("V") == 2048 * 4096 * 4096 and w.operations("I") == 0
    assert w.tensor("QK").size * w.tensor("QK").bits == 2048 * 2048 * 32 * 16


def test_gpt3_decode() -> None:
    w = load_workload("gpt3-6.7b:batch=1,tokens=1,cached=2047,decode=true")
    assert w == load_workload("gpt3-6.7b:decode=true")
    assert set(w.outputs) == {"K", "V", "FFB"} and {"K_cache", "V_cache"} < set(w.inputs)
    assert w.tensor("K_cache").shape == (1, 2047, 32, 128) and w.tensor("K").shape == (1, 1, 32, 128)


def test_gpt3_175b() -> None:
    w = load_workload("gpt3-175b")
    assert [w.extents[v] for v in "hefdgjc"] == [96, 128, 128, 12288, 12288, 12288, 49152]


def test_chains() -> None:
    w = load_workload("matmuls:n=16,m=8192,kn=4096,bits=8")
    assert [e.name for e in w.einsums] == [f"E{i}" for i in range(16)] and w.outputs == ("T16",)
    assert all(w.operations(e.name) == 8192 * 4096 * 4096 for e in w.einsums)
    operations = [
        sum(w.operations(e.name) for e in w.einsums)
        for w in (load_workload(f"matmuls-ffm75:n={n}") for n in (1, 2, 4, 8))
    ]
    assert operations == [2199023255552, 2748779069440, 3435973836800, 6871947673600]  # latencies in accelforge.md


def test_tileflow_convolutions() -> None:
    w = load_workload("tileflow-cc1")
    assert {t.name: t.shape for t in w.tensors} == {
        "Im": (116, 116, 64),
        "W1": (192, 3, 3, 64),
        "Act": (114, 114, 192),
        "W2": (128, 3, 3, 192),
        "Out": (112, 112, 128),
    }
    assert load_workload("tileflow-cc1:second=1").tensor("Act").shape == (112, 112, 192)


def test_residual_diamond() -> None:
    w = load_workload("residual-diamond:m=4,d=6")
    assert w.consumers["H"] == ("A", "Y") and w.tensor("Y").shape == (4, 6)


def test_matmul() -> None:
    w = load_workload("matmul:m=2**3,n=5,k=7,bits=16")
    assert prod(w.extents.values()) == 8 * 5 * 7 and w.tensor("A").bits == 16


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("gpt3-6.7", "did you mean 'gpt3-6.7b'"),
        ("matmul:mm=3", "no parameter 'mm'; known are m, n, k, bits; did you mean 'm'"),
        ("matmul:m=0", "m=0 must be a whole number from 1"),
        ("matmul:m=1.5", "m: 1.5 is not a whole number"),
        ("matmul:m=-1", "m=-1 must be"),
        ("matmul:m=__import__('os')", "matmul: m:"),
        ("matmul:m", "'m' is not key=value"),
        ("matmul:", "nothing stands after the colon"),
        ("matmul:m=1,m=2", "stands here twice"),
        ("gpt3-6.7b:decode=yes", "must be true or false"),
        ("gpt3-6.7b:cached=3", "only with decode=true"),
        ("matmuls:n=99999", "1 to 4096 matmuls"),
        ("none.yaml", "cannot read the file"),
        ("", "unknown workload"),
        ("x" * 5000, "at most 2000"),
    ],
)
def test_refused(text: str, message: str) -> None:
    with pytest.raises(SpecError) as caught:
        load_workload(text)
    assert message in str(caught.value)


def test_files_load_too(tmp_path: Path) -> None:
    w = load_workload("matmul")
    write_workload(w, tmp_path / "mine.yaml")
    assert load_workload(str(tmp_path / "mine.yaml")) == w


def test_what_ships_goes_before_a_file_of_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    other = workload_text(load_workload("matmul:m=3,n=3,k=3")).replace("name: matmul", "name: other")
    (tmp_path / "matmul").write_text(other, encoding="utf-8")
    (tmp_path / "simple").write_text(other, encoding="utf-8")
    assert el.zoo.matmul(m=8).extents["m"] == 8 and el.zoo.simple().name == "simple"
    with pytest.warns(el.EinloomWarning, match=r"matmul is the zoo's; the file of that name .* is '\./matmul'"):
        assert load_workload("matmul").name == "matmul"
    with pytest.warns(el.EinloomWarning, match=r"'\./simple'"):
        assert el.load_machine("simple").name == "simple"
    assert load_workload("./matmul").name == "other"
