"""Names that are cut stay apart, on the terminal and in pictures, and what is not there is said."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import einloom as el
from commands import run
from einloom.report.data.bars import rows_of
from einloom.report.text.names import file_labels, shortened
from einloom.report.text.table import WIDTH

RESULTS = Path(__file__).parent / "results"
LONG = "a_very_long_name_of_a_result_with_many_words_for_seed_number_"


@given(st.lists(st.text("ab_", min_size=1, max_size=40), max_size=6), st.integers(3, 30))
def test_different_names_stay_different(names: list[str], room: int) -> None:
    shown = shortened(names, room)
    assert len(set(shown)) == len(set(names))
    assert all(text == name for text, name in zip(shown, names, strict=True) if len(name) <= room)
    assert all(len(text) <= room + 2 for text in shown)


def test_rooms_that_differ_are_no_difference() -> None:
    shown = shortened([f"{LONG}1", f"{LONG}2"], [18, 19])
    assert [text[-1] for text in shown] == ["1", "2"]


def test_files_are_named_by_as_little_of_their_paths_as_tells_them_apart() -> None:
    assert file_labels(["a/x.json", "b/x.json", "y.json"]) == ["a/x", "b/x", "y"]
    assert file_labels(["s/a/x.json", "t/a/x.json"]) == ["s/a/x", "t/a/x"]
    assert file_labels(["x.json", "x.json"]) == ["x", "x #2"]


def test_long_names_stay_apart_where_results_are_compared(tmp_path: Path) -> None:
    text = (RESULTS / "matmul.json").read_text(encoding="utf-8")
    for i in range(4):
        (tmp_path / f"{LONG}{i}.json").write_text(text, encoding="utf-8")
    code, output = run("compare", *(tmp_path / f"{LONG}{i}.json" for i in range(4)))
    heads = next(line for line in output.splitlines() if "..." in line).split()
    assert code == 0 and len(set(heads)) == 4 and [head[-1] for head in heads] == ["0", "1", "2", "3"]
    assert max(map(len, output.splitlines())) <= WIDTH


def test_results_of_one_label_are_not_added_up() -> None:
    results = [el.Result.read(RESULTS / f"chain-{name}.json") for name in ("loops0", "loops1")]
    with pytest.raises(el.SpecError, match="two results have the same label: x, x"):
        rows_of(results, ["x", "x"], "energy", "einsum", "component")


@pytest.mark.parametrize(
    ("given", "said"), [({"b": 5}, "not 5 for b"), ([5], "not 5"), (5, "not 5"), ({"b": b"x.json"}, "not b'x.json'")]
)
def test_what_is_neither_a_result_nor_a_path_is_not_compared(given: object, said: str) -> None:
    with pytest.raises(el.SpecError, match="what is compared are results and paths") as caught:
        el.compare(given)  # type: ignore[arg-type]
    assert said in str(caught.value)


def test_figures_name_files_of_one_name_by_their_folders(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib is not installed: pip install 'einloom[figures]'")
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "x.json").write_bytes((RESULTS / "matmul.json").read_bytes())
    target = tmp_path / "f.svg"
    assert run("figure", "energy", tmp_path / "a" / "x.json", tmp_path / "b" / "x.json", "-o", target)[0] == 0
    assert ">a/x</text>" in target.read_text(encoding="utf-8") and ">b/x</text>" in target.read_text(encoding="utf-8")
