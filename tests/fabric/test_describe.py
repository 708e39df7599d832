"""Files of fabrics: what the table of configurations makes legal, and what is refused with a place."""

from __future__ import annotations

import pytest

from einloom.errors import SpecError
from einloom.fabric.cycles import cycles
from einloom.fabric.describe import DATA, NAMES, fabric, fabric_from
from einloom.reading.located import read_text


@pytest.mark.parametrize("name", NAMES)
def test_what_ships(name: str) -> None:
    one = fabric(name)
    assert one.elements == 65536
    for i in range(one.count):
        for source in (*one.left_sources(i), *one.top_sources(i)):
            assert source.kind == "memory" or source.array < one.count


def test_what_a_fabric_cannot_do() -> None:
    """Narrow column fusion needs arrays of half the width; two arrays in a row of four have no partner for it."""
    names = {(operation, c.name) for operation, c in fabric("fusecu").operations()}
    assert ("column", "wide-column") in names and ("column", "square-column") in names
    assert not any(operation == "column" and "narrow" in name for operation, name in names)
    refused = fabric("fusecu").refuse("column", "narrow-column")
    assert refused is not None and "it has separate, square" in str(refused)
    assert "cannot do 'os'" in str(fabric("tpu-v4i-like").refuse("os", "separate"))


WRONG = (
    ("shape: [2, 2]", "shape: [3, 2]", "needs 6 arrays; the fabric has 4"),
    ("stationary: [WS, IS, OS]", "stationary: [WS, SO]", "none of WS, IS, OS"),
    ("fusion: [tile, column]", "fusion: [tile]", "needs 'column' under fusion"),
    ("stationary: [WS, IS, OS]", "stationary: [WS]", "hold an operand and that keep sums"),
    ("name: wide,", "name: square,", "two configurations are called square"),
    ("clock:", "clocks:", "clock"),
    ("sum_bits: 32", "sum_bits: 12", "does not hold one product"),
)


@pytest.mark.parametrize(("right", "wrong", "said"), WRONG)
def test_mistakes_have_a_place(right: str, wrong: str, said: str) -> None:
    text = (DATA / "fusecu.yaml").read_text(encoding="utf-8")
    with pytest.raises(SpecError, match=said):
        fabric_from(read_text(text.replace(right, wrong), "mine.yaml"))


def test_cycles_of_four_by_four() -> None:
    """Worked by hand in docs/fusecu.md: four rows, four columns, streams of eight."""
    one = fabric("fusecu").with_arrays(4, 4)
    separate, pair = one.configurations[0], one.configurations[4]
    assert cycles(one, "hold", separate, 8) == 4 + 8 + 4 + 4
    assert cycles(one, "os", separate, 8) == 8 + 4 + 4 - 1 + 4
    assert cycles(one, "tile", separate, 8, 8) == 15 + 4 + 16
    assert cycles(one, "column", pair, 8) == 4 + (8 + 8 + 4 + 4) + 4
    shadow = fabric("tpu-v4i-like").with_arrays(4, 4)
    assert cycles(shadow, "hold", shadow.configurations[0], 8, tiles=3) == 4 + 3 * (1 + 8 + 8)
