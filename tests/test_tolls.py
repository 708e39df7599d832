"""Tolls: what passes is what the oracle sees pass, on random trees with tolls in random places; mistakes are found."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from random import Random

import pytest

from agreement import Subject, differences, priced
from cases import cascade
from concurrent_trees import concurrent_case, fused, linked_case
from einloom.cost.evaluate import evaluate, latencies
from einloom.cost.event import event_time
from einloom.cost.traffic import accesses
from einloom.cost.traffic.accesses import StoreLink
from einloom.errors import SpecError
from einloom.machine.files import parse_machine
from einloom.machine.levels import Machine, Toll
from einloom.mapping.legality.structure import problems
from einloom.mapping.text import parse_mapping
from einloom.oracle import simulate
from einloom.workload.selectors import selector
from trees import random_case

CASES = 300
SETS = ("all", "all", "nothing", "input", "output", "weight", "input | output", "~weight")


def tolled(machine: Machine, rng: Random) -> Machine:
    """The machine with one to three tolls somewhere behind its outermost memory.

    Those that charge one way only have a throughput: the oracle says how busy an instance is each way.
    """
    levels = list(machine.levels)
    for i in range(rng.choice((1, 2, 3))):
        down, up = (selector(rng.choice(SETS)) for _ in range(2))
        widths = ((selector(rng.choice(("all", "output"))), rng.choice((1, 3))),) if rng.random() < 0.3 else ()
        one_way = "nothing" in (down.text, up.text)
        toll = Toll(f"T{i}", 2.0**i, rng.choice((1, 4)), 1.0 if one_way else None, down, up, widths)
        levels.insert(rng.randint(1, len(levels) - 1), toll)
    return replace(machine, levels=tuple(levels))


def subject(seed: int) -> Subject:
    """A random tree on its machine with tolls, executed by the oracle."""
    case = random_case(seed)
    case = replace(case, machine=tolled(priced(case.machine), Random(-seed - 1)))
    reasons = problems(case.workload, case.machine, case.mapping)
    return Subject(seed, case, reasons, simulate(case.workload, case.machine, case.mapping))


@cache
def subjects() -> tuple[Subject, ...]:
    return tuple(found for seed in range(CASES) if (found := subject(seed)).legal)


def test_analysis_counts_what_the_oracle_sees_pass() -> None:
    seen: Counter[str] = Counter()
    for found in subjects():
        assert differences(found) == (), found.seed
        names = {toll.name for toll in found.case.machine.tolls}
        seen.update(way for (_, name, _, way), count in found.simulation.counts.items() if name in names and count)
        copies = {e.name for e in found.case.workload.einsums if e.kind == "copy"}
        seen.update("copy" for (einsum, name, _, _) in found.simulation.counts if name in names and einsum in copies)
    assert len(subjects()) > 0.8 * CASES and min(seen["down"], seen["up"]) > 150 and seen["copy"] > 5


def above_the_multicast(patch: pytest.MonkeyPatch) -> None:
    """A toll counts where the store above does, before the value is sent to several instances."""
    patch.setattr(StoreLink, "_apart", lambda link, place, at_parent, toll: place < link.parent.place)


def in_every_instance(patch: pytest.MonkeyPatch) -> None:
    """A toll counts where the store below does, whatever fanout stands before it."""
    patch.setattr(StoreLink, "_apart", lambda link, place, at_parent, toll: place < link.place)


def first_results_are_read(patch: pytest.MonkeyPatch) -> None:
    refills = accesses.terms.refills
    patch.setattr(accesses.terms, "refills", lambda moved, fresh: refills(moved, 0))


def tolls_of_bypassed_levels_are_free(patch: pytest.MonkeyPatch) -> None:
    whole = StoreLink.tolls.func

    def tolls(link: StoreLink) -> tuple[Toll, ...]:
        return whole(link) if link.child is not None else ()

    patch.setattr(StoreLink, "tolls", property(tolls))


def both_ways_are_charged(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Toll, "charges", lambda toll, workload, einsum, tensor: (True, True))


MUTATIONS = (
    above_the_multicast,
    in_every_instance,
    first_results_are_read,
    tolls_of_bypassed_levels_are_free,
    both_ways_are_charged,
)


@pytest.mark.parametrize("mutation", MUTATIONS)
def test_planted_mistakes_are_found(mutation: Callable[[pytest.MonkeyPatch], None]) -> None:
    found = subjects()[:150]
    with pytest.MonkeyPatch.context() as patch:
        mutation(patch)
        assert any(differences(one) for one in found)


def test_tolls_between_stages_that_run_at_the_same_time() -> None:
    """Pipelines and parallel branches, over links too: what passes is what passed, and no view is below the floor."""
    checked = Counter[str]()
    cases = [(seed, concurrent_case(seed)) for seed in range(220) if fused(random_case(seed))]
    for seed, case in [*cases, *((seed, linked_case(seed)) for seed in range(80))]:
        case = replace(case, machine=tolled(priced(case.machine), Random(-seed - 1)))
        if problems(case.workload, case.machine, case.mapping):
            continue
        found = Subject(seed, case, (), simulate(case.workload, case.machine, case.mapping, timed=True))
        if found.simulation.reasons:
            continue
        wrong = [text for text in differences(found) if not text.startswith("('latency',)")]
        assert wrong == [], seed
        floor = latencies(case.workload, case.machine, case.mapping).floor
        assert floor <= (found.simulation.cycles or 0) * (1 + 1e-12)
        names = {toll.name for toll in case.machine.tolls}
        checked[case.machine.memories[-1].name] += any(name in names for _, name, _, _ in found.simulation.counts)
    assert sum(checked.values()) > 100


CORES = """
schema: machine/1
name: cores
levels:
  - {memory: G, read_throughput: 2, write_throughput: 2, ports: separate}
  - {toll: Bus, throughput: 1, down: input, up: output, energy: 3}
  - {memory: L}
  - {fanout: array, axes: [{axis: core, size: 4}]}
  - {toll: Out, throughput: 0.5, down: nothing}
  - {compute: MAC, throughput: 1}
