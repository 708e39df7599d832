"""Single conditions of the search and of the cost that no other test saw, each where it alone decides."""

from __future__ import annotations

import numpy as np
import pytest

from einloom.cost.evaluate import evaluate
from einloom.cost.event import event_time
from einloom.machine.files import parse_machine
from einloom.machine.levels import Axis, ComputeUnit, Fanout, Machine, Memory
from einloom.mapping.text import parse_mapping
from einloom.mapspace.limits.data import AxisLimit, Limits, LoopLimit, Numbers
from einloom.mapspace.space import Mapspace
from einloom.problem import Budget, Objective, Problem
from einloom.questions import problem
from einloom.search.exact import Exact, ExactOptions
from einloom.search.exact.attempt import Attempt
from einloom.search.exact.bounds.cutoff import Cutoff
from einloom.search.exact.branch_and_bound import Run
from einloom.search.exact.concurrent.passes import ConcurrentAttempt
from einloom.search.exact.einsums.users import Users
from einloom.search.exact.head_starts import first_apart
from einloom.search.exact.spatial_lists import Beside
from einloom.search.exact.unlisted.points import unlisted_points
from einloom.search.exhaustive import Exhaustive
from einloom.search.method import Recorder, Watcher
from einloom.workload.build import build_workload
from einloom.workload.selectors import selector

STAGES = """
schema: machine/1
name: stages
levels:
  - {{memory: DRAM}}
  - {{memory: GLB, release: {release}}}
  - {{compute: U, throughput: 1}}
  - {{compute: V, throughput: 1}}
"""
PIPELINE = """
store DRAM: X Z
for m in 3
store GLB: T slots 1
split pipelined @ unit:
  - compute T @ U
  - compute Z @ V
"""


def test_a_writer_goes_on_when_its_reader_begins_where_a_slot_is_free_from_then_on() -> None:
    """One slot for three tokens of a second in each stage: the next one is written while the one before is read, or
    after that."""
    workload = build_workload("two", ("T[m] = exp(X[m])", "Z[m] = exp(T[m])"), {"m": 3}, bits=1)
    for release, seconds in (("start", 4), ("end", 6)):
        machine = parse_machine(STAGES.format(release=release))
        assert event_time(workload, machine, parse_mapping(PIPELINE, workload, machine)).seconds == seconds


def test_a_pipeline_inside_an_instance_has_the_tokens_of_that_instance() -> None:
    """Two of four in each of two: three seconds for two stages."""
    workload = build_workload("two", ("T[m] = exp(X[m])", "Z[m] = exp(T[m])"), {"m": 4}, bits=1)
    fan = "  - {fanout: F, axes: [{axis: A, size: 2}]}\n  - {memory: GLB"
    machine = parse_machine(STAGES.format(release="end").replace("  - {memory: GLB", fan))
    tree = parse_mapping(
        PIPELINE.replace("for m in 3", "par m in 2 @ A\nfor m in 2").replace("slots 1", "slots 2"), workload, machine
    )
    for rule in ("tile", "einsum"):
        assert evaluate(workload, machine, tree, rule).latency == 3


def test_a_display_hears_of_every_stage() -> None:
    heard: list[tuple[str, int, int | None]] = []
    recorder = Recorder(lambda one: heard.append((one.stage_name, one.done, one.total)))
    recorder.stage("looking")
    recorder.stage("joining", 1, 3)
    assert heard == [("looking", 0, None), ("joining", 1, 3)]


def test_one_cutoff_admits_what_another_does_where_no_sum_of_the_others_is_larger() -> None:
    """With one of two sums larger there are costs that only the other one admits."""
    cutoff = Cutoff((1.0, 1.0), 10.0)
    small, mixed = Beside(cutoff, np.array([1.0, 2.0])), Beside(cutoff, np.array([2.0, 1.0]))
    large, cost = Beside(cutoff, np.array([2.0, 2.0])), np.array([[4.0, 0.0]])
    assert small(cost).all() and not large(cost).any()
    assert mixed(np.array([[4.0, 0.6]])).all() and not small(np.array([[4.0, 0.6]])).any()
    assert small.admits(large) and mixed.admits(large) and small.admits(small)
    assert not small.admits(mixed) and not mixed.admits(small) and not large.admits(small)


def test_einsums_alone_are_a_first_mapping_of_a_cascade_of_which_nothing_is_known() -> None:
    """One Einsum is no cascade; and the second time a mapping is known."""
    for spec, found in (("matmul:m=2,n=2,k=2", False), ("matmuls:n=2,m=2,kn=2", True)):
        run = Run(problem(spec, "two-level", "energy"), ExactOptions(), Budget(seconds=60.0), Watcher(), None)
        attempt = run.attempt()
        attempt.lower_bound()
        assert first_apart(run, attempt) is found and (run.incumbent.best is not None) is found
        assert first_apart(run, attempt) is False


@pytest.mark.parametrize("size", [2, 3])
def test_a_memory_of_every_branch_holds_what_one_member_needs(size: int) -> None:
    """Two values of a member fit, not those of both; with an instance each, three tokens take four seconds, not six."""
    workload = build_workload("two", ("T[m] = exp(X[m])", "Z[m] = exp(T[m])"), {"m": 3}, bits=1)
    levels = (
        Memory("DRAM", must=selector("X | Z"), may=selector("nothing")),
        Memory("GLB", must=selector("T"), may=selector("nothing")),
        Fanout("F", (Axis("x", 2),)),
        Memory("LB", size, must=selector("all")),
        ComputeUnit("MAC", throughput=1.0),
    )
    for concurrent, seconds in (("everywhere", 4), ("shared", 6)):
        asked = Problem(workload, Machine("cores", levels), Mapspace(concurrent=concurrent), Objective("latency"))
        assert Exact().search(asked).value == Exhaustive().search(asked).value == seconds


