"""Time on whole trees: worked cases to the cycle, and the closed forms where they are exact."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from cases import cascade
from einloom.cost.evaluate import latencies, legality
from einloom.machine.levels import Axis, ComputeUnit, Fanout, Machine, Memory
from einloom.mapping.text import parse_mapping
from einloom.oracle import Simulation, simulate
from einloom.workload.einsum import Workload


def machine(double: bool) -> Machine:
    """G moves two words per cycle each way; a local memory, double-buffered or not, feeds four cores."""
    return Machine(
        "cores",
        (
            Memory("G", read_throughput=2.0, write_throughput=2.0, ports="separate"),
            Memory("L", double_buffer=double),
            Fanout("array", (Axis("core", 4),)),
            ComputeUnit("MAC", 1.0, 1.0),
        ),
    )


def two_products(
    split: str, cores: int, *, tokens: int = 4, double: bool = False, slots: int | None = None, below: bool = True
) -> Simulation:
    """C = A B and E = C D, tile by tile of two rows; C goes through G."""
    text = "E0: C[m,l] = A[m,k] * B[k,l]\nE1: E[p,n] = C[p,q] * D[q,n]"
    workload = cascade(text, {"m": 2 * tokens, "p": 2 * tokens, "k": 4, "l": 4, "q": 4, "n": 4})
    own = ("store L: A B C", "store L: C D E") if below else ("store L: A C", "store L: C E")
    kept = "" if below else "store L: B D\n"
    mapping = (
        f"store G: A B D E\n{kept}for E0.m, E1.p in {tokens} tile 2\nstore G: C{f' slots {slots}' if slots else ''}\n"
        f"split {split}:\n"
        f"  - {own[0]}\n    par l in {cores} @ core\n    for l in {4 // cores}\n    for m in 2\n    for k in 4\n"
        "    compute E0 @ MAC\n"
        f"  - {own[1]}\n    par n in {cores} @ core\n    for n in {4 // cores}\n    for p in 2\n    for q in 4\n"
        "    compute E1 @ MAC\n"
    )
    hardware = machine(double)
    tree = parse_mapping(mapping, workload, hardware)
    assert legality(workload, hardware, tree) == ()
    seen = simulate(workload, hardware, tree, timed=True)
    assert seen.correct
    assert latencies(workload, hardware, tree).floor <= (seen.cycles or 0)
    return seen


HALVES = "pipelined @ core shares 2 2"


@pytest.mark.parametrize(
    ("arguments", "cycles", "reads"),
    [
        ({"split": "sequential", "cores": 4}, 192, (32, 64, 32, 64)),
        ({"split": "sequential", "cores": 4, "below": False}, 144, (32, 16, 32, 16)),
        ({"split": HALVES, "cores": 2}, 148, (32, 16, 32, 16)),
        ({"split": HALVES, "cores": 2, "double": True}, 112, (32, 16, 32, 16)),
        ({"split": HALVES, "cores": 2, "slots": 1}, 208, (32, 16, 32, 16)),
        ({"split": HALVES, "cores": 2, "double": True, "tokens": 100}, 1648, (800, 16, 800, 16)),
        ({"split": HALVES, "cores": 2, "double": True, "tokens": 101}, 1664, (808, 16, 808, 16)),
        ({"split": HALVES, "cores": 2, "tokens": 100}, 2836, (800, 16, 800, 16)),
        ({"split": HALVES, "cores": 2, "tokens": 101}, 2864, (808, 16, 808, 16)),
    ],
)
def test_two_products_to_the_cycle(arguments: dict[str, object], cycles: int, reads: tuple[int, ...]) -> None:
    seen = two_products(**arguments)  # type: ignore[arg-type]
    assert seen.cycles == cycles
    assert tuple(seen.count("G", tensor, "read") for tensor in "ABCD") == reads
    tokens = int(str(arguments.get("tokens", 4)))
    assert (seen.count("G", "C", "write"), seen.count("G", "E", "write")) == (8 * tokens, 8 * tokens)


def stages(rng: Random) -> tuple[Workload, Machine, str, bool]:
    """A pipeline of two to four Einsums that only compute, each on a unit of its own; is there a skip without room?"""
    count, tokens = rng.randint(2, 4), rng.randint(1, 8)
    lines, sizes = ["E0: T0[m0] = exp(X[m0])"], {"m0": tokens}
    tight = False
    slots = [rng.choice((None, 1, 2, 3)) for _ in range(count)]
    for i in range(1, count):
        sizes[f"m{i}"] = tokens
        skip = i > 1 and rng.random() < 0.4
        other = f", T{i - 2}[m{i}]" if skip else ""
        room = slots[i - 2] if skip else None
        tight = tight or (room is not None and room < 3)
        lines.append(f"E{i}: T{i}[m{i}] = add(T{i - 1}[m{i}]{other})")
    workload = cascade("\n".join(lines), sizes, outputs=(f"T{count - 1}",))
    units = tuple(ComputeUnit(f"U{i}", 1 / rng.choice((1, 2, 4, 8))) for i in range(count))
    hardware = Machine("stages", (Memory("G"), *units))
    binds = ", ".join(f"E{i}.m{i}" for i in range(count))
    between = "".join(f"store G: T{i}{f' slots {slots[i]}' if slots[i] else ''}\n" for i in range(count - 1))
    branches = "".join(f"  - compute E{i} @ U{i}\n" for i in range(count))
    text = f"store G: X T{count - 1}\nfor {binds} in {tokens}\n{between}split pipelined @ unit:\n{branches}"
    return workload, hardware, text, tight


def test_pipelines_that_only_compute_take_what_the_closed_form_says() -> None:
    rng = Random(3)
    exact = 0
    for _ in range(250):
        workload, hardware, text, tight = stages(rng)
        tree = parse_mapping(text, workload, hardware)
        seen = simulate(workload, hardware, tree, timed=True)
        views = latencies(workload, hardware, tree)
        assert seen.correct and seen.exact and seen.cycles is not None
        if tight:
            assert views.floor <= seen.cycles <= views.tile
        else:
            assert seen.cycles == views.tile == views.einsum, text
            exact += 1
    assert exact > 150


def test_setup_is_paid_per_transfer_and_per_tile() -> None:
    workload = cascade("E: Z[m,n] = exp(X[m,n])", {"m": 4, "n": 3})
    plain = machine(False)
    levels = tuple(
        replace(level, setup=10.0 if isinstance(level, Memory) else 5.0) if not isinstance(level, Fanout) else level
        for level in plain.levels
    )
    tree = parse_mapping("store G: X Z\nfor m in 4\nstore L: X Z\nfor n in 3\ncompute E @ MAC\n", workload, plain)
    first = simulate(workload, plain, tree, timed=True).cycles
    second = simulate(workload, replace(plain, levels=levels), tree, timed=True).cycles
    assert (first, second) == (4 * (1.5 + 3 + 1.5), 4 * (11.5 + 8 + 11.5))
