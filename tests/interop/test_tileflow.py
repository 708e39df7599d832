"""TileFlow's cases: read, written back, and every count and cycle accounted for by named rules."""

from __future__ import annotations

import re
from collections import Counter
from math import prod
from pathlib import Path

import pytest
from click.testing import CliRunner

from einloom.cli import main
from einloom.cost.evaluate import evaluate, legality, views
from einloom.cost.traffic.accesses import moves
from einloom.errors import IllegalMapping, SpecError
from einloom.interop.tileflow import RULES, compare, export, read_statistics, read_texts
from einloom.interop.tileflow.cycles import einloom_cycles, groups
from einloom.interop.tileflow.nodes import TileNode, tiles_below
from einloom.interop.tileflow.rules import COUNT_RULES, Case, counts
from einloom.mapping.text import parse_mapping, print_mapping
from einloom.zoo.machine_by_name import load_machine
from einloom.zoo.workload_by_name import load_workload
from tileflow_files import FOLDER, NAMES, case, statistics, texts

COUNTED = [name for name in NAMES if statistics(name) is not None and name != "attention-edge"]


def test_all_cases_are_here() -> None:
    families = Counter(name.split("_")[0] if "__" in name else "repository" for name in COUNTED)
    assert families == {
        "fuseCacheSp": 9, "fuseCache": 6, "fuseMM": 23, "gemm": 13, "layerwise": 2, "repository": 9
    }  # fmt: skip
    assert sum(statistics(name) is None for name in NAMES) == 5


@pytest.mark.parametrize("name", COUNTED)
def test_rules_account_for_every_number(name: str) -> None:
    found = compare(case(name), statistics(name) or {})
    wrong = [(row.what, row.einloom, row.ruled, row.tileflow) for row in found.rows if not row.accounted]
    assert not wrong
    assert not all(row.equal for row in found.rows) and found.rows[-1].what == "cycles"
    unruled = [row.what for row in found.rows if not row.effects and not row.equal]
    assert not unruled


def test_which_rules_the_cases_need() -> None:
    """As docs/tileflow.md says; every rule but `cold-restart` changes a number somewhere."""
    found = [compare(case(name), statistics(name) or {}) for name in COUNTED]
    effects = [{name for row in comparison.rows for name, change in row.effects if change} for comparison in found]
    needed = Counter(name for names in effects for name in names)
    page = (Path(__file__).parents[2] / "docs" / "tileflow.md").read_text(encoding="utf-8")
    said = {name: int(count) for name, count in re.findall(r"^\| `([a-z-]+)` \|.*\| (\d+) \|$", page, re.MULTILINE)}
    assert said == {rule.name: needed[rule.name] for rule in RULES}
    rows = [row for comparison in found for row in comparison.rows]
    assert f"| all | {len(found)} | {len(rows)} | {sum(row.equal for row in rows)} | {len(rows)} |" in page


@pytest.mark.parametrize("name", COUNTED)
def test_without_a_rule_counts_are_einloom_s(name: str) -> None:
    """The walk under no rule says what cost/ says: reads and updates of the busiest instance, fills of all."""
    held = Case.of(case(name))
    expected: Counter[tuple[str, str, str]] = Counter()
    for link in held.links:
        for one, whole in zip(moves(link, {}), moves(link), strict=True):
            if one.action == "read":
                expected[one.memory, one.tensor, "read"] += one.count
            elif one.memory == link.parent.memory:
                expected[one.memory, one.tensor, "update"] += one.count
            else:
                expected[one.memory, one.tensor, "fill"] += whole.count
    found: Counter[tuple[str, str, str]] = Counter()
    for (_, memory, tensor, what), count in counts(held).items():
        found[memory, tensor, what] += count
    assert found == +expected


@pytest.mark.parametrize("name", COUNTED)
def test_cycles_start_from_einloom_s_latency(name: str) -> None:
    found = case(name)
    assert found.workload is not None and found.machine is not None and found.mapping is not None
    cost = evaluate(found.workload, found.machine, found.mapping)
    assert einloom_cycles(Case.of(found)) == pytest.approx(
        views(found.workload, found.machine, found.mapping, cost).tile
    )


@pytest.mark.parametrize("name", NAMES)
def test_round_trip(name: str) -> None:
    """What is read can be written, and what is written reads as the same workload, machine and mapping."""
    found = case(name)
    assert found.workload is not None and found.machine is not None and found.mapping is not None
    again = read_texts(export(found.workload, found.machine, found.mapping).files)
    assert again.workload == found.workload
    assert again.machine == found.machine
    assert again.mapping == found.mapping


