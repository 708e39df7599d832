"""Links: tiles handed from stage to stage. Worked numbers to the integer, what is legal, random trees, mistakes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import cache

import pytest

import einloom as el
from agreement import Subject, differences, priced
from cases import cascade
from concurrent_trees import linked_case, loaded
from einloom.cost import evaluate as evaluate_module
from einloom.cost.evaluate import evaluate, latencies, legality
from einloom.cost.event import event_time
from einloom.cost.room import occupancy
from einloom.cost.traffic import accesses
from einloom.errors import IllegalMapping, SpecError
from einloom.machine.files import parse_machine
from einloom.machine.levels import Axis, ComputeUnit, Fanout, Link, Machine, Memory
from einloom.machine.write import machine_text
from einloom.mapping.legality.structure import problems
from einloom.mapping.text import parse_mapping, print_mapping
from einloom.oracle import simulate
from einloom.workload.einsum import Workload
from einloom.workload.selectors import select

WAY = Link("way", axis="core", read_throughput=2.0, read_energy=3.0, hops=2)


def machine(*, double: bool = True, link: Link = WAY) -> Machine:
    """G moves two words per cycle each way, the link two; a local memory per stage feeds four cores."""
    return Machine(
        "cores",
        (
            Memory("G", read_throughput=2.0, write_throughput=2.0, ports="separate"),
            link,
            Memory("L", double_buffer=double),
            Fanout("array", (Axis("core", 4),)),
            ComputeUnit("MAC", 1.0),
        ),
    )


def products(tokens: int = 4) -> Workload:
    text = "E0: C[m,l] = A[m,k] * B[k,l]\nE1: E[p,n] = C[p,q] * D[q,n]"
    return cascade(text, {"m": 2 * tokens, "p": 2 * tokens, "k": 4, "l": 4, "q": 4, "n": 4})


TREE = """store G: A B D E
for E0.m, E1.p in 4 tile 2
store way: C
split pipelined @ core shares 2 2:
  - store L: A B C
    par l in 2 @ core
    for l in 2
    for m in 2
    for k in 4
    compute E0 @ MAC
  - store L: C D E
    par n in 2 @ core
    for n in 2
    for p in 2
    for q in 4
    compute E1 @ MAC
