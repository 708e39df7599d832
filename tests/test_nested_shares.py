"""Shares of an axis inside other concurrent splits: who meets on one instance adds up, who does not does not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import cache
from itertools import pairwise

import pytest

from concurrent_trees import concurrent_case, kinds
from einloom.cost.evaluate import latencies, legality, price
from einloom.cost.time import schedule
from einloom.cost.time.schedule import Schedule, SplitNest
from einloom.cost.traffic.paths import paths
from einloom.machine.files import parse_machine
from einloom.machine.levels import Machine
from einloom.mapping.text import parse_mapping
from einloom.mapping.tree import Mapping
from einloom.oracle import simulate
from einloom.oracle.compile import Compiler
from einloom.oracle.execute import Execution
from einloom.oracle.reference import random_inputs
from einloom.oracle.time import journal
from einloom.testing.nested import nested_tree
from einloom.workload.einsum import Workload
from einloom.workload.files import parse_workload

CASES = 130
MAPS = """
schema: workload/1
name: maps
ranks: {{m: {m}, n: {n}, k: {k}}}
bits: 1
einsums: ["P[m] = exp(A[m])", "Q[n] = exp(E[n])", "R[k] = exp(G[k])"]
"""
PAIR = """
schema: machine/1
name: pair
levels:
  - {memory: D}
  - {fanout: F, axes: [{axis: x, size: 2}]}
  - {memory: B, read_throughput: 1}
  - {compute: MAC, throughput: 100}
  - {compute: U1, throughput: 100}
"""
TREE = """
store D: A P E Q G R
split parallel @ unit:
  - split parallel @ x shares 1 1:
      - for m in {m}
        store B: A
        compute P @ MAC
      - for n in {n}
        store B: E
        compute Q @ MAC
  - for k in {k}
    store B: G
    compute R @ U1
"""


@pytest.mark.parametrize(
    ("m", "n", "k", "seconds"),
    [(1, 9, 8, 9), (5, 9, 8, 13), (9, 1, 8, 17)],
)
def test_a_branch_on_all_instances_meets_the_first_share(m: int, n: int, k: int, seconds: int) -> None:
    """R stands on the first instance, where P is; Q is on the second."""
    workload, machine = parse_workload(MAPS.format(m=m, n=n, k=k)), parse_machine(PAIR)
    mapping = parse_mapping(TREE.format(m=m, n=n, k=k), workload, machine)
    views = latencies(workload, machine, mapping)
    assert (views.roofline, views.floor, views.tile, views.einsum) == (seconds,) * 4
    assert simulate(workload, machine, mapping, timed=True).cycles == seconds


def views(workload: Workload, machine: Machine, mapping: Mapping) -> tuple[float, ...]:
    """Roofline and floor."""
    found = paths(workload, mapping)
    plan = Schedule.of(machine, found, price(workload, machine, found, "einsum", ()).busy)
    return plan.roofline, plan.latency("floor"), plan.latency("tile"), plan.latency("einsum")


@cache
def cases() -> tuple[tuple[Workload, Machine, Mapping, float], ...]:
    """Nested trees with what the simulation says of them, in seconds."""
    found = []
    for seed in range(CASES):
        workload, machine, mapping = nested_tree(seed)
        assert not legality(workload, machine, mapping)
        seen = simulate(workload, machine, mapping, timed=True)
        assert seen.correct and not seen.reasons and seen.cycles is not None
        found.append((workload, machine, mapping, seen.cycles))
    return tuple(found)


def too_high() -> int:
    """Trees whose floor is above the simulated time."""
    return sum(views(*case)[1] > cycles * (1 + 1e-12) for *case, cycles in cases())


def test_nothing_is_faster_than_the_floor_in_splits_of_splits() -> None:
    common = Counter(kind for _, _, mapping, _ in cases() for kind in kinds(mapping.nest))
    assert min(common[kind, place] for kind in ("parallel", "pipelined") for place in ("axis", "unit")) >= 30, common
    assert common["nested", ""] >= 80, common
    assert too_high() == 0
    for workload, machine, mapping, _ in cases():
        seen = views(workload, machine, mapping)
        assert all(a <= b * (1 + 1e-12) for a, b in pairwise(seen))


AHEAD = """
store D: A P E Q
split sequential:
  - for m in 6
    compute P @ SLOW
  - store B: E Q
    compute Q @ MAC
"""
BUFFER = """
schema: machine/1
name: buffer
levels:
  - {{memory: D}}
  - {{memory: B, read_throughput: 1, write_throughput: 1, double_buffer: {double}}}
  - {{compute: SLOW, throughput: 0.5}}
  - {{compute: MAC, throughput: 100}}
