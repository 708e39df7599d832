"""Time on whole trees: worked cases to the cycle, and the closed forms where they are exact."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random

import pytest

from cases import cascade
from concurrent_trees import concurrent_case, loaded
from einloom.cost.evaluate import latencies, legality
from einloom.cost.event import event_time
from einloom.cost.formulas.pipeline import Edge, drain_time
from einloom.cost.time import schedule
from einloom.errors import SpecError
from einloom.machine.levels import Axis, ComputeUnit, Fanout, Level, Machine, Memory
from einloom.mapping.text import parse_mapping
from einloom.oracle import Simulation, simulate
from einloom.workload.einsum import Workload
from einloom.workload.selectors import selector
from trees import Case, random_case
from worked import DOCS, load_cases, priced


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
    split: str,
    cores: int,
    *,
    tokens: int = 4,
    double: bool = False,
    slots: int | None = None,
    below: bool = True,
    between: str = "",
) -> tuple[Simulation, float]:
    """C = A B and E = C D, tile by tile of two rows; C goes through G. What happens, and the recurrence's seconds."""
    text = "E0: C[m,l] = A[m,k] * B[k,l]\nE1: E[p,n] = C[p,q] * D[q,n]"
    workload = cascade(text, {"m": 2 * tokens, "p": 2 * tokens, "k": 4, "l": 4, "q": 4, "n": 4})
    own = ("store L: A B C", "store L: C D E") if below else ("store L: A C", "store L: C E")
    kept = "" if below else "store L: B D\n"
    mapping = (
        f"store G: A B D E\n{kept}for E0.m, E1.p in {tokens} tile 2\nstore G: C{f' slots {slots}' if slots else ''}\n"
        f"{between}split {split}:\n"
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
    return seen, event_time(workload, hardware, tree).seconds


HALVES = "pipelined @ core shares 2 2"


@pytest.mark.parametrize(
    ("arguments", "cycles", "free", "reads"),
    [
        ({"split": "sequential", "cores": 4}, 192, 192, (32, 64, 32, 64)),
        ({"split": "sequential", "cores": 4, "below": False}, 144, 144, (32, 16, 32, 16)),
        ({"split": HALVES, "cores": 2}, 148, 136, (32, 16, 32, 16)),
        ({"split": HALVES, "cores": 2, "double": True}, 112, 112, (32, 16, 32, 16)),
        ({"split": HALVES, "cores": 2, "slots": 1}, 208, 208, (32, 16, 32, 16)),
        ({"split": HALVES, "cores": 2, "double": True, "tokens": 100}, 1648, 1648, (800, 16, 800, 16)),
        ({"split": HALVES, "cores": 2, "double": True, "tokens": 101}, 1664, 1664, (808, 16, 808, 16)),
        ({"split": HALVES, "cores": 2, "tokens": 100}, 2836, 2440, (800, 16, 800, 16)),
        ({"split": HALVES, "cores": 2, "tokens": 101}, 2864, 2464, (808, 16, 808, 16)),
    ],
)
def test_two_products_to_the_cycle(
    arguments: dict[str, object], cycles: int, free: int, reads: tuple[int, ...]
) -> None:
    """free: what the recurrence says, which knows no contention for the port."""
    seen, recurrence = two_products(**arguments)  # type: ignore[arg-type]
    assert (seen.cycles, recurrence) == (cycles, free)
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


NESTED = {
    "flat": ("", 1, (4, 4, 4), 10, 48),
    "drained": ("for E1.d, E2.f in 2\n    ", 2, (2, 2, 3), 10, 84),
    "inside": ("for E1.d, E2.f in 5\n    ", 5, (2, 2, 3), 6, 112),
}


@pytest.mark.parametrize("case", NESTED)
def test_a_pipeline_inside_a_stage_is_flat_or_drains(case: str) -> None:
    """Seconds per value of E0, E1, E2; so many values per token; so many tokens."""
    loop, values, seconds, tokens, cycles = NESTED[case]
    text = "E0: T0[a,b] = exp(X[a,b])\nE1: T1[c,d] = exp(T0[c,d])\nE2: Z[e,f] = exp(T1[e,f])"
    workload = cascade(text, {**dict.fromkeys("ace", tokens), **dict.fromkeys("bdf", values)})
    units = tuple(ComputeUnit(f"U{i}", 1 / time) for i, time in enumerate(seconds))
    hardware = Machine("nested", (Memory("G"), *units))
    mapping = (
        f"store G: X Z\nfor E0.a, E1.c, E2.e in {tokens}\nstore G: T0\nsplit pipelined @ unit:\n"
        f"  - for b in {values}\n    compute E0 @ U0\n"
        f"  - {loop}store G: T1\n    split pipelined @ unit:\n"
        "      - compute E1 @ U1\n      - compute E2 @ U2\n"
    )
    tree = parse_mapping(mapping, workload, hardware)
    found = simulate(workload, hardware, tree, timed=True).cycles
    assert (found, latencies(workload, hardware, tree).tile) == (pytest.approx(cycles), pytest.approx(cycles))
    assert event_time(workload, hardware, tree).seconds == pytest.approx(cycles)


def test_pipelines_one_after_the_other_do_not_overlap() -> None:
    """Two pairs, 3 tokens each of (2, 3) and (1, 4): 2 + 9 and 1 + 12."""
    lines = [f"E{i}: Z{i}[m{i}] = exp({'X' if i % 2 == 0 else 'Z'}{i - i % 2}[m{i}])" for i in range(4)]
    workload = cascade("\n".join(lines), {f"m{i}": 3 for i in range(4)}, outputs=("Z1", "Z3"))
    units = tuple(ComputeUnit(f"U{i}", 1 / time) for i, time in enumerate((2, 3, 1, 4)))
    hardware = Machine("pairs", (Memory("G"), *units))
    pair = "  - for E{0}.m{0}, E{1}.m{1} in 3\n    store G: Z{0}\n    split pipelined @ unit:\n"
    pair += "      - compute E{0} @ U{0}\n      - compute E{1} @ U{1}\n"
    mapping = "store G: X0 X2 Z1 Z3\nsplit sequential:\n" + pair.format(0, 1) + pair.format(2, 3)
    tree = parse_mapping(mapping, workload, hardware)
    views = latencies(workload, hardware, tree)
    assert simulate(workload, hardware, tree, timed=True).cycles == pytest.approx(24)
    assert event_time(workload, hardware, tree).seconds == views.tile == views.einsum == pytest.approx(24)


def longest_only(times: Sequence[float], edges: Sequence[Edge], tokens: int, busiest: float = 0.0) -> float:
    return sum(times)


def no_fill(times: Sequence[float], edges: Sequence[Edge], tokens: int, busiest: float = 0.0) -> float:
    return tokens * max(*times, busiest)


def no_slots(times: Sequence[float], edges: Sequence[Edge], tokens: int, busiest: float = 0.0) -> float:
    return drain_time(times, [replace(edge, slots=None) for edge in edges], tokens, busiest)


def no_sum(times: Sequence[float], edges: Sequence[Edge], tokens: int, busiest: float = 0.0) -> float:
    return drain_time(times, edges, tokens)


def no_maximum(times: Sequence[float], edges: Sequence[Edge], tokens: int, busiest: float = 0.0) -> float:
    return sum(times) + (tokens - 1) * max(busiest, min(times))


PAGE = (DOCS / "model" / "bindings.md").read_text(encoding="utf-8")
WORKED = [case for block in re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL) for case in load_cases(block)]


