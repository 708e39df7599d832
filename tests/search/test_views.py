"""Tensors under other ranks: `exact` is what all trees say, the analysis what the oracle sees, and mistakes show."""

from __future__ import annotations

from dataclasses import replace

import pytest

import einloom as el
from einloom.cost.evaluate import evaluate, legality
from einloom.cost.event import event_time
from einloom.cost.room.occupancy import Tile
from einloom.dataflows.casts import cast
from einloom.dataflows.families import family
from einloom.dataflows.rewrites.cascade import check_whole
from einloom.defects import Defect
from einloom.diagnose.text import explained
from einloom.errors import SpecError
from einloom.interop.accelforge.write import export as to_accelforge
from einloom.interop.tileflow.write import export as to_tileflow
from einloom.interop.timeloop.write import export as to_timeloop
from einloom.interop.zigzag.write import export as to_zigzag
from einloom.machine.files import machine_from_data
from einloom.machine.levels import Machine
from einloom.mapping.analysed import Analysed
from einloom.mapping.text import parse_mapping
from einloom.mapping.tree import Loop, Mapping, Store
from einloom.mapspace.space import Mapspace
from einloom.oracle import simulate
from einloom.oracle.plan import Reshape, Sides, Site
from einloom.problem import Objective, Problem
from einloom.report.text.results import fusion
from einloom.search.exact import Exact
from einloom.search.exact.einsums import classes
from einloom.search.exact.einsums.users import Users
from einloom.testing.problems.claims import ProblemTrees, asked, check, counted
from einloom.testing.problems.drawing import Wanted, draw_with
from einloom.testing.problems.files import Read
from einloom.workload.einsum import Workload
from einloom.workload.files import workload_from_data
from viewed_problems import ViewedProblem

SMALL = (4, 5, 6, 9, 10, 14, 25, 26)
"""Seeds of problems with few trees, in some of which the tensor of a view stands below a loop."""


def machine(bits: int) -> Machine:
    levels = [
        {"memory": "MM", "read_energy": 10, "write_energy": 10, "read_throughput": 2, "write_throughput": 2},
        {"memory": "GLB", "size": bits, "read_energy": 1, "write_energy": 1, "read_throughput": 16},
        {"compute": "MAC", "throughput": 1, "energy": 1},
    ]
    return machine_from_data({"schema": "machine/1", "name": "small", "levels": levels})


def workload(ranks: dict[str, int], einsums: list[object], **more: object) -> Workload:
    return workload_from_data(
        {"schema": "workload/1", "name": "small", "bits": 1, "ranks": ranks, "einsums": einsums, **more}
    )


ROWS = workload(
    {"m": 6, "a": 2, "b": 3}, ["T[m] = relu(X[m])", "Z[a,b] = exp(U[a,b])"], views={"U": {"of": "T", "shape": [2, 3]}}
)


def least(w: Workload, bits: int, objective: str = "energy") -> tuple[float, str]:
    found = Exact().search(Problem(w, machine(bits), Mapspace(), Objective(objective)))
    return found.value, str(found.mapping)


def test_what_is_seen_under_other_ranks_stays_on_chip_whole() -> None:
    """By hand: 6 values in, 6 out; T is written and read once in GLB; 12 operations. With five bits it has no room."""
    value, tree = least(ROWS, 6)
    assert value == 10 * (6 + 6) + 6 + 6 + 12
    assert "store GLB: T" in tree
    assert least(ROWS, 5)[0] == 10 * (6 + 6 + 6 + 6) + 12


def test_two_views_of_one_tensor() -> None:
    """T stays for both who read it: 12 values in, 24 out; 12 written and 24 read in GLB; 36 operations."""
    w = workload(
        {"c": 4, "p": 3, "k": 12, "a": 6, "b": 2},
        ["T[c,p] = relu(X[c,p])", "Y[k] = exp(V[k])", "Z[a,b] = exp(U[a,b])"],
        views={"V": {"of": "T", "shape": [12]}, "U": {"of": "T", "shape": [6, 2]}},
    )
    assert least(w, 12)[0] == 10 * (12 + 24) + 12 + 24 + 36
    assert least(w, 11)[0] == 10 * (12 + 12 + 24 + 24) + 36


