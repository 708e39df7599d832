"""The door of importers: what comes in by name or suffix, what the kit finds, and what the example does."""

from __future__ import annotations

import shutil
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner

import einloom as el
from einloom.cli import main
from einloom.errors import SpecError
from einloom.interop import registry
from einloom.interop.accelforge import export
from einloom.interop.bundle import Bundle
from einloom.interop.registry import importer, importers
from einloom.reading import plugins
from einloom.testing.importers import importer_faults
from einloom.workload.build import build_workload
from einloom.zoo.machine_by_name import load_machine
from einloom.zoo.workload_by_name import load_workload

EXAMPLE = Path(__file__).parents[2] / "examples" / "layer-table"


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The example as pip leaves it; the folder holds a table of two layers."""
    site = tmp_path / "site"
    project = tomllib.loads((EXAMPLE / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    info = site / "einloom_layer_table-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: einloom-layer-table\nVersion: 1.0\n")
    points = project["entry-points"][registry.GROUP]
    lines = [f"[{registry.GROUP}]", *(f"{name} = {value}" for name, value in points.items())]
    (info / "entry_points.txt").write_text("\n".join(lines) + "\n")
    shutil.copy(EXAMPLE / "layer_table.py", site)
    monkeypatch.syspath_prepend(str(site))
    (tmp_path / "net.layers").write_text("16,32\n32,8\n")
    for forget in (plugins.forget, registry.forget):
        forget()
    yield tmp_path
    monkeypatch.undo()
    for forget in (plugins.forget, registry.forget):
        forget()


def test_an_importer_of_another_package_is_found_by_name_and_suffix(installed: Path) -> None:
    assert importers()[-1] == "layer-table"
    table = installed / "net.layers"
    assert load_workload(f"{table}:batch=4").extents == {"m": 4, "n0": 16, "n1": 32, "n2": 8}
    asked = ["import", "layer-table", str(table), "--set", "batch=4", "--option", "bits=16", "-o", str(installed)]
    ran = CliRunner().invoke(main, asked)
    assert ran.exit_code == 0 and "note: biases" in ran.output, ran.output
    assert load_workload(str(installed / "workload.yaml")).tensor("T0").bits == 16
    assert el.map(f"{table}:batch=4", "simple").certificate is not None


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["import", "layer-table", "net.layers", "--option", "bit=8", "-o", "x"], "no option 'bit'; it has bits"),
        (["import", "layer-table", "net.layers", "--set", "size=8", "-o", "x"], "did you mean 'batch'"),
        (["import", "layer-tabel", "net.layers", "-o", "x"], "No such command"),
        (["map", "missing.layers", "simple"], "missing.layers: cannot read the file"),
    ],
)
def test_what_is_refused(installed: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], says: str) -> None:
    monkeypatch.chdir(installed)
    ran = CliRunner().invoke(main, words)
    assert ran.exit_code == 2 and says in ran.output, ran.output


def test_the_example_has_no_faults(installed: Path) -> None:
    assert importer_faults(lambda: importer("layer-table"), [installed / "net.layers"], {"batch": "2"}) == ()


def test_the_shipped_importers_have_no_faults(tmp_path: Path) -> None:
    made = export(load_workload("matmul:m=4,n=4,k=4"), load_machine("simple"))
    assert importer_faults(lambda: importer("accelforge"), made.write(tmp_path / "a"), damaged=10) == ()
    cases = Path(__file__).parent / "tileflow_cases" / "08-test-2mm"
    files = [cases / f"{name}.yaml" for name in ("arch", "map", "prob")]
    assert importer_faults(lambda: importer("tileflow"), files, damaged=10) == ()
    with pytest.raises(SpecError, match="did you mean 'tileflow'"):
        importer("tileflaw")


class Planted:
    """An importer with a mistake."""

    name, suffixes = "planted", (".planted",)
    made = 0

    def __init__(self, mistake: str) -> None:
        self.mistake = mistake

    def read(self, files: Sequence[str | Path], parameters: Mapping[str, str]) -> Bundle:
        if not files or not Path(files[0]).is_file():
            raise SpecError("no file")
        size = len(Path(files[0]).read_bytes())
        if self.mistake == "careless" and size != 4:
            raise KeyError(size)
        if size != 4 and self.mistake != "swallows":
            raise SpecError("not four bytes")
        Planted.made += self.mistake == "fickle"
        ranks = {"m": 2 + Planted.made, "n": 2, "k": 2}
        return Bundle(build_workload("w", ["Z[m,n] = A[m,k] * B[k,n]"], ranks, bits=8))

    def write(self, bundle: Bundle) -> Mapping[str, str]:
        if self.mistake != "forgets":
            raise SpecError("it cannot write")
        Planted.made += 1
        return {"w": "four"}


@pytest.mark.parametrize(
    ("mistake", "says"),
    [
        ("careless", "makes it raise KeyError"),
        ("swallows", "given an empty file, it refuses nothing"),
        ("fickle", "two readings of the same files differ"),
        ("forgets", "does not come back"),
    ],
)
def test_the_kit_finds_every_planted_mistake(mistake: str, says: str, tmp_path: Path) -> None:
    (tmp_path / "w").write_text("four")
    assert any(says in fault for fault in importer_faults(lambda: Planted(mistake), [tmp_path / "w"]))
