"""Results side by side: the numbers are those of the results, and what makes them incomparable is said."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from test_page import Outline

import einloom as el
from einloom.cli import main
from einloom.report.compare import compare
from einloom.report.data.unlike import unlike
from einloom.report.draw.pareto import Pareto, Trade, front
from einloom.report.draw.svg import html_of
from einloom.report.text.table import WIDTH

RESULTS = Path(__file__).parent / "results"
CHAINS = tuple(RESULTS / f"chain-{name}.json" for name in ("loops0", "loops1", "edp"))
SHOWN = """\
note: different mapspaces: ffm with at most 0 fused loops (none); ffm with at most 1 fused loop
      (one)

                             none             one
  ---------------  --------------  --------------
  workload                matmuls         matmuls
  machine                  simple          simple
  method                    exact           exact
  objective                energy          energy
  value              5.8563e+08 J   5.82877e+08 J
  energy                585.63 MJ       582.88 MJ
    over the best         1.005 x            best
  latency               16.777 Ms       16.777 Ms
    over the best            best            best
  EDP              9.8252e+15 J s  9.7791e+15 J s
    over the best         1.005 x            best
  traffic of DRAM         192 KiB         176 KiB
  traffic of GLB        64.06 MiB       64.05 MiB
  proven               gap 0.000%      gap 0.000%
  fused                    2 of 3          3 of 3
  seconds                   0.145           0.223

what is fused where
  tensor  none       one
  ------  ---------  ---
  T1      GLB        GLB
  T2      not fused  GLB
  T3      GLB        GLB
"""


def run(*arguments: str | Path) -> str:
    result = CliRunner().invoke(main, [str(argument) for argument in arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def test_as_text() -> None:
    compared = compare({"none": CHAINS[0], "one": CHAINS[1]})
    assert str(compared) == SHOWN


def test_many_results_stay_within_the_width(results: dict[str, el.Result]) -> None:
    compared = compare([*results.values(), *CHAINS])
    assert max(map(len, str(compared).splitlines())) <= WIDTH
    assert len({row.label for row in compared.rows}) == len(compared.rows) == len(results) + len(CHAINS)


def test_the_verb_writes_everything(tmp_path: Path) -> None:
    page, table, data = (tmp_path / name for name in ("c.html", "c.csv", "c.json"))
    printed = run("compare", *CHAINS, "-o", page, "--csv", table, "--json", data)
    assert "note: different objectives: energy (chain-loops0, chain-loops1); edp (chain-edp)" in printed
    found = json.loads(data.read_text(encoding="utf-8"))
    lines = list(csv.DictReader(io.StringIO(table.read_text(encoding="utf-8"))))
    assert [line["label"] for line in lines] == [one["label"] for one in found["results"]] == [p.stem for p in CHAINS]
    for path, line, one in zip(CHAINS, lines, found["results"], strict=True):
        result = el.Result.read(path)
        assert float(line["energy"]) == one["energy"] == result.energy
        assert one["traffic_DRAM"] == result.cost.traffic("DRAM")
        assert one["gap"] == 0
    least = min(one["energy"] for one in found["results"])
    assert [one["energy_ratio"] for one in found["results"]] == [one["energy"] / least for one in found["results"]]
    assert json.loads(run("compare", *CHAINS, "--json", "-")) == found


def test_the_page_is_whole(tmp_path: Path) -> None:
    text = compare(CHAINS).to_html()
    outline = Outline(text)
    assert not outline.outside
    assert set(outline.links) <= set(outline.ids) and len(outline.ids) == len(set(outline.ids))
    assert text.count('class="curve k0 run best"') == 1 and text.count('class="curve k2 run bound"') == 1
    assert compare(CHAINS).to_html() == text


def test_names_stay_text(results: dict[str, el.Result]) -> None:
    compared = compare({"<img src=x>": results["hostile"], "b": results["hostile"]})
    assert "img" not in Outline(compared.to_html()).tags
    assert "img" not in Outline(compared._repr_html_()).tags


def test_what_differs_is_said(results: dict[str, el.Result]) -> None:
    one, other = results["matmul"], results["conv-chain"]
    said = " ".join(compare([one, other]).warnings)
    for what in ("workloads", "machines"):
        assert f"different {what}" in said
    assert compare([one, one]).warnings == ()
    assert [row.label for row in compare([one, one]).rows] == ["exact", "exact #2"]
    edited = replace(one, recorded_digest="0" * 64)
    assert "digest does not match" in " ".join(compare([one, edited]).warnings)


def test_what_was_not_found_is_named_and_left_out() -> None:
    compared = el.compare([CHAINS[0], RESULTS / "infeasible.json"])
    assert len(compared.rows) == 1
    assert "infeasible is left out" in compared.warnings[0] and "GLB holds 32768 bits" in compared.warnings[0]
    with pytest.raises(el.SpecError, match="no result to compare"):
        el.compare([RESULTS / "infeasible.json"])


def test_as_a_frame() -> None:
    pytest.importorskip("pandas", reason="pandas is not installed: pip install 'einloom[notebook]'")
    table = compare(CHAINS).to_frame()
    assert list(table.index) == [path.stem for path in CHAINS]
    assert table.loc["chain-loops1", "energy_ratio"] == 1.0


def test_the_front_is_what_nothing_beats() -> None:
    points = [Trade(5, 1, "a"), Trade(3, 2, "b"), Trade(4, 2, "c"), Trade(3, 4, "d"), Trade(1, 9, "e")]
    assert [point.label for point in front(points)] == ["a", "b", "e"]
    drawn = html_of(Pareto().draw([("", [*points, Trade(1, 9, "f")])]))
    assert drawn.count(' on"') == 3
    assert ">e, f<" in drawn
    with pytest.raises(el.SpecError, match="no points"):
        Pareto().draw([("", [])])


def test_inputs_of_one_name_that_differ_are_told_apart() -> None:
    plain = el.Result.read(CHAINS[0])
    levels = tuple(
        replace(level, size=(level.size or 0) + 8) if level.name == "GLB" else level for level in plain.machine.levels
    )
    larger = replace(plain, problem=replace(plain.problem, machine=replace(plain.machine, levels=levels)))
    first, *_ = compare({"a": plain, "b": larger}).warnings
    sizes = [plain.machine.memory("GLB").size, larger.machine.memory("GLB").size]
    assert sizes[0] != sizes[1]
    start = "different machines: simple (a); simple (b): GLB.size is "
    assert first.startswith(start) and " in a and " in first and first.endswith(" in b")
    renamed = replace(larger, problem=replace(larger.problem, machine=replace(larger.machine, name="other")))
    assert compare({"a": plain, "b": renamed}).warnings[0] == "different machines: simple (a); other (b)"


def test_of_many_differences_the_first_are_named() -> None:
    one = {"name": "m", "levels": [{"fanout": "PE", "axes": [{"axis": "row", "size": {"value": 4, "source": "s"}}]}]}
    two = {"name": "m", "levels": [{"fanout": "PE", "axes": [{"axis": "row", "size": 8, "use": "full"}]}]}
    told = unlike(one, two, ("a", "b"))
    assert told == "row.size is 4 in a and 8 in b; row.size.source is s in a and the default in b; and 1 more"
    assert unlike({"x": [1, 2]}, {"x": [1, 3]}, ("a", "b")) == "x is 1, 2 in a and 1, 3 in b"
