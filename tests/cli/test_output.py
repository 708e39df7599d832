"""Answers reach their places, or one line says that they did not: every verb that writes, and streams that fail."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import einloom as el
from compilers import COMPILER, needs_compiler
from einloom.cli import main

ROOT = Path(__file__).resolve().parents[2]
PLAIN = "store DRAM: A B Z\nfor m in 2\nfor n in 2\nfor k in 2\ncompute Z @ MAC\n"
TINY = "matmul:m=2,n=2,k=2"
WRITERS = (
    ("map", TINY, "simple", "--json", "OUT"),
    ("map", TINY, "simple", "-o", "OUT"),
    ("evaluate", "r.json", "--json", "OUT"),
    ("simulate", "r.json", "--json", "OUT"),
    *([("run", "r.json", "--json", "OUT")] if COMPILER else []),
    ("verify", "--quick", "r.json", "--json", "OUT"),
    ("show", "r.json", "--json", "OUT"),
    ("report", "r.json", "-o", "OUT"),
    ("compare", "r.json", "r.json", "-o", "OUT"),
    ("compare", "r.json", "r.json", "--json", "OUT"),
    ("compare", "r.json", "r.json", "--csv", "OUT"),
    ("explain", "--quick", "r.json", "--json", "OUT"),
    ("zoo", "--json", "OUT"),
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder, with a result in it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m.txt").write_text(PLAIN, encoding="utf-8")
    el.evaluate(TINY, "simple", PLAIN).write(tmp_path / "r.json")
    return tmp_path


def run(*words: str) -> Any:
    return CliRunner().invoke(main, list(words), catch_exceptions=False)


@pytest.mark.parametrize("words", WRITERS, ids=lambda words: f"{words[0]} {words[-2]}")
def test_links_stay(words: tuple[str, ...], folder: Path) -> None:
    link, target = folder / "OUT", folder / "target"
    target.write_text("old", encoding="utf-8")
    target.chmod(0o640)
    link.symlink_to("target")
    done = run(*words)
    assert done.exit_code == 0, done.output
    assert link.is_symlink() and target.read_text(encoding="utf-8") not in ("", "old")
    assert target.stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize("words", [w for w in WRITERS if w[0] != "run"], ids=lambda words: f"{words[0]} {words[-2]}")
def test_a_full_disk_takes_nothing_away(words: tuple[str, ...], folder: Path) -> None:
    """The old file stays, nothing lies about, and what was found is still printed."""
    shown = run(*words).stdout
    (folder / "OUT").write_text("old", encoding="utf-8")
    before = sorted(path.name for path in folder.iterdir())
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20, hard))
    try:
        done = run(*words)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert done.exit_code == 2 and "OUT: cannot write the file: File too large" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert (folder / "OUT").read_text(encoding="utf-8") == "old"
    assert sorted(path.name for path in folder.iterdir()) == before
    assert done.stdout.splitlines()[:3] == shown.splitlines()[:3]


@needs_compiler
def test_no_room_for_a_program_is_said(folder: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20, hard))
    try:
        done = run("run", "r.json")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert done.exit_code == 2 and done.stdout == ""
    assert done.stderr.endswith("mapping.c: cannot write the file: File too large\n")


def test_every_file_is_tried(folder: Path) -> None:
    """One place that cannot be written to keeps no other from its answer."""
    os.mkfifo(folder / "full")
    os.remove(folder / "full")
    (folder / "full").symlink_to("/dev/full")
    done = run("map", TINY, "simple", "--json", "full", "-o", "mapping.txt")
    assert done.exit_code == 2 and "full: cannot write the file: No space left on device" in done.stderr
    assert (folder / "mapping.txt").read_text(encoding="utf-8").startswith("store DRAM")
    assert "optimal" in done.stdout and (folder / "full").is_symlink()


def test_places_are_refused_before_the_search(folder: Path) -> None:
    done = run("map", TINY, "simple", "--json", "none/r.json", "-o", ".")
    assert done.exit_code == 2 and done.stdout == ""
    assert "none/r.json: cannot write the file: there is no folder 'none'" in done.stderr
    assert ".: cannot write the file: it is a folder" in done.stderr


@pytest.mark.parametrize("verb", ["show", "verify", "report", "evaluate", "simulate", "run", "compare", "explain"])
def test_a_fifo_is_no_result(verb: str, folder: Path) -> None:
    """Nobody may ever write into it: this once waited for ever."""
    os.mkfifo(folder / "fifo.json")
    done = run(verb, "fifo.json")
    assert done.exit_code == 2 and "fifo.json: a FIFO" in done.stderr and len(done.stderr.splitlines()) == 1


def test_a_pipe_of_the_shell_is_read(folder: Path) -> None:
    out, into = os.pipe()
    with open(into, "wb") as stream:
        stream.write((folder / "r.json").read_bytes())
    try:
        assert run("show", "--tree", f"/dev/fd/{out}").output == PLAIN
    finally:
        os.close(out)


@pytest.mark.parametrize("place", ["workload", "result", "key"])
def test_half_a_character_is_refused(place: str, folder: Path) -> None:
    text = (folder / "r.json").read_text(encoding="utf-8")
    cases: dict[str, Callable[[], Any]] = {
        "workload": lambda: run("map", "w.yaml", "simple"),
        "result": lambda: run("show", "bad.json"),
        "key": lambda: run("verify", "key.json"),
    }
    workload = 'schema: workload/1\nname: "\\ud800"\nranks: {m: 2}\nbits: 8\neinsums: ["Z[m] = A[m]"]\n'
    (folder / "w.yaml").write_text(workload, encoding="utf-8")
    (folder / "bad.json").write_text(text.replace('"matmul"', '"mat\\ud800mul"', 1), encoding="utf-8")
    (folder / "key.json").write_text(text.replace('"objective"', '"\\ud800": 1, "objective"', 1), encoding="utf-8")
    done = cases[place]()
    where = {"workload": "w.yaml:2:7: ", "result": "bad.json:", "key": "key.json:"}[place]
    assert done.exit_code == 2 and where in done.stderr and "a lone surrogate is half a character" in done.stderr


def test_names_beyond_ascii_are_read(folder: Path) -> None:
    text = (folder / "r.json").read_text(encoding="utf-8").replace('"matmul"', '"mat\\ud83d\\ude00mul \\\\ud800"', 1)
    (folder / "odd.json").write_text(text, encoding="utf-8")
    assert "mat😀mul \\ud800 on simple" in run("show", "odd.json").output


def einloom(*words: str, **streams: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "einloom", *words]
    settings = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    return subprocess.run(command, env=settings, text=True, timeout=120, check=False, **streams)


def closed(number: int) -> Callable[[], None]:
    return lambda: os.close(number)


def test_standard_output_that_is_full_or_closed(folder: Path) -> None:
    with open("/dev/full", "w", encoding="utf-8") as full:
        for words in (("show", "r.json"), ("show", "r.json", "--json", "-"), ("--help",)):
            done = einloom(*words, stdout=full, stderr=subprocess.PIPE)
            said = "einloom: cannot write to standard output: No space left on device\n"
            assert (done.returncode, done.stderr) == (2, said), words
        done = einloom("show", "r.json", "--json", "copy.json", stdout=full, stderr=subprocess.PIPE)
    assert done.returncode == 2 and json.loads((folder / "copy.json").read_text(encoding="utf-8"))
    done = einloom("show", "r.json", "--json", "again.json", preexec_fn=closed(1), stderr=subprocess.PIPE)
    assert (done.returncode, done.stderr) == (2, "einloom: cannot write to standard output: it is closed\n")
    assert (folder / "again.json").read_bytes() == (folder / "copy.json").read_bytes()


def test_standard_error_that_is_full_or_closed(folder: Path) -> None:
    """Nobody can be told, but the answer and the exit code are right."""
    with open("/dev/full", "w", encoding="utf-8") as full:
        done = einloom("map", TINY, "nonsense", stdout=subprocess.PIPE, stderr=full)
        assert (done.returncode, done.stdout) == (2, "")
    words = ("map", TINY, "simple", "--json", "new.json")
    done = einloom(*words, stdout=subprocess.PIPE, preexec_fn=closed(2))
    assert done.returncode == 0 and "optimal" in done.stdout
    assert el.Result.read(folder / "new.json").certificate is not None
    assert einloom("show", "none.json", stdout=subprocess.PIPE, preexec_fn=closed(2)).returncode == 2


def test_a_working_folder_that_is_gone(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = folder / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    for words, said in (
        (("show", "r.json"), "r.json: cannot read the file: No such file or directory"),
        (("map", TINY, "simple", "--json", "x.json"), "x.json: cannot write the file: the working folder is gone"),
        (
            ("sweep", TINY, "simple", "--memory", "GLB", "--capacities", "1 KiB", "-o", "s"),
            "the working folder is gone",
        ),
        (("export", "tileflow", TINY, "simple", "-o", "s"), "the working folder is gone"),
    ):
        done = run(*words)
        assert done.exit_code == 2 and said in done.stderr and len(done.stderr.splitlines()) == 1, done.output
    done = einloom("show", str(folder / "r.json"), capture_output=True)
    assert done.returncode == 0 and "matmul on simple" in done.stdout, done.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("report", "r.json", "-o", "r.json"), "-o would replace 'r.json', which is read here"),
        (("report", "r.json", "-o", "./sub/../r.json"), "-o would replace 'r.json', which is read here"),
        (("verify", "--quick", "r.json", "--json", "r.json"), "--json would replace 'r.json', which is read here"),
        (("compare", "r.json", "r.json", "--csv", "r.json"), "--csv would replace 'r.json', which is read here"),
        (("evaluate", TINY, "simple", "m.txt", "--json", "m.txt"), "--json would replace 'm.txt', which is read here"),
        (("map", "w.yaml:m=2", "simple", "-o", "w.yaml"), "-o would replace 'w.yaml', which is read here"),
        (("map", TINY, "simple", "--mapspace", "s.yaml", "--json", "s.yaml"), "--json would replace 's.yaml', which"),
        (("map", TINY, "simple", "--json", "same", "-o", "same"), "are the same file, 'same'; give each its own"),
        (("map", TINY, "simple", "--json", "-", "-o", "-"), "both go to standard output, which takes one of them"),
        (("compare", "r.json", "--csv", "x", "-o", "./x"), "--csv and -o are the same file, './x'; give each its own"),
        (("compare", "r.json", "--csv", "-", "--json", "-"), "--json and --csv both go to standard output"),
        (
            ("export", "timeloop", "problem.yaml", "simple", "-o", "."),
            "'problem.yaml' would replace 'problem.yaml', which is read",
        ),
    ],
    ids=lambda one: " ".join(one) if isinstance(one, tuple) else "",
)
def test_no_output_costs_another_file(words: tuple[str, ...], said: str, folder: Path) -> None:
    (folder / "sub").mkdir()
    (folder / "s.yaml").write_text("schema: mapspace/1\n", encoding="utf-8")
    text = "schema: workload/1\nname: w\nparameters: {m: 4}\nranks: {m: m, k: 2, n: 2}\nbits: 8\n"
    text += 'einsums: ["Z[m,n] = A[m,k] * B[k,n]"]\n'
    for name in ("w.yaml", "problem.yaml"):
        (folder / name).write_text(text, encoding="utf-8")
    before = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    done = run(*words)
    assert done.exit_code == 2
    assert said in done.output
    assert {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()} == before


def test_a_result_may_take_the_place_of_its_start(folder: Path) -> None:
    done = run("map", TINY, "simple", "--start", "r.json", "--json", "r.json", "-o", "/dev/null")
    assert done.exit_code == 0, done.output
    assert el.Result.read("r.json").certificate is not None
