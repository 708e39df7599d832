"""The page as text: whole, offline, safe, the same every time; its numbers are those of the result."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import pytest
from click.testing import CliRunner
from hostile_names import IMAGE, QUOTE, SCRIPT, STYLE

from einloom import Result
from einloom.cli import main
from einloom.report.data.bars import busy_seconds
from einloom.report.draw import bars
from einloom.report.draw.cascade import groups
from einloom.report.draw.layers import layout
from einloom.report.draw.markup import Html, el
from einloom.report.draw.occupancy import columns
from einloom.report.draw.plot import Scale
from einloom.report.draw.roofline import points
from einloom.report.draw.subject import Subject
from einloom.report.page import page
from einloom.report.page.assumptions import ASSUMPTIONS, NOT_MODELLED
from einloom.report.page.sources import anchor

NAMES = ("matmul", "conv-chain", "gpt3", "large", "hostile", "pipeline", "pareto")
MODEL = Path(__file__).resolve().parents[2] / "docs" / "model"
MAX_BYTES = 5_000_000
Pages = Callable[[str], Path]


class Outline(HTMLParser):
    """Tags, ids and links of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.ids: list[str] = []
        self.links: list[str] = []
        self.outside: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        for name, value in attrs:
            self.attributes.add(name)
            if name == "id" and value:
                self.ids.append(value)
            elif name in ("src", "srcset", "data", "action") or (name == "href" and not (value or "").startswith("#")):
                self.outside.append(f"{tag} {name}={value}")
            elif name == "href":
                self.links.append((value or "")[1:])


@pytest.mark.parametrize("name", NAMES)
def test_the_page_is_whole_and_needs_nothing_else(pages: Pages, name: str) -> None:
    text = pages(name).read_text(encoding="utf-8")
    outline = Outline(text)
    assert not outline.outside
    assert "@import" not in text and not re.search(r"url\((?!#)", text)
    assert len(outline.ids) == len(set(outline.ids))
    assert set(outline.links) <= set(outline.ids)
    assert len(text.encode()) < MAX_BYTES


def test_nothing_but_the_result_goes_in(results: dict[str, Result], pages: Pages) -> None:
    again = page(Result.from_json(results["gpt3"].to_json()))
    assert again == pages("gpt3").read_text(encoding="utf-8")


def test_names_and_sources_cannot_become_markup(pages: Pages) -> None:
    text = pages("hostile").read_text(encoding="utf-8")
    for bad in (IMAGE, SCRIPT, STYLE):
        assert bad not in text
    assert QUOTE not in text.partition(' id="data"')[0]  # in the data a single quote is only a character
    outline, harmless = Outline(text), Outline(pages("matmul").read_text(encoding="utf-8"))
    assert "img" not in outline.tags
    assert not {name for name in outline.attributes if name.startswith("on")}
    assert outline.tags <= harmless.tags
    assert text.count("<script") == text.count("</script>") == 2


def test_text_is_escaped_and_markup_is_not() -> None:
    assert el("p", "<b>", Html("<i>"), [1, None, False], title='"') == '<p title="&quot;">&lt;b&gt;<i>1</p>'


@pytest.mark.parametrize("one", ASSUMPTIONS, ids=lambda one: one.page)
def test_assumptions_are_quoted_from_the_documentation(one: object) -> None:
    assumption = next(a for a in ASSUMPTIONS if a is one)
    written = (MODEL / f"{assumption.page}.md").read_text(encoding="utf-8").replace("**", "")
    assert assumption.text in " ".join(written.split())


def test_what_is_not_modelled_is_quoted_from_the_documentation() -> None:
    written = (MODEL / "not-modelled.md").read_text(encoding="utf-8")
    assert tuple(re.findall(r"^- \*\*(.*?)\.\*\*", written, re.MULTILINE)) == NOT_MODELLED


@pytest.mark.parametrize("name", NAMES)
def test_the_highest_column_is_the_occupancy(results: dict[str, Result], name: str) -> None:
    subject = Subject(results[name])
    for occupied in results[name].cost.occupancy:
        table = columns(subject, occupied.memory)
        assert len(table) == len(subject.leaves)
        highest = max(sum(column.values()) for column in table)
        assert highest == occupied.bits or (name == "pipeline" and highest < occupied.bits)


def test_what_overlaps_is_said(pages: Pages) -> None:
    text = pages("pipeline").read_text(encoding="utf-8")
    assert "branches that run at the same time add up" in text
    assert "split pipelined shared" in text


