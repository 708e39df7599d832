"""Machine code in the cache is that of the sources: also of those that a kernel calls from other files."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from shutil import copy
from typing import Any

import pytest

from einloom.search.heuristics import machine_code

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
