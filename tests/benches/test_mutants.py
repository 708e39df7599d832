"""Mutants: what is changed, which are drawn, and a small project in which one is caught and the others are not."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

ROOT = Path(__file__).resolve().parents[2]

if TYPE_CHECKING:
    from bench.mutants.changes import Change


@pytest.fixture(autouse=True)
def _bench_on_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT))


def made(text: str, function: str = "f") -> set[tuple[str, str]]:
    """Kind and changed text of every change of a function, the head of which is left out."""
    from bench.mutants.changes import Source, changes, counts

    source = Source("x.py", text)
    found = [change for change in changes(source).get(function, []) if counts(source, change)]
    assert all(change.applied(text) != text and ast.parse(change.applied(text)) for change in found)
    head = text.index(":\n") + 2
    return {(change.kind, change.applied(text)[head:].strip()) for change in found}


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("x = a < b", {("comparison", "x = a <= b"), ("comparison", "x = a >= b")}),
        ("if a: pass", {("condition", "if True: pass"), ("condition", "if False: pass")}),
        ("g(a not  in b)", {("comparison", "g(a in b)"), ("statement", "pass")}),
        ("x = (a) + b", {("arithmetic", "x = (a) - b")}),
        ("x = a * b", {("arithmetic", "x = a // b"), ("arithmetic", "x = a + b")}),
        ("x = 7", {("constant", "x = 8"), ("constant", "x = 6")}),
        ("x = True", {("boolean", "x = False")}),
        ("x = min(a)", {("min/max", "x = max(a)")}),
        ("x = np.minimum(a)", {("min/max", "x = np.maximum(a)")}),
        ("x = not a", {("not", "x = a")}),
        ("x = -a", {("minus", "x = a")}),
        ("x = a and b", {("and/or", "x = a or b"), ("condition", "x = a"), ("condition", "x = b")}),
        ("x = [i for i in a if b]", {("condition", "x = [i for i in a if True]")}),
        ("x = g(a, b)", {("argument", "x = g(b, a)")}),
        ("x += a", {("arithmetic", "x -= a"), ("statement", "pass")}),
        ("for i in a: continue", {("loop", "for i in a: break")}),
        ("return a", {("return", "return None")}),
        ('"""Text, 3 < 4."""; raise E(a, 3 + 4)', set()),
        ('x: list[int] = f"{a + 1}"', set()),
        ("x = isinstance(a, Loop | Split)", set()),
    ],
)
def test_every_kind_of_change(body: str, expected: set[tuple[str, str]]) -> None:
    assert made(f"def f(a, b):\n    {body}\n") == expected


def test_defaults_are_those_of_the_annotation() -> None:
    for said, default in (("int", "0"), ("tuple[int, ...]", "()"), ("dict[str, int]", "{}"), ("bool", "not (a)")):
        assert made(f"def f(a) -> {said}:\n    return a\n") == {("return", f"return {default}")}
    assert made("def f(a) -> int:\n    return 0\n") == {("constant", "return 1"), ("constant", "return -1")}


def test_places_count_bytes_and_functions_have_dotted_names() -> None:
    text = "class A:\n    def f(self, a):\n        x = 'μ…' if a < 1 else 'ö'\n        def g(): return a - 1\n"
    assert ("comparison", "x = 'μ…' if a <= 1 else 'ö'\n        def g(): return a - 1") in {
        (kind, after.partition("):\n")[2].strip()) for kind, after in made(text, "A.f")
    }
    assert ("arithmetic", "a + 1") in {(kind, after.rpartition("return ")[2]) for kind, after in made(text, "A.f.g")}
    assert not any("a + 1" in after for _, after in made(text, "A.f")), "an inner function is a function of its own"


def test_a_draw_is_decided_by_its_seed() -> None:
    from bench.mutants.draw import PACKAGE, draw, found_again

    drawn = draw(ROOT, 5, 12, ["cost"])
    assert [m.identity for m in drawn] == [m.identity for m in draw(ROOT, 5, 12, ["cost"])]
    assert {m.identity for m in drawn} != {m.identity for m in draw(ROOT, 6, 12, ["cost"])}
    assert len({(m.change.file, m.change.function) for m in drawn}) == 12, "at most one a function"
    for mutant in drawn:
        assert mutant.change.file.startswith(f"{PACKAGE}/cost/") and mutant.folder == "cost"
        again = found_again(ROOT, mutant.change.file, mutant.identity)
        assert again is not None and again.identity == mutant.identity
        changed = [line for line in mutant.diff().splitlines() if line[0] in "+-"]
        assert len(changed) >= 3 and changed[0].startswith("---"), "the head, and a line that is not as it was"


PROJECT = {
    "src/einloom/__init__.py": "",
    "src/einloom/cost/__init__.py": "",
    "src/einloom/cost/sums.py": """\