def test_permutations_are_innermost_first() -> None:
    found = case("gemm_KNM_MNK__bwA")
    assert found.workload is not None and found.mapping is not None
    text = print_mapping(found.mapping, found.workload)
    assert text.startswith("store MainMemory: A B C\nfor m in 4\nfor n in 2\nfor k in 4\npar n in 2 @ Cache_Y\n")


def test_the_reference_as_a_mapping() -> None:
    found = case("08-test-2mm")
    assert found.workload is not None and found.machine is not None and found.mapping is not None
    assert legality(found.workload, found.machine, found.mapping) == ()
    text = print_mapping(found.mapping, found.workload)
    assert "store MainMemory: C\nsplit pipelined @ RegFile_X shares 2 2:" in text
    assert found.machine.memory("RegFile").size == 64 * 1024 * 8
    assert {axis.name: axis.size for axis in found.machine.axes.values()}["RegFile_X"] == 4


def test_published_attention_on_edge_is_refused() -> None:
    """TileFlow's attention dataflow needs seven of Edge's four cores; its sample says 262,144 cycles.

    Those are QK's multiplications on two cores of 256 reachable elements each, so 14 cores in all; with one core per
    stage, as in the file here, TileFlow says twice as much. It counts either only with its checks switched off.
    """
    found = case("attention-edge")
    assert found.workload is not None and found.machine is not None and found.mapping is not None
    reasons = legality(found.workload, found.machine, found.mapping)
    assert reasons == ("'split pipelined @ L1_X': 7 branches need >= 7 instances of L1_X, 4 available",)
    with pytest.raises(IllegalMapping, match="7 branches"):
        compare(found, statistics("attention-edge") or {})
    assert any("check: spatial: False is not followed" in note for note in found.notes)
    operations, reachable = found.workload.operations("QK"), found.machine.axes["L0_X"].size
    assert reachable == 256 and found.machine.axes["L0_Y"].size == 4
    assert operations // reachable == (statistics("attention-edge") or {})["Cycle"] == 2 * 262_144


def test_a_tile_starts_cold() -> None:
    """A kept in registers across a loop of the level above: TileFlow fetches it again whenever Cache starts."""
    files = dict(texts("gemm_KNM_MNK__bwA"))
    name = next(file for file in files if file.startswith("map"))
    files[name] = (
        "mapping: {node-type: Tile, target: MainMemory, factors: M=4 K=4 N=2, permutation: NKM, subtree: ["
        "{node-type: Tile, target: Cache, factors: N=16, permutation: N, subtree: ["
        "{node-type: Tile, type: spatial, target: Cache, factors: M=4 K=4, split: 1, permutation: MK, subtree: ["
        "{node-type: Tile, target: RegFile, factors: M=4 K=4, permutation: MK, subtree: ["
        "{node-type: Op, name: GEMM}]}]}]}]}"
    )
    held = Case.of(read_texts(files))
    ranks = held.workload.extents
    assert counts(held)["GEMM", "Cache", "A", "read"] == ranks["m"] * ranks["k"]
    assert counts(held, COUNT_RULES)["GEMM", "Cache", "A", "read"] == 2 * ranks["m"] * ranks["k"]


def test_groups_of_equal_steps_are_all_steps() -> None:
    root = case("fuseMM_Pipeline_LM_LMK_mctrue__bwA").layout
    assert root is not None
    for tile in tiles_below(root.root):
        assert isinstance(tile, TileNode)
        steps = list(groups(tile))
        assert sum(times for _, times in steps) == prod(trips for _, trips in tile.loops)
        assert steps[0] == (None, 1)


@pytest.mark.parametrize(
    ("workload", "message"), [("tileflow-cc1", "one projection for both"), ("gpt3-6.7b", "one dimension")]
)
def test_workloads_that_cannot_be_written(workload: str, message: str) -> None:
    """A window on an intermediate tensor, and a tensor whose ranks two readers mean differently."""
    with pytest.raises(SpecError, match=message):
        export(load_workload(workload), load_machine("two-level"))


