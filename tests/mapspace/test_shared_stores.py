"""Stores that serve several Einsums (rule 8): the trees of `stores: shared`, and that they are priced as executed."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from cases import cascade, simple
from einloom.api import map as solve
from einloom.cost.evaluate import evaluate, legality
from einloom.errors import SpecError
from einloom.machine.levels import ComputeUnit, Machine, Memory
from einloom.mapping.text import parse_mapping
from einloom.mapping.tree import Mapping
from einloom.mapspace.ffm.enumerate import enumerate_trees
from einloom.mapspace.ffm.rules import outside
from einloom.mapspace.files import mapspace_text, parse_mapspace, read_mapspace
from einloom.mapspace.space import Mapspace
from einloom.testing.problems.claims import ProblemTrees, counted
from einloom.workload.einsum import Workload
from sharing import sharing_problem, sharing_trees

SHARED = Mapspace(stores="shared")
TWICE = cascade("T: T[m] = X[m] * E[]\nZ: Z[m] = T[m] * E[]", {"m": 2}, bits=8)
SMALL = Machine(
    "small",
    (
        Memory("D", read_energy=5, write_energy=5, read_throughput=1, write_throughput=1),
        Memory("B", size=16),
        ComputeUnit("MAC", energy=1, throughput=1),
    ),
)
FUSED = """store D: X E Z
{above}for m in 2
store B: {here}
split sequential:
  - {first}compute T @ MAC
  - compute Z @ MAC
"""


def reasons(text: str, workload: Workload = TWICE, on: Machine = SMALL, space: Mapspace = SHARED) -> tuple[str, ...]:
    tree = parse_mapping(text, workload, on)
    assert not legality(workload, on, tree), legality(workload, on, tree)
    return outside(workload, on, space, tree)


def fused(above: str = "", here: str = "T", first: str = "") -> str:
    return FUSED.format(above=above, here=here, first=first)


def test_one_store_for_two_readers_is_worth_120_joules() -> None:
    tree = fused("store B: E\n")
    assert reasons(tree) == ()
    assert "rule 8: the store of E in B serves T, Z, not one Einsum" in reasons(tree, space=Mapspace())
    shared = solve(TWICE, SMALL, "energy", stores="shared", method="exhaustive")
    own = solve(TWICE, SMALL, "energy")
    assert (shared.value, own.value) == (204, 324)
    assert shared.mapping == parse_mapping(tree, TWICE, SMALL)
    assert shared.certificate is not None and "serve several readers" in str(shared.certificate)


def test_the_innermost_loop_above_moves_what_is_shared() -> None:
    big = Machine("big", (SMALL.levels[0], Memory("B"), SMALL.levels[2]))
    assert any("'for m in 2', the innermost temporal loop" in r for r in reasons(fused(here="T E"), on=big))
    residual = cascade("T: T[m] = exp(E[m])\nZ: Z[m] = add(T[m], E[m])", {"m": 2})
    text = fused(here="T E").replace("X E Z", "E Z")
    assert reasons(text, residual, big) == () != reasons(text, residual, big, Mapspace())


LARGE = Machine("large", (SMALL.levels[0], Memory("B"), Memory("C"), SMALL.levels[2]))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("store D: X E Z T\nstore B: E\nsplit sequential:\n{apart}", "accesses no intermediate"),
        ("store D: X E Z\nstore B: E\nstore C: E\nfor m in 2\nstore C: T\n{both}", "not next to a backing store"),
        ("store D: X E Z\nfor m in 2\nstore B: T\nstore C: E\n{both}", "does not move it"),
        ("store D: X E Z\nstore B: T\nstore C: E\nsplit sequential:\n{apart}", "a store of B stands between"),
    ],
)
def test_what_may_not_be_shared(text: str, why: str) -> None:
    both = "split sequential:\n  - compute T @ MAC\n  - compute Z @ MAC\n"
    apart = "  - for m in 2\n    compute T @ MAC\n  - for m in 2\n    compute Z @ MAC\n"
    found = reasons(text.format(both=both, apart=apart), on=LARGE)
    assert any(why in reason for reason in found if reason.startswith("rule 8")), found


def test_readers_must_index_alike() -> None:
    """W[k,j] and W[j,i]: the fused loop over j moves its columns for one Einsum and its rows for the other."""
    text = "H: H[m,j] = X[m,k] * W[k,j]\nY: Y[m,i] = H[m,j] * W[j,i]"
    steps = cascade(text, {"m": 2, "k": 2, "j": 2, "i": 2})
    tree = """store D: X W Y
store B: W
{loop}store B: H
split sequential:
{parts}"""
    over_m = (
        "  - for j in 2\n    for k in 2\n    compute H @ MAC\n  - for j in 2\n    for i in 2\n    compute Y @ MAC\n"
    )
    over_j = (
        "  - for m in 2\n    for k in 2\n    compute H @ MAC\n  - for m in 2\n    for i in 2\n    compute Y @ MAC\n"
    )
    assert reasons(tree.format(loop="for m in 2\n", parts=over_m), steps, LARGE) == ()
    moved = tree.format(loop="for j in 2\n", parts=over_j).replace("store B: W\n", "").replace("B: H", "B: H W")
    assert any("do not index it alike" in reason for reason in reasons(moved, steps, LARGE))


def test_the_key_comes_back_from_its_file(tmp_path: Path) -> None:
    path = tmp_path / "space.yaml"
    path.write_text("schema: mapspace/1\nstores: shared\n")
    space = read_mapspace(path, simple(), TWICE)
    assert space == SHARED and parse_mapspace(mapspace_text(space), simple()) == space
    assert "stores" not in mapspace_text(Mapspace()) and "several readers" in space.describe()
    path.write_text("schema: mapspace/1\nstores: share\n")
    with pytest.raises(SpecError, match="shared") as caught:
        read_mapspace(path, simple(), TWICE)
    assert (caught.value.line, caught.value.suggestion) == (2, "shared")


@pytest.mark.slow
def test_the_wider_space_has_all_trees_of_the_other() -> None:
    own, shared = (set(enumerate_trees(TWICE, SMALL, Mapspace(stores=s))) for s in ("own", "shared"))
    assert own < shared and not any(outside(TWICE, SMALL, SHARED, tree) for tree in shared)


def some_trees(seed: int) -> list[Mapping]:
    found = [tree for tree in sharing_trees(sharing_problem(seed)) if legal(seed, tree)]
    return Random(seed).sample(found, min(6, len(found)))


def legal(seed: int, tree: Mapping) -> bool:
    problem = sharing_problem(seed)
    return not legality(problem.workload, problem.machine, tree)


@pytest.mark.parametrize("seed", [2, 3, 8, pytest.param(9, marks=pytest.mark.slow), 17, 42, 45, 54])
def test_shared_stores_are_priced_as_executed(seed: int) -> None:
    problem = sharing_problem(seed)
    subject = ProblemTrees(problem.workload, problem.machine, problem.mapspace, seed)
    trees = some_trees(seed)
    assert trees
    for tree in trees:
        assert list(counted(subject, tree, evaluate(problem.workload, problem.machine, tree))) == []


def test_a_shared_tile_is_fetched_once_and_by_the_first_reader() -> None:
    tree = parse_mapping(fused("store B: E\n"), TWICE, SMALL)
    fetched = {a.einsum: a.count for a in evaluate(TWICE, SMALL, tree).actions if (a.component, a.tensor) == ("D", "E")}
    assert {einsum: count for einsum, count in fetched.items() if count} == {"T": 1}
