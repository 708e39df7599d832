"""How many instances an Einsum uses, and that idle ones are told of wherever a result is printed."""

from __future__ import annotations

from pathlib import Path

import einloom as el
from einloom.report.data.use import idle, used
from einloom.report.page import write_page
from einloom.report.text.results import headline

CHIP = """
schema: machine/1
name: chip
levels:
  - {memory: DRAM, read_energy: 1, write_energy: 1}
  - fanout: cores
    axes: [{axis: core, size: 2}]
  - {memory: Buffer, read_energy: 1, write_energy: 1}
  - fanout: array
    axes: [{axis: rows, size: 4}, {axis: columns, size: 2}]
  - {compute: MAC, throughput: 1, energy: 1, kinds: [multiply]}
  - {compute: VEC, throughput: 1, energy: 1, kinds: [map]}
"""
WORK = """
schema: workload/1
name: two
ranks: {m: 8, k: 4, n: 4}
bits: 8
einsums: ["T[m,n] = A[m,k] * B[k,n]", "Z[m,n] = exp(T[m,n])"]
"""
TREE = """store DRAM: A B T Z
split sequential:
  - par m in 2 @ core
    store Buffer: A B T
    {rows}
    for m in 4
    for k in 4
    {rest}
    compute T @ MAC
  - for m in 8
    for n in 4
    compute Z @ VEC
"""


def evaluated(folder: Path, rows: str, rest: str) -> el.Result:
    for name, text in (("w.yaml", WORK), ("c.yaml", CHIP), ("t.txt", TREE.format(rows=rows, rest=rest))):
        (folder / name).write_text(text, encoding="utf-8")
    return el.evaluate(str(folder / "w.yaml"), str(folder / "c.yaml"), str(folder / "t.txt"))


def test_spatial_loops_multiply_and_idle_instances_are_told(tmp_path: Path) -> None:
    found = evaluated(tmp_path, "par n in 2 @ rows", "for n in 2")
    assert used(found) == {"T": ("MAC", 4, 16), "Z": ("VEC", 1, 16)}
    assert idle(found) == "Z uses 1 of 16 VEC; T uses 4 of 16 MAC"
    assert "\n  idle        Z uses 1 of 16 VEC; T uses 4 of 16 MAC\n" in headline(found)
    path = tmp_path / "r.html"
    write_page(found, path)
    assert "Z uses 1 of 16 VEC; T uses 4 of 16 MAC" in path.read_text(encoding="utf-8")


def test_half_of_the_instances_is_no_idle_array(tmp_path: Path) -> None:
    found = evaluated(tmp_path, "par n in 4 @ rows", "")
    assert used(found)["T"] == ("MAC", 8, 16) and idle(found) == "Z uses 1 of 16 VEC"
    small = el.map("matmul:m=8,n=8,k=8", "simple")
    assert used(small) == {"Z": ("MAC", 1, 1)} and idle(small) == "" and "idle" not in headline(small)


def test_many_einsums_are_told_of_in_short(tmp_path: Path) -> None:
    found = el.map("matmuls:n=6,m=4,kn=4", str(chip(tmp_path)))
    assert idle(found) == "E0, E1, E2 and 3 more use 64 of 16,384 MAC"


def chip(folder: Path) -> Path:
    (folder / "wide.yaml").write_text(CHIP.replace("size: 2", "size: 64"), encoding="utf-8")
    return folder / "wide.yaml"


def test_einsums_at_the_same_time_have_their_share(tmp_path: Path) -> None:
    """Two products on one core each use all that they may; without their shares they would be said to leave half."""
    work = (
        "schema: workload/1\nname: two\nranks: {m: 8}\nbits: 8\neinsums: ['Y[m] = A[m] * B[m]', 'Z[m] = C[m] * D[m]']\n"
    )
    chip = "schema: machine/1\nname: chip\nlevels:\n  - {memory: DRAM, read_energy: 1, write_energy: 1}\n"
    chip += "  - fanout: cores\n    axes: [{axis: core, size: 8}]\n  - {compute: MAC, throughput: 1, energy: 1}\n"
    tree = "store DRAM: A B C D Y Z\nsplit parallel @ core shares {0}:\n  - for m in 8\n    compute Y @ MAC\n"
    tree += "  - for m in 8\n    compute Z @ MAC\n"
    for name, text in (("w.yaml", work), ("c.yaml", chip), ("t.txt", tree.format("1 7"))):
        (tmp_path / name).write_text(text, encoding="utf-8")
    found = el.evaluate(*(str(tmp_path / name) for name in ("w.yaml", "c.yaml", "t.txt")))
    assert used(found) == {"Y": ("MAC", 1, 1), "Z": ("MAC", 1, 7)}
    assert idle(found) == "Z uses 1 of 7 MAC"
