"""What may happen in TileFlow's fused accelerator, beside its RTL cycles: ``python -m bench.rtl_parts``.

The schedule that docs/model/latency.md speaks of as a third look: read off these rows, no part of the cost model.
Prints per height of a tile of m how many rows are exact, and the mean and the worst error.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable

from einloom.published.rtl import SIDE, Published, published

PARTS = 4  # of a command for B
WORDS = 4  # from and to DRAM in a cycle
TRANSFER, ARRAY = 6, 55  # cycles before each transfer, and for each tile on the array


def cycles(row: Published) -> float:
    """Of one fused mapping, tile of m by tile of m."""
    m, k, l, n = row["micro_M"], row["micro_K"], row["micro_L"], row["N"]  # noqa: E741 - the rank's name
    blocks, part = m // SIDE, row["L"] // PARTS
    load = array = vector = store = asked = 0.0  # when each is free; when the next load may be asked for
    for _ in range(row["M"] // m):
        load = max(load, asked)
        for step in range(row["K"] // k):
            load += m * k / WORDS + TRANSFER
            for number in range(PARTS):
                load += k * part / WORDS + (TRANSFER if number == 0 else 0)
                array = max(array, load) + blocks * k / SIDE * part
                if step == row["K"] // k - 1:
                    vector = max(vector, array) + blocks * part
        asked, ready = 0.0, vector + blocks * n + l - SIDE * blocks + 18
        for tile in range(row["L"] // l):
            load = max(load, asked) + l * n / WORDS + TRANSFER
            begin = max(array, load, ready if tile == 0 else 0.0)
            asked, array = max(begin, ready), begin + blocks * l / SIDE * n + ARRAY
        store = max(store, array) + m * n / WORDS + TRANSFER
    return store + 1


def tall(row: Published) -> float:
    """Of a mapping with tiles of m of 64 and narrow tiles of l: a sum, read off such rows, with no part of the hardware
    behind its last four numbers."""
    m, k, l, n = row["micro_M"], row["micro_K"], row["micro_L"], row["N"]  # noqa: E741 - the rank's name
    steps, tiles = row["K"] // k, row["L"] // l
    loads = (m + row["L"]) * row["K"] / WORDS + 2 * TRANSFER * steps
    products = (tiles - 1) * m * l * n / SIDE**2 + ARRAY * tiles
    return row["M"] // m * (loads + products + 12 * k + 4 * n + 488.5) + 48 * n + 19


def found(rows: Iterable[Published], told: Callable[[Published], float] = cycles) -> tuple[int, int, float, float]:
    """(rows, exact ones, mean and worst relative error of what is told of their cycles)."""
    errors = [abs(told(row) / row.rtl - 1) for row in rows]
    return len(errors), sum(error < 1e-9 for error in errors), sum(errors) / len(errors), max(errors)


def main() -> int:
    """Print what is found."""
    every = published("fused")
    for title, heights in (("16 and 32", (16, 32)), ("64", (64,))):
        count, exact, mean, worst = found(row for row in every if row["micro_M"] in heights)
        print(f"tiles of m of {title}: {exact} of {count} rows exact, mean error {mean:.4%}, worst {worst:.2%}")
    count, exact, *_ = found((row for row in every if row["micro_M"] == 64 and row["micro_L"] <= 32), tall)
    print(f"tiles of m of 64 and of l of 16 and 32, as a sum: {exact} of {count} rows exact")
    return 0


if __name__ == "__main__":
    sys.exit(main())
