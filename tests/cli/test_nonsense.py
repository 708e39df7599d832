"""Nonsense in, sense out: no traceback, an exit code that is not 0, and the place that is to blame."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from commands import run

WORKLOAD = """\
schema: workload/1
name: two products
ranks: {m: 2, k: 2, n: 2, q: 2}
bits: 8
einsums:
  - {name: E0, einsum: "T[m,n] = X[m,k] * W0[k,n]"}
  - {name: E1, einsum: "Y[m,q] = T[m,n] * W1[n,q]"}
outputs: [Y]
"""
MACHINE = """\
schema: machine/1
name: small
levels:
  - {memory: DRAM, read_energy: 10, write_energy: 10, must: ~intermediate}
  - {memory: GLB, size: 1 KiB, read_energy: 1, write_energy: 1, must: unheld}
  - {compute: MAC, throughput: 1, energy: 1}
"""
PLACE = re.compile(r"(workload|machine)\.yaml:\d+:\d+: ")


def refused(folder: Path, workload: str = WORKLOAD, machine: str = MACHINE, verb: str = "map") -> str:
    (folder / "workload.yaml").write_text(workload, encoding="utf-8")
    (folder / "machine.yaml").write_text(machine, encoding="utf-8")
    (folder / "mapping.txt").write_text("store DRAM: X\n", encoding="utf-8")
    more = ["--method", "exhaustive"] if verb == "map" else [folder / "mapping.txt"]
    code, output = run(verb, folder / "workload.yaml", folder / "machine.yaml", *more)
    assert code == 2, output
    return output


def swapped(text: str, old: str, new: str) -> str:
    assert old in text
    return text.replace(old, new, 1)


@pytest.mark.parametrize("verb", ["map", "evaluate", "simulate", "run"])
@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("bits: 8", "bitz: 8", "unknown key 'bitz'"),
        ("bits: 8", "bits: 8\nbits: 16", "stands here twice"),
        ("Y[m,q] = T[m,n]", "Y[m,q] = T[m,q]", "T"),
        ("q: 2", "q: 2.5", "2.5"),
        ("q: 2", "q: -2", "-2"),
        ("outputs: [Y]", "outputs: [T]", "Y"),
        ("outputs: [Y]", "outputs: [Z]", "Z"),
        ("m: 2", "m: \"__import__('os').system('true')\"", "arithmetic"),
        ("m: 2", "m: 9**9**9**9", "too large|exponent"),
        ("m: 2", "m: !!python/object/apply:os.system ['true']", "tag"),
        ("T[m,n] = X[m,k]", "T[m,n = X[m,k]", "T"),
        ("schema: workload/1", "schema: workload/7", "7"),
        ("einsums:", "einsums: {}\nother:", "other|list|einsums"),
    ],
)
def test_workload_files(tmp_path: Path, verb: str, old: str, new: str, words: str) -> None:
    text = swapped(WORKLOAD, old, new)
    if "T[m,q]" in new:
        text = swapped(text, "q: 2", "q: 3")  # the same rank of T has 2 and 3 positions
    output = refused(tmp_path, workload=text, verb=verb)
    assert PLACE.search(output), output
    assert re.search(words, output), output


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("read_energy: 10", "read_enregy: 10", "did you mean 'read_energy'"),
        ("size: 1 KiB", "size: 1 KiB, size: 2 KiB", "stands here twice"),
        ("size: 1 KiB", "size: 1 KB", "did you mean"),
        ("size: 1 KiB", "size: 1 pJ", "pJ"),
        ("size: 1 KiB", "size: 1 KiB, read_throughput: -3", "-3"),
        ("size: 1 KiB", "size: 1 KiB, write_throughput: 0", "zero|0"),
        ("read_energy: 10", "read_energy: -1 pJ", "negative|-1"),
        ("must: unheld", "must: '(unheld'", "parenthesis"),
        ("memory: GLB", "memory: DRAM", "DRAM"),
        ("throughput: 1", "throughput: .inf", "inf"),
        ("throughput: 1", "throughput: 'open(\"x\")'", "arithmetic"),
        ("levels:", "levels: 3\nrest:", "list|rest"),
    ],
)
def test_machine_files(tmp_path: Path, old: str, new: str, words: str) -> None:
    output = refused(tmp_path, machine=swapped(MACHINE, old, new))
    assert PLACE.search(output), output
    assert re.search(words, output), output


def test_a_limit_that_names_no_tensor(tmp_path: Path) -> None:
    output = refused(tmp_path, machine=swapped(MACHINE, "must: unheld", "must: W3"))
    assert "GLB.must" in output
    assert "'W3'" in output


@pytest.mark.parametrize(
    "content",
    [b"#" * 10_000_000, b"a: b\n" * 2_000_000, b"[" * 10_000, b"{a: " * 10_000, b"\xff\xfe\x00", b"", b"---\n---\n"],
    ids=["comment", "keys", "brackets", "braces", "binary", "empty", "documents"],
)
@pytest.mark.parametrize("verb", ["map", "evaluate", "verify", "show"])
def test_strange_files(tmp_path: Path, content: bytes, verb: str) -> None:
    for suffix in (".yaml", ".json"):
        path = tmp_path / f"strange{suffix}"
        path.write_bytes(content)
        arguments = [verb, path] if verb in ("verify", "show", "evaluate") else [verb, path, path]
        code, output = run(*arguments)
        assert code == 2
        assert path.name in output
        assert len(output) < 2000


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["map", "gpt3-6.7b:tokns=3", "tpu-v4i"], 2, "did you mean 'tokens'"),
        (["map", "gpt4", "tpu-v4i"], 2, "gpt"),
        (["map", "matmul", "tpu-v5"], 2, "did you mean 'tpu-v4i'"),
        (["map", "matmul", "simple", "--objective", "enrgy"], 2, "did you mean 'energy'"),
        (["map", "matmul", "simple", "--objective", "traffic:DRM"], 2, "did you mean 'traffic:DRAM'"),
        (["map", "matmul", "simple", "--objective", "energy:DRAM"], 2, "takes no memory"),
        (["map", "matmul", "two-level", "--objective", "edp"], 2, "nothing of two-level has a throughput"),
        (["map", "matmul", "simple", "--method", "exakt"], 2, "did you mean 'exact'"),
        (["map", "matmul", "simple", "--max-fused-loops", "-1"], 2, "max-fused-loops"),
        (["map", "matmul", "simple", "--budget-seconds", "0"], 2, "budget-seconds"),
        (["map", "matmul", "simple", "--json", "/nowhere/r.json"], 2, "nowhere"),
        (["map", "matmul", "simple", "--jsn", "r.json"], 2, "--json"),
        (["map", "matmul"], 2, "MACHINE"),
        (["map", "nowhere.yaml", "simple"], 2, "nowhere.yaml"),
        (["evaluate", "matmul", "simple"], 2, "mapping"),
        (["evaluate", "matmul", "simple", "nowhere.txt"], 2, "nowhere.txt"),
        (["evaluate", "nowhere.json"], 2, "nowhere.json"),
        (["verify", "nowhere.json"], 2, "nowhere.json"),
        (["zoo", "matmal"], 2, "did you mean 'matmul'"),
        (["zoo", "matmul:m=0"], 2, "m"),
        (["zoo", "matmul:m=x"], 2, "x"),
        (["fly"], 2, "No such command 'fly'."),
        (["mapp"], 2, "No such command 'mapp'; did you mean 'map'?"),
        (["export", "acelforge"], 2, "did you mean 'accelforge'?"),
        (["map", "simple", "matmul"], 2, "'simple' is a machine, not a workload; a workload comes first"),
        (["map", "matmul", "matmul"], 2, "'matmul' is a workload, not a machine; a workload comes first"),
        (["compare", "matmul", "simple"], 2, "'matmul' is not the file of a result; to run methods on a problem, add"),
        (["simulate", "matmul"], 2, "machine and mapping are missing after 'matmul', which is not the file"),
        (["evaluate", "matmul", "simple"], 2, "a workload, a machine and a mapping are needed, or one result"),
        (["explain", "matmul"], 2, "MACHINE is missing after 'matmul', which is not the file of a saved answer"),
    ],
)
def test_arguments(arguments: list[str], code: int, words: str) -> None:
    found, output = run(*arguments)
    assert found == code, output
    assert words in output


def test_capacity_too_small_for_any_mapping(tmp_path: Path) -> None:
    (tmp_path / "w.yaml").write_text(
        'schema: workload/1\nname: copy\nranks: {m: 2}\nbits: 8\neinsums: ["B[m] = exp(A[m])"]\n', encoding="utf-8"
    )
    machine = swapped(swapped(MACHINE, "size: 1 KiB", "size: 8"), "must: unheld", "must: all")
    (tmp_path / "m.yaml").write_text(machine, encoding="utf-8")
    code, output = run("map", tmp_path / "w.yaml", tmp_path / "m.yaml", "--method", "exhaustive")
    assert code == 1
    assert "B needs at least 16 bits in GLB for tiles of A, B, but GLB holds 8" in output


def test_an_illegal_mapping_says_every_reason(tmp_path: Path) -> None:
    path = tmp_path / "m.txt"
    path.write_text("store DRAM: A B Z\nstore GLB: A\nfor m in 3\ncompute Z @ MAC\n", encoding="utf-8")
    code, output = run("evaluate", "matmul:m=4,n=4,k=4", "simple:glb_bits=8", path)
    assert code == 1
    assert output.count("\n") > 2, "several reasons"


def test_a_mapping_that_cannot_be_read(tmp_path: Path) -> None:
    path = tmp_path / "m.txt"
    path.write_text("store DRAM: A B Z\nfro m in 4\ncompute Z @ MAC\n", encoding="utf-8")
    code, output = run("evaluate", "matmul:m=4,n=4,k=4", "simple", path)
    assert code == 2
    assert "m.txt:2:1" in output
    assert "did you mean 'for'" in output


def test_simulate_refuses_large_sizes(tmp_path: Path) -> None:
    path = tmp_path / "m.txt"
    path.write_text("store DRAM: A B Z\nfor m in 512\nfor n in 512\nfor k in 512\ncompute Z @ MAC\n", encoding="utf-8")
    code, output = run("simulate", "matmul:m=512,n=512,k=512", "simple", path)
    assert code == 2
    assert "simulate executes at most 2,000,000, one by one; run executes more, as a program" in output


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text[: len(text) // 2],
        lambda text: text.replace('"result/1"', '"result/9"'),
        lambda text: text.replace('"energy":', '"enrgy":', 1),
        lambda text: text.replace('"energy":', '"energy": 1, "energy":', 1),
        lambda text: text.replace('"seconds": ', '"seconds": NaN, "other": ', 1),
        lambda text: text.replace('"seconds": ', '"seconds": 1e999, "other": ', 1),
        lambda text: "[" + text + "]",
        lambda text: text.replace('"mapping": "store', '"mapping": "stoer', 1),
        lambda text: "[" * 100_000,
        lambda text: '{"a": ' * 100_000,
        lambda text: "{}",
    ],
)
def test_damaged_results(tmp_path: Path, damage: object) -> None:
    assert callable(damage)
    mapping, result = tmp_path / "m.txt", tmp_path / "r.json"
    mapping.write_text("store DRAM: A B Z\nfor m in 2\nfor n in 2\nfor k in 2\ncompute Z @ MAC\n", encoding="utf-8")
    assert run("evaluate", "matmul:m=2,n=2,k=2", "simple", mapping, "--json", result)[0] == 0
    assert json.loads(result.read_text(encoding="utf-8"))["energy"] > 0
    damaged = damage(result.read_text(encoding="utf-8"))
    result.write_text(damaged, encoding="utf-8")
    for verb in ("show", "verify", "evaluate", "simulate", "run"):
        code, output = run(verb, result)
        assert code == 2, output
        assert "r.json" in output
        assert len(output) < 3000


def test_as_a_program(tmp_path: Path) -> None:
    """The same through a real process: standard error speaks, standard output stays empty."""
    command = [sys.executable, "-m", "einloom", "map", "matmul:q=3", "simple"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    assert "'q'" in done.stderr


def test_a_byte_order_mark_is_no_part_of_a_text(tmp_path: Path) -> None:
    """Editors of Windows write one into every file."""
    small = ("matmul:m=2,n=2,k=2", "simple")
    plain = "store DRAM: A B Z\nfor m in 2\nfor n in 2\nfor k in 2\ncompute Z @ MAC\n"
    (tmp_path / "m.txt").write_text(plain, encoding="utf-8")
    assert run("evaluate", *small, tmp_path / "m.txt", "--json", tmp_path / "r.json")[0] == 0
    for name in ("m.txt", "r.json"):
        (tmp_path / name).write_bytes(b"\xef\xbb\xbf" + (tmp_path / name).read_bytes())
    expected = run("evaluate", *small, tmp_path / "m.txt")
    assert expected[0] == 0, expected[1]
    assert run("evaluate", tmp_path / "r.json") == run("evaluate", *small, tmp_path / "r.json") == expected
    (tmp_path / "m.txt").write_bytes("\ufeffstoer DRAM: A\n".encode())
    code, output = run("evaluate", *small, tmp_path / "m.txt")
    assert code == 2 and "m.txt:1:1: unknown node 'stoer'" in output
