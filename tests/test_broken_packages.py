"""Packages that are broken, or in each other's way: what is asked for by name is refused in words, the rest goes on."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

import einloom as el
from commands import run
from einloom.errors import BrokenMethod, SpecError
from einloom.interop import registry
from einloom.machine.files import parse_machine
from einloom.problem import METHODS
from einloom.search.registry import SHIPPED, method
from einloom.testing.packages import installed
from einloom.zoo.workload_by_name import load_workload

SAVED = Path(__file__).parent / "report" / "results" / "gpt3.json"
TINY = ("matmul:m=2,n=2,k=2", "simple:glb_bits=16,dram_energy=10")
SEARCHES = """
from random import Random
from einloom.problem import Guarantee
from einloom.search.method import Capabilities

class Base:
    name, guarantee, able = "base", Guarantee.NONE, Capabilities()
    def __init__(self, seed: int = 0, points: int = 2):
        self.seed, self.points = seed, points
    def search(self, problem, space, price, budget, watch):
        rng = Random(self.seed)
        for _ in range(self.points):
            price.of(space.sample(rng))
        return price.result(self.name)

class Inherits(Base):
    name = "inherits"

class Unlicensed(Base):
    def __init__(self):
        raise RuntimeError("no licence")

class Table(Base):
    name, able = "table", {"starts": True}

class Leaves(Base):
    name = "leaves"
    def search(self, *given):
        raise SystemExit(0)

class Boasts(Base):
    name, guarantee = "boasts", Guarantee.OPTIMAL
    def search(self, problem, space, price, budget, watch):
        super().search(problem, space, price, budget, watch)
        return price.result(self.name, Guarantee.OPTIMAL, price.value)

number = 5
"""
PICTURES = """
from einloom.errors import SpecError
from einloom.report.draw.drawing import Box, Canvas, Plot, Ruler

class Good:
    name, title, several = "good", "A good one", False
    def data(self, results, labels):
        return 1
    def draw(self, data):
        return Canvas("boxes", 10, 10, (Box(1, 1, 2, 2, 0),))

class Raises(Good):
    name = "raises"
    def draw(self, data):
        raise OSError("no font")

class Nonsense(Good):
    name = "nonsense"
    def draw(self, data):
        return Plot("x", Ruler("", 0, float("nan"), str), Ruler("", 0, 1, str))

class Ticks(Good):
    name = "ticks"
    def draw(self, data):
        return Plot("x", Ruler("", 0, 1, lambda value, digits: 1 / 0), Ruler("", 0, 1, lambda value, digits: ""))

class Quiet(Good):
    name = "quiet"
    def draw(self, data):
        raise SpecError("this picture is broken: no, it has nothing to show")
"""
PARTS = """
class Bare:
    pass

class Sourceless:
    name, level, source, keys = "sourceless", "memory", "", ()
    def numbers(self, level, own):
        return {"area": 1e-6}

class Good(Sourceless):
    name, source = "good", "a fit"
"""
READERS = """
from pathlib import Path
from einloom.interop.bundle import Bundle
from einloom.workload.build import build_workload

class Nothing:
    name, suffixes = "nothing", (".nothing",)
    def read(self, files, parameters):
        return None

class Opens(Nothing):
    name, suffixes = "opens", (".opens",)
    def read(self, files, parameters):
        raise OSError("no such device")

class Odd(Nothing):
    name, suffixes = "odd", 5

class Good(Nothing):
    name, suffixes = "good", (".good",)
    def read(self, files, parameters):
        return Bundle(build_workload("w", ["Z[m,n] = A[m,k] * B[k,n]"], {"m": 2, "n": 2, "k": 2}, bits=8))
"""
MACHINE = """\
schema: machine/1
name: chip
levels:
  - {memory: DRAM, read_energy: 10 pJ, write_energy: 10 pJ}
  - {memory: GLB, size: 2 KiB, component: %s}
  - {compute: MAC, throughput: 1 GHz, energy: 1 pJ}
