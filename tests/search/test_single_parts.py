"""Parts of the search and of the analysis, each alone, whose mistakes whole searches do not show."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from operator import le

import numpy as np
import pytest

import einloom as el
from einloom.certify import again, likeness
from einloom.certify.likeness import workload_likeness
from einloom.cost import event
from einloom.cost.batch.program import ProgramRecorder
from einloom.cost.evaluate import evaluate
from einloom.cost.traffic.accesses import links, operations
from einloom.cost.traffic.paths import paths
from einloom.machine.files import parse_machine
from einloom.mapping.legality.concurrency import stages
from einloom.mapping.text import parse_mapping
from einloom.mapping.tree import Compute, Loop, Mapping, Split
from einloom.mapspace.ffm.encoding.state import joined
from einloom.mapspace.ffm.enumerate import enumerate_trees
from einloom.mapspace.ffm.space import Ffm
from einloom.mapspace.limits.data import AxisLimit, BackLimit, Limits, LoopLimit, Numbers, TileLimit
from einloom.mapspace.space import Mapspace
from einloom.problem import Objective, Problem
from einloom.questions import problem
from einloom.search.exact import Exact, ExactOptions
from einloom.search.exact.attempt import Attempt
from einloom.search.exact.einsums.classes import _loop_limits
from einloom.search.exact.einsums.users import Users
from einloom.search.exact.fusion.floors import Floors
from einloom.search.exact.fusion.templates import Alone, FusedTemplate, LentStore
from einloom.search.exact.numerics import pareto
from einloom.search.exact.numerics.pareto import IntArray, pack, skyline
from einloom.search.exact.pmappings.expand import Expansion
from einloom.search.exact.pmappings.rows import PROMISE, Rows
from einloom.search.exact.prices.traffic import Slide
from einloom.search.exhaustive import Exhaustive
from einloom.search.method import Recorder, Watcher
from einloom.search.principles.matmul import Matmul
from einloom.search.principles.pairs import Pair
from einloom.search.principles.told import told
from einloom.search.resources import _least
from einloom.workload.files import parse_workload
from einloom.workload.selectors import selector

WORKLOAD = "schema: workload/1\nname: one\neinsums: ['B[m] = exp(A[m,k])']\nranks: {m: 24, k: 5}\nbits: 8"
MACHINE = """
schema: machine/1
name: spread
levels:
  - {memory: DRAM, read_energy: 1, write_energy: 1, read_throughput: 8, write_throughput: 8}
  - {memory: GLB, read_throughput: 8, write_throughput: 8}
  - {fanout: X, axes: [{axis: x, size: 2}]}
  - {memory: Reg, read_throughput: 8, write_throughput: 8}
  - {compute: MAC, energy: 1, throughput: 1}
"""
MAPPING = """
store DRAM: A B
for m in 3
store GLB: A B
for m in 4
par m in 2 @ x
store Reg: A B
for k in 5
compute B @ MAC
"""


BEHIND = """
schema: machine/1
name: behind
levels:
  - {memory: DRAM, read_energy: 1, write_energy: 1}
  - {fanout: X, axes: [{axis: x, size: 2}]}
  - {memory: Reg, backs: intermediate}
  - {compute: MAC, energy: 1}
"""


def test_the_event_time_is_not_asked_where_there_would_be_too_many_operations(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loads, drains and the leaf in each of the 3 x 4 steps above the innermost store; instances work together."""
    workload, machine = parse_workload(WORKLOAD), parse_machine(MACHINE)
    tree = parse_mapping(MAPPING, workload, machine)
    most = 3 * 4 * (1 + 2 * 6)
    monkeypatch.setattr(event, "MOST_OPERATIONS", most)
    assert event.event_seconds(workload, machine, tree) is not None
    monkeypatch.setattr(event, "MOST_OPERATIONS", most - 1)
    assert event.event_seconds(workload, machine, tree) is None


