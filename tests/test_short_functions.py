"""No function of einloom has 60 lines or more: what does not fit a page is several functions."""

from __future__ import annotations

import ast
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1] / "src" / "einloom"
LINES = 60


def long_functions(text: str) -> list[str]:
    """Names of the functions with too many lines, from `def` to the last one, functions inside functions counted."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    functions = (node for node in ast.walk(ast.parse(text)) if isinstance(node, kinds))
    return [f.name for f in functions if (f.end_lineno or f.lineno) - f.lineno + 1 >= LINES]


def test_functions_are_short() -> None:
    files = sorted(PACKAGE.rglob("*.py"))
    found = {str(file.relative_to(PACKAGE)): long_functions(file.read_text(encoding="utf-8")) for file in files}
    assert {file: names for file, names in found.items() if names} == {}


def test_a_long_function_is_seen() -> None:
    body = "".join(f"        x = {i}\n" for i in range(LINES - 1))
    assert long_functions(f"class A:\n    def long(self):\n{body}") == ["long"]
    assert long_functions(f"class A:\n    def short(self):\n{body[: body.rindex('        x')]}") == []
