"""The house has one direction: a part imports only parts that come before it in this list."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[1] / "src" / "einloom"
ORDER = (
    "version errors stops writing reporting dimensions arithmetic units yamltree jsonplaces keys located workload "
    "constraints machine mapping oracle cost mapspace selections problem result search certify testing fabric report "
    "codegen hardware sweep interop published zoo defects verbs schema cli __main__ __init__"
).split()
STRANGERS = [  # (who, must not see)
    ("cost", "oracle"),
    ("oracle", "cost"),
    ("search/exhaustive", "search.exact"),
    ("search/exact", "search.exhaustive"),
    ("workload", "machine"),
]
ORACLE_SEES = {"version", "errors", "workload", "constraints", "machine", "mapping", "oracle"}


def imports(file: Path) -> set[str]:
    """Dotted names below `einloom` that the file imports, wherever in the file it does so."""
    package = file.relative_to(PACKAGE).parts[:-1]
    found = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            dotted = ".".join((*base, *(node.module or "").split("."))).strip(".")
            names = [dotted] if dotted else [alias.name for alias in node.names]
            names += [f"{dotted}.{alias.name}" for alias in node.names] if dotted else []
            found |= set(names) if node.level else {n[8:] for n in names if n.startswith("einloom.")}
        elif isinstance(node, ast.Import):
            found |= {alias.name[8:] for alias in node.names if alias.name.startswith("einloom.")}
    return found


FILES = sorted(PACKAGE.rglob("*.py"))


@pytest.mark.parametrize("file", FILES, ids=lambda f: str(f.relative_to(PACKAGE)))
def test_imports_point_up(file: Path) -> None:
    place = file.relative_to(PACKAGE).with_suffix("")
    part = place.parts[0]
    assert part in ORDER, f"{part} has no place in the list: say where it belongs"
    seen = imports(file)
    known = {name for name in seen if name.split(".")[0] in ORDER}
    below = {name for name in known if ORDER.index(name.split(".")[0]) > ORDER.index(part)}
    assert not below, f"{place} imports {sorted(below)}, which come after it"
    for who, stranger in STRANGERS:
        if f"{place}/".startswith(f"{who}/"):
            assert not {name for name in seen if f"{name}.".startswith(f"{stranger}.")}, f"{who} sees {stranger}"
    if part == "oracle":
        assert {name.split(".")[0] for name in known} <= ORACLE_SEES


def test_the_list_is_of_what_exists() -> None:
    later = {"codegen", "hardware", "published", "__main__"}
    existing = {file.relative_to(PACKAGE).with_suffix("").parts[0] for file in FILES}
    assert set(ORDER) - existing <= later
