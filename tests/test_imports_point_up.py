"""The house has one direction: a part imports only parts that come before it in this list, and no modules in a circle.

Every import counts, wherever it stands: inside a function and under ``TYPE_CHECKING``, too. The measurements in `bench`
have no circle either, and import of `einloom` what they like.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE, BENCH = ROOT / "src" / "einloom", ROOT / "bench"
ORDER = (
    "version once dataclass errors stops reporting reading workload machine mapping oracle cost mapspace dataflows "
    "problem result search interop zoo certify diagnose codegen report fabric sweep published defects questions "
    "exploration api schema testing cli __main__ __init__"
).split()
ROOMS = {  # the same inside a folder; a later module of the list may import the earlier ones, and its own folder's
    "search/exact": "numerics padded einsums prices pmappings model unlisted fusion traceback bounds joining options "
    "rooms blame spatial_lists least_costs explored_rows attempt unfused segments front concurrent stops incumbent "
    "drawing neighbours feasible few_choices head_starts narrower factors branch_and_bound answer integer",
    "report": "data text draw frames compare pictures page notebook figures",
    "mapping": "tree extents analysed normal text legality",
    "cost": "breakdown formulas traffic room time evaluate event batch",
    "result": "document record tables asked files unmapped sweep",
    "diagnose": "constraints easier record feasibility text document edits conflict sensitivity alternatives "
    "relaxations reason",
    "mapspace": "divisors limits space files ffm registry",
    "exploration": "family regions scaling record page study",
    "dataflows": "families casts rewrites rules files concurrent_forms",
    "reading": "plugins writing dimensions functions arithmetic units yamltree jsonplaces located keys facts fields "
    "json_schema",
    "interop": "bundle clocks one_unit accelforge tileflow onnx torch zigzag timeloop registry",
    "zoo": "catalogue index parsed origins convnets windowed networks attentions transformers encoders state_spaces "
    "table2 workload_entries machine_entries workload_by_name machine_by_name",
}
STRANGERS = [  # (who, must not see)
    ("cost", "oracle"),
    ("oracle", "cost"),
    ("search/exhaustive", "search.exact"),
    ("search/exact", "search.exhaustive"),
    ("workload", "machine"),
]
ORACLE_SEES = {"version", "dataclass", "errors", "reading", "workload", "machine", "mapping", "oracle"}


def imports(file: Path) -> set[str]:
    """Dotted names below `einloom` that the file imports, wherever in the file it does so."""
    return {name for dotted, below in statements(file, PACKAGE) for name in (dotted, *below)} - {""}


def statements(file: Path, home: Path) -> Iterator[tuple[str, list[str]]]:
    """For each import of the file what it imports from, below the package `home`, and that with each name that it
    imports."""
    package, prefix = file.relative_to(home).parts[:-1], f"{home.name}."
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            dotted = ".".join((*base, *(node.module or "").split("."))).strip(".")
            if not node.level and not f"{dotted}.".startswith(prefix):
                continue
            dotted = dotted if node.level else dotted[len(prefix) :]
            yield dotted, [f"{dotted}.{alias.name}".strip(".") for alias in node.names]
        elif isinstance(node, ast.Import):
            yield from ((a.name[len(prefix) :], []) for a in node.names if a.name.startswith(prefix))


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


def circles(imported: dict[str, set[str]]) -> set[str]:
    """The modules that import one another in a circle, or are imported by and import such: what peeling leaves."""
    left = {name: seen & imported.keys() - {name} for name, seen in imported.items()}
    while True:
        ends = {n for n, seen in left.items() if not seen} | (left.keys() - set().union(*left.values()))
        if not ends:
            return set(left)
        left = {name: seen - ends for name, seen in left.items() if name not in ends}


def imported_modules(home: Path) -> dict[str, set[str]]:
    """Of each module of a package the modules of it that it imports: a package only for what is no module of it."""
    files = {}
    for file in sorted(home.rglob("*.py")):
        files[".".join(file.relative_to(home).with_suffix("").parts).removesuffix("__init__").rstrip(".")] = file
    files.pop("", None)
    found = {}
    for module, file in files.items():
        pairs = ((dotted, name) for dotted, below in statements(file, home) for name in below or [dotted])
        found[module] = {name if name in files else dotted for dotted, name in pairs} & files.keys()
    return found


@pytest.mark.parametrize("home", [PACKAGE, BENCH], ids=lambda home: home.name)
def test_no_modules_in_a_circle(home: Path) -> None:
    assert not circles(imported_modules(home))


def test_a_circle_is_seen(tmp_path: Path) -> None:
    first, second, third = (tmp_path / f"{name}.py" for name in ("first", "second", "third"))
    first.write_text("from .second import x\n")
    second.write_text("from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from .first import y\n")
    third.write_text("def f():\n    from .first import x\n")
    assert circles(imported_modules(tmp_path)) == {"first", "second"}