def test_members_have_what_they_share_as_their_partners_store_it() -> None:
    """The mapspace lets T be written in two or three parts of its 12 values: Z reads it in such parts and no others."""
    workload = build_workload("two", ("T[m] = exp(X[m])", "Z[m] = T[m] * W[m]"), {"m": 12}, bits=1)
    levels = (
        Memory("DRAM", must=selector("~intermediate"), read_throughput=1.0, write_throughput=1.0),
        Memory("GLB", must=selector("T"), may=selector("nothing")),
        ComputeUnit("V", throughput=1.0, kinds=("map",)),
        ComputeUnit("MAC", throughput=1.0),
    )
    limits = Limits(loops=(LoopLimit(selector("T"), ("m",), Numbers(most=3), ("T",)),))
    space = Mapspace(concurrent="any", limits=limits)
    asked = Problem(workload, Machine("units", levels), space, Objective("latency"))
    attempt = ConcurrentAttempt(asked, ExactOptions(), Watcher(), {}, lambda: None)
    attempt.lower_bound()
    members = attempt._members([[], []])
    assert {i: {int(tile) for block in blocks for tile in block.tiles[:, 0]} for i, blocks in members.items()} == {
        0: {4, 6},
        1: {4, 6},
    }


def test_sums_that_stay_in_their_instances_ask_for_every_number_of_them() -> None:
    """Five products in two steps on an axis that adds nothing up: four instances begin four sums, so one is read back
    for the fifth product. Three are the fewest for two steps; with them two sums are read back."""
    workload = build_workload("dot", ("Z[m] = A[m,k] * B[m,k]",), {"m": 1, "k": 5}, bits=1)
    levels = (
        Memory("DRAM", read_energy=10.0, write_energy=10.0),
        Memory("GLB", read_energy=2.0, write_energy=1.0),
        Fanout("F", (Axis("x", 4, multicast=selector("all"), reduce=selector("nothing")),)),
        ComputeUnit("MAC", energy=0.5),
    )
    asked = Problem(workload, Machine("lanes", levels), Mapspace("ragged"), Objective("energy"))
    outside, products, sums = 10 * 11, 5 * 0.5, 5 * 1 + 1 * 2 + 2  # written, read back, and read for DRAM
    assert Exact().search(asked).value == Exhaustive().search(asked).value == outside + products + sums


def test_stores_of_a_window_agree_on_the_loop_that_slides_it() -> None:
    """Two stores of I hold one value each, which every one of the 16 steps fetches anew: the inner one is not charged
    for a loop that slides its window while another one stands next above the outer one."""
    workload = build_workload("windows", ("O[p] = I[p+r] * F[r]",), {"p": 4, "r": 4}, bits=1)
    levels = (
        Memory("DRAM", read_energy=10.0, write_energy=10.0),
        Memory("L2", 3, read_energy=4.0, write_energy=2.0, must=selector("I | O"), may=selector("nothing")),
        Memory("L1", read_energy=0.5, write_energy=0.5, must=selector("I"), may=selector("nothing")),
        ComputeUnit("MAC"),
    )
    asked = Problem(workload, Machine("deep", levels), Mapspace(), Objective("energy"))
    filters, inputs = 16 * 10, 16 * (10 + 2 + 4 + 0.5 + 0.5)
    outputs = 16 * 2 + 12 * 4 + 4 * (4 + 10)  # written, read back, and moved to DRAM
    assert Exact().search(asked).value == Exhaustive().search(asked).value == filters + inputs + outputs


def test_a_tensor_passes_on_to_the_last_of_its_readers() -> None:
    """T is read by U and by Z, with V between them."""
    workload = build_workload(
        "four", ("T[m] = exp(X[m])", "U[m] = exp(T[m])", "V[m] = exp(U[m])", "Z[m] = V[m] * T[m]"), {"m": 3}, bits=1
    )
    users = Users(workload, problem("matmul", "two-level").machine)
    assert {"T", "U", "V"} <= set(users.linking)
    assert users._links == [1, 2, 2, 0]


def test_limits_of_instances_are_for_einsums_and_not_for_copies() -> None:
    """Of four instances a limit leaves one: an Einsum takes four times as long, a copy as long as before."""
    ends = {}
    for text in ("Z[m] = exp(A[m])", "Z[m] = copy(A[m])"):
        workload = build_workload("one", (text,), {"m": 4}, bits=1)
        levels = (
            Memory("DRAM"),
            Fanout("F", (Axis("X", 4),)),
            Memory("GLB", None, 0.0, 0.0, read_throughput=1.0, write_throughput=1.0, must=selector("all")),
            ComputeUnit("MAC", throughput=1.0),
        )
        for limits in (Limits(), Limits(axes=(AxisLimit("X", Numbers(most=1), ("m",)),))):
            asked = Problem(workload, Machine("m", levels), Mapspace(limits=limits), Objective("latency"))
            once = Attempt(asked, ExactOptions(), Watcher(), {}, lambda: None)
            (sig,) = once.signatures
            ends[text[5:9], bool(limits.axes)] = float(unlisted_points(asked.machine, sig, (asked.objective,)).min())
    assert ends["= ex", True] == 4 * ends["= ex", False] and ends["= co", True] == ends["= co", False] > 0