def test_what_is_common_is_cut() -> None:
    """8 channels of 3 pixels, seen in two groupings: all channels of one pixel fit, and no pixel waits."""
    w = workload(
        {"c": 2, "g": 4, "p": 3, "a": 4, "b": 2, "q": 3, "n": 2, "k": 2},
        ["T[n,c,g,p] = relu(X[n,c,g,p])", "Z[k,a,b,q] = exp(U[k,a,b,q])"],
        views={"U": {"of": "T", "shape": [2, 4, 2, 3]}},
    )
    assert dict(w.parted) == {"T": frozenset({1, 2})}
    value, tree = least(w, 8)
    assert value == 10 * 2 * 48 + 2 * 48 + 96
    assert "T.n, Z.k in 2" in tree
    assert "T.p, Z.q in 3" in tree
    assert least(w, 7)[0] == 10 * 4 * 48 + 96


def drawn(seed: int, *names: str) -> Read:
    """A random problem with views, two of three times of what may stay on chip."""
    found = draw_with(Wanted(names or (("views between",) if seed % 3 else ("views",))), seed)
    assert found is not None
    return found.files.read


@pytest.mark.parametrize("seed", range(20))
def test_every_claim_holds(seed: int) -> None:
    assert check(drawn(seed), seed).failed == {}


@pytest.mark.parametrize("name", ["uneven tiles", "free order", "shared stores", "parts read", "window"])
def test_every_claim_holds_together_with(name: str) -> None:
    for seed in range(2):
        found = draw_with(Wanted(("views between", name)), seed)
        assert found is None or check(found.files.read, seed).failed == {}