"""
TWO = """
schema: workload/1
name: maps
ranks: {m: 6, n: 1}
bits: 1
einsums: ["P[m] = exp(A[m])", "Q[n] = exp(E[n])"]
"""


@pytest.mark.parametrize(("double", "seconds", "floor"), [("true", 15, 12.01), ("false", 16, 16)])
def test_a_second_slot_is_filled_while_the_branch_before_works(double: str, seconds: float, floor: float) -> None:
    """12 s of work, then 4 s in B, of which the first may be spent before; so B bounds nothing beside the work."""
    workload, machine = parse_workload(TWO), parse_machine(BUFFER.format(double=double))
    mapping = parse_mapping(AHEAD, workload, machine)
    assert simulate(workload, machine, mapping, timed=True).cycles == seconds
    assert views(workload, machine, mapping)[1] == floor


def test_the_seed_that_showed_it() -> None:
    case = concurrent_case(20011755)
    cycles = simulate(case.workload, case.machine, case.mapping, timed=True).cycles
    assert cycles is not None
    assert views(case.workload, case.machine, case.mapping)[1] <= cycles


def busiest_port(workload: Workload, machine: Machine, mapping: Mapping) -> float:
    """Seconds that the busiest port of all instances is held, added up from every operation of an execution."""
    plan = Compiler(workload, machine, mapping).plan()
    execution = Execution(workload, plan, random_inputs(workload), False)
    watch = journal.Journal(workload, machine, plan, execution)
    execution.run()
    total = Counter[object]()
    for entry in watch.entries:
        for component, seconds in entry.busy.items():
            for port in journal._ports(component):
                total[port] += seconds  # type: ignore[assignment]
    return float(max(total.values(), default=0))


def test_the_roofline_is_the_busiest_instance_of_an_execution() -> None:
    apart = 0
    for workload, machine, mapping, _ in cases():
        roofline = views(workload, machine, mapping)[0]
        assert busiest_port(workload, machine, mapping) == pytest.approx(roofline)
        apart += roofline < sum_of_all(workload, machine, mapping) * (1 - 1e-9)
    assert apart >= 20


def sum_of_all(workload: Workload, machine: Machine, mapping: Mapping) -> float:
    """The roofline if all Einsums met on one instance of everything."""
    found = paths(workload, mapping)
    total = Counter[str]()
    for _, component, seconds in price(workload, machine, found, "einsum", ()).busy:
        total[component] += seconds  # type: ignore[assignment]
    return float(max(total.values(), default=0))


Mutation = Callable[[pytest.MonkeyPatch], None]


def the_busiest_share_stands_for_all(patch: pytest.MonkeyPatch) -> None:
    """Branches add up by component, after the shares of each were reduced to the busiest of them."""

    def busy(plan: Schedule, part: SplitNest) -> dict[str, float]:
        if part.split is None:
            return plan.times[part.paths[0].einsum.name]
        axis = schedule.axis_of(part.split) if schedule.concurrent(part.split) else None
        place = plan.machine.position
        total: dict[str, float] = {}
        for branch in part.branches:
            for name, seconds in busy(plan, branch).items():
                alone = axis is not None and place[name] > place[axis]
                total[name] = max(total.get(name, 0.0), seconds) if alone else total.get(name, 0.0) + seconds
        return total

    patch.setattr(Schedule, "busy", busy)


def all_shares_start_at_the_first_instance(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(schedule, "shares", lambda split: (0,) * len(split.branches))


def loops_stay_on_neighbours(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(schedule, "instances_used", lambda nest, axis: 1)


@pytest.mark.parametrize(
    "mutation",
    [the_busiest_share_stands_for_all, all_shares_start_at_the_first_instance, loops_stay_on_neighbours],
)
def test_a_mistake_makes_a_floor_that_is_too_high(mutation: Mutation, monkeypatch: pytest.MonkeyPatch) -> None:
    cases()
    mutation(monkeypatch)
    assert too_high() > 0


def test_an_execution_in_which_shares_meet_nobody_else_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same mistake in the simulation: the instances of a share are others than those of the whole axis."""
    everything = cases()
    monkeypatch.setattr(journal, "_ports", lambda component: iter((component,)))
    faster = 0
    for workload, machine, mapping, _ in everything:
        seen = simulate(workload, machine, mapping, timed=True).cycles
        faster += seen is not None and views(workload, machine, mapping)[1] > seen * (1 + 1e-12)
    assert faster > 0