"""
ROWS = "store G: X Z\nfor m in 4\nstore L: X Z\nfor n in 3\ncompute E @ MAC\n"


def test_a_toll_takes_time_in_events() -> None:
    """Rows of three values: 3 s down the bus, 6 s of results out of the unit, 3 s up the bus."""
    workload = cascade("E: Z[m,n] = exp(X[m,n])", {"m": 4, "n": 3})
    machine = parse_machine(CORES)
    tree = parse_mapping(ROWS, workload, machine)
    assert event_time(workload, machine, tree).seconds == 4 * (3 + 6 + 3)
    assert simulate(workload, machine, tree, timed=True).cycles == 4 * (3 + 6 + 3)
    cost = evaluate(workload, machine, tree)
    assert (cost.energy, cost.latency) == (72, 24)
    assert {name: t for _, name, t in cost.busy} == {"G": 6, "Bus": 24, "MAC": 12, "Out": 24}


def test_nothing_stands_in_a_toll_and_none_is_outermost() -> None:
    workload, machine = cascade("E: Z[m,n] = exp(X[m,n])", {"m": 4, "n": 3}), parse_machine(CORES)
    with pytest.raises(SpecError, match="Bus"):
        parse_mapping(ROWS.replace("store L", "store Bus"), workload, machine)
    with pytest.raises(SpecError, match="the first level must be a memory, the outermost one; Bus is none"):
        parse_machine(CORES.replace("  - {memory: G, read_throughput: 2, write_throughput: 2, ports: separate}\n", ""))
    with pytest.raises(SpecError, match="unknown key 'read_energy'"):
        parse_machine(CORES.replace("energy: 3", "read_energy: 3"))
