"""The door of machine components: formulas of another package in a machine file, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import einloom as el
from einloom.cli import main
from einloom.errors import SpecError
from einloom.machine.components import components, use
from einloom.machine.files import parse_machine
from einloom.machine.write import machine_text
from einloom.reading import plugins
from einloom.reading.keys import Key, Number
from einloom.testing.components import component_faults
from einloom.testing.packages import installed

EXAMPLE = Path(__file__).parents[2] / "examples" / "sram-component"
FILE = """\
schema: machine/1
name: chip
levels:
  - {memory: DRAM, read_energy: 10 pJ, write_energy: 10 pJ, read_throughput: 1 GB/s, write_throughput: 1 GB/s}
  - {memory: GLB, size: 2 KiB, bits_per_access: 64, write_energy: 7 pJ, component: {sram: {banks: 4}}}
  - {compute: MAC, throughput: 1 GHz, energy: 1 pJ}
"""


class Broken:
    """A component that gives what a test says."""

    name, level, source, keys = "broken", "memory", "nowhere", (Key("banks", Number("count")),)
    given: Mapping[str, Any] = {"area": 1e-6}

    def numbers(self, level: object, own: Mapping[str, Any]) -> Mapping[str, Any]:
        return self.given


@pytest.fixture
def sram(tmp_path: Path) -> Iterator[None]:
    with installed(EXAMPLE, tmp_path / "site"):
        yield


@pytest.fixture(autouse=True)
def _forget() -> Iterator[None]:
    yield
    plugins.forget()


@pytest.mark.usefixtures("sram")
def test_a_component_of_another_package_prices_a_level(tmp_path: Path) -> None:
    assert components() == ("sram",)
    machine = parse_machine(FILE)
    glb = machine.memory("GLB")
    side = (2048 * 8 / 4) ** 0.5
    assert glb.read_energy == pytest.approx(64 * side * 4e-18) and glb.write_energy == pytest.approx(7e-12)
    assert glb.read_throughput == pytest.approx(64e9) and glb.area == pytest.approx(2048 * 8 * 0.5e-12)
    facts = {fact.path: fact for fact in machine.facts}
    assert facts["GLB.read_energy"].source.startswith("sram: ") and facts["GLB.read_energy"].kind == "derived"
    assert "GLB.write_energy" not in facts
    best = el.map("matmul:m=4,n=4,k=4", machine)
    reads = [action for action in best.cost.actions if (action.component, action.action) == ("GLB", "read")]
    assert reads and all(a.energy == pytest.approx(a.bits / 64 * glb.read_energy) for a in reads)
    plugins.forget()  # a result carries the numbers, and needs no component to be read
    assert parse_machine(machine_text(machine)) == machine
    assert el.Result.from_json(best.to_json()) == best


@pytest.mark.usefixtures("sram")
@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("sram:", "srma:", "<text>:5:85: unknown component 'srma'; known are sram"),
        ("banks", "bnaks", "unknown key 'bnaks' (at levels[1].component.sram); did you mean 'banks'"),
        ("banks: 4", "banks: 0", "0 must be at least 1"),
        ("size: 2 KiB", "double_buffer: true", "an sram needs a size"),
        ("{sram: {banks: 4}}", "{sram: {}, other: {}}", "expected one component"),
        ("{compute: MAC", "{component: sram, compute: MAC", "component sram is a memory; this level is a compute unit"),
    ],
)
def test_mistakes_have_a_place(old: str, new: str, words: str) -> None:
    with pytest.raises(SpecError) as caught:
        parse_machine(FILE.replace(old, new))
    assert words in str(caught.value)


@pytest.mark.usefixtures("sram")
def test_the_schema_knows_it() -> None:
    jsonschema = pytest.importorskip("jsonschema")
    schema = json.loads(CliRunner().invoke(main, ["schema", "machine"]).output)
    check = jsonschema.Draft202012Validator(schema)
    level = {"memory": "GLB", "component": {"sram": {"banks": 4}}}
    data = {"schema": "machine/1", "name": "x", "levels": [level]}
    assert not list(check.iter_errors(data))
    level["component"] = {"sram": {"bnaks": 4}}
    assert list(check.iter_errors(data))


@pytest.mark.usefixtures("sram")
def test_the_example_has_no_faults() -> None:
    from einloom.machine.components import component

    make = type(component("sram"))
    assert component_faults(make, {"size": "4 KiB", "bits_per_access": 64}, {"banks": 2, "cycle": "2 ns"}) == ()


def _raises(self: object, level: object, own: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"area": own["banks"]}


def _counts(self: Any, level: object, own: Mapping[str, Any]) -> Mapping[str, Any]:
    type(self).calls = getattr(type(self), "calls", 0) + 1
    return {"area": float(type(self).calls)}


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"given": {"area": -1.0}}, "it gives -1.0 as area"),
        ({"given": {"read_energy": float("nan")}}, "it gives nan as read_energy"),
        ({"given": {"area": None}}, "it gives None as area"),
        ({"given": {"aera": 1.0}}, "it gives 'aera', no number of a memory"),
        ({"given": {"ports": "shared"}}, "it gives 'ports', no number of a memory"),
        ({"given": {}}, "no number that the file does not state"),
        ({"level": "register"}, "its level is 'register'"),
        ({"source": " "}, "no source of its formulas"),
        ({"keys": 5}, "its keys are 5, no tuple of Key"),
        ({"__init__": lambda self: 1 / 0}, "it cannot be made: ZeroDivisionError"),
        ({"keys": (Key("size", Number("size")), Key("banks", Number("count")))}, "'size' is a key of a memory, too"),
        ({"numbers": _raises}, "without attributes: component broken is broken: KeyError: 'banks'"),
        ({"numbers": _counts}, "two readings of one file give two machines"),
    ],
)
def test_the_kit_finds_every_planted_mistake(changed: dict[str, Any], words: str) -> None:
    faults = component_faults(type("Planted", (Broken,), changed), {}, {"banks": 2})
    assert any(words in fault for fault in faults), faults


def test_the_kit_tells_what_a_bare_class_lacks() -> None:
    assert component_faults(type("Bare", (), {"name": "bare"}), {}, {}) == ("it lacks level, source, keys, numbers",)


def test_the_kit_finds_nothing_where_nothing_is_wrong() -> None:
    assert component_faults(Broken, {}, {"banks": 2}) == ()


@pytest.mark.parametrize(
    ("level", "given"),
    [("toll", {"energy": 1.0}), ("link", {"energy": 1.0, "throughput": None}), ("compute", {"energy": 1.0})],
)
def test_every_kind_of_level_takes_components(level: str, given: dict[str, Any]) -> None:
    part = type("Other", (Broken,), {"level": level, "given": given})
    assert component_faults(part, {}, {"banks": 2}) == ()


def test_a_session_may_use_one_without_a_package() -> None:
    use(Broken())
    assert parse_machine(FILE.replace("{sram: {banks: 4}}", "broken")).memory("GLB").area == 1e-6
