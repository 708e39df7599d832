"""Machine code in the cache is that of the sources, also of those that a kernel calls from other files; where there is
none, a process makes it beside a search."""

from __future__ import annotations

import importlib
import os
import shutil
import subprocess
import sys
from pathlib import Path
from shutil import copy
from typing import Any

import pytest

from einloom.search.heuristics import compiling, machine_code

FOLDER = Path(machine_code.__file__).parent


def test_every_kernel_is_in_the_digest(tmp_path: Path) -> None:
    using = {path.name for path in FOLDER.glob("*.py") if "\n@machine_code\n" in path.read_text(encoding="utf-8")}
    assert using == set(machine_code.KERNELS)
    for name in machine_code.KERNELS:
        copy(FOLDER / name, tmp_path)
    same = machine_code.digest(FOLDER)
    assert machine_code.digest(tmp_path) == same
    for name in machine_code.KERNELS:
        text = (tmp_path / name).read_text(encoding="utf-8")
        (tmp_path / name).write_text(text + "#", encoding="utf-8")
        assert machine_code.digest(tmp_path) != same
        (tmp_path / name).write_text(text, encoding="utf-8")


def test_a_function_is_compiled_anew_when_the_digest_is_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(machine_code, "_STAMP", "one")
    text = "from einloom.search.heuristics.machine_code import machine_code\n\n\n@machine_code\ndef twice(n):\n"
    (tmp_path / "einloom_doubled.py").write_text(f"{text}    return 2 * n\n", encoding="utf-8")
    kept = [_loaded() for _ in range(2)]
    monkeypatch.setattr(machine_code, "_STAMP", "another")
    assert [*kept, _loaded(), _loaded()] == [False, True, False, True]


def _loaded() -> bool:
    """True if the function was in the cache; it is called, so that it is there afterwards."""
    sys.modules.pop("einloom_doubled", None)
    function: Any = importlib.import_module("einloom_doubled").twice
    known = machine_code.compiled(function)
    assert function(4) == 8 and bool(function.stats.cache_hits) == known
    return known


def test_a_function_without_machine_code_is_not_compiled() -> None:
    assert not machine_code.compiled(len)


def test_nothing_is_compiled_beside_a_search_where_the_environment_forbids_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(compiling.SWITCH, "never")
    one = compiling.KernelCompiler()
    assert not compiling.able() and not one.begun(uneven=False) and not one.waits


def test_a_process_compiles_beside_a_search_and_is_started_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiling, "able", lambda: True)
    monkeypatch.setattr(sys, "executable", str(shutil.which("true")))
    one = compiling.KernelCompiler()
    assert one.begun(uneven=True)
    process = one._process
    assert process is not None and process.args == [shutil.which("true"), "-m", compiling.__name__, "uneven", "even"]
    process.wait()
    assert not one.waits and not one.begun(uneven=True) and one._process is process


def test_the_cache_is_looked_at_now_and_then_while_it_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    one = compiling.KernelCompiler()
    one._process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        assert not one.waits and one.begun(uneven=False) and one.waits
        monkeypatch.setattr(compiling, "LOOKED", 0.0)
        assert not one.waits
    finally:
        one._process.communicate(b"\n")
    assert not one.waits and not one.begun(uneven=False)


def test_several_processes_compile_one_after_the_other(tmp_path: Path) -> None:
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    asks = f"from {compiling.__name__} import alone; print(alone(), flush=True); input()"
    kind: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "env": environment}
    with subprocess.Popen([sys.executable, "-c", asks], **kind) as first:
        assert first.stdout is not None and first.stdout.readline().split() == [b"True"]
        with subprocess.Popen([sys.executable, "-c", asks], **kind) as second:
            with pytest.raises(subprocess.TimeoutExpired):
                second.wait(2)
            first.communicate(b"\n")
            assert second.communicate(b"\n")[0].split() == [b"True"]


LOADED = """
import sys
from einloom import api, questions
from einloom.problem import Budget
from einloom.search import first

loaded = []
begun = first.FirstMappings._loaded
first.FirstMappings._loaded = lambda self, points: loaded.append(begun(self, points)) or loaded[-1]
problem = questions.problem(sys.argv[1], sys.argv[2], "edp", space=sys.argv[3])
api.solve(problem, sys.argv[4], Budget(seconds=100))
print(loaded[0], loaded[-1])
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "asked",
    [
        ("gpt3-6.7b:batch=64,tokens=4096", "tpu-v4i", "ragged", "exact"),
        ("tileflow-bert-s", "tileflow-edge", "ffm", "auto"),
    ],
    ids=lambda asked: asked[-1],
)
def test_a_search_with_an_empty_cache_goes_on_in_machine_code(asked: tuple[str, ...], tmp_path: Path) -> None:
    """It has none at first and some at the end, which stays for later processes."""
    environment = {
        **os.environ,
        compiling.SWITCH: "",
        "NUMBA_CACHE_DIR": str(tmp_path / "kept"),
        "TMPDIR": str(tmp_path),
    }
    command = [sys.executable, "-c", LOADED, *asked]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
    assert done.stdout.split() == ["False", "True"]
    assert list((tmp_path / "kept").rglob("*kernel.anneal*.nbc"))