def test_a_mapping_that_was_never_tileflow_s() -> None:
    """einloom's own names are written as letters: n1, n0, n2 become N, A, B; levels left out become empty tiles."""
    machine = case("gemm_KNM_MNK__bwA").machine
    assert machine is not None
    workload = load_workload("matmuls:n=2,m=4,kn=4")
    text = (
        "store MainMemory: T0 W0 W1 T2\nfor E0.m, E1.m in 2\nstore Cache: T1\nsplit sequential:\n"
        "  - store Cache: T0\n    for n0 in 4\n    for n1 in 4\n    for m in 2\n    compute E0 @ mac\n"
        "  - for n1 in 4\n    for n2 in 4\n    for m in 2\n    compute E1 @ mac\n"
    )
    files = export(workload, machine, parse_mapping(text, workload, machine)).files
    again = read_texts(files)
    assert again.workload is not None and again.mapping is not None
    renamed = text.replace("n0", "a").replace("n1", "n").replace("n2", "b")
    renamed = renamed.replace("E0.m, E1.m", "m")
    assert print_mapping(again.mapping, again.workload) == renamed
    assert "bypass: [T0, T1, W0]" in files["map.yaml"]


def test_mappings_that_cannot_be_written() -> None:
    machine = case("gemm_KNM_MNK__bwA").machine
    assert machine is not None
    workload = load_workload("matmul:m=4,n=4,k=4")
    tail = "for n in 4\nfor k in 4\nstore RegFile: A\ncompute Z @ mac\n"
    for head, message in (
        ("store MainMemory: A B Z\nfor m in 2 tile 3\nfor m in 3\n", "divide evenly"),
        ("store MainMemory: A B Z slots 2\nfor m in 4\n", "slots"),
    ):
        with pytest.raises(SpecError, match=message):
            export(workload, machine, parse_mapping(head + tail, workload, machine))


def test_command_line(tmp_path: Path) -> None:
    run = CliRunner()
    files = [str(p) for p in sorted((FOLDER / "08-test-2mm").glob("*.yaml"))]
    table = run.invoke(main, ["import", "tileflow", *files, "--compare", str(FOLDER / "08-test-2mm" / "out.csv")])
    assert (
        table.exit_code == 0 and "pipeline-evicts +2.06438e+06" in table.output and "NOT ACCOUNTED" not in table.output
    )
    other = tmp_path / "out.csv"
    text = (FOLDER / "08-test-2mm" / "out.csv").read_text(encoding="utf-8")
    other.write_text(re.sub(r"(?m)^(Cycle\D+)\d", r"\g<1>9", text), encoding="utf-8")
    off = run.invoke(main, ["import", "tileflow", *files, "--compare", str(other)])
    assert off.exit_code == 1 and off.output.count("NOT ACCOUNTED") == 1
    assert "1 of 17 numbers are not accounted for" in off.output
    done = run.invoke(main, ["import", "tileflow", *files, "-o", str(tmp_path / "in")])
    assert done.exit_code == 0
    made = [str(tmp_path / "in" / name) for name in ("workload.yaml", "machine.yaml", "mapping.txt")]
    priced = run.invoke(main, ["evaluate", *made])
    assert priced.exit_code == 0 and "3.43" in priced.output
    written = run.invoke(main, ["export", "tileflow", *made, "-o", str(tmp_path / "out")])
    assert written.exit_code == 0
    again = [str(tmp_path / "out" / name) for name in ("arch.yaml", "prob.yaml", "map.yaml")]
    assert run.invoke(main, ["import", "tileflow", *again, "-o", str(tmp_path / "again")]).exit_code == 0
    assert (tmp_path / "again" / "mapping.txt").read_text() == (tmp_path / "in" / "mapping.txt").read_text()
    refused = run.invoke(
        main, ["import", "tileflow", *map(str, sorted((FOLDER / "attention-edge").glob("*.yaml"))), "-o", str(tmp_path)]
    )
    assert "7 branches need >= 7 instances of L1_X, 4 available" in refused.output
    assert run.invoke(main, ["import", "tileflow", *files]).exit_code != 0


def test_statistics_that_are_none(tmp_path: Path) -> None:
    path = tmp_path / "out.csv"
    for text, message in (("Cycle,1\nRead,x\n", ":2"), ("metric,value\n", "no Cycle"), ("Cycle,1e\n", ":1")):
        path.write_text(text, encoding="utf-8")
        with pytest.raises(SpecError, match=message):
            read_statistics(path)
    with pytest.raises(SpecError, match="cannot read"):
        read_statistics(tmp_path / "none.csv")