def disagreements() -> int:
    """Worked examples that come out otherwise, and pipelines that take another time than the closed form says."""
    rng, found = Random(4), sum(priced(case).latency != case["expect"]["latency"] for case in WORKED)
    for _ in range(40):
        workload, hardware, text, tight = stages(rng)
        tree = parse_mapping(text, workload, hardware)
        seconds = simulate(workload, hardware, tree, timed=True).cycles
        found += not tight and seconds != latencies(workload, hardware, tree).tile
    return found


@pytest.mark.parametrize("mistake", [None, longest_only, no_fill, no_slots, no_sum, no_maximum])
def test_a_mistake_in_the_closed_form_is_caught(
    mistake: Callable[..., float] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    if mistake is not None:
        monkeypatch.setattr(schedule, "drain_time", mistake)
    assert bool(disagreements()) == (mistake is not None)


def test_setup_is_paid_per_transfer_and_per_tile() -> None:
    workload = cascade("E: Z[m,n] = exp(X[m,n])", {"m": 4, "n": 3})
    plain = machine(False)
    levels = tuple(
        replace(level, setup=10.0 if isinstance(level, Memory) else 5.0) if not isinstance(level, Fanout) else level
        for level in plain.levels
    )
    tree = parse_mapping("store G: X Z\nfor m in 4\nstore L: X Z\nfor n in 3\ncompute E @ MAC\n", workload, plain)
    slow = replace(plain, levels=levels, startup=7.0)
    for hardware, cycles in ((plain, 4 * (1.5 + 3 + 1.5)), (slow, 7 + 4 * (11.5 + 8 + 11.5))):
        assert simulate(workload, hardware, tree, timed=True).cycles == cycles
        assert event_time(workload, hardware, tree).seconds == cycles


def test_a_unit_sets_up_for_new_tiles_of_what_stays_in_it_only() -> None:
    """Two rows of X stay for three tiles of Y each; without `stationary` each of the six tiles takes the setup."""
    workload = cascade("E: Z[m,n] = X[m] * Y[m,n]", {"m": 2, "n": 6})
    plain = machine(False)
    text = "store G: X Y Z\nfor m in 2\nstore L: X\nfor n in 3\nstore L: Y Z\nfor n in 2\ncompute E @ MAC\n"
    for stationary, setups in (("nothing", 6), ("input", 2), ("X", 2), ("output", 6)):
        changed = {"setup": 5.0, "stationary": selector(stationary)}
        levels = tuple(replace(n, **changed) if n.name == "MAC" else n for n in plain.levels)
        hardware = replace(plain, levels=levels)
        tree = parse_mapping(text, workload, hardware)
        cycles = setups * 5 + 2 * (0.5 + 3 * (1 + 2 + 1))
        assert event_time(workload, hardware, tree).seconds == cycles
        assert simulate(workload, hardware, tree, timed=True).cycles == cycles


def test_more_tiles_ahead_and_an_early_release_hide_more() -> None:
    """Loads of 2 cycles and work of 3 cycles, eight times; a write-back of 4 cycles every fourth time."""
    workload = cascade("E: Z[m,n] = X[m,k,n]", {"m": 2, "k": 4, "n": 4})
    text = "store G: X Z\nfor m in 2\nstore L: Z\nfor k in 4\nstore L: X\nfor n in 4\ncompute E @ MAC\n"
    found = []
    for changes in ({}, {"prefetch": 2}, {"prefetch": 2, "release": "start"}, {"prefetch": 3}):
        levels = tuple(replace(n, **changes) if n.name == "L" else n for n in machine(False).levels)
        hardware = Machine("ahead", levels)
        tree = parse_mapping(text, workload, hardware)
        found.append(event_time(workload, hardware, tree).seconds)
        assert found[-1] <= (simulate(workload, hardware, tree, timed=True).cycles or 0)
    assert found == sorted(found, reverse=True)
    assert found[0] == 2 * (4 * (2 + 4) + 2)
    assert found[1] == 2 + 8 * 4 + 2


def test_a_slot_is_free_when_its_last_use_ends() -> None:
    """X and Y at three cycles a word, two slots each; free after a tile's first use they would give 79.5."""
    workload = cascade("E: Z[m,n] = X[m,k] * Y[m,n]", {"m": 3, "k": 4, "n": 4})
    text = "store G: X Y Z\nfor m in 3\nstore L: Y Z\nfor k in 4\nstore L: X\nfor n in 4\ncompute E @ MAC\n"
    memories = (
        Memory("G", read_throughput=1 / 3, write_throughput=8.0, ports="separate"),
        Memory("L", double_buffer=True),
    )
    hardware = Machine("slow", (*memories, ComputeUnit("MAC", 1.0, 1.0)))
    tree = parse_mapping(text, workload, hardware)
    assert simulate(workload, hardware, tree, timed=True).cycles == 83.5
    assert event_time(workload, hardware, tree).seconds == 83.5


def test_a_store_waits_for_room_above() -> None:
    """A write-back waits until the slot above is written back further, at 4 cycles a word; else it would be 234.75."""
    text = "E0: Z[m,n] = exp(X[m,n])\nE1: V[p,q] = exp(Y[p,q])"
    workload = cascade(text, {"m": 6, "n": 2, "p": 2, "q": 20}, outputs=("Z", "V"))
    levels = (
        Memory("G", read_throughput=8.0, write_throughput=0.25, ports="separate"),
        Memory("B", double_buffer=True, write_throughput=1.0, ports="separate"),
        Memory("L"),
        ComputeUnit("MAC", 1.0, 1.0),
    )
    hardware = Machine("slow", levels)
    tree = parse_mapping(
        "store G: X Z Y V\nsplit sequential:\n"
        "  - for m in 6\n    store B: Z\n    store L: Z X\n    for n in 2\n    compute E0 @ MAC\n"
        "  - for p in 2\n    store L: Y V\n    for q in 20\n    compute E1 @ MAC\n",
        workload,
        hardware,
    )
    assert simulate(workload, hardware, tree, timed=True).cycles == 243.25
    assert event_time(workload, hardware, tree).seconds == 243.25


def test_a_finished_part_goes_through_also_from_below_a_spatial_loop() -> None:
    """X passes B in 8 cycles (two cores, 4 words each, from G at one word a cycle), work takes 4: 24 cycles for k's two
    steps. Then Z is added up, whatever the spatial loop over k, and goes through B to G at once in 4: 3 * 28 cycles.
    """
    workload = cascade("E: Z[m,n] = X[m,k,n]", {"m": 3, "k": 4, "n": 4})
    levels = (
        Memory("G", read_throughput=1.0, write_throughput=1.0),
        Memory("B", read_throughput=2.0, write_throughput=2.0, through=True),
        Fanout("F", (Axis("x", 2),)),
        Memory("L"),
        ComputeUnit("MAC", 1.0, 1.0),
    )
    text = "store G: X Z\nfor m in 3\nstore B: X Z\npar k in 2 @ x\nfor k in 2\nstore L: X Z\nfor n in 4\n"
    text += "compute E @ MAC\n"
    hardware = Machine("through", levels)
    assert event_time(workload, hardware, parse_mapping(text, workload, hardware)).seconds == 84


def test_a_part_that_goes_through_is_set_up_above_once_for_a_tile() -> None:
    """As before with three steps of k, 3 * (3 * 12 + 4) cycles. B's setup of 1 before each load and write-back, G's 5
    before a row's first load, while B has no part of it, and before its write-back: 3 * (5 + 3 * 1 + 5 + 1) more."""
    workload = cascade("E: Z[m,n] = X[m,k,n]", {"m": 3, "k": 6, "n": 4})
    levels = (
        Memory("G", read_throughput=1.0, write_throughput=1.0, setup=5.0),
        Memory("B", read_throughput=2.0, write_throughput=2.0, through=True, setup=1.0),
        Fanout("F", (Axis("x", 2),)),
        Memory("L"),
        ComputeUnit("MAC", 1.0, 1.0),
    )
    text = "store G: X Z\nfor m in 3\nstore B: X Z\npar k in 2 @ x\nfor k in 3\nstore L: X Z\nfor n in 4\n"
    hardware = Machine("through", levels)
    tree = parse_mapping(text + "compute E @ MAC\n", workload, hardware)
    assert event_time(workload, hardware, tree).seconds == 120 + 42


def _slow_to_start(level: Level, seed: int) -> Level:
    return level if isinstance(level, Fanout) else replace(level, setup=float(seed % 4))


@pytest.mark.parametrize(
    "seeds", [range(125), pytest.param(range(125, 250), marks=pytest.mark.slow)], ids=["few", "more"]
)
@pytest.mark.parametrize("make", [random_case, concurrent_case])
def test_the_recurrence_is_what_happens_without_contention(make: Callable[[int], Case], seeds: range) -> None:
    """One process and one slot everywhere: the same to the cycle; else never more than what happens."""
    seen = equal = 0
    for seed in seeds:
        case = make(seed)
        hardware = loaded(case.machine, seed)
        if make is random_case:
            levels = (replace(n, double_buffer=False) if isinstance(n, Memory) else n for n in hardware.levels)
            hardware = replace(hardware, levels=tuple(levels))
            hardware = replace(hardware, startup=2.0, levels=tuple(_slow_to_start(n, seed) for n in hardware.levels))
        if legality(case.workload, hardware, case.mapping):
            continue
        try:
            recurrence = event_time(case.workload, hardware, case.mapping).seconds
        except SpecError:  # windows
            continue
        cycles = simulate(case.workload, hardware, case.mapping, timed=True).cycles
        assert cycles is not None
        same = recurrence == pytest.approx(cycles, rel=1e-12)
        assert same or (recurrence < cycles and make is concurrent_case), seed
        seen, equal = seen + 1, equal + same
    assert seen > 60
    assert equal > (20 if make is concurrent_case else 60)


def test_a_loop_of_one_trip_gives_the_writer_no_more_room() -> None:
    """C has one slot in G: E0 waits for E1 there, with such a loop between the store and the split, too."""
    plain, _ = two_products(HALVES, 2, slots=1)
    idle, _ = two_products(HALVES, 2, slots=1, between="for E0.l, E1.q in 1\n")
    free, _ = two_products(HALVES, 2, slots=4)
    assert plain.cycles is not None and free.cycles is not None
    assert free.cycles < plain.cycles == idle.cycles


def test_loads_that_take_no_time_do_not_wait_for_one_another() -> None:
    """E0 has A's row t + 1 while E1, which reads B, is still at row t: they are two transfers. 7 steps of 4 cycles."""
    workload = cascade("E0: T[m,k] = exp(A[m,k])\nE1: Z[m,k] = mul(T[m,k], B[m,k])", {"m": 6, "k": 4})
    levels = (Memory("DRAM"), Memory("GLB"), Fanout("F", (Axis("X", 2),)), Memory("Reg"), ComputeUnit("MAC", 1.0, 1.0))
    text = "store DRAM: A B Z\nfor m in 6\nstore GLB: A B\nstore GLB: T slots 2\nsplit pipelined @ X shares 1 1:\n"
    text += "".join(f"  - for k in 4\n    compute {name} @ MAC\n" for name in ("E0", "E1"))
    hardware = Machine("free", levels)
    tree = parse_mapping(text, workload, hardware)
    assert simulate(workload, hardware, tree, timed=True).cycles == event_time(workload, hardware, tree).seconds == 28


BRANCHES = {
    "S": ("S: C[m,j] = A[m,k] * W[k,j]", "  - for j in 3\n    store Reg: C\n    for k in 4\n    compute S @ MAC\n"),
    "F": ("F: B[m,k] = exp(A[m,k])", "  - for k in 4\n    compute F @ MAC\n"),
}


@pytest.mark.parametrize("order", ["SF", "FS"])
def test_a_tile_of_two_branches_has_room_when_the_slower_is_done(order: str) -> None:
    """W takes 12 cycles to load, a row of A 4; S reads it for 12 and F for 4, whichever is written first."""
    workload = cascade("\n".join(BRANCHES[name][0] for name in order), {"m": 5, "k": 4, "j": 3})
    array = (Fanout("F", (Axis("X", 2),)), Memory("Reg"), ComputeUnit("MAC", 1.0, 1.0))
    hardware = Machine("branches", (Memory("DRAM", read_throughput=1.0), Memory("GLB"), *array))
    text = "store DRAM: A B C W\nstore GLB: W\nfor m in 5\nstore GLB: A\nsplit parallel @ X shares 1 1:\n"
    tree = parse_mapping(text + "".join(BRANCHES[name][1] for name in order), workload, hardware)
    seconds = simulate(workload, hardware, tree, timed=True).cycles
    assert seconds == event_time(workload, hardware, tree).seconds == 12 + 5 * (4 + 12)


@pytest.mark.parametrize(
    ("above", "inner", "cycles"),
    [
        ("store GLB: T\nfor m in 6", "for k in 4", 7 * 4),
        ("for m in 3\nstore GLB: T\nfor m in 2", "for k in 4", 3 * 3 * 4),
        ("for m in 3\nstore GLB: T\nfor k in 2", "for m in 2\n    for k in 2", 3 * 3 * 4),
        ("for m in 6\nstore GLB: T slots 1", "for k in 4", 6 * 2 * 4),
    ],
)
def test_a_writer_waits_for_its_reader_only_where_there_is_no_room_for_all_tokens(
    above: str, inner: str, cycles: int
) -> None:
    """A pipeline of two stages fills its store's tile, token by token, and waits before the next tile."""
    workload = cascade("E0: T[m,k] = exp(A[m,k])\nE1: Z[m,k] = exp(T[m,k])", {"m": 6, "k": 4})
    levels = (Memory("DRAM"), Memory("GLB"), Fanout("F", (Axis("X", 2),)), Memory("Reg"), ComputeUnit("MAC", 1.0, 1.0))
    text = f"store DRAM: A Z\n{above}\nsplit pipelined @ X shares 1 1:\n"
    text += "".join(f"  - {inner}\n    compute {name} @ MAC\n" for name in ("E0", "E1"))
    hardware = Machine("free", levels)
    tree = parse_mapping(text, workload, hardware)
    assert (
        simulate(workload, hardware, tree, timed=True).cycles == event_time(workload, hardware, tree).seconds == cycles
    )