@pytest.mark.parametrize("seed", SMALL)
def test_every_tree_with_ranks_in_common(seed: int) -> None:
    """Those that keep the tensor below a loop are executed; `exact` finds the best of all."""
    subject = ProblemTrees(*ViewedProblem(seed).read(), seed)
    assert asked(subject, ("exact = all trees", "files come back")) == {}
    below = [(tree, cost) for tree, cost in subject.trees if fused_below(subject.workload, tree)]
    assert below
    for tree, cost in below[:: max(1, len(below) // 3)]:
        assert list(counted(subject, tree, cost)) == []


def fused_below(w: Workload, tree: Mapping) -> bool:
    """True if a loop stands above the store that backs T in an inner memory."""
    path = Analysed(w, tree).paths[w.producers["T"]]
    at = next(i for i, node in enumerate(path) if isinstance(node, Store) and "T" in node.tensors)
    return any(isinstance(node, Loop) for node in path[:at])


# -- planted mistakes ------------------------------------------------------------------------------------------------


def failing(seeds: range, *names: str) -> bool:
    """Is some claim of some of these problems false?"""
    claims = ("exact = all trees", "analysis = oracle", "random trees")
    return any(check(drawn(seed, *names), seed, claims).failed for seed in seeds)


def test_loops_across_a_view_show(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rank 1 of T and of U has two positions each, but T[:,0] is not U[:,0,:]: four values are not enough room."""
    w = workload(
        {"m": 4, "n": 2, "a": 2, "b": 2, "c": 2},
        ["T[m,n] = relu(X[m,n])", "Z[a,b,c] = exp(U[a,b,c])"],
        views={"U": {"of": "T", "shape": [2, 2, 2]}},
    )
    assert least(w, 4)[0] == 10 * 4 * 8 + 16
    assert least(w, 8)[0] == 10 * 2 * 8 + 2 * 8 + 16
    honest = classes._tensor
    monkeypatch.setattr(classes, "_tensor", lambda *given: replace(honest(*given), cut=frozenset(), persistent=False))
    monkeypatch.setattr(Workload, "tied", lambda self, tensor, rank: True)
    with pytest.raises(Defect):
        least(w, 4)


def test_a_common_rank_of_another_stride_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rank 1 has two positions in both, as above: as if that were enough."""
    w = workload(
        {"m": 4, "n": 2, "a": 2, "b": 2, "c": 2},
        ["T[m,n] = relu(X[m,n])", "Z[a,b,c] = exp(U[a,b,c])"],
        views={"U": {"of": "T", "shape": [2, 2, 2]}},
    )
    assert dict(w.parted) == {"T": frozenset({0, 1, 2})}

    def size(one: tuple[int, ...], other: tuple[int, ...], rank: int) -> bool:
        return one[rank : rank + 1] == other[rank : rank + 1]

    monkeypatch.setattr("einloom.workload.einsum._same_rank", size)
    w = replace(w)
    tree = Exact().search(Problem(w, machine(4), Mapspace(), Objective("energy"))).mapping
    assert "store GLB: T" in str(tree)
    assert any("T" in reason for reason in simulate(w, machine(4), tree).reasons)


def test_a_backing_store_counted_twice_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = Tile.factors
    monkeypatch.setattr(Tile, "factors", lambda self, choice: [*honest(self, choice), 2 if self._whole else 1])
    assert failing(range(15))


def test_room_for_what_one_user_reaches_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each Einsum writes or reads three of the six values that the backing store holds."""
    w = workload(
        {"a": 3, "b": 3, "c": 3, "d": 3},
        [
            {"name": "A", "einsum": "T[a] = relu(X[a])"},
            {"name": "B", "einsum": "T[b+3] = exp(Y[b])"},
            "V[c] = exp(U[0,c])",
            "W[d] = relu(U[1,d])",
        ],
        views={"U": {"of": "T", "shape": [2, 3]}},
    )
    assert least(w, 6)[0] == 10 * 12 + 12 + 12
    assert least(w, 5)[0] == 10 * 24 + 12
    honest = Users.span
    monkeypatch.setattr(Users, "span", lambda self, tensor: honest(self, tensor) // 2)
    with pytest.raises(Defect):
        least(w, 5)


def test_elements_in_another_order_show(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if views went through their elements column by column."""
    honest = Reshape.of

    def columns(self: Reshape, element: tuple[int, ...]) -> tuple[int, ...]:
        turned = Reshape(self.view[::-1], self.tensor)
        return honest(turned, element[::-1])

    monkeypatch.setattr(Reshape, "of", columns)
    assert failing(range(15))


COLUMN = """
store MM: X T Z
split sequential:
  - for m in 6
    compute T @ MAC
  - for b in 3
    store GLB: T
    for a in 2
    compute Z @ MAC
"""


def test_a_tile_of_the_tensors_ranks_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    """A column of U is two values, T[b] and T[b+3]: as if the store held all from the first to the last."""
    tree = parse_mapping(COLUMN, ROWS, machine(64))
    cost, seen = evaluate(ROWS, machine(64), tree), simulate(ROWS, machine(64), tree)
    assert seen.correct and not seen.reasons
    assert {o.memory: o.bits for o in cost.occupancy} == seen.occupancy == {"MM": 12, "GLB": 2}
    honest = Site.elements

    def hull(self: Site, sides: Sides) -> set[tuple[int, ...]]:
        found = honest(self, sides)
        if self.view is None or not found:
            return found
        return {(i,) for i in range(min(found)[0], max(found)[0] + 1)}

    monkeypatch.setattr(Site, "elements", hull)
    assert simulate(ROWS, machine(64), tree).occupancy == {"MM": 12, "GLB": 4}
    monkeypatch.setattr(Site, "elements", lambda self, sides: {(i,) for i in range(6)} & honest(self, sides))
    assert failing(range(15))


def test_a_view_in_another_memory_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if legality did not ask that all users have one backing store: the oracle finds nothing in GLB."""
    monkeypatch.setattr("einloom.mapping.legality.placement._backing_problems", lambda *given: ())
    text = (
        "store MM: X Z\nsplit sequential:\n  - store MM: T\n    for m in 6\n    compute T @ MAC\n"
        "  - store GLB: T\n    for a in 2\n    for b in 3\n    compute Z @ MAC"
    )
    tree = parse_mapping(text, ROWS, machine(64))
    assert not legality(ROWS, machine(64), tree)
    assert any("Z reads T[0] in GLB" in reason for reason in simulate(ROWS, machine(64), tree).reasons)


# -- what does not carry it ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "message", "seen"),
    [
        (
            "store MM: X Z\nfor T.m, Z.a in 2\nstore GLB: T\nsplit sequential:\n  - for m in 3\n    compute T @ MAC\n"
            "  - for b in 3\n    compute Z @ MAC",
            "'for T.m, Z.a in 2' stands above the backing store of T, which is read under other ranks, as U",
            "follows Z across a view",
        ),
        (
            "store MM: X T Z\nsplit sequential:\n  - store GLB: T\n    for m in 6\n    compute T @ MAC\n"
            "  - for b in 3\n    store GLB: T\n    for a in 2\n    compute Z @ MAC",
            "",
            "",
        ),
        (
            "store MM: X Z\nsplit sequential:\n  - store MM: T\n    for m in 6\n    compute T @ MAC\n"
            "  - store GLB: T\n    for a in 2\n    for b in 3\n    compute Z @ MAC",
            "T has no common backing store: MM for T, GLB for Z",
            "Z reads T[0] in GLB after its store dropped it",
        ),
        (
            "store MM: X T Z\nsplit sequential:\n  - for a in 2\n    for b in 3\n    compute Z @ MAC\n"
            "  - for m in 6\n    compute T @ MAC",
            "Z reads T but stands before its producer T",
            "which is not there",
        ),
        (
            "store MM: X T Z\nsplit pipelined @ unit:\n  - for m in 6\n    compute T @ MAC\n"
            "  - for a in 2\n    for b in 3\n    compute Z @ MAC",
            "has users of T in several branches, but it is read under other ranks, as U",
            "several use T, which is read under other ranks, as U",
        ),
    ],
    ids=["loop across", "own stores", "two memories", "read too early", "pipeline"],
)
def test_what_is_no_schedule(text: str, message: str, seen: str) -> None:
    """The legality's reason, and the oracle's."""
    tree = parse_mapping(text, ROWS, machine(64))
    reasons, observed = legality(ROWS, machine(64), tree), simulate(ROWS, machine(64), tree).reasons
    assert bool(reasons) == bool(observed) == bool(message), (reasons, observed)
    assert not message or any(message in reason for reason in reasons), reasons
    assert not seen or any(seen in reason for reason in observed), observed


READERS = workload(
    {"a": 6, "b": 2, "k": 12},
    ["Y[k] = exp(V[k])", "Z[a,b] = exp(U[a,b])"],
    views={"V": {"of": "T", "shape": [12]}, "U": {"of": "T", "shape": [6, 2]}},
    shapes={"T": [3, 4]},
)


def test_a_store_of_one_view_serves_one_einsum() -> None:
    text = (
        "store MM: T Y Z\nstore GLB: T\nsplit sequential:\n  - for k in 12\n    compute Y @ MAC\n"
        "  - for a in 6\n    for b in 2\n    compute Z @ MAC"
    )
    reasons = legality(READERS, machine(64), parse_mapping(text, READERS, machine(64)))
    why = "T is read under other ranks, as V, U, so only its backing store may serve several Einsums"
    assert reasons == (f"{why}; the one in GLB serves Y, Z",)


def test_a_store_is_named_after_its_tensor() -> None:
    with pytest.raises(SpecError, match="1:11: U is a view; a store holds its tensor; did you mean 'T'"):
        parse_mapping("store MM: U\ncompute Z @ MAC", ROWS, machine(64))


def test_groups_do_not_carry_views() -> None:
    problem = Problem(ROWS, machine(64), Mapspace(concurrent="unit"), Objective("energy"))
    with pytest.raises(SpecError, match="T is read under other ranks, as U: exact searches no groups of Einsums then"):
        Exact().search(problem)


def test_principles_refuse_views() -> None:
    with pytest.raises(SpecError, match="did you mean 'exact'"):
        el.map(ROWS, machine(64), method="principles")


@pytest.mark.parametrize("method", ["random", "anneal", "genetic", "local", "dat", "gradient"])
def test_methods_on_states_find_the_optimum_with_views(method: str) -> None:
    assert el.map(ROWS, machine(4), method=method, steps=200).value == el.map(ROWS, machine(4)).value


@pytest.mark.parametrize("export", [to_accelforge, to_tileflow, to_timeloop, to_zigzag])
def test_other_tools_have_no_word_for_views(export: object) -> None:
    with pytest.raises(
        SpecError, match="no word for parts or views of tensors: tensor T is read under other ranks, as U"
    ):
        export(ROWS, machine(64))  # type: ignore[operator]


def test_time_in_events_rewrites_and_families_refuse_views() -> None:
    with pytest.raises(SpecError, match="T is read under other ranks, as U"):
        event_time(ROWS, machine(64), parse_mapping(COLUMN, ROWS, machine(64)))
    with pytest.raises(SpecError, match="flash rewrites whole tensors: tensor T is read under other ranks, as U"):
        check_whole(ROWS, "flash")
    with pytest.raises(SpecError, match="small is no attention: T is read under other ranks, as U"):
        cast(family("attention"), ROWS)


def test_reports_name_the_view_beside_its_tensor() -> None:
    problem = Problem(ROWS, machine(6), Mapspace(), Objective("energy"))
    assert "T (U)" in fusion(Exact().search(problem))
    assert "T (U) in GLB" in explained(el.explain(ROWS, machine(6)))
