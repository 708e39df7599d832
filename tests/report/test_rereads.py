"""Tensors that several Einsums read from the outermost memory are told of, where stores are the Einsums' own."""

from __future__ import annotations

from pathlib import Path

import einloom as el
from einloom.report.data.rereads import read_for_each, rereads
from einloom.report.text.results import headline

CHIP = "simple:dram_energy=100,glb_bits=100000"


def work(folder: Path, k: int = 8, last: str = ', "Z[m,k] = add(A[m,k], B[m,k])"') -> str:
    """X of 8 x 8 values is read by two Einsums; W and V have so many columns."""
    path = folder / "w.yaml"
    path.write_text(
        f"""
schema: workload/1
name: two readers
ranks: {{m: 8, n: 8, k: {k}}}
bits: 8
einsums: ["A[m,k] = X[m,n] * W[n,k]", "B[m,k] = X[m,n] * V[n,k]"{last}]
""",
        encoding="utf-8",
    )
    return str(path)


def test_what_is_read_twice_is_told(tmp_path: Path) -> None:
    found = el.map(work(tmp_path), CHIP)
    assert rereads(found) == {"X": (("A", "B"), 8 * 8 * 8)}
    words = "read from DRAM more than once: X by A, B; `--stores shared` also tries one store for several readers"
    assert read_for_each(found) == f"{words} (docs/mapspace.md)"
    assert words in " ".join(headline(found).split())


def test_shared_stores_need_no_note(tmp_path: Path) -> None:
    own, shared = (el.map(work(tmp_path), CHIP, stores=stores) for stores in ("own", "shared"))
    assert shared.energy < own.energy
    assert rereads(shared) == {} and read_for_each(shared) == ""
    assert "more than once" not in headline(shared)


def test_little_is_not_worth_a_note(tmp_path: Path) -> None:
    found = el.map(work(tmp_path, k=64), CHIP)
    assert rereads(found) == {"X": (("A", "B"), 8 * 8 * 8)}
    assert read_for_each(found) == "" and "more than once" not in headline(found)


def test_persistent_tensors_share_no_store(tmp_path: Path) -> None:
    path = Path(work(tmp_path))
    path.write_text(path.read_text(encoding="utf-8") + "persistent: [X]\n", encoding="utf-8")
    assert rereads(el.map(str(path), CHIP)) == {}


def test_readers_that_share_no_cascade_share_no_store(tmp_path: Path) -> None:
    found = el.map(work(tmp_path, last=""), CHIP)
    assert rereads(found) == {} and read_for_each(found) == ""
