"""The pages that lead a reader do what they say: their files, commands and sessions are played in order."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import re
import sys
from pathlib import Path

import pytest

import einloom
from einloom.reading import plugins
from pages import DOCS, FLAGS, play

PLAYED = (
    "getting-started.md",
    "tutorial.md",
    "running.md",
    "how-to/my-chip.md",
    "how-to/my-model.md",
    "how-to/my-dataflow.md",
    "how-to/my-optimizer.md",
    "how-to/my-component.md",
    "how-to/my-picture.md",
    "how-to/my-space.md",
    "how-to/my-importer.md",
    "how-to/files.md",
)
PAGES = sorted(page for page in DOCS.rglob("*.md") if "_build" not in page.parts)
EXAMPLES = sorted(
    module.name
    for module in pkgutil.walk_packages(einloom.__path__, "einloom.")
    if module.name != "einloom.__main__"
    and ">>>" in Path(str(module.module_finder.find_spec(module.name).origin)).read_text(encoding="utf-8")  # type: ignore
)


@pytest.mark.parametrize("page", PLAYED)
def test_a_page_does_what_it_says(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    known = set(sys.modules)
    try:
        assert play((DOCS / page).read_text(encoding="utf-8"), tmp_path) >= 1
    finally:
        for name in set(sys.modules) - known:
            if str(getattr(sys.modules[name], "__file__", "")).startswith(str(tmp_path)):
                del sys.modules[name]
        plugins.forget()  # what the page offered


@pytest.mark.parametrize("part", ["onnx", "torch"])
def test_the_tutorial_of_networks_does_what_it_says(part: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip(part)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    _, files, modules = re.split(r"^## ", (DOCS / "tutorial-models.md").read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert play(files if part == "onnx" else modules, tmp_path) >= 3
    sys.modules.pop("vit", None)


def test_a_page_that_says_something_else_is_found_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for wrong in (
        "```console\n$ einloom zoo matmul\nnothing\n```\n",
        "```python\n>>> 1 + 1\n3\n```\n",
        "```console\n$ einloom zoo matmull\n...\n```\n",  # an error, which the dots match
        "```console\n$ einloom zoo matmull  # exit 1\n...\n```\n",  # another exit code
        "```console\n$ einloom zoo matmul  # exit 2\n...\n```\n",  # no error where one is promised
        "```console\n$ einloom zoo matmull > file.yaml\n```\n",
    ):
        with pytest.raises(AssertionError):
            play(wrong, tmp_path)
    assert play("```console\n$ einloom zoo matmull  # exit 2\n...did you mean 'matmul'?\n```\n", tmp_path) == 1


@pytest.mark.parametrize("module", EXAMPLES)
def test_examples_in_docstrings(module: str) -> None:
    found = doctest.testmod(importlib.import_module(module), optionflags=FLAGS)
    assert found.attempted and not found.failed


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(DOCS)))
def test_links_lead_somewhere(page: Path) -> None:
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)#\s]+)", text):
        if "://" not in target:
            assert (page.parent / target).exists(), target


def test_every_page_is_in_the_site() -> None:
    listed = set()
    for block in re.findall(r"```\{toctree\}\n(.*?)```", (DOCS / "index.md").read_text(encoding="utf-8"), re.DOTALL):
        listed |= {line for line in block.splitlines() if line and not line.startswith(":")}
    assert listed == {str(page.relative_to(DOCS).with_suffix("")) for page in PAGES} - {"index"}
