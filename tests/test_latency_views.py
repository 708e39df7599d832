"""The ways to see a mapping's latency: their order on random trees, what is proven by which rule, what files keep."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import einloom as el
from concurrent_trees import concurrent_case, loaded
from einloom.cli import main
from einloom.cost.evaluate import evaluate, latencies, legality
from einloom.cost.event import event_seconds, event_time
from einloom.machine.files import parse_machine
from einloom.mapping.text import parse_mapping
from einloom.oracle import simulate
from einloom.problem import Certificate, Guarantee
from einloom.search.exact import Exact
from einloom.zoo.workload_by_name import load_workload
from trees import random_case


@pytest.mark.parametrize(
    "seeds", [range(250), pytest.param(range(250, 500), marks=pytest.mark.slow)], ids=["few", "more"]
)
def test_each_view_is_at_most_the_next_on_random_trees(seeds: range) -> None:
    apart = Counter[str]()
    for seed in seeds:
        case = (random_case if seed % 2 else concurrent_case)(seed)
        machine = loaded(case.machine, seed)
        if legality(case.workload, machine, case.mapping):
            continue
        costs = {rule: evaluate(case.workload, machine, case.mapping, rule) for rule in ("tile", "einsum")}
        views = latencies(case.workload, machine, case.mapping)
        assert (views.tile, views.einsum) == (costs["tile"].latency, costs["einsum"].latency)
        assert costs["tile"].roofline == pytest.approx(costs["einsum"].roofline, rel=1e-12)
        steady = {"roofline": views.roofline, "floor": views.floor, "tile": views.tile, "einsum": views.einsum}
        for (_, a), (name, b) in pairwise(steady.items()):
            assert a <= b * (1 + 1e-12), (seed, steady)
            apart[name] += a < b * (1 - 1e-9)
        assert [(a.count, a.bits) for a in costs["tile"].actions] == [
            (a.count, a.bits) for a in costs["einsum"].actions
        ]
        apart["all"] += 1
    assert apart["all"] >= 150 and min(apart["floor"], apart["tile"], apart["einsum"]) >= 5, apart


MATMUL = ("matmul:m=4,n=4,k=4", "simple")
TREE = "store DRAM: A B Z\nfor m in 4\nfor n in 4\nfor k in 4\ncompute Z @ MAC\n"


def given(rule: str | None = None) -> el.Result:
    return el.evaluate(*MATMUL, mapping=el.map(*MATMUL).mapping, latency_rule=rule)


def test_evaluate_knows_both_rules_and_shows_every_view() -> None:
    found = given("tile")
    assert found.latency_rule == "tile" and found.latencies is not None
    assert found.latency == found.latencies.tile
    assert found.latencies.event is not None and found.latencies.event >= found.latencies.floor
    assert given().latency_rule == "einsum"
    with pytest.raises(el.SpecError, match=r"unknown latency rule 'tyle'.*did you mean 'tile'"):
        given("tyle")


def test_the_event_view_is_left_out_where_it_would_take_long() -> None:
    large = el.map("matmul:m=256,n=256,k=256", "simple")
    assert (
        event_seconds(large.workload, large.machine, large.mapping) is None
        or event_time(large.workload, large.machine, large.mapping).operations <= 20_000
    )
    small = given()
    assert event_seconds(small.workload, small.machine, small.mapping) is not None


def test_optima_are_proven_under_rule_einsum_only() -> None:
    asked = replace(given().problem, latency_rule="tile")
    with pytest.raises(el.SpecError, match="exact proves optima under latency rule 'einsum', not 'tile'"):
        Exact().search(asked)
    found = given("tile")
    claimed = Certificate(Guarantee.OPTIMAL, found.value, found.value, found.problem.mapspace.describe())
    with pytest.raises(el.SpecError, match="a certificate under latency rule 'tile' cannot be verified"):
        el.verify(replace(found, certificate=claimed))
    assert el.verify(found).ok


def test_views_are_saved_and_checked(tmp_path: Path) -> None:
    found = given("tile")
    data: dict[str, Any] = json.loads(found.to_json())
    assert data["latencies"]["tile"] == found.latency
    again = el.Result.from_json(json.dumps(data))
    assert again.latencies == found.latencies and el.verify(again).ok
    data["latencies"]["floor"] *= 0.5
    assert any(reason.startswith("views") for reason in el.verify(el.Result.from_json(json.dumps(data))).reasons)
    del data["latencies"]
    assert el.Result.from_json(json.dumps(data)).latencies is None


EVENTS = """\
schema: machine/1
name: slow
startup: 1 s
levels:
  - {memory: DRAM, read_throughput: 1, write_throughput: 1, setup: 100 s}
  - {memory: Local, size: 1 Kibit, setup: 10 s, prefetch: 2, release: start, through: true}
  - {compute: MAC, throughput: 1, setup: 5 s}
"""


def test_a_result_says_what_of_its_machine_no_objective_counts(tmp_path: Path) -> None:
    (tmp_path / "slow.yaml").write_text(EVENTS)
    (tmp_path / "tree.txt").write_text("store DRAM: A B Z\nfor m in 2\nfor n in 2\nfor k in 2\ncompute Z @ MAC\n")
    said = "; ".join(
        ("slow, startup", "setup of DRAM, Local, MAC", "prefetch of Local", "release of Local", "through of Local")
    )
    note = f"machine {said}: counted in time in events alone, by no objective; of prefetch the room counts"
    asked = ["matmul:m=2,n=2,k=2", str(tmp_path / "slow.yaml")]
    for verb in (["evaluate", *asked, str(tmp_path / "tree.txt")], ["map", *asked, "--objective", "energy"]):
        ran = CliRunner().invoke(main, verb)
        assert ran.exit_code == 0, ran.output
        assert " ".join(ran.output.split()).count(note) == 1
    assert el.evaluate(*asked, mapping=str(tmp_path / "tree.txt")).notes == (note,)
    assert given().notes == (), "simple has none of them"


@pytest.mark.parametrize(
    ("tree", "setups"),
    [
        ("store DRAM: A B Z\ncompute Z @ MAC\n", 0),
        ("store DRAM: A B Z\nstore Local: A\ncompute Z @ MAC\n", 1),
        ("store DRAM: A B Z\nstore Local: A B Z\ncompute Z @ MAC\n", 3),
    ],
)
def test_setup_is_taken_by_transfers_with_a_store_below_and_not_by_a_units_accesses(tree: str, setups: int) -> None:
    """docs/model/bindings.md: what a unit reads and writes itself is part of its work, in the simulation too."""
    plain = EVENTS.replace(", prefetch: 2, release: start, through: true", "")
    machine, without = (parse_machine(text) for text in (plain, plain.replace("100 s", "0 s")))
    workload = load_workload("matmul:m=1,n=1,k=1")
    seconds = []
    for given in (machine, without):
        mapping = parse_mapping(tree, workload, given)
        simulated = simulate(workload, given, mapping, timed=True).cycles
        assert simulated == event_time(workload, given, mapping).seconds
        seconds.append(simulated)
    assert seconds[0] - seconds[1] == pytest.approx(100 * setups)
