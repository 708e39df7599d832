"""A file of another kind than the verb reads, or of another problem: the message says what it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from commands import run

TINY = "matmul:m=2,n=2,k=2"
SMALL_BUFFER = "simple:glb_bits=16,dram_energy=10"
MAPPING = "# by hand\nstore DRAM: A B Z\nfor m in 2\nfor n in 2\nfor k in 2\ncompute Z @ MAC\n"


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    path, text = tmp_path / "r.json", tmp_path / "m.txt"
    text.write_text(MAPPING, encoding="utf-8")
    assert run("evaluate", TINY, SMALL_BUFFER, text, "--json", path)[0] == 0
    return path


@pytest.mark.parametrize("verb", ["evaluate", "verify", "show", "explain", "compare"])
@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("# mine\nschema: machine/1\nname: mine\n", "this file has schema machine/1; expected is the JSON"),
        (MAPPING, "this reads as a mapping"),
        ("nothing\n", "not JSON: Expecting value"),
    ],
)
def test_the_kind_of_a_file_that_is_no_answer_is_said(tmp_path: Path, verb: str, content: str, says: str) -> None:
    path = tmp_path / "file.txt"
    path.write_text(content, encoding="utf-8")
    code, output = run(verb, path)
    assert code == 2 and f"{path}:" in output and says in output, output


def test_a_result_of_another_problem_is_said_to_be_one(saved: Path) -> None:
    code, output = run("evaluate", "gpt3-6.7b", "nvdla", saved)
    assert code == 2 and output.count("\n") == 1
    assert f"{saved}: this result is of matmul on simple; its mapping is none of gpt3-6.7b on nvdla: " in output


@pytest.mark.parametrize("tool", ["timeloop", "tileflow"])
def test_exports_take_the_mapping_of_a_result(tmp_path: Path, saved: Path, tool: str) -> None:
    for name, mapping in (("text", tmp_path / "m.txt"), ("result", saved)):
        code, output = run("export", tool, TINY, SMALL_BUFFER, mapping, "-o", tmp_path / name)
        assert code == 0, output
    files = sorted(path.name for path in (tmp_path / "text").iterdir())
    assert "map.yaml" in files
    for file in files:
        assert (tmp_path / "text" / file).read_bytes() == (tmp_path / "result" / file).read_bytes()


@pytest.mark.parametrize("verb", ["evaluate", "simulate", "run"])
def test_an_illegal_mapping_has_its_file(tmp_path: Path, verb: str) -> None:
    path = tmp_path / "bad.txt"
    path.write_text(MAPPING.replace("for m in 2", "for m in 4"), encoding="utf-8")
    code, output = run(verb, TINY, SMALL_BUFFER, path)
    assert code == 1 and f"{path}: the mapping is illegal:\n  " in output