"""
Install = Callable[..., None]


@pytest.fixture
def install(tmp_path: Path) -> Iterator[Install]:
    """A function that installs a package of one module: its name, the text, a group, and value by entry point."""
    with ExitStack() as packages:

        def add(name: str, text: str, group: str, **points: str) -> None:
            folder = tmp_path / name
            folder.mkdir()
            (folder / f"{name}_module.py").write_text(text)
            lines = [f'{point} = "{name}_module:{value}"' for point, value in points.items()]
            head = f'[project]\nname = "{name}"\nversion = "1.0"\n[project.entry-points."einloom.{group}"]\n'
            (folder / "pyproject.toml").write_text(head + "\n".join(lines) + "\n")
            packages.enter_context(installed(folder, tmp_path / f"{name}-site"))
            registry.forget()

        yield add
    registry.forget()


def test_options_of_an_inherited_init_are_read_as_its_types(install: Install) -> None:
    install("ours", SEARCHES, "methods", inherits="Inherits")
    assert vars(method("inherits", {"seed": "3", "points": 4})) == {"seed": 3, "points": 4}
    with pytest.raises(SpecError, match="method 'inherits', option seed: 'abc' is not an integer"):
        method("inherits", {"seed": "abc"})


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("Unlicensed", "method 'mine' cannot be made: RuntimeError: no licence"),
        ("number", "'mine' of ours (einloom.methods: ours_module:number) is 5, neither a class nor a function"),
        ("Table", "method 'mine' is broken: its able is {'starts': True}, and no Capabilities"),
        ("Leaves", "method 'leaves' is broken: it ended with SystemExit: 0"),
        ("Missing", "'mine' of ours (einloom.methods: ours_module:Missing) cannot be loaded: AttributeError"),
    ],
)
@pytest.mark.filterwarnings("ignore:method 'mine' calls itself")
def test_a_broken_method_is_told_in_words(install: Install, value: str, words: str, tmp_path: Path) -> None:
    install("ours", SEARCHES, "methods", mine=value)
    code, said = run("map", *TINY, "--method", "mine", "--json", tmp_path / "x.json")
    assert code == 2 and words in said and not (tmp_path / "x.json").exists()


def test_a_method_that_leaves_in_a_process_of_a_sweep_is_named(install: Install, tmp_path: Path) -> None:
    install("ours", SEARCHES, "methods", leaves="Leaves")
    how = ["--memory", "GLB", "--capacities", "16,32", "--method", "leaves", "-o", tmp_path / "sweep"]
    code, said = run("sweep", *TINY, *how)
    assert code == 2 and "method 'leaves' is broken: it ended with SystemExit: 0" in said


def test_two_packages_with_one_name_are_an_error_that_names_both(install: Install) -> None:
    install("ours", SEARCHES, "methods", inherits="Inherits")
    install("theirs", SEARCHES, "methods", inherits="Base")
    with pytest.raises(SpecError, match="'inherits' is brought by") as caught:
        method("inherits")
    assert all(f"{name} ({name}_module:" in str(caught.value) for name in ("ours", "theirs"))


def test_names_that_ship_are_never_taken_and_that_is_said(install: Install) -> None:
    install("ours", SEARCHES, "methods", exact="Base")
    told = "method 'exact' of ours is never used: einloom has a method of that name"
    code, said = run("map", *TINY, "--method", "exact")
    assert code == 0 and told in said
    assert told not in run("map", *TINY)[1] and told in run("compare", *TINY, "--methods", "exact")[1]
    posing = type("Posing", (type(method("exact")),), {"__module__": "elsewhere"})()
    with pytest.raises(SpecError, match="it calls itself 'exact', as a method that ships"):
        el.map(*TINY, method=posing)


def test_the_methods_that_ship_are_those_that_are_made() -> None:
    assert SHIPPED == METHODS


def test_another_name_than_that_of_the_entry_point_is_told(install: Install) -> None:
    install("ours", SEARCHES, "methods", mine="Base")
    code, said = run("map", *TINY, "--method", "mine")
    assert code == 0 and "method 'mine' calls itself 'base'" in said


def test_what_a_package_proves_is_said_to_be_claimed(install: Install, tmp_path: Path) -> None:
    install("ours", SEARCHES, "methods", boasts="Boasts")
    code, said = run("map", *TINY, "--method", "boasts", "--json", tmp_path / "x.json")
    assert code == 0 and "claimed by method 'boasts', not checked: optimal" in said
    assert "claimed by" not in run("map", *TINY)[1]
    assert run("report", tmp_path / "x.json", "-o", tmp_path / "x.html")[0] == 0
    assert "claimed by method &#x27;boasts&#x27;, not checked: optimal" in (tmp_path / "x.html").read_text()


def test_a_comparison_goes_on_without_a_broken_method(install: Install, tmp_path: Path) -> None:
    install("ours", SEARCHES, "methods", leaves="Leaves", boasts="Boasts")
    gaps = tmp_path / "gaps.json"
    code, said = run("compare", *TINY, "--methods", "leaves,exact,boasts", "--json", gaps)
    reason = "method 'leaves' is broken: it ended with SystemExit: 0"
    assert code == 2 and reason in said and "gaps to the proven optimum" in said
    data = json.loads(gaps.read_text())
    assert [run["failed"] for run in data["runs"]] == [reason, None, None]
    code, said = run("compare", *TINY, "--methods", "boasts")
    assert code == 0 and "gaps to the claimed optimum, which is not checked" in said


def test_pictures_of_broken_packages_are_left_out_of_a_report(install: Install, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    install("absent", "import nowhere_to_be_found", "pictures", absent="Picture")
    install(
        "ours", PICTURES, "pictures", good="Good", raises="Raises", nonsense="Nonsense", ticks="Ticks", quiet="Quiet"
    )
    install("theirs", PICTURES, "pictures", energy="Good")
    code, said = run("report", SAVED, "-o", page)
    assert code == 0
    for words in (
        "left out: 'absent' of absent (einloom.pictures: absent_module:Picture) cannot be loaded: ModuleNotFoundError",
        "left out: picture raises is broken: OSError: no font",
        "left out: picture nonsense is broken: its axis across goes from 0 to nan",
        "left out: picture ticks is broken: ZeroDivisionError",
        "picture 'energy' of theirs is never used: einloom has a picture of that name",
    ):
        assert words in said, said
    text = page.read_text(encoding="utf-8")
    assert '<section id="good"' in text and '<section id="energy"' not in text and "quiet" not in said
    for name, words in (("absent", "cannot be loaded"), ("raises", "picture raises is broken: OSError: no font")):
        code, said = run("figure", name, SAVED, "-o", tmp_path / "x.svg")
        assert code == 2 and words in said


def test_a_schema_leaves_broken_components_out(install: Install) -> None:
    install("absent", "import nowhere_to_be_found", "components", absent="Part")
    install("ours", PARTS, "components", bare="Bare", sourceless="Sourceless", good="Good")
    code, said = run("schema", "machine")
    assert code == 0 and "component-good" in said and "component-bare" not in said
    assert "left out: 'absent' of absent" in said
    assert "left out: component 'bare' is broken: it lacks name, level, source, keys, numbers" in said
    assert parse_machine(MACHINE % "good").memory("GLB").area == 1e-6
    for name, words in (("bare", "it lacks name"), ("sourceless", "it names no source of its formulas")):
        with pytest.raises(SpecError, match=f"<text>:5:.*component '{name}' is broken: {words}"):
            parse_machine(MACHINE % name)


def test_a_file_is_read_though_another_importer_is_broken(install: Install, tmp_path: Path) -> None:
    install("absent", "import nowhere_to_be_found", "importers", absent="Reader")
    install("ours", READERS, "importers", good="Good", nothing="Nothing", opens="Opens", odd="Odd")
    for suffix in ("good", "nothing", "opens"):
        (tmp_path / f"net.{suffix}").write_text("")
    code, said = run("map", tmp_path / "net.good", TINY[1])
    assert code == 0 and "left out: 'absent' of absent" in said
    assert "left out: importer 'odd' claims the suffixes 5" in said
    with pytest.raises(SpecError, match=r"importer 'nothing' failed on .*: it returned NoneType, not a Bundle"):
        load_workload(str(tmp_path / "net.nothing"))
    with pytest.raises(SpecError, match=r"importer 'opens' failed on .*: OSError: no such device"):
        load_workload(str(tmp_path / "net.opens"))
    code, said = run("import", "nothing", tmp_path / "net.nothing", "-o", tmp_path / "out")
    assert code == 2 and "it returned NoneType, not a Bundle" in said


def test_a_refusal_that_fails_is_the_methods_own_mistake() -> None:
    class Refuses(type(method("random"))):  # type: ignore[misc]
        name = "refuses"

        def refuse(self, problem: object) -> None:
            raise KeyError("rank")

    with pytest.raises(BrokenMethod, match="'refuses' is broken: it ended with KeyError: 'rank'"):
        el.map(*TINY, method=Refuses())