def total(numbers: list[int]) -> int:
    found = 0
    for number in numbers:
        found += number
    return found


def largest(numbers: list[int]) -> int:
    return max(numbers)


def unread(numbers: list[int]) -> int:
    return min(numbers)
""",
    "tests/test_sums.py": """\
import pytest

from einloom.cost.sums import largest, total


def test_total() -> None:
    assert total([1, 2]) == 3


@pytest.mark.slow
def test_largest_slowly() -> None:
    assert largest([1, 2]) == 2


def test_largest_of_one() -> None:
    assert largest([1]) == 1
""",
    "pyproject.toml": '[tool.pytest.ini_options]\nmarkers = ["slow: slow"]\naddopts = ["--import-mode=importlib"]\n',
    "bench/__init__.py": "",
    "bench/rows.py": "",
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A repository with one source and one file of tests, and the plugins that run in its copies."""
    root = tmp_path / "project"
    files = dict(PROJECT)
    for name in ("__init__", "recording", "choosing"):
        files[f"bench/mutants/{name}.py"] = (ROOT / "bench" / "mutants" / f"{name}.py").read_text(encoding="utf-8")
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    subprocess.run(["git", "init", "-q", "."], cwd=root, check=True)
    return root


def mutant(root: Path, function: str, kind: str) -> Change:
    from bench.mutants.changes import Source, changes

    file = "src/einloom/cost/sums.py"
    source = Source(file, (root / file).read_text(encoding="utf-8"))
    return next(change for change in changes(source)[function] if change.kind == kind)