def test_a_recorder_counts_from_its_making() -> None:
    now = iter((5.0, 7.5))
    assert Recorder(clock=lambda: next(now)).seconds == 2.5


def test_the_matmuls_of_a_pair() -> None:
    """C[m,l] = A[m,k] B[k,l], then E[m,n] = C[m,l] D[l,n]."""
    pair = Pair(2, 3, 5, 7)
    assert (pair.first, pair.second) == (Matmul(2, 3, 5), Matmul(2, 5, 7))


def test_a_tiny_problem_is_solved_again_by_looking_at_all_trees(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(again, "TINY_SECONDS", 300.0)
    found = el.map("matmul:m=2,n=2,k=2", "two-level")
    solved = again.solve_again(found)
    assert (solved.value, solved.method) == (found.value, "enumeration of all trees")


def test_a_copy_has_no_operations() -> None:
    workload = parse_workload("schema: workload/1\nname: one\neinsums: ['B[m] = copy A[m]']\nranks: {m: 24}\nbits: 8")
    machine = parse_machine(MACHINE)
    tree = parse_mapping("store DRAM: A B\nfor m in 24\nstore GLB: A B\ncompute B", workload, machine)
    (path,) = paths(workload, tree)
    assert operations(path) == 0 == operations(path, {})


def test_the_rows_of_a_skeleton_are_the_tilings_of_its_trees() -> None:
    """All rows of all skeletons are the trees of the space; eight values have two tilings by two loops."""
    asked = problem("matmul:m=8,n=2,k=1", "two-level", "energy")
    space = Ffm(asked.workload, asked.machine, asked.mapspace)
    trees = {str(tree): tree for tree in enumerate_trees(asked.workload, asked.machine, asked.mapspace)}
    made: dict[str, int] = {}
    for name, tree in trees.items():
        skeleton = space.skeleton(tree)
        rows = {str(space.tree(skeleton, row)) for block in space.tilings(skeleton) for row in block}
        assert name in rows <= trees.keys()
        made[name] = len(rows)
    assert max(made.values()) > 1


def test_a_name_of_the_zoo_with_another_persistent_tensor_is_not_the_zoos() -> None:
    zoo = el.load_workload("matmul:m=8,n=4,k=2")
    kept = replace(zoo, tensors=tuple(replace(tensor, persistent=tensor.name == "B") for tensor in zoo.tensors))
    same, other = workload_likeness(zoo), workload_likeness(kept)
    assert same is not None and same.same and other is not None and kept != zoo and not other.same


def test_a_likeness_that_was_not_looked_for_to_the_end_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    zoo = el.load_workload("matmul:m=8,n=4,k=2")
    monkeypatch.setattr(likeness, "MOST_BUILT", 1)
    found = workload_likeness(zoo)
    assert not found.same and found.words == "bears the name of the zoo's matmul; not all that it could be was tried"


def test_an_unknown_latency_rule_is_refused_by_the_analysis_itself() -> None:
    found = el.map("matmul:m=2,n=2,k=2", "two-level")
    with pytest.raises(el.SpecError, match="latency rule"):
        evaluate(found.workload, found.machine, found.mapping, "tiles")


def test_a_pipeline_below_a_loop_is_one_stage() -> None:
    """Pipe(a, Pipe(b, c)) has three stages; with a loop around the inner one, two."""
    inner = Split("pipelined", ((Compute("b", None),), (Compute("c", None),)))
    loop = Loop((("b", "m"), ("c", "m")), 2)
    flat = Split("pipelined", ((Compute("a", None),), (inner,)))
    looped = Split("pipelined", ((Compute("a", None),), (loop, inner)))
    assert stages(flat) == (("a",), ("b",), ("c",))
    assert stages(looped) == (("a",), ("b", "c"))


def test_segments_that_become_one_multiply_their_trips() -> None:
    assert joined((("m", 6), ("n", 2)), (("m", 3), ("k", 5))) == (("m", 18), ("n", 2), ("k", 5))


def test_what_is_too_large_for_a_table_without_pruning_is_not_small() -> None:
    assert again._small(problem("matmul:m=8,n=8,k=8", "two-level", "energy"))
    assert not again._small(problem("matmul:m=5040,n=5040,k=5040", "two-level", "energy"))
    assert again._small(problem("matmul:m=197,n=197,k=197", "two-level", "energy"))  # two divisors each
    assert not again._small(problem("matmul:m=197,n=197,k=197", "two-level", "energy", space="ragged"))
    for machine, few in (("two-level", True), ("tileflow-edge", False)):  # 4,096 instances, each way with its tables
        assert again._small(problem("tileflow-cc5", machine, "energy")) is few
    assert again._small(problem("matmul:m=8,n=8,k=8", "tileflow-edge", "energy"))


def test_joins_without_rooms_are_for_spaces_in_which_nothing_runs_at_the_same_time() -> None:
    alone = problem("matmuls:n=2,m=4,kn=4", "two-level", "energy")
    together = Problem(alone.workload, alone.machine, Mapspace(concurrent="any"), alone.objective)
    for asked, options, right in (
        (alone, ExactOptions(), True),
        (alone, ExactOptions(completions=False), False),
        (together, ExactOptions(), False),
    ):
        assert Attempt(asked, options, Watcher(), {}, lambda: None).completes is right


def test_tiles_that_need_not_agree_bound_the_others_without_limits_of_tiles_and_with_fused_loops_in_time() -> None:
    alone = problem("matmuls:n=2,m=4,kn=4", "two-level", "energy")
    limits = Limits(tiles=(TileLimit("GLB", selector("all"), ("m",), Numbers(most=2)),))
    limited = Problem(alone.workload, alone.machine, Mapspace(limits=limits), alone.objective)
    below = Problem(alone.workload, parse_machine(BEHIND), Mapspace(), alone.objective)
    for asked, right in ((alone, True), (limited, False), (below, False)):
        assert Attempt(asked, ExactOptions(), Watcher(), {}, lambda: None).relaxes is right


def test_what_is_known_while_recording_is_a_whole_number_unless_it_was_divided() -> None:
    recorder = ProgramRecorder(1)
    six, three, half = (
        recorder.apply(*one) for one in (("multiply", (2, 3)), ("true_divide", (6, 2)), ("true_divide", (1, 2)))
    )
    assert (six, three, half) == (6, 3.0, 0.5)
    assert [type(one) for one in (six, three, half)] == [int, float, float]


def test_the_principles_speak_of_batches_where_there_are_several() -> None:
    found = {}
    for batches in (1, 3):
        workload = parse_workload(
            "schema: workload/1\nname: one\neinsums: ['C[b,m,n] = A[b,m,k] * B[b,k,n]']\n"
            f"ranks: {{b: {batches}, m: 8, k: 8, n: 8}}\nbits: 8"
        )
        asked = problem(workload, "two-level:glb_bits=1024", "traffic:DRAM")
        found[batches] = [line for line in told(asked).lines if "batches" in line]
    assert found == {1: [], 3: ["all numbers are of one of 3 batches"]}


TWO_READERS = """
schema: workload/1
name: two-readers
einsums: ['B[m] = exp(T[m])', 'C[m,k] = mul(T[k], D[k])']
ranks: {m: 6, k: 6}
bits: 8
"""
BOTH = """
store DRAM: T B C D
for m in 3
for m in 1
store GLB: T
split sequential:
  - store GLB: B
    for m in 2
    compute B @ MAC
  - store GLB: C D
    for m in 2
    for k in 6
    compute C @ MAC
"""


def test_whether_a_step_keeps_elements_of_a_tile_that_a_loop_moves_for_one_of_its_users() -> None:
    """The loop over m moves what B needs; C needs all of T in every step: it stays. A loop of one trip has no step."""
    workload, machine = parse_workload(TWO_READERS), parse_machine(MACHINE)
    found = links(workload, machine, paths(workload, parse_mapping(BOTH, workload, machine)))
    (shared,) = (link.unlike for link in found if link.unlike is not None)
    assert (shared.overlaps(1), shared.overlaps(2)) == (True, False)


TRANSPOSED = """
schema: workload/1
name: transposed
einsums: ['T[m,n] = exp(A[m,n])', 'Z[n,m] = exp(T[n,m])']
ranks: {m: 4, n: 4}
bits: 8
"""


def test_a_limit_of_loops_concerns_the_einsums_that_it_names() -> None:
    """Rank m of T is called n by its reader: what is said of T's m there does not concern m here."""
    workload = parse_workload(TRANSPOSED)
    asked = Limits(loops=(LoopLimit(selector("T"), ("m",), Numbers(most=1), ("T",)),))
    for name, count in (("T", 1), ("Z", 0)):
        tensors = workload.einsum(name).tensors
        assert (
            len(_loop_limits(workload, asked, name, {"m": 0, "n": 1}, {t: i for i, t in enumerate(tensors)})) == count
        )


CONVOLUTION = """
schema: workload/1
name: convolution
einsums: ['O[m,p] = I[p+r] * F[m,r]']
ranks: {m: 2, p: 6, r: 3}
bits: 1
"""
SMALL = """
schema: machine/1
name: small
levels:
  - {memory: DRAM, read_energy: 10, write_energy: 10}
  - {memory: GLB, size: 5, read_energy: 1, write_energy: 1}
  - {memory: Reg, size: 3, read_energy: 0.5, write_energy: 0.5}
  - {compute: MAC, energy: 0.25}
"""


def test_rows_are_charged_by_the_sliding_loop_that_they_promise(monkeypatch: pytest.MonkeyPatch) -> None:
    """Class and trips of the promise; nothing for rows that promise none."""
    charged: list[tuple[int, int, Slide | None]] = []
    by_slide = Expansion._by_slide

    def seen(self: Expansion, rows: Rows, mine: IntArray, *place: int) -> Iterator[tuple[IntArray, Slide | None]]:
        for chosen, slide in by_slide(self, rows, mine, *place):
            if place[0] == self.prices.sliding:
                charged.extend((d, trips, slide) for d, trips in rows.marks[chosen, PROMISE][:, :2].tolist())
            yield chosen, slide

    monkeypatch.setattr(Expansion, "_by_slide", seen)
    Exact().search(Problem(parse_workload(CONVOLUTION), parse_machine(SMALL), Mapspace(), Objective("energy")))
    assert {d > 0 for d, _, _ in charged} == {True, False}
    assert all(slide[:2] == (d - 1, trips) if slide else d == 0 for d, trips, slide in charged)


def test_a_negative_limit_of_memory_is_none() -> None:
    assert [_least(5, -1), _least(5, -1, 3), _least(5, 7)] == [5, 3, 5]


def test_looking_at_all_trees_tells_of_every_better_one() -> None:
    told: list[float] = []

    class Told(Watcher):
        def incumbent(self, value: float, mapping: Mapping) -> None:
            told.append(value)

    found = Exhaustive().search(problem("matmul:m=2,n=2,k=2", "two-level", "energy"), None, Told())
    assert told == sorted(told, reverse=True)
    assert told[-1] == found.value


@pytest.mark.parametrize("machine", ["simple:glb_bits=64", "nvdla", "tpu-v4i"])
def test_an_einsum_costs_as_much_at_least_where_tiles_need_not_divide(machine: str) -> None:
    """What no window reads moves into every store once, whatever its tiles are."""
    even = problem("matmul:m=8,n=4,k=2", machine, "energy")
    least = []
    for space in ("ffm", "ragged"):
        asked = Problem(even.workload, even.machine, Mapspace(space), even.objective)
        attempt = Attempt(asked, ExactOptions(), Watcher(), {}, lambda: None)
        (signature,) = attempt.signatures
        least.append(Floors(attempt.setting, attempt.classes[signature]).least())
    assert least[0] == pytest.approx(least[1], rel=1e-12) and least[0] > 0


def test_an_einsum_between_linked_ones_may_share_their_loops_unless_the_order_is_free() -> None:
    """B reads X below the loops that T is the reason for; where it may stand elsewhere nothing links it to them."""
    einsums = "['T[m] = exp(A[m])', 'B[m] = exp(X[m])', 'C[m] = mul(T[m], X[m])']"
    workload = parse_workload(f"schema: workload/1\nname: between\neinsums: {einsums}\nranks: {{m: 4}}\nbits: 8")
    for free, right in ((False, True), (True, False)):
        users = Users(workload, parse_machine(MACHINE), free)
        assert [users.contested(i, "X") for i in (1, 2)] == [right, right] and users.any_contested is right


STRIDED = """
schema: workload/1
name: strided
einsums: ['T[m,n] = exp(X[m,n])', 'C[m,n] = mul(T[m,n], A[2*m])']
ranks: {m: 2, n: 2}
bits: 8
"""
NARROW = """
schema: machine/1
name: narrow
levels:
  - {memory: DRAM, read_energy: 10, write_energy: 10}
  - {memory: GLB, size: 16, may: T | A, read_energy: 1, write_energy: 1}
  - {compute: MAC, energy: 1}
"""


def test_a_fused_loop_may_stand_above_a_store_of_what_is_read_with_a_stride() -> None:
    """Windows of one variable do not overlap: a value of A stays over n below the loop over m; two have no room."""
    asked = problem(parse_workload(STRIDED), parse_machine(NARROW), "energy")
    assert Exact().search(asked).value == Exhaustive().search(asked).value


FUSED = "schema: workload/1\nname: fused\neinsums: ['T[m] = exp(A[m])', 'Z[m] = exp(T[m])']\nranks: {m: 4}\nbits: 8"
ARRAY = """
schema: machine/1
name: array
levels:
  - {{memory: DRAM, read_energy: 10, write_energy: 10, read_throughput: 1, write_throughput: 1}}
  - {{fanout: X, axes: [{{axis: x, size: 2, use: {use}}}]}}
  - {{memory: Reg, size: {size}, backs: {backs}, read_energy: 1, write_energy: 1}}
  - {{compute: MAC, energy: 1, throughput: 1}}
"""


@pytest.mark.parametrize(("goal", "least"), [("energy", 712.0), ("latency", 64.0)])
@pytest.mark.parametrize("backs", ["all", "intermediate"])
def test_a_tensor_that_lives_in_an_array_is_fused_below_the_arrays_loops(backs: str, goal: str, least: float) -> None:
    """A and Z pass DRAM (640 J, 64 s), T is written and read in Reg (64 J), and eight values are computed (8 J)."""
    workload = parse_workload(FUSED)
    asked = problem(workload, parse_machine(ARRAY.format(use="full", size=32, backs=backs)), goal)
    assert Exact().search(asked).value == least
    if backs == "all":
        assert Exhaustive().search(asked).value == least


def test_no_store_serves_copies_what_is_persistent_or_an_output() -> None:
    """X has three readers alike but for what reads it: the middle one is a copy, which no store of several serves."""
    text = "schema: workload/1\nname: readers\neinsums: ['B[m] = exp(X[m])', 'C[m] = {}', 'D[m] = exp(X[m])']\n"
    for middle, more, right in (
        ("exp(X[m])", "", [("fills",), ("fills", "keeps", "ends"), ("ends",)]),
        ("copy X[m]", "", [("fills",), (), ("ends",)]),
        ("exp(X[m])", "persistent: [X]\n", [(), (), ()]),
    ):
        workload = parse_workload(text.format(middle) + f"ranks: {{m: 4}}\nbits: 8\n{more}")
        users = Users(workload, parse_machine(MACHINE), lending=True)
        assert [users.parts(i, "X") for i in range(3)] == right


def test_a_fused_part_asks_for_its_own_stores_and_for_those_of_several_readers() -> None:
    lent = (LentStore(tensor=3, memory=1, depth=2, part="fills"), LentStore(tensor=0, memory=2, depth=1, part="ends"))
    template = FusedTemplate((), (), alone=frozenset({Alone(4, 1)}), lent=lent)
    assert template.asks == {Alone(4, 1), Alone(tensor=3, loops=2), Alone(tensor=0, loops=1)}


def test_packed_rows_are_equal_where_the_rows_are() -> None:
    """Also where the product of all sizes has no room in an integer."""
    rng = np.random.default_rng(1)
    for columns, most in ((1, 5), (3, 4), (12, 100_000), (40, 3)):
        rows = rng.integers(1, most + 1, (400, columns))
        rows[200:] = rows[rng.integers(0, 200, 200)]
        numbers = pack(rows)
        assert (
            len(np.unique(numbers))
            == len(np.unique(rows, axis=0))
            == len(np.unique(np.column_stack([numbers, rows]), axis=0))
        )


def test_an_output_that_is_read_links_einsums_only_where_an_inner_memory_backs_it() -> None:
    text = "schema: workload/1\nname: read\neinsums: ['T[m] = exp(A[m])', 'Z[m] = exp(T[m])']\nranks: {m: 4}\nbits: 8\n"
    inner = MACHINE.replace("{memory: DRAM, ", "{memory: DRAM, may: ~output, ")
    for more, machine, right in (
        ("", MACHINE, {"T"}),
        ("outputs: [T, Z]", MACHINE, set()),
        ("outputs: [T, Z]", inner, {"T"}),
    ):
        assert Users(parse_workload(text + more), parse_machine(machine)).linking == right


FANS = """
schema: machine/1
name: fans
levels:
  - {{memory: DRAM, read_energy: 10, write_energy: 10, read_throughput: 1, write_throughput: 1}}
  - {{fanout: X, axes: [{{axis: x, size: 2, multicast: {outer}}}]}}
  - {{memory: L2, must: all, read_energy: 3, write_energy: 3, read_throughput: 1, write_throughput: 1}}
  - {{fanout: Y, axes: [{{axis: y, size: 2, multicast: {inner}}}]}}
  - {{memory: Reg, size: 48, must: all, read_energy: 1, write_energy: 1}}
  - {{compute: MAC, energy: 1, throughput: 1}}
"""


@pytest.mark.parametrize("goal", ["energy", "latency"])
@pytest.mark.parametrize(("outer", "inner"), [("nothing", "all"), ("all", "nothing"), ("nothing", "nothing")])
def test_an_axis_that_does_not_multicast_repeats_what_crosses_it_alone(outer: str, inner: str, goal: str) -> None:
    """Two fanouts with a memory between them: what goes from L2 to Reg does not cross X."""
    workload = parse_workload(
        "schema: workload/1\nname: one\neinsums: ['Z[m] = mul(A[m], B[])']\nranks: {m: 4}\nbits: 8"
    )
    asked = problem(workload, parse_machine(FANS.format(outer=outer, inner=inner)), goal)
    assert Exact().search(asked).value == pytest.approx(Exhaustive().search(asked).value, rel=1e-12)


def test_full_use_asks_for_no_more_than_uneven_tiles_have_where_none_is_even() -> None:
    """Three values on two instances that must both be used: two and one."""
    text = "schema: workload/1\nname: three\neinsums: ['Z[m] = exp(A[m])']\nranks: {m: 3}\nbits: 8"
    machine = parse_machine(ARRAY.format(use="full", size=32, backs="all"))
    limits = Limits(axes=(AxisLimit("x", Numbers(values=(2,)), ("m",)),))
    asked = Problem(parse_workload(text), machine, Mapspace("ragged", limits=limits), Objective("latency"))
    found = Exact().search(asked)
    assert found.value == pytest.approx(Exhaustive().search(asked).value, rel=1e-12) and "in 2" in str(found.mapping)


@pytest.mark.parametrize("compiled", [False, True])
def test_of_rows_with_many_equal_numbers_stay_those_that_no_other_beats(compiled: bool) -> None:
    """By NumPy and by machine code: within each key, and of equal rows one."""
    rng = np.random.default_rng(2)
    for columns in (1, 2, 3, 5):
        keys, values = rng.integers(0, 3, 120), rng.integers(0, 4, (120, columns)).astype(np.float64)
        kept = skyline(keys, values, compiled)
        rows = {(key, *row) for key, row in zip(keys.tolist(), values.tolist(), strict=True)}
        best = {
            one
            for one in rows
            if not any(other[0] == one[0] and other != one and all(map(le, other[1:], one[1:])) for other in rows)
        }
        assert sorted((int(keys[i]), *values[i].tolist()) for i in kept) == sorted(best)


def test_machine_code_asks_whether_to_go_on_and_keeps_the_same_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """In pieces of five comparisons, within a group and from one to the next."""
    rng = np.random.default_rng(3)
    keys, values = rng.integers(0, 3, 200), rng.integers(0, 9, (200, 4)).astype(np.float64)
    whole = skyline(keys, values, compiled=False)
    asked: list[None] = []
    monkeypatch.setattr(pareto, "COMPARED", 5)
    assert skyline(keys, values, True, lambda: asked.append(None)).tolist() == whole.tolist()
    assert len(asked) > 50


def test_a_recorder_adds_up_counts() -> None:
    recorder = Recorder()
    for rule, *number in (("one",), ("other", 5), ("one", 3)):
        recorder.count(rule, *number)
    assert recorder.counts == {"one": 4, "other": 5}


UNITS = """
schema: machine/1
name: units
levels:
  - {memory: DRAM, read_throughput: 64, write_throughput: 64}
  - {memory: GLB, read_throughput: 64, write_throughput: 64}
  - {compute: ONE, throughput: 1}
  - {compute: TWO, throughput: 1}
"""


@pytest.mark.parametrize("limited", [False, True])
def test_a_member_of_a_pipeline_may_hand_its_result_to_the_outermost_memory(limited: bool) -> None:
    """T and S run side by side, four values and one step to fill, then Z four values; S may have to go to DRAM."""
    einsums = "['T[m] = exp(A[m])', 'S[m] = exp(T[m])', 'Z[m] = exp(S[m])']"
    workload = parse_workload(f"schema: workload/1\nname: three\neinsums: {einsums}\nranks: {{m: 4}}\nbits: 8")
    limits = Limits(backs=(BackLimit(selector("S"), ("DRAM",)),) if limited else ())
    space = Mapspace(concurrent="unit", limits=limits)
    assert Exact().search(Problem(workload, parse_machine(UNITS), space, Objective("latency"))).value == 5 + 4


def test_a_cascade_is_tied_where_any_of_its_einsums_are() -> None:
    """T's tiles need not divide and are its reader's, too; Y has no partner."""
    pair, lone = ["T[m] = exp(A[m])", "Z[m] = exp(T[m])"], ["Y[m] = exp(X[m])"]
    for einsums, right in ((pair, True), ([*pair, *lone], True), (lone, False)):
        workload = parse_workload(f"schema: workload/1\nname: one\neinsums: {einsums}\nranks: {{m: 5}}\nbits: 8")
        asked = Problem(workload, parse_machine(MACHINE), Mapspace("ragged"), Objective("energy"))
        assert Attempt(asked, ExactOptions(), Watcher(), {}, lambda: None).tied is right
