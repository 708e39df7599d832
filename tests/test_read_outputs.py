"""An output that another Einsum reads is never fused; a note says so, with the copy that leaves the choice."""

from __future__ import annotations

import re

import pytest

import einloom as el
from einloom.problem.read_outputs import read_outputs
from einloom.workload.build import build_workload
from einloom.zoo.machine_by_name import load_machine

RANKS = {"m": 1024, "k": 256, "n": 256, "j": 256}
FIRST, SECOND = "T[m,n] = A[m,k] * W[k,n]", "Z[m,j] = T[m,n] * V[n,j]"
EDGE = load_machine("ffm-edge")


def test_the_copy_that_is_named_costs_less() -> None:
    tapped = build_workload("tapped", [FIRST, SECOND], RANKS, outputs=["T", "Z"], bits=8)
    before = el.map(tapped, EDGE, objective="energy")
    (note,) = [note for note in before.notes if "never fused" in note]
    assert note.startswith("Z reads the output T, ")
    copy = re.search(r"\((T_out\[m,n\] = copy T\[m,n\])\)", note)
    assert copy is not None
    copied = build_workload("copied", [FIRST, copy[1], SECOND], RANKS, outputs=["T_out", "Z"], bits=8)
    after = el.map(copied, EDGE, objective="energy")
    assert not any("never fused" in note for note in after.notes)
    assert after.optimal and before.optimal and after.value < 0.85 * before.value


@pytest.mark.parametrize(
    ("einsums", "outputs", "machine"),
    [
        ([FIRST, SECOND], ["Z"], "ffm-edge"),
        ([FIRST, "U[m,n] = copy T[m,n]"], ["T", "U"], "ffm-edge"),
        ([FIRST, SECOND], ["T", "Z"], "one memory"),
    ],
)
def test_where_nothing_is_lost_there_is_no_note(einsums: list[str], outputs: list[str], machine: str) -> None:
    ranks = {v: n for v, n in RANKS.items() if any(v in re.split(r"\W", text) for text in einsums)}
    workload = build_workload("plain", einsums, ranks, outputs=outputs, bits=8)
    levels = (EDGE.levels[0], EDGE.units[0])
    where = EDGE if machine == "ffm-edge" else el.Machine("one", levels)
    assert read_outputs(workload, where) == ()


def test_names_that_are_taken_are_not_given_again() -> None:
    einsums = [FIRST, "T_out[m,n] = relu(T[m,n])", "Z[m,j] = T_out[m,n] * V[n,j]"]
    workload = build_workload("taken", einsums, RANKS, outputs=["T", "Z"], bits=8)
    (note,) = read_outputs(workload, EDGE)
    assert "(T_out_[m,n] = copy T[m,n])" in note
