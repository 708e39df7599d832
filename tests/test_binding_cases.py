"""Bindings, worked out by hand or by simulation elsewhere: traffic of pipelines, and seconds of steady pipelines."""

from __future__ import annotations

import pytest

from cases import cascade
from einloom.cost.evaluate import evaluate, latencies, legality
from einloom.cost.formulas.pipeline import Edge, drain_time
from einloom.cost.traffic.accesses import links
from einloom.cost.traffic.paths import paths
from einloom.machine.levels import Axis, ComputeUnit, Fanout, Machine, Memory
from einloom.mapping.text import parse_mapping
from einloom.oracle import simulate
from einloom.workload.einsum import Workload

CHAIN = (Edge(0, 1), Edge(1, 2))


def products(m: int, k: int, l: int, n: int) -> Workload:
    text = "E0: C[m,l] = A[m,k] * B[k,l]\nE1: E[p,n] = C[p,q] * D[q,n]"
    return cascade(text, {"m": m, "p": m, "k": k, "l": l, "q": l, "n": n})


def machine(*units: str, cores: int = 4) -> Machine:
    """Outer memory G (2 words per cycle each way), `cores` cores with a local memory, one operation per cycle each."""
    return Machine(
        "cores",
        (
            Memory("G", read_throughput=2.0, write_throughput=2.0, ports="separate"),
            Fanout("array", (Axis("core", cores),)),
            Memory("L"),
            *(ComputeUnit(name, 1.0, 1.0) for name in (units or ("MAC",))),
        ),
    )


def moved(workload: Workload, hardware: Machine, text: str, memory: str) -> dict[str, str]:
    """Tensor -> reads/writes at a memory; the oracle counts the same."""
    mapping = parse_mapping(text, workload, hardware)
    cost = evaluate(workload, hardware, mapping)
    seen = simulate(workload, hardware, mapping)
    assert seen.correct and not seen.reasons
    found = {}
    for tensor in (t.name for t in workload.tensors):
        numbers = cost.count(memory, tensor, "read"), cost.count(memory, tensor, "write")
        assert numbers == (seen.count(memory, tensor, "read"), seen.count(memory, tensor, "write"))
        found[tensor] = "/".join(map(str, numbers))
    return found


def small(split: str, first: int, second: int, below: bool = True) -> str:
    """C = A B and E = C D for m in 4 tiles of 2, everything from the outer memory through the local ones."""
    weights = "" if below else "store L: B D\n"
    own = ("store L: A B C", "store L: C D E") if below else ("store L: A C", "store L: C E")
    return (
        "store G: A B C D E\n"
        f"{weights}"
        "for E0.m, E1.p in 4 tile 2\n"
        f"{split}:\n"
        f"  - par l in {first} @ core\n    {own[0]}\n    for l in {4 // first}\n    for m in 2\n    for k in 4\n"
        "    compute E0 @ MAC\n"
        f"  - par n in {second} @ core\n    {own[1]}\n    for n in {4 // second}\n    for p in 2\n    for q in 4\n"
        "    compute E1 @ MAC\n"
    )


def test_a_pipeline_keeps_what_a_sequential_split_forgets() -> None:
    workload, hardware = products(8, 4, 4, 4), machine()
    cold = moved(workload, hardware, small("split sequential", 4, 4), "G")
    warm = moved(workload, hardware, small("split pipelined @ core shares 2 2", 2, 2), "G")
    assert cold == {"A": "32/0", "B": "64/0", "C": "32/32", "D": "64/0", "E": "0/32"}
    assert warm == {"A": "32/0", "B": "16/0", "C": "32/32", "D": "16/0", "E": "0/32"}


TILES = {
    "m, l": "for E0.m, E1.p in 4 tile 16\nfor E0.l, E1.q in 4 tile 16\n",
    "l, m": "for E0.l, E1.q in 4 tile 16\nfor E0.m, E1.p in 4 tile 16\n",
}
COLD = {"A": "8192/0", "B": "8192/0", "D": "8192/0", "E": "6144/8192"}
WARM = {
    "m, l": {"A": "2048/0", "B": "8192/0", "D": "8192/0", "E": "0/2048"},
    "l, m": {"A": "8192/0", "B": "2048/0", "D": "2048/0", "E": "6144/8192"},
}


@pytest.mark.parametrize("order", TILES)
@pytest.mark.parametrize("split", ["sequential", "pipelined @ core", "stores above"])
def test_order_and_place_of_stores_decide_about_traffic(order: str, split: str) -> None:
    """m and l in 4 x 4 tiles of 16, K = N = 32; counts at the outer memory."""
    workload, hardware = products(64, 32, 64, 32), machine()
    inner = ("store L: A B", "store L: D E")
    head = ""
    if split == "stores above":
        inner, head, split = ("", ""), "store L: A B D E\n", "sequential"
    text = (
        f"store G: A B C D E\n{TILES[order]}{head}split {split}:\n"
        f"  - {inner[0] or 'for E0.m in 1'}\n    for m in 16\n    for l in 16\n    for k in 32\n    compute E0 @ MAC\n"
        f"  - {inner[1] or 'for E1.p in 1'}\n    for p in 16\n    for q in 16\n    for n in 32\n    compute E1 @ MAC\n"
    )
    mapping = parse_mapping(text, workload, hardware)
    cost = evaluate(workload, hardware, mapping)
    found = {t: f"{cost.count('G', t, 'read')}/{cost.count('G', t, 'write')}" for t in "ABDE"}
    assert found == (COLD if split == "sequential" and not head else WARM[order])
    assert len(links(workload, hardware, paths(workload, mapping))) > 6