@pytest.mark.parametrize("name", NAMES)
def test_bars_add_up_to_the_result(results: dict[str, Result], name: str) -> None:
    result = results[name]
    rows = bars.data(Subject(result))["rows"]
    assert isinstance(rows, list)
    assert sum(row[4] for row in rows) == pytest.approx(result.energy, rel=1e-5)
    busy: dict[tuple[str, str], float] = {}
    for action, seconds in zip(result.cost.actions, busy_seconds(result), strict=True):
        key = (action.einsum, action.component)
        busy[key] = busy.get(key, 0.0) + seconds
    for einsum, component, seconds in result.cost.busy:
        assert busy[einsum, component] == pytest.approx(seconds)


def test_the_unfused_point_moves_every_tensor_once(results: dict[str, Result]) -> None:
    *each, whole = points(results["matmul"], unfused=True)
    assert whole.bytes == sum(point.bytes for point in each) == 3 * 64 * 64
    assert whole.operations == 64**3
    mapped = points(results["matmul"], unfused=False)[-1]
    assert mapped.bytes * 8 == results["matmul"].cost.traffic("DRAM")
    assert mapped.attainable is not None and mapped.achieved is not None
    assert mapped.achieved <= mapped.attainable * (1 + 1e-9)


def test_fusion_brings_operations_closer(results: dict[str, Result]) -> None:
    fused, unfused = (points(results["gpt3"], unfused=flag)[-1] for flag in (False, True))
    assert fused.intensity is not None and unfused.intensity is not None
    assert fused.intensity > 4 * unfused.intensity


def test_fused_groups_are_those_of_the_tree(results: dict[str, Result]) -> None:
    outer, inner = groups(Subject(results["gpt3"]))
    assert inner.einsums == ("QK", "QK_softmax", "AV") and set(inner.tensors) == {"QK", "QK_softmax"}
    assert set(outer.einsums) >= {"I", "V", "K", "Q", "Z", "FFA", "FFB"}
    assert {len(group.einsums) for group in groups(Subject(results["large"]))} == {4}
    assert not groups(Subject(results["matmul"]))


def test_a_layout_puts_no_two_things_in_one_place() -> None:
    edges = [("a", "b"), ("b", "c"), ("a", "c"), ("x", "c"), ("a", "d"), ("d", "c")]
    placed = layout(["a", "b", "x", "d", "c"], edges)
    places = [*placed.places.values(), *(bend for bends in placed.bends.values() for bend in bends)]
    assert len(places) == len(set(places))
    assert all(placed.places[source][0] < placed.places[target][0] for source, target in edges)


@pytest.mark.parametrize("log", [False, True])
def test_ticks_are_round_and_inside(log: bool) -> None:
    scale = Scale(0.03, 4000.0, log)
    ticks = scale.ticks()
    assert ticks and all(scale.low <= tick <= scale.high for tick in ticks)
    assert scale.at(scale.low) == pytest.approx(0) and scale.at(scale.high) == pytest.approx(1)


def test_every_price_leads_to_its_source(results: dict[str, Result], pages: Pages) -> None:
    outline = Outline(pages("gpt3").read_text(encoding="utf-8"))
    assert anchor("DRAM.read_energy") in outline.links
    facts = {anchor(fact.path) for fact in (*results["gpt3"].machine.facts, *results["gpt3"].workload.facts)}
    assert facts <= set(outline.ids)


def test_a_changed_file_is_named(results: dict[str, Result]) -> None:
    data = json.loads(results["matmul"].to_json())
    data["seconds"] = 7.0
    changed = page(Result.from_json(json.dumps(data)))
    assert "its digest does not match" in changed
    assert "its digest does not match" not in page(Result.from_json(results["matmul"].to_json()))


def test_the_verb_writes_the_file(results: dict[str, Result], tmp_path: Path) -> None:
    source, target = tmp_path / "r.json", tmp_path / "out.html"
    results["matmul"].write(source)
    runner = CliRunner()
    assert runner.invoke(main, ["report", str(source), "-o", str(target)]).exit_code == 0
    assert runner.invoke(main, ["report", str(source)]).exit_code == 0
    assert target.read_bytes() == (tmp_path / "r.html").read_bytes()
    assert runner.invoke(main, ["report", str(tmp_path / "no.json")]).exit_code == 2
    assert runner.invoke(main, ["report", str(source), "-o", str(tmp_path / "no" / "r.html")]).exit_code == 2


def test_the_front_is_drawn(results: dict[str, Result], pages: Pages) -> None:
    front = results["pareto"].front
    text = pages("pareto").read_text(encoding="utf-8")
    assert text.count('class="mark trade') == len(front) == 15
    for point in front:
        assert str(point.mapping) in text
    assert 'id="front"' not in pages("matmul").read_text(encoding="utf-8")
