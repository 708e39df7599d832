"""DAT's published example: found again by its own accounting, refused by einloom's, and what fits instead."""

from __future__ import annotations

import pytest

from einloom.cost.evaluate import evaluate, legality
from einloom.errors import IllegalMapping
from einloom.machine.files import parse_machine
from einloom.machine.levels import Machine
from einloom.mapping.text import parse_mapping
from einloom.mapspace.space import Mapspace
from einloom.problem import Guarantee, Objective, Problem
from einloom.published import dat
from einloom.search.exact import Exact
from einloom.workload.files import parse_workload

ATTENTION = """
schema: workload/1
name: bert
einsums:
  - S[m,n] = Q[m,d] * K[n,d]
  - A[m,e] = S[m,n] * V[n,e]
ranks: {m: 1024, n: 1024, d: 64, e: 64}
bits: 1
repeat: 192
"""
PROJECTION = """
schema: workload/1
name: bert
einsums: ["Y[m,l] = X[m,k] * W[k,l]"]
ranks: {m: 16384, k: 768, l: 768}
bits: 1
"""
PRINTED = """
store DRAM: Q K V A
store Buffer: K V
for m in 32
store Buffer: S
split sequential:
  - for d in 4
    store Buffer: Q
    for m in 32
    for n in 1024
    for d in 16
    compute S @ PE
  - for e in 4
    store Buffer: A
    for m in 32
    for n in 1024
    for e in 16
    compute A @ PE
"""


def machine(buffer: int) -> Machine:
    """One element is one bit."""
    return parse_machine(f"""
schema: machine/1
name: dat
levels:
  - {{memory: DRAM, read_energy: 1, write_energy: 1}}
  - {{memory: Buffer, size: {buffer}}}
  - {{compute: PE, energy: 0}}
""")


def test_the_example_is_found_again_by_its_own_accounting() -> None:
    projection, attention, elements = dat.example()
    assert (projection.moved, projection.footprint) == (75_497_472, 108_544)
    assert attention.moved * dat.BATCH * dat.HEADS == 50_331_648
    assert elements == dat.PRINTED == 276_824_064


def test_without_its_reading_of_liveness_the_example_does_not_fit() -> None:
    """The printed mapping of a head: 98,816 elements by DAT's footprint, 164,352 at a time."""
    orders = (("m", "n", "d"), ("m", "n", "e"))
    blocks = {"m": 32, "n": 1024, "d": 16, "e": 16}
    printed = next(dat.priced(dat.ATTENTION, orders, dat.ATTENTION_SIZES, blocks, [("K", "V")]))
    assert (printed.moved, printed.footprint) == (262_144, 98_816)
    workload, large = parse_workload(ATTENTION), machine(164_352)
    tree = parse_mapping(PRINTED, workload, large)
    with pytest.raises(IllegalMapping, match="Buffer holds 131072 bits, needs 164352"):
        evaluate(workload, machine(dat.BUFFER), tree)
    assert not legality(workload, large, tree)
    assert evaluate(workload, large, tree).traffic("DRAM") == 192 * printed.moved


@pytest.mark.parametrize("text", [ATTENTION, PROJECTION], ids=["attention", "projection"])
def test_what_fits_is_proven(text: str) -> None:
    goal = Objective("traffic", "DRAM")
    found = Exact().search(Problem(parse_workload(text), machine(dat.BUFFER), Mapspace(), goal))
    assert found.certificate is not None and found.certificate.guarantee is Guarantee.OPTIMAL
    assert found.value == 75_497_472
