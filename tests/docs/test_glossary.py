"""The glossary names what exists, retired words are gone from the exact search, and a class name means one class."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
EINLOOM = ROOT / "src" / "einloom"
EXACT = EINLOOM / "search" / "exact"
NAMED = re.compile(r"`([\w/]+\.py): (\w+)`")
RETIRED = set(
    "Signature Classes Spread Held Trail Coming Structure Grid Grids Block Variant Between Aim Frontier frontier "
    "Live Window Windows settle least_alone climb dive glance STEPS Pass PEND PENDING Tiles Stages Steps Tables "
    "Pricing".split()
)


def glossary() -> list[tuple[str, str]]:
    return NAMED.findall((ROOT / "docs" / "glossary.md").read_text(encoding="utf-8"))


def test_the_glossary_names_the_exact_search() -> None:
    assert len(glossary()) >= 24


@pytest.mark.parametrize(("path", "name"), glossary(), ids=str)
def test_words_of_the_glossary_exist(path: str, name: str) -> None:
    """A class, a function or a named type of that module."""
    defined = set()
    for node in ast.walk(ast.parse((EXACT / path).read_text(encoding="utf-8"))):
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            defined.add(node.name)
        elif isinstance(node, ast.Assign):
            defined |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    assert name in defined, f"{path} defines no {name}: see docs/glossary.md"


def identifiers(tree: ast.Module) -> set[str]:
    """Names that a module defines or uses, attributes and parameters among them."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            found.add(node.id)
        elif isinstance(node, ast.Attribute):
            found.add(node.attr)
        elif isinstance(node, ast.arg):
            found.add(node.arg)
        elif isinstance(node, ast.ClassDef | ast.FunctionDef):
            found.add(node.name)
    return found


@pytest.mark.parametrize("path", sorted(EXACT.rglob("*.py")), ids=lambda path: str(path.relative_to(EXACT)))
def test_retired_words_are_gone(path: Path) -> None:
    used = identifiers(ast.parse(path.read_text(encoding="utf-8"))) & RETIRED
    used -= {"STEPS"} if path.name == "stops.py" else set()  # `Ended.STEPS`, a budget's
    assert not used, f"{sorted(used)}: docs/glossary.md has the field's words"


def test_docstrings_name_files_that_exist() -> None:
    files = {path.name for path in ROOT.joinpath("src").rglob("*.py")}
    assert {
        (str(path.relative_to(EINLOOM)), name)
        for path in EINLOOM.rglob("*.py")
        for name in re.findall(r"`(?:[\w]+/)*(\w+\.py)", path.read_text(encoding="utf-8"))
        if name not in files
    } == set()


def test_a_class_name_is_defined_once() -> None:
    """Public classes."""
    where: dict[str, list[Path]] = {}
    for path in sorted(EINLOOM.rglob("*.py")):
        for name in re.findall(r"^ *class ([A-Za-z]\w*)", path.read_text(encoding="utf-8"), re.MULTILINE):
            where.setdefault(name, []).append(path.relative_to(EINLOOM))
    assert len(where) > 300
    assert {name: paths for name, paths in where.items() if len(paths) > 1} == {}
