"""The door of pictures: drawn once for page, figure and notebook, found by name, and what is refused."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import einloom as el
from einloom.cli import main
from einloom.errors import SpecError
from einloom.reading import plugins
from einloom.report.draw.drawing import Box, Canvas, Plot, Ruler, Words
from einloom.report.draw.svg import html_of
from einloom.report.figures.drawings import figure_of
from einloom.report.pictures import SHIPPED, Picture, drawn, picture, pictures, use
from einloom.result import Result
from einloom.testing.packages import installed
from einloom.testing.pictures import picture_faults, tiny_results

EXAMPLE = Path(__file__).parents[2] / "examples" / "energy-matrix"
SAVED = Path(__file__).parent / "results" / "gpt3.json"
COUNT = count()


class Sound:
    """A picture that a test breaks."""

    name, title, several = "sound", "Sound", True

    def data(self, results: Sequence[Result], labels: Sequence[str]) -> Any:
        return [result.energy for result in results]

    def draw(self, data: Any) -> Any:
        return Canvas("boxes", 100, 20, tuple(Box(10 * i, 0, 8, 8, i, "<b>&") for i, _ in enumerate(data)))


class Lambda(Sound):
    def data(self, results: Sequence[Result], labels: Sequence[str]) -> Any:
        return lambda: None


@pytest.fixture
def matrix(tmp_path: Path) -> Iterator[None]:
    with installed(EXAMPLE, tmp_path / "site"):
        yield


@pytest.fixture(autouse=True)
def _forget() -> Iterator[None]:
    yield
    plugins.forget()


@pytest.mark.usefixtures("matrix")
def test_a_picture_of_another_package_is_on_the_page_in_figures_and_in_notebooks(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    assert pictures() == (*SHIPPED, "energy-matrix")
    result = Result.read(SAVED)
    drawing = drawn(picture("energy-matrix"), [result])
    squares = [shape for shape in drawing.shapes if isinstance(shape, Box)]  # type: ignore[union-attr]
    rows = len(result.mapping.einsums)
    assert len(squares) % rows == 0
    areas = sum(box.width * box.height for box in squares)
    assert areas / max(box.width * box.height for box in squares) == pytest.approx(
        result.energy / max(result.cost.energy_by("einsum", "component").values())
    )
    page, target = tmp_path / "page.html", tmp_path / "figure.svg"
    for words in (["report", SAVED, "-o", page], ["figure", "energy-matrix", SAVED, "-o", target]):
        done = CliRunner().invoke(main, [str(word) for word in words], catch_exceptions=False)
        assert done.exit_code == 0, done.output
    text = str(html_of(drawing))
    assert text in page.read_text(encoding="utf-8") and text in result._repr_html_()
    assert '<section id="energy-matrix"' in page.read_text(encoding="utf-8")
    assert all(name in target.read_text(encoding="utf-8") for name in ("QK_softmax", "GLB"))
    patches = el.figures.picture("energy-matrix", result).axes[0].patches
    assert sum(type(patch).__name__ == "Rectangle" for patch in patches) == len(squares)
    done = CliRunner().invoke(main, ["figure", "energy-matirx", str(SAVED), "-o", str(target)])
    assert done.exit_code == 2 and "did you mean 'energy-matrix'" in done.output
    done = CliRunner().invoke(main, ["figure", "energy-matrix", str(SAVED), str(SAVED), "-o", str(target)])
    assert done.exit_code == 2 and "draws one result, not 2" in done.output


@pytest.mark.usefixtures("matrix")
def test_the_example_has_no_faults() -> None:
    assert picture_faults(lambda: picture("energy-matrix")) == ()


@pytest.mark.parametrize("name", SHIPPED)
def test_the_shipped_pictures_have_no_faults(name: str) -> None:
    assert picture_faults(lambda: picture(name)) == ()


def test_the_kit_finds_nothing_where_nothing_is_wrong() -> None:
    assert picture_faults(Sound) == ()


def _draws(found: object) -> Any:
    return lambda self, data: found() if callable(found) else found


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"draw": _draws(Canvas("x", 10, 10, (Box(5, 5, 6, 1, 0),)))}, "a Box reaches (11, 6), outside its canvas"),
        ({"draw": _draws(Canvas("x", 10, float("nan"), ()))}, "its canvas is 10 by nan points"),
        ({"draw": _draws(Canvas(" ", 10, 10, ()))}, "it has no label"),
        ({"draw": _draws(Plot("x", Ruler("", 0, 1, str, log=True), Ruler("", 0, 1, str)))}, "begins at 0"),
        ({"draw": _draws(Plot("x", Ruler("", 1, 1, str), Ruler("", 0, 1, str)))}, "its axis across goes from 1 to 1"),
        ({"draw": _draws("<svg/>")}, "it draws str, no Plot and no Canvas"),
        ({"draw": lambda self, data: data["nothing"]}, "is broken: TypeError"),
        ({"draw": _draws(lambda: Canvas(f"number {next(COUNT)}", 9, 9, ()))}, "two drawings of one result differ"),
        ({"draw": _draws(lambda: (_ for _ in ()).throw(SpecError("no")))}, "nothing to draw of any result"),
        ({"data": Lambda.data, "draw": _draws(Canvas("x", 9, 9, ()))}, "its data cannot be pickled"),
        ({"name": "a b"}, "its name 'a b'"),
        ({"title": ""}, "it has no title"),
    ],
)
def test_the_kit_finds_every_planted_mistake(changed: dict[str, Any], words: str) -> None:
    faults = picture_faults(type("Planted", (Sound,), changed))
    assert any(words in fault for fault in faults), faults


def test_whatever_a_picture_says_is_text() -> None:
    made: Picture = Sound()
    use(made)
    result = dict(tiny_results())["one"]
    assert 'data-tip="&lt;b&gt;&amp;"' in result._repr_html_()
    canvas = Canvas("$x$ <i>", 50, 20, (Words(1, 9, "$x^2 <i>", 8.0),))
    assert "<i>" not in html_of(canvas) and "$x^2 &lt;i&gt;" in html_of(canvas)
    pytest.importorskip("matplotlib")
    assert figure_of(canvas).axes[0].texts[0].get_text() == "$x^2 <i>"