"""


def test_two_products_over_a_link_to_the_cycle() -> None:
    workload, hardware = products(), machine()
    tree = parse_mapping(TREE, workload, hardware)
    assert print_mapping(tree, workload) == TREE
    cost = evaluate(workload, hardware, tree)
    seen = simulate(workload, hardware, tree, timed=True)
    assert seen.correct and not seen.reasons
    assert (seen.cycles, event_time(workload, hardware, tree).seconds) == (108, 108)
    assert (
        [seen.count("G", t, "read") for t in "ABCD"] == [cost.count("G", t, "read") for t in "ABCD"] == [32, 16, 0, 16]
    )
    assert [seen.count("G", t, "write") for t in "CE"] == [cost.count("G", t, "write") for t in "CE"] == [0, 32]
    port = [action.busiest / 2 for action in cost.actions if action.component == "G"]
    kinds = [action.action for action in cost.actions if action.component == "G"]
    assert [sum(b for b, kind in zip(port, kinds, strict=True) if kind == k) for k in ("read", "write")] == [32, 16]
    assert cost.count("way", "C", "read") == seen.count("way", "C", "read") == 32
    assert cost.count("way", "C", "write") == seen.count("way", "C", "write") == 0
    assert cost.energy == 32 * 3.0 * 2
    assert cost.occupancy_of("way") == 0 and "way" not in seen.occupancy
    assert cost.occupancy_of("L") == seen.occupancy["L"] == 2 * (8 + 16 + 8) + 2 * (8 + 16 + 8)
    views = latencies(workload, hardware, tree)
    assert views.roofline <= views.floor <= views.tile <= views.einsum and views.floor <= 108


@pytest.mark.parametrize(("multicast", "crossed"), [(True, 32), (False, 64)])
def test_a_tile_for_all_instances_crosses_once_if_the_link_multicasts(multicast: bool, crossed: int) -> None:
    workload = products()
    hardware = machine(link=replace(WAY, multicast=multicast))
    levels = hardware.levels
    private = replace(hardware, levels=(*levels[:2], levels[3], levels[2], levels[4]))  # L inside the cores
    text = TREE.replace("store L: A B C\n    par l in 2 @ core\n", "par l in 2 @ core\n    store L: A B C\n")
    text = text.replace("store L: C D E\n    par n in 2 @ core\n", "par n in 2 @ core\n    store L: C D E\n")
    tree = parse_mapping(text, workload, private)
    cost, seen = evaluate(workload, private, tree), simulate(workload, private, tree)
    assert seen.correct and not seen.reasons
    assert cost.count("way", "C", "read") == seen.count("way", "C", "read") == crossed
    assert cost.count("L", "C", "write", "E1") == seen.count("L", "C", "write", "E1") == 64


def reasons(text: str, hardware: Machine | None = None) -> str:
    workload, hardware = products(), hardware or machine()
    tree = parse_mapping(text, workload, hardware)
    found = legality(workload, hardware, tree)
    assert bool(found)
    return "\n".join(found)


def test_what_a_link_is_not_for_is_said() -> None:
    assert "C has no store in the stage of E1" in reasons(TREE.replace("store L: C D E", "store L: D E"))
    assert "A is no intermediate" in reasons(TREE.replace("store G: A B", "store G: B").replace("way: C", "way: A C"))
    assert "must stand directly above a 'split pipelined @ core'" in reasons(
        TREE.replace("split pipelined @ core shares 2 2", "split pipelined shared")
    )
    assert "has a store further out" in reasons(TREE.replace("store G: A", "store G: C A"))
    assert "C has 9 tiles on the way; the stores at its ends have room for 4" in reasons(
        TREE.replace("way: C", "way: C slots 9")
    )
    assert "'for n in 2' stands between" in reasons(
        TREE.replace(
            "  - store L: C D E\n    par n in 2 @ core\n    for n in 2",
            "  - for n in 2\n    store L: C D E\n    par n in 2 @ core",
        )
    )
    moved = TREE.replace(
        "  - store L: A B C\n    par l in 2 @ core\n    for l in 2\n    for m in 2\n    for k in 4\n",
        "  - par k in 2 @ core\n    store L: A B C\n    for l in 4\n    for m in 2\n    for k in 2\n",
    )
    levels = machine().levels
    private = replace(machine(), levels=(*levels[:2], levels[3], levels[2], levels[4]))
    moved = moved.replace("store L: C D E\n    par n in 2 @ core\n", "par n in 2 @ core\n    store L: C D E\n")
    assert "spreads a sum over instances" in reasons(moved, private)


def test_machines_with_links_go_both_ways() -> None:
    again = parse_machine(machine_text(machine()))
    assert again == machine() and again.memory("way") == WAY
    with pytest.raises(SpecError, match="joins the instances of row, which is no axis listed after it"):
        parse_machine(machine_text(machine(link=replace(WAY, axis="row"))))


@cache
def subjects(count: int = 450) -> tuple[Subject, ...]:
    """Random pipelines over links that are legal, executed by the oracle."""
    found = []
    for seed in range(count):
        case = linked_case(seed)
        case = replace(case, machine=priced(case.machine))
        if not problems(case.workload, case.machine, case.mapping):
            seen = simulate(case.workload, case.machine, case.mapping)
            found.append(Subject(seed, case, (), seen))
    return tuple(found)


def disagreements(found: Subject) -> tuple[str, ...]:
    return tuple(text for text in differences(found) if not text.startswith("('latency',)"))


@pytest.mark.parametrize("part", [2, pytest.param(1, marks=pytest.mark.slow)])
def test_analysis_equals_execution_on_random_pipelines_over_links(part: int) -> None:
    everything = subjects(450 // part)
    assert {s.seed: found[:3] for s in everything if (found := disagreements(s))} == {}
    assert all(s.simulation.correct and not s.simulation.reasons for s in everything)
    seen = Counter(len(s.case.workload.einsums) for s in everything)
    assert len(everything) >= 300 // part and seen[2] >= 60 // part and seen[3] >= 150 // part
    assert sum("Reg" in s.simulation.occupancy for s in everything) >= 60 // part
    assert sum(not s.case.machine.memory("way").multicast for s in everything) >= 100 // part  # type: ignore[attr-defined]


@pytest.mark.parametrize("part", [2, pytest.param(1, marks=pytest.mark.slow)])
def test_what_crosses_a_link_is_what_its_readers_write(part: int) -> None:
    """Without multicast a link is read once for every value that is written at its ends."""
    crossed = 0
    for s in subjects(450 // part):
        way = s.case.machine.memory("way")
        assert isinstance(way, Link)
        for (einsum, name, tensor, action), count in s.simulation.counts.items():
            if name == "way":
                assert action == "read"
                written = s.simulation.counts[einsum, "L", tensor, "write"]
                assert count <= written and (way.multicast or count == written)
                crossed += count
    assert crossed > 5000 // part


@pytest.mark.parametrize("count", [75, pytest.param(150, marks=pytest.mark.slow)])
def test_time_over_links_is_within_its_bounds(count: int) -> None:
    """The recurrence knows no contention; the floor is below both."""
    seen = 0
    for s in subjects(count):
        hardware = loaded(s.case.machine, s.seed)
        try:
            event = event_time(s.case.workload, hardware, s.case.mapping).seconds
        except IllegalMapping:  # fewer slots than tiles on the way
            continue
        views = latencies(s.case.workload, hardware, s.case.mapping)
        cycles = simulate(s.case.workload, hardware, s.case.mapping, timed=True).cycles
        assert cycles is not None
        assert views.roofline <= views.floor <= min(views.tile, cycles) * (1 + 1e-12)
        assert event <= cycles * (1 + 1e-12)
        seen += 1
    assert seen >= 0.4 * count


def writers_pay(patch: pytest.MonkeyPatch) -> None:
    right = accesses._moves

    def paid(link: accesses.StoreLink, picks: accesses.Picks | None) -> list[accesses.Move]:
        found = right(link, picks)
        if link.written and link.parent.memory == "way":
            found.append(accesses.Move(link.path.einsum.name, "way", link.tensor, "write", *found[0][4:]))
        return found

    patch.setattr(accesses, "_moves", paid)


def links_always_multicast(patch: pytest.MonkeyPatch) -> None:
    right = accesses.StoreLink._joined
    patch.setattr(
        accesses.StoreLink,
        "_joined",
        lambda link, axis: right(link, axis) or (link.parent.memory == "way" and not link.written),
    )


def links_multicast_as_their_axis(patch: pytest.MonkeyPatch) -> None:
    def joined(link: accesses.StoreLink, axis: Axis) -> bool:
        which = axis.reduce if link.written else axis.multicast
        return link.tensor in select(which, link.workload, link.path.einsum.name)

    patch.setattr(accesses.StoreLink, "_joined", joined)


def links_hold_their_tiles(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(occupancy, "Link", ())


def hops_are_free(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(evaluate_module, "Link", ())


@pytest.mark.parametrize(
    "mutation",
    [writers_pay, links_always_multicast, links_multicast_as_their_axis, links_hold_their_tiles, hops_are_free],
)
def test_a_mutation_is_caught(mutation: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch) -> None:
    everything = subjects(225)
    mutation(monkeypatch)
    assert any(disagreements(found) for found in everything)


def test_the_exact_search_leaves_links_alone() -> None:
    workload = el.load_workload("matmul:m=4,n=4,k=4")
    plain = el.load_machine("simple")
    joined = replace(
        plain,
        levels=(*plain.levels[:2], replace(WAY, axis="X"), Fanout("array", (Axis("X", 1),)), *plain.levels[2:]),
    )
    found, wanted = el.map(workload, joined), el.map(workload, plain)
    assert found.value == wanted.value and found.certificate is not None and found.certificate.gap == 0
