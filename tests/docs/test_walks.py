"""The walks of docs/architecture.md: every hop exists, and a name leads from each to the next."""

from __future__ import annotations

import ast
import re
from itertools import pairwise
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "einloom"
HOP = re.compile(r"^\d\. `([\w/]+\.py): (\w+)`", re.MULTILINE)
MOST = 5
KEY = "read_energy"


def walks() -> dict[str, list[tuple[str, str]]]:
    """Title -> (file, name) of each hop."""
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    part = text.split("\n## Three walks\n")[1].split("\n## ")[0]
    pieces = re.split(r"^\*\*(.*?)\*\*", part, flags=re.MULTILINE)
    return {title: HOP.findall(body) for title, body in zip(pieces[1::2], pieces[2::2], strict=True)}


def definition(path: str, name: str) -> ast.AST:
    """The class, function, method or table of that name in a file."""
    for node in ast.walk(ast.parse((SOURCE / path).read_text(encoding="utf-8"))):
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name == name:
            return node
        if isinstance(node, ast.Assign) and any(isinstance(at, ast.Name) and at.id == name for at in node.targets):
            return node
    raise AssertionError(f"{path} defines no {name}")


def names(node: ast.AST) -> set[str]:
    """Every name that a definition uses: variables, attributes, annotations, and words that are keys."""
    found = {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
    found |= {one.attr for one in ast.walk(node) if isinstance(one, ast.Attribute)}
    found |= {
        one.target.id for one in ast.walk(node) if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name)
    }
    return found | {one.value for one in ast.walk(node) if isinstance(one, ast.Constant) and isinstance(one.value, str)}


def test_there_are_three_walks_of_at_most_five_hops() -> None:
    found = walks()
    starts = [re.match(r"From (a|an) ([\w `]+?) (of|to) ", title) for title in found]
    assert len(found) == 3 and all(starts)
    assert all(2 < len(hops) <= MOST for hops in found.values())


@pytest.mark.parametrize("title", walks())
def test_every_hop_is_there(title: str) -> None:
    for path, name in walks()[title]:
        definition(path, name)


@pytest.mark.parametrize("title", walks())
def test_a_name_leads_from_each_hop_to_the_next(title: str) -> None:
    """One of the two uses the other's name; or both use the key that the first walk is about."""
    hops = walks()[title]
    for (path, name), (to, other) in pairwise(hops):
        here, there = names(definition(path, name)), names(definition(to, other))
        assert other in here or name in there or KEY in here & there, f"{path}: {name} to {to}: {other}"