@pytest.mark.slow
def test_a_small_project(project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Recording, trials, resuming, survivors run again, and known equivalents; the project's own files never change."""
    pytest.importorskip("coverage")
    from bench.mutants import table
    from bench.mutants.__main__ import main
    from bench.mutants.reach import Reach

    build, output = project / "build", project / "out.csv"
    common = ["--build", str(build), "-o", str(output), "--folders", "cost", "--count", "3", "--seed", "3"]
    monkeypatch.setattr(sys, "stderr", sys.stdout)
    assert main(["run", *common], project) == 2, "no map"
    assert main(["record", *common], project) == 0
    reach = Reach(build)
    text = (project / "src/einloom/cost/sums.py").read_text(encoding="utf-8")
    names = [test.name for test in reach.tests(mutant(project, "total", "statement"), text)]
    assert names == ["tests/test_sums.py::test_total"]
    assert [t.name for t in reach.tests(mutant(project, "largest", "min/max"), text)] == [
        "tests/test_sums.py::test_largest_of_one"
    ], "slow tests do not count"
    before = {path: path.read_bytes() for path in project.rglob("*.py") if "build" not in path.parts}
    assert main(["run", *common], project) == 1
    assert {path: path.read_bytes() for path in before} == before
    rows = table.read(output)
    assert len(rows) == 3
    found = {row["function"]: row for row in rows}
    assert found["total"]["verdict"] == "caught" and found["total"]["test"].endswith("test_total")
    assert found["largest"]["verdict"] in ("survived", "caught")
    printed = capsys.readouterr().out
    assert "(mutant)" in printed and "may change an answer are caught" in printed
    main(["run", *common], project)
    assert len(table.read(output)) == 3, "what is done is not done again"
    survivors = [row for row in rows if row["verdict"] != "caught"]
    known = [table.Equivalent(table.identity(row), "a reason") for row in survivors]
    monkeypatch.setattr(table, "equivalents", lambda: known)
    assert main(["again", *common], project) == 0
    assert Counter(row["verdict"] for row in table.read(output)) == {"caught": 3 - len(known), "equivalent": len(known)}
    assert {path: path.read_bytes() for path in before} == before


@pytest.mark.slow
def test_verdicts(project: Path, tmp_path: Path) -> None:
    from bench.mutants.changes import Change
    from bench.mutants.draw import Mutant
    from bench.mutants.reach import Test
    from bench.mutants.trial import Workshop

    file = "src/einloom/cost/sums.py"
    text = (project / file).read_text(encoding="utf-8")
    shop = Workshop(project, tmp_path / "copy")
    tests = [Test("tests/test_sums.py::test_largest_of_one", 0.01, 10), Test("tests/test_sums.py::test_total", 0.02, 9)]

    def trial(before: str, after: str, chosen: list[Test]) -> tuple[str, str, int]:
        start = text.index(before)
        change = Change(file, "total", 1, "constant", start, start + len(before), before, after)
        verdict = shop.trial(Mutant(0, change, text), chosen, 60.0)
        assert (shop.folder / file).read_text(encoding="utf-8") == text
        return verdict.word, verdict.test.rpartition("::")[2], verdict.tests

    assert trial("found = 0", "found = 1", tests) == ("caught", "test_total", 2)
    assert trial("min(numbers)", "max(numbers)", tests) == ("survived", "", 2)
    assert trial("min(numbers)", "max(numbers)", []) == ("unreached", "", 0)
    assert trial("return found", "return found)", tests) == ("caught", "tests/test_sums.py", 2), "it cannot be imported"
    with pytest.raises(RuntimeError, match="record again"):
        trial("found = 0", "found = 1", [Test("tests/test_sums.py::test_gone", 0.1, 1)])
    conftest = shop.folder / "tests/conftest.py"
    conftest.write_text("from einloom.cost.sums import total\n", encoding="utf-8")
    assert trial("def total", "def sum_of", tests) == ("caught", "no test can be loaded", 2)
    conftest.unlink()
    broken = shop.folder / "tests/test_broken.py"
    broken.write_text("def test_broken(): assert False\n", encoding="utf-8")
    fails = Test("tests/test_broken.py::test_broken", 0.001, 1)
    assert trial("found = 0", "found = 1", [fails, *tests]) == ("caught", "test_total", 3)
    assert trial("min(numbers)", "max(numbers)", [fails, *tests]) == ("survived", "", 3), "it fails without it too"


def test_a_mutant_without_an_end_is_caught(project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from bench.mutants import trial
    from bench.mutants.changes import Change
    from bench.mutants.draw import Mutant
    from bench.mutants.reach import Test

    monkeypatch.setattr(trial, "START", 3.0)
    file = "src/einloom/cost/sums.py"
    text = (project / file).read_text(encoding="utf-8")
    start = text.index("found += number")
    endless = Change(file, "total", 1, "statement", start, start + len("found += number"), "", "numbers.append(1)")
    shop = trial.Workshop(project, tmp_path / "copy")
    assert shop.trial(Mutant(0, endless, text), [Test("tests/test_sums.py::test_total", 0.0, 1)], 60.0).word == "time"


def test_rounds_take_the_quick_ones_first_and_stop_at_the_most() -> None:
    from bench.mutants.reach import Test
    from bench.mutants.trial import rounds

    tests = [Test(f"tests/t{i}.py::t", float(i), 0) for i in range(1, 20)]
    cut = list(rounds(tests, 1000.0))
    assert [test for some in cut for test in some] == sorted(tests, key=lambda test: test.seconds) and len(cut) == 3
    assert [test.seconds for test in cut[0]] == [1, 2, 3, 4, 5]
    assert sum(test.seconds for some in rounds(tests, 30.0) for test in some) <= 30
    many = [Test(f"tests/f{i}.py::t", 0.01, 0) for i in range(100)]
    assert len(next(rounds(many, 1000.0))) == 12, "each file costs its imports"


def test_lines_are_found_in_an_older_state() -> None:
    from bench.mutants.reach import _old_lines

    old, new = "a\nb\nc\nd\n", "a\nx\nb\nc\ne\n"
    assert _old_lines(old, new) == [0, 1, 0, 2, 3, 0]


def test_tests_of_machine_code_are_those_that_call_it(tmp_path: Path) -> None:
    coverage = pytest.importorskip("coverage")
    from bench.mutants.changes import Source, changes
    from bench.mutants.reach import Reach

    layer, place = tmp_path / "layer-000", "src/einloom/cost"
    (layer / place).mkdir(parents=True)
    kernel = "import numba\n\n\n@numba.njit\ndef half(x):\n    return x // 2\n"
    (layer / place / "kernel.py").write_text(kernel, encoding="utf-8")
    (layer / place / "user.py").write_text("from . import kernel\n\nassert kernel.half(2) == 1\n", encoding="utf-8")
    data = coverage.CoverageData(str(layer / "coverage"))
    for name, lines in (
        ("tests/t.py::imports", {"kernel.py": [5], "user.py": [1]}),
        ("tests/t.py::calls", {"user.py": [3]}),
    ):
        data.set_context(name)
        data.add_lines({f"/somewhere/{place}/{file}": found for file, found in lines.items()})
    data.write()
    tests = {"tests/t.py::imports": (1.0, "passed"), "tests/t.py::calls": (1.0, "passed")}
    (layer / "tests.json").write_text(json.dumps(tests), encoding="utf-8")
    (layer / "files.json").write_text('{"tests/t.py": ""}', encoding="utf-8")
    change = changes(Source(f"{place}/kernel.py", kernel))["half"][0]
    assert [test.name for test in Reach(tmp_path).tests(change, kernel)] == ["tests/t.py::calls"]


def test_known_equivalents_speak_of_what_is_there() -> None:
    from bench.mutants.draw import found_again
    from bench.mutants.table import equivalents

    for known in equivalents():
        assert len(known.reason) > 20, known
        assert found_again(ROOT, known.identity[0], known.identity) is not None, f"no longer there: {known.identity}"
