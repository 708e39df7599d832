"""MachineFamily files: which machines they make, and where their mistakes are."""

from __future__ import annotations

from pathlib import Path

import pytest

import einloom as el
from einloom.exploration.family import MachineFamily, read_family

EXAMPLES = Path(__file__).parents[2] / "examples" / "explore"
EDGE = """schema: machine/1
name: edge
parameters: {glb: 8 KiB, cores: 1}
levels:
  - {memory: DRAM, read_energy: 1 pJ, write_energy: 1 pJ, read_throughput: 1 GB/s}
  - {memory: GLB, size: glb, read_energy: 1 pJ, write_energy: 1 pJ, area: 2 mm2}
  - fanout: array
    axes: [{axis: row, size: cores}]
  - {compute: MAC, energy: 1 pJ, throughput: 1 Gop/s, area: 0.5 mm2}
"""
WORKLOAD = """schema: workload/1
name: w
bits: 8
ranks: {m: 4, n: 4, k: 4}
einsums: ["Z[m,n] = A[m,k] * B[k,n]"]
"""
WHOLE = """schema: family/1
machine: edge.yaml
workloads: ["matmul:m=4,n=4,k=4"]
parameters:
  glb: {from: 1 KiB, to: 9 KiB, times: 2}
  cores: {from: 1, to: 5, step: 2}
"""


def read(folder: Path, text: str) -> MachineFamily:
    (folder / "edge.yaml").write_text(EDGE)
    (folder / "family.yaml").write_text(text)
    return read_family(folder / "family.yaml")


def test_ranges_are_multiplied_and_stepped_in_the_unit_of_their_first_value(tmp_path: Path) -> None:
    found = read(tmp_path, WHOLE)
    assert found.name == "family" and found.parameters == ("glb", "cores") and found.costs == "area"
    sizes = list(dict.fromkeys(dict(one.values)["glb"] for one in found.members))
    assert sizes == ["1 KiB", "2 KiB", "4 KiB", "8 KiB"]
    assert [dict(one.values)["cores"] for one in found.members[:3]] == ["1", "3", "5"]
    first, last = found.members[0], found.members[-1]
    assert first.machine.memory("GLB").size == 8192 and last.machine.memory("GLB").size == 65536
    assert first.cost == pytest.approx(2.5e-6) and last.cost == pytest.approx(4.5e-6)


def test_machines_outside_are_not_made_and_costs_are_arithmetic(tmp_path: Path) -> None:
    found = read(tmp_path, WHOLE + "where: [glb >= 1 KiB * cores, cores < 5]\ncost: 3 * glb / KiB + cores\n")
    pairs = [tuple(dict(one.values).values()) for one in found.members]
    assert pairs == [("1 KiB", "1"), ("2 KiB", "1"), ("4 KiB", "1"), ("4 KiB", "3"), ("8 KiB", "1"), ("8 KiB", "3")]
    assert found.costs == "cost" and [one.cost for one in found.members][:3] == [4, 7, 13]


def test_limits_and_names_beside_the_file(tmp_path: Path) -> None:
    (tmp_path / "w.yaml").write_text(WORKLOAD)
    (tmp_path / "space.yaml").write_text("schema: mapspace/1\nname: mine\nmemories: {GLB: {keep: A}}\n")
    text = WHOLE.replace('"matmul:m=4,n=4,k=4"', "w.yaml") + "mapspace: space.yaml\nspace: ragged\nobjective: latency\n"
    asked = read(tmp_path, text).members[0].asked[0][0].problem
    assert asked.mapspace.name == "ragged" and asked.mapspace.limits.holds and asked.objective.name == "latency"


@pytest.mark.parametrize("name", ["edge-family", "tpu-family"])
def test_the_examples_are_families(name: str) -> None:
    assert len(read_family(EXAMPLES / f"{name}.yaml").members) > 10


def test_the_page_shows_the_example() -> None:
    page = (EXAMPLES.parents[1] / "docs" / "explore.md").read_text(encoding="utf-8")
    shown = page.split("```yaml\n")[1].split("```")[0]
    example = (EXAMPLES / "edge-family.yaml").read_text(encoding="utf-8")
    assert shown.splitlines()[1:] == example.splitlines()[1:]


@pytest.mark.parametrize(
    ("old", "new", "line", "said"),
    [
        ("family/1", "family/2", 1, "family/1"),
        ("edge.yaml", "edg.yaml", 2, "edg.yaml"),
        ('"matmul:m=4,n=4,k=4"', "matmull", 3, "matmul"),
        ("[\"matmul:m=4,n=4,k=4\"]", "[]", 3, "empty"),
        ("glb:", "gbl:", 2, "glb"),
        ("times: 2", "times: 1", 5, "above 1"),
        ("times: 2", "times: 2, step: 1 KiB", 5, "either `times` or `step`"),
        ("to: 9 KiB", "to: 9 pJ", 5, "one kind"),
        ("from: 1 KiB", "from: 1 KB", 5, "KiB"),
        ("to: 9 KiB", "to: 0.5 KiB", 5, "no value"),
        ("step: 2", "step: 0", 6, "above 0"),
        ("{from: 1, to: 5, step: 2}", "[1, 1]", 6, "twice"),
        ("{from: 1, to: 5, step: 2}", "[]", 6, "empty|no value"),
        ("{from: 1, to: 5, step: 2}", "[0]", 2, "at least 1"),
        ("{from: 1, to: 5, step: 2}", '["1,glb=1"]', 6, "one value"),
        ("step: 2}", "step: 2}\nwhere: [glb >]", 7, "comparison"),
        ("step: 2}", "step: 2}\nwhere: [glb > 1 pJ]", 7, "one kind"),
        ("step: 2}", "step: 2}\nwhere: [1 KiB < glb < 2 KiB]", 7, "one comparison is expected"),
        ("step: 2}", "step: 2}\nwhere: [glbs > 1 KiB]", 7, "glb"),
        ("step: 2}", "step: 2}\nwhere: [cores > 9]", 7, "no machine"),
        ("step: 2}", "step: 2}\ncost: glb", 7, "plain number"),
        ("step: 2}", "step: 2}\ncost: 1 - cores", 7, "at least 0"),
        ("step: 2}", "step: 2}\nobjectiv: edp", 7, "objective"),
        ("step: 2}", "step: 2}\nspace: raged", 7, "ragged"),
        ("step: 2", "step: 0.00001", 5, "at most 100,000"),
    ],
)  # fmt: skip
def test_mistakes_have_their_place(tmp_path: Path, old: str, new: str, line: int, said: str) -> None:
    assert old in WHOLE
    with pytest.raises(el.SpecError, match=said) as caught:
        read(tmp_path, WHOLE.replace(old, new, 1))
    assert f"family.yaml:{line}" in str(caught.value), caught.value


def test_a_front_of_several_numbers_of_tiles_is_refused(tmp_path: Path) -> None:
    (tmp_path / "family.yaml").write_text(
        "schema: family/1\nmachine: simple\nworkloads: [tileflow-bert-s]\nparameters: {glb_bits: [65536]}\n"
        "objective: pareto\ndataflow: flash-attention\n"
    )
    with pytest.raises(el.SpecError, match=r"family\.yaml.* mappings of one workload"):
        read_family(tmp_path / "family.yaml")
