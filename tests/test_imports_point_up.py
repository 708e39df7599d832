"""The house has one direction: a part imports only parts that come before it in this list."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[1] / "src" / "einloom"
ORDER = (
    "version errors stops reporting reading workload machine mapping oracle cost mapspace dataflows problem result "
    "search interop zoo certify diagnose report codegen fabric sweep published defects api schema testing cli __main__ "
    "__init__"
).split()
ROOMS = {  # the same inside a folder; a later module of the list may import the earlier ones, and its own folder's
    "search/exact": "numerics einsums prices pmappings model fusion traceback bounds joining attempt unfused segments "
    "front concurrent branch_and_bound integer",
    "report": "data text draw frames compare pictures page notebook figures",
    "mapping": "tree extents analysed normal text legality",
    "cost": "breakdown formulas traffic room time evaluate event batch",
    "result": "document record tables asked files unmapped sweep",
    "diagnose": "constraints easier record feasibility text document edits conflict sensitivity alternatives "
    "relaxations reason",
    "mapspace": "divisors limits space files ffm registry",
    "dataflows": "families casts rewrites rules files concurrent_forms",
    "reading": "plugins writing dimensions arithmetic units yamltree jsonplaces located keys facts fields json_schema",
    "interop": "bundle clocks one_unit accelforge tileflow onnx torch zigzag timeloop registry",
    "zoo": "catalogue index origins convnets windowed networks attentions transformers encoders state_spaces table2 "
    "workload_entries machine_entries workload_by_name machine_by_name",
}
STRANGERS = [  # (who, must not see)
    ("cost", "oracle"),
    ("oracle", "cost"),
    ("search/exhaustive", "search.exact"),
    ("search/exact", "search.exhaustive"),
    ("workload", "machine"),
]
ORACLE_SEES = {"version", "errors", "reading", "workload", "machine", "mapping", "oracle"}


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


@pytest.mark.parametrize("folder", ROOMS)
def test_imports_point_up_inside(folder: str) -> None:
    order = ROOMS[folder].split()
    home = PACKAGE / folder
    existing = {file.relative_to(home).with_suffix("").parts[0] for file in home.rglob("*.py")} - {"__init__"}
    assert existing == set(order), "say where each room belongs"
    prefix = folder.replace("/", ".") + "."
    for file in sorted(home.rglob("*.py")):
        room = file.relative_to(home).with_suffix("").parts[0]
        if room == "__init__":
            continue
        seen = {name[len(prefix) :].split(".")[0] for name in imports(file) if name.startswith(prefix)}
        below = {other for other in seen & set(order) if order.index(other) > order.index(room)}
        assert not below, f"{file.relative_to(PACKAGE)} imports {sorted(below)}, which come after it"


def test_the_list_is_of_what_exists() -> None:
    later = {"codegen", "fabric", "testing"}
    existing = {file.relative_to(PACKAGE).with_suffix("").parts[0] for file in FILES}
    assert set(ORDER) - existing <= later
