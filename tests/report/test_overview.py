"""Results of many Einsums on a screen: rows by module add up to the whole, and a module's branches can be printed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from large_network import chain

import einloom as el
from einloom.cli import main
from einloom.errors import SpecError
from einloom.mapping.extents import addressed_paths
from einloom.mapping.tree import Loop
from einloom.report.compare import compare
from einloom.report.data.modules import (
    FEW,
    MANY,
    NONE,
    Detail,
    common_name,
    einsums_of,
    module_rows,
    module_tree,
    shown_by,
    totals,
)
from einloom.report.page.page import page
from einloom.report.text import results as text
from einloom.report.text.overview import LINES, overview
from einloom.report.text.table import WIDTH

BY: tuple[Detail | None, ...] = (None, "layer", "module", "class", "einsum")


def grouped(result: el.Result, group: Callable[[int], str]) -> el.Result:
    """The result with Einsum number i in the module `group(i)`."""
    workload = result.workload
    einsums = tuple(replace(einsum, group=group(i)) for i, einsum in enumerate(workload.einsums))
    return replace(result, problem=replace(result.problem, workload=replace(workload, einsums=einsums)))


def in_layers(i: int) -> str:
    """Layers of two parts, four Einsums each; parts of unequal size in the first."""
    return f"layers.{i // 8}.{'attention' if i % 8 < (5 if i < 8 else 4) else 'mlp'}"


@pytest.fixture(scope="module")
def network() -> el.Result:
    return chain(48, 16)


@pytest.fixture(scope="module")
def layers(network: el.Result) -> el.Result:
    return grouped(network, in_layers)


def test_modules_that_are_alike_are_one_row(layers: el.Result) -> None:
    found = [(row.name, row.count, row.einsums, row.fused, row.written) for row in module_rows(layers)]
    assert found == [
        ("layers.0.attention", 1, 5, 4, 5),
        ("layers.0.mlp", 1, 3, 2, 3),
        ("layers.1-5.attention", 5, 4, 3, 4),
        ("layers.1-4.mlp", 4, 4, 3, 4),
        ("layers.5.mlp", 1, 4, 3, 3),
    ]
    assert [(row.name, row.count) for row in module_rows(layers, "layer")] == [("layers.0-4", 5), ("layers.5", 1)]
    einsums = layers.workload.einsums
    inner = module_rows(grouped(layers, lambda i: f"net.h{i // 8}.{i % 8}"), "layer")
    assert [row.name for row in inner] == ["net.h0-4", "net.h5"] and inner[0].einsums == len(einsums) // 6


def test_a_class_is_of_einsums_that_differ_in_names_alone(layers: el.Result, results: dict[str, el.Result]) -> None:
    """Wherever they are; a chain of equal products is one class, and one of unequal sizes several."""
    (row,) = module_rows(layers, "class")
    assert (row.name, row.einsums, row.count) == ("E0-47", 48, 1) and row.energy == pytest.approx(layers.energy)
    assert [row.name for row in module_rows(results["conv-chain"], "class")] == ["Act", "Out"]


def test_modules_stand_in_one_another(layers: el.Result) -> None:
    """Those that are alike are one, with the parts of the first; shares add up to the whole."""
    (top,) = module_tree(layers)
    assert (top.name, top.row.einsums, top.own) == ("layers", 48, ()) and top.share == pytest.approx(1)
    assert [(part.name, part.row.count) for part in top.parts] == [("0", 1), ("1-4", 4), ("5", 1)]
    assert sum(part.share or 0 for part in top.parts) == pytest.approx(1)
    inner = [leaf for part in top.parts for leaf in part.parts]
    assert sum(leaf.share or 0 for leaf in inner) == pytest.approx(1)
    assert [(leaf.name, len(leaf.own)) for leaf in inner[:2]] == [("attention", 5), ("mlp", 3)]


def test_modules_fold_on_the_page(layers: el.Result, network: el.Result) -> None:
    shown = page(layers)
    part = shown[shown.index('<section id="modules"') :].partition("</section>")[0]
    assert part.count("<details") == 1 + 3 + 6 and part.count("<details open>") == 1
    assert "<summary><b>1-4</b><span>× 4</span><span>8 Einsums</span>" in part
    assert part.count("<li>") == 24, "Einsums of the first of those that are alike"
    assert 'id="modules"' not in page(network)


@pytest.mark.parametrize("by", BY)
@pytest.mark.parametrize("group", [in_layers, lambda i: "", lambda i: f"a.b{i}.c" if i % 3 else "", str])
def test_rows_add_up_to_the_whole(network: el.Result, by: Detail | None, group: Callable[[int], str]) -> None:
    result = grouped(network, group)
    whole = totals(module_rows(result, by, 7))
    assert whole.energy == pytest.approx(result.energy) and whole.einsums == 48
    assert whole.latency == pytest.approx(sum(seconds for _, seconds in result.cost.einsum_latency))
    assert whole.multiplications == sum(result.workload.operations(name) for name in result.workload.names)
    assert (whole.fused, whole.written) == (36, 47)


def test_the_depth_gives_as_many_rows_as_there_is_room_for(network: el.Result) -> None:
    """Sizes that differ keep modules apart."""

    def deep(i: int) -> str:
        return f"net.{'abcdefgh'[min(i * i // 99, 7)]}.{'xy'[i % 2]}"

    result = grouped(network, deep)
    assert [len(module_rows(result, None, most)) for most in (MANY, 15, 8)] == [16, 8, 8]
    assert {row.name.count(".") for row in module_rows(result, None, 8)} == {1}
    few = module_rows(result, None, 5)
    assert len(few) == 5 and few[-1].name == "4 others"
    assert [row.name for row in module_rows(grouped(network, lambda i: ""))] == [NONE]
    assert shown_by(grouped(network, lambda i: "")) == "einsum", "three rows, more than one"
    assert shown_by(result) is None and shown_by(grouped(network, in_layers)) is None


def test_names_stand_for_their_modules(layers: el.Result) -> None:
    for row in module_rows(layers):
        assert len(einsums_of(layers, row.name)) == row.count * row.einsums
    assert einsums_of(layers, "layers.*.mlp") == {e.name for e in layers.workload.einsums if e.group.endswith("mlp")}
    assert len(einsums_of(layers, "layers.0,3-5")) == 32 and len(einsums_of(layers, "layers")) == 48
    assert common_name(["b1.0", "b1.2", "b1.10"]) == "b1.0,2,10" and common_name(["x"]) == "x"
    assert common_name([f"T{i * i}" for i in range(20)]) == "T*"
    with pytest.raises(SpecError, match=r"unknown module 'layers\.7'; known are layers, .*; did you mean 'layers\.\d'"):
        einsums_of(layers, "layers.7")
    with pytest.raises(SpecError, match="no Einsum of matmuls says which module it is part of"):
        einsums_of(chain(4, 4), "layers")


@pytest.mark.parametrize("name", ["large", "hostile", "pipeline", "gpt3", "layers"])
@pytest.mark.parametrize("by", [None, "layer", "module", "class", "einsum", "none"])
def test_it_fits_on_a_screen(results: dict[str, el.Result], layers: el.Result, name: str, by: str | None) -> None:
    result = layers if name == "layers" else results[name]
    shown = overview(result, by)  # type: ignore[arg-type]
    assert max(map(len, shown.splitlines())) <= WIDTH
    assert shown.startswith(text.headline(result))
    if by == "none" or (by is None and name not in ("large", "layers")):
        assert shown == text.summary(result)
    elif name in ("large", "layers"):
        assert shown.count("\n") <= LINES and "The mapping has" in shown


def test_many_unlike_modules_are_cut_to_the_screen(network: el.Result) -> None:
    names = [f"{'abcdefghijkl'[i // 4]}{'wxyz'[i % 4]}" for i in range(48)]
    shown = overview(grouped(network, lambda i: names[i]))
    assert LINES - 5 <= shown.count("\n") <= LINES and " others " in shown
    assert f"{chr(10)}  total " in shown and len(module_rows(grouped(network, lambda i: names[i]), None, FEW)) == FEW


def test_long_paths_lose_their_middle(network: el.Result) -> None:
    shown = overview(grouped(network, lambda i: f"{'encoder' if i % 2 else 'decoder'}.{'deeper.' * 9}{i % 5}.output"))
    assert max(map(len, shown.splitlines())) <= WIDTH
    rows = [line for line in shown.splitlines() if line.startswith(("  encoder.", "  decoder."))]
    assert len(rows) >= FEW and all("..." in row and ".deeper." in row for row in rows)


def test_the_tree_of_a_module_has_its_branches(layers: el.Result) -> None:
    inside = einsums_of(layers, "layers.1-2.mlp")
    shown = text.tree(layers, inside).splitlines()
    assert shown[0] == "# 8 of 48 Einsums" and max(map(len, shown)) <= WIDTH
    assert {line.split()[1] for line in shown if line.lstrip(" -").startswith("compute")} <= {"compute", *inside}
    nest = layers.mapping.nest
    loops = {id(node) for name in inside for _, node in addressed_paths(nest)[name] if isinstance(node, Loop)}
    assert sum(line.lstrip(" -").startswith("for ") for line in shown) == len(loops)
    assert "W11" not in " ".join(shown).split() and {"W12", "T13"} <= set(" ".join(shown).split())
    every = text.tree(layers, list(layers.workload.names))
    assert every == "# 48 of 48 Einsums\n" + text.tree(layers)


def test_modules_on_the_command_line(layers: el.Result, tmp_path: Path) -> None:
    saved = tmp_path / "r.json"
    layers.write(saved)

    def run(*arguments: str) -> tuple[int, str]:
        found = CliRunner().invoke(main, list(arguments), catch_exceptions=False)
        return found.exit_code, found.output

    again = el.Result.read(saved)
    assert [e.group for e in again.workload.einsums] == [e.group for e in layers.workload.einsums]
    assert run("evaluate", str(saved)) == (0, overview(again))
    assert run("show", str(saved), "--by", "layer") == (0, overview(again, "layer"))
    inside = einsums_of(layers, "layers.2.mlp")
    assert run("show", str(saved), "--tree", "--group", "layers.2.mlp") == (0, text.tree(again, inside) + "\n")
    for wrong, said in (
        (("--group", "layers.2"), "write --tree too"),
        (("--by", "layer", "--tree"), "--tree prints something else"),
        (("--tree", "--group", "layers.9"), "did you mean 'layers."),
        (("--by", "kind"), "is not one of"),
    ):
        code, output = run("show", str(saved), *wrong)
        assert code == 2 and said in output


def test_modules_make_no_other_workload(network: el.Result, layers: el.Result) -> None:
    absorbed = replace(
        network, problem=replace(network.problem, workload=replace(network.workload, absorbed=("1 x Relu",)))
    )
    assert not [note for note in compare([network, layers, absorbed]).warnings if "workload" in note]
    assert "  absorbed    1 x Relu\n" in text.headline(absorbed) + "\n"