def test_seven_stages_do_not_fit_on_four_cores() -> None:
    text = "\n".join(f"E{i}: T{i + 1}[m{i}] = exp(T{i}[m{i}])" for i in range(7))
    workload = cascade(text, {f"m{i}": 4 for i in range(7)})
    inner = "".join(f"      - compute E{i} @ MAC\n" for i in range(1, 6))
    mapping = (
        "store G: T0 T1 T2 T3 T4 T5 T6 T7\n"
        "for E0.m0, E1.m1, E2.m2, E3.m3, E4.m4, E5.m5, E6.m6 in 4\n"
        "split pipelined @ core:\n"
        "  - split pipelined @ core:\n"
        "      - compute E0 @ MAC\n"
        "      - split pipelined @ core:\n" + inner.replace("      -", "          -") + "  - compute E6 @ MAC\n"
    )
    hardware = machine()
    reasons = legality(workload, hardware, parse_mapping(mapping, workload, hardware))
    assert reasons == ("'split pipelined @ core': 7 branches need >= 7 instances of core, 4 available",)
    assert legality(workload, machine(cores=7), parse_mapping(mapping, workload, machine(cores=7))) == ()


STEADY = [
    ("flowing", (4, 7, 5), CHAIN, 12, 1, 93),
    ("three drains", (4, 7, 5), CHAIN, 4, 3, 111),
    ("one slot each", (3, 5, 4), (Edge(0, 1, 1), Edge(1, 2, 1)), 10, 1, 93),
    ("flattened", (4, 4, 4), CHAIN, 10, 1, 48),
    ("an inner pair that drains", (4, 8), (Edge(0, 1),), 1, 1, 12),
    ("inside", (2, 3), (Edge(0, 1),), 5, 1, 17),
    ("outside", (10, 17), (Edge(0, 1),), 6, 1, 112),
    ("skipped, one slot", (3, 5, 4), (*CHAIN, Edge(0, 2, 1)), 10, 1, 120),
    ("skipped, two slots: a bound, 65 happen", (3, 5, 4), (*CHAIN, Edge(0, 2, 2)), 10, 1, 66),
    ("skipped, three slots", (3, 5, 4), (*CHAIN, Edge(0, 2, 3)), 10, 1, 57),
    ("fork and join", (2, 6, 3, 4), (Edge(0, 1), Edge(0, 2), Edge(1, 3), Edge(2, 3)), 10, 1, 66),
    ("no exchange", (4, 7), (), 10, 1, 70),
]


@pytest.mark.parametrize(("name", "times", "edges", "tokens", "drains", "cycles"), STEADY, ids=[c[0] for c in STEADY])
def test_steady_pipelines(
    name: str, times: tuple[int, ...], edges: tuple[Edge, ...], tokens: int, drains: int, cycles: int
) -> None:
    assert drains * drain_time(times, edges, tokens) == cycles


def test_units_of_their_own() -> None:
    """exp on V beside a product on M, one core."""
    sizes = {"m": 8, "p": 8, "n": 2, "q": 2, "k": 4}
    workload = cascade("E0: T[m,n] = A[m,k] * B[k,n]\nE1: Z[p,q] = exp(T[p,q])", sizes)
    hardware = machine("M", "V", cores=1)
    text = (
        "store G: A B Z\nstore L: B\nfor E0.m, E1.p in 8\nstore L: A Z{}\nstore L: T\nsplit {}:\n"
        "  - for n in 2\n    for k in 4\n    compute E0 @ M\n  - for q in 2\n    compute E1 @ V\n"
    )
    found = {}
    for split, slots in (("sequential", 1), ("pipelined @ unit", 1), ("pipelined @ unit", 2), ("pipelined shared", 2)):
        mapping = parse_mapping(text.format("" if slots == 1 else " slots 2", split), workload, hardware)
        views, cost = latencies(workload, hardware, mapping), evaluate(workload, hardware, mapping)
        assert views.tile == views.einsum == cost.latency
        found[split, slots] = (views.roofline, cost.latency, cost.occupancy_of("L"))
    assert found == {
        ("sequential", 1): (64.0, 8 * (8 + 2), 8 + 4 + 2),  # B, and A and T while E0 runs
        ("pipelined @ unit", 1): (64.0, 8 * (8 + 2), 8 + 4 + 2 * 2 + 2),  # one place for A: it drains
        ("pipelined @ unit", 2): (64.0, 8 + 2 + 7 * 8, 8 + 2 * 4 + 2 * 2 + 2 * 2),
        ("pipelined shared", 2): (64.0, 8 + 2 + 7 * 8, 8 + 2 * 4 + 2 * 2 + 2 * 2),
    }
