"""Tensors written in parts: `exact` is what all trees say, the analysis what the oracle sees, and mistakes show."""

from __future__ import annotations

import pytest

import einloom as el
from einloom.cost.evaluate import evaluate, legality
from einloom.cost.event import event_time
from einloom.cost.traffic.paths import Path
from einloom.defects import Defect
from einloom.errors import SpecError
from einloom.interop.accelforge.write import export as to_accelforge
from einloom.interop.tileflow.write import export as to_tileflow
from einloom.interop.timeloop.write import export as to_timeloop
from einloom.interop.zigzag.write import export as to_zigzag
from einloom.machine.files import machine_from_data
from einloom.machine.levels import Machine
from einloom.mapping.text import parse_mapping
from einloom.mapspace.ffm.encoding.facts import Facts
from einloom.mapspace.space import Mapspace
from einloom.oracle import simulate
from einloom.problem import Objective, Problem
from einloom.search.exact import Exact
from einloom.search.exact.einsums.classes import TensorSignature
from einloom.search.exact.einsums.users import Users
from einloom.testing.problems.cascades import built
from einloom.testing.problems.claims import ProblemTrees, check
from einloom.testing.problems.drawing import Wanted, draw_with
from einloom.testing.problems.files import Data, Read
from einloom.workload.einsum import Workload
from einloom.workload.files import workload_from_data


def machine(bits: int) -> Machine:
    levels = [
        {"memory": "MM", "read_energy": 10, "write_energy": 10, "read_throughput": 2, "write_throughput": 2},
        {"memory": "GLB", "size": bits, "read_energy": 1, "write_energy": 1, "read_throughput": 16},
        {"compute": "MAC", "throughput": 1, "energy": 1},
    ]
    return machine_from_data({"schema": "machine/1", "name": "small", "levels": levels})


def workload(ranks: dict[str, int], einsums: dict[str, str], **more: object) -> Workload:
    listed = [{"name": name, "einsum": text} for name, text in einsums.items()]
    return workload_from_data(
        {"schema": "workload/1", "name": "small", "bits": 1, "ranks": ranks, "einsums": listed, **more}
    )


CONCAT = workload(
    {"m": 4, "a": 2, "b": 1, "c": 3},
    {"A": "C[m,a] = relu(X[m,a])", "B": "C[m,b+2] = exp(Y[m,b])", "Z": "Z[m] = C[m,c]"},
)
CACHE = workload(
    {"s": 1, "t": 4}, {"K": "L[s+3] = relu(N[s])", "Y": "Y[t] = exp(L[t])"}, initial=["L"], shapes={"L": [4]}
)
SHUFFLE = workload({"p": 2, "q": 2, "t": 4, "d": 2}, {"P": "T[2*p+q,d] = relu(E[p,q,d])", "Y": "Y[t,d] = exp(T[t,d])"})


def least(w: Workload, bits: int, objective: str = "energy") -> tuple[float, str]:
    found = Exact().search(Problem(w, machine(bits), Mapspace(), Objective(objective)))
    return found.value, str(found.mapping)


def test_a_concatenation_stays_on_chip() -> None:
    """By hand: 8 + 4 values in, 4 out; C is written and read once in GLB; 24 operations.

    With three bits a row of C fits, and Z collects in main memory: 12 reads, 12 writes, 8 read-backs at 10 J. With four
    Z's value stays in GLB as well: 12 + 4 at 10 J, C 24, Z 12 + 8 + 4 at 1 J.
    """
    assert least(CONCAT, 3)[0] == 10 * (12 + 12 + 8) + 24 + 24
    value, tree = least(CONCAT, 4)
    assert value == 10 * (12 + 4) + 24 + 24 + 24
    assert "for m in 4\nstore GLB: C" in tree
    assert least(CONCAT, 2)[0] > least(CONCAT, 3)[0]  # not even a row of C has room


def test_a_sum_is_fused_whole_along_its_rank() -> None:
    """T[2*p+q,d] is cut along d and not along its tokens: four values have to fit, not two, to save 2 * 8 moves."""
    assert "store GLB: T" in least(SHUFFLE, 4)[1]
    assert least(SHUFFLE, 4)[0] == 10 * 16 + 16 + 16
    assert least(SHUFFLE, 3)[0] == 10 * 32 + 16


def test_what_is_initial_begins_in_the_outermost_memory() -> None:
    """A row in, a row written; four read, four written; five operations: nothing is won by any store."""
    value, tree = least(CACHE, 8)
    assert value == 10 * (1 + 1 + 4 + 4) + 5
    assert "store MM: N L Y" in tree


def drawn(seed: int) -> Read:
    """A random problem with a tensor in parts, which two of three times may stay on chip."""
    found = draw_with(Wanted(("parts read" if seed % 3 else "parts",)), seed)
    assert found is not None
    return found.files.read


@pytest.mark.parametrize("seed", range(15))
def test_every_claim_holds(seed: int) -> None:
    assert check(drawn(seed), seed).failed == {}


@pytest.mark.parametrize(("bits", "even", "uneven"), [(3, 855, 771), pytest.param(4, 855, 694, marks=pytest.mark.slow)])
def test_a_part_may_have_uneven_tiles(bits: int, even: float, uneven: float) -> None:
    """Five values behind what is there: tiles of three and two instead of one at a time."""
    w = workload({"v": 5, "c": 7}, {"P": "T[v+1] = X[v] * W[c]"}, initial=["T"], shapes={"T": [6]})
    levels = [
        {"memory": "MM", "read_energy": 10, "write_energy": 10},
        {"memory": "GLB", "size": bits, "may": "~input", "read_energy": 1, "write_energy": 1},
        {"compute": "MAC", "energy": 1},
    ]
    small = machine_from_data({"schema": "machine/1", "name": "small", "levels": levels})
    found = [Exact().search(Problem(w, small, Mapspace(name=name), Objective("energy"))) for name in ("ffm", "ragged")]
    assert [one.value for one in found] == [even, uneven]
    assert ProblemTrees(w, small, Mapspace(name="ragged"), 0).best(Objective("energy")) == uneven


# -- planted mistakes ------------------------------------------------------------------------------------------------


def failing(seeds: range) -> bool:
    """Is some claim of some of these problems false?"""
    return any(
        check(drawn(seed), seed, ("exact = all trees", "analysis = oracle", "random trees")).failed for seed in seeds
    )


def test_room_for_the_first_part_alone_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    """The backing store of C holds three values of a row, though nobody writes or reads more than two of them."""
    halves = {
        "A": "C[m,a] = relu(X[m,a])",
        "B": "C[m,2] = exp(Y[m])",
        "U": "U[m,a] = exp(C[m,a])",
        "V": "V[m] = exp(C[m,2])",
    }
    parts = workload({"m": 4, "a": 2}, halves, shapes={"C": [4, 3]})
    assert least(parts, 3)[0] == 10 * (12 + 12) + 24 + 24
    assert least(parts, 2)[0] > least(parts, 3)[0]

    def first(self: Users, tensor: str) -> int:
        output = self.workload.einsum(self.first(tensor)).access(tensor)
        size = 1
        for v in output.variables:
            size *= self.workload.extents[v]
        return size

    monkeypatch.setattr(Users, "span", first)
    with pytest.raises(Defect):
        least(parts, 2)


def test_loops_over_parts_show(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TensorSignature, "fused_rank", TensorSignature.simple_rank)
    monkeypatch.setattr("einloom.workload.einsum.Workload.tied", lambda self, tensor, rank: True)
    assert failing(range(15))


def test_gaps_that_are_held_show(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if a writer's own store held what lies between its positions, too."""
    honest = Path.complex_rank

    def window(self: Path, access: object, rank: int) -> bool:
        return honest(self, access, rank) or not access.indices[rank].simple  # type: ignore[arg-type, attr-defined]

    monkeypatch.setattr(Path, "complex_rank", window)
    assert failing(range(15))


# -- what does not carry it ------------------------------------------------------------------------------------------


def test_groups_do_not_carry_parts() -> None:
    problem = Problem(CONCAT, machine(64), Mapspace(concurrent="unit"), Objective("energy"))
    with pytest.raises(SpecError, match="exact searches no groups of Einsums then"):
        Exact().search(problem)


def test_free_order_does_not_carry_parts_of_unequal_width() -> None:
    """A tile is as wide as the first Einsum has it, and either writer may be that."""
    einsums = {"A": "C[m,a] = copy X[m,a]", "B": "C[m,b+2] = exp(Y[m,b])", "Z": "Z[m] = C[m,c]"}
    w = workload({"m": 4, "a": 2, "b": 1, "c": 3}, einsums)
    levels = [{"memory": "MM"}, {"memory": "GLB", "size": 64, "widths": {"copy": 2}}, {"compute": "MAC"}]
    small = machine_from_data({"schema": "machine/1", "name": "small", "levels": levels})
    with pytest.raises(SpecError, match="no free order where the first writer of C decides"):
        Exact().search(Problem(w, small, Mapspace(order="free"), Objective("energy")))


def test_principles_refuse_parts() -> None:
    with pytest.raises(SpecError, match="did you mean 'exact'"):
        el.map(CONCAT, machine(64), method="principles")


@pytest.mark.parametrize("method", ["random", "anneal", "genetic", "local", "dat", "gradient"])
def test_methods_on_states_find_the_optimum_with_parts(method: str) -> None:
    assert el.map(CONCAT, machine(4), method=method, steps=200).value == el.map(CONCAT, machine(4)).value


@pytest.mark.parametrize("export", [to_accelforge, to_tileflow, to_timeloop, to_zigzag])
def test_other_tools_have_no_word_for_parts(export: object) -> None:
    with pytest.raises(SpecError, match="has no word for parts or views of tensors: tensor C is written in parts"):
        export(CONCAT, machine(64))  # type: ignore[operator]


TREE = """
store MM: X Y C Z
split sequential:
  - for m in 4
    for a in 2
    compute A @ MAC
  - for m in 4
    compute B @ MAC
  - for m in 4
    for c in 3
    compute Z @ MAC
"""


def test_time_in_events_refuses_parts() -> None:
    tree = parse_mapping(TREE, CONCAT, machine(64))
    assert not legality(CONCAT, machine(64), tree)
    with pytest.raises(SpecError, match="C is written in parts"):
        event_time(CONCAT, machine(64), tree)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "store MM: X Y Z\nfor A.a, Z.c in 2\nstore GLB: C\nsplit sequential:\n  - for m in 4\n    compute A @ MAC\n"
            "  - compute B @ MAC\n  - compute Z @ MAC",
            "iterates rank 1, of which some Einsum writes only a part",
        ),
        (
            "store MM: X Y Z\nstore MM: C\nsplit sequential:\n  - store GLB: C\n    split sequential:\n"
            "      - for m in 4\n        for a in 2\n        compute A @ MAC\n"
            "      - for m in 4\n        compute B @ MAC\n  - for m in 4\n    for c in 3\n    compute Z @ MAC",
            "only its backing store may serve several Einsums; the one in GLB serves A, B",
        ),
        (
            "store MM: X Y Z\nstore GLB: C\nsplit sequential:\n  - for m in 4\n    for a in 2\n    compute A @ MAC\n"
            "  - for m in 4\n    for c in 3\n    compute Z @ MAC\n  - for m in 4\n    compute B @ MAC",
            "Z reads C but stands before its producer B",
        ),
        (
            "store MM: X Y Z C\nfor m in 4\nsplit pipelined @ unit:\n  - for a in 2\n    compute A @ MAC\n"
            "  - compute B @ MAC\n  - for c in 3\n    compute Z @ MAC",
            "has users of C in several branches, but it is written in parts",
        ),
    ],
    ids=["loop over parts", "store of two writers", "read too early", "pipeline"],
)
def test_illegal(text: str, message: str) -> None:
    reasons = legality(CONCAT, machine(64), parse_mapping(text, CONCAT, machine(64)))
    assert any(message in reason for reason in reasons), reasons


def test_counts_of_a_private_store_are_those_of_the_oracle() -> None:
    """A writer's own store holds the product of its variables' tiles: two values, and not what lies between them."""
    w = workload({"p": 2, "q": 3, "t": 6}, {"P": "T[3*p+q] = relu(E[p,q])", "Y": "Y[t] = exp(T[t])"})
    text = (
        "store MM: E T Y\nsplit sequential:\n  - for q in 3\n    store GLB: T\n    for p in 2\n    compute P @ MAC\n"
        "  - for t in 6\n    compute Y @ MAC"
    )
    tree = parse_mapping(text, w, machine(64))
    cost, seen = evaluate(w, machine(64), tree), simulate(w, machine(64), tree)
    assert seen.correct and not seen.reasons
    assert {o.memory: o.bits for o in cost.occupancy} == seen.occupancy == {"MM": 12, "GLB": 2}
    assert cost.energy == 10 * (6 + 6 + 6 + 6) + 6 + 6 + 12


def test_a_home_holds_what_several_reach_where_they_reach_parts() -> None:
    """What a store of C holds follows from both parts and the reader; of a tensor in one part, from any user."""
    plain = workload({"m": 4, "k": 2, "n": 2}, {"T": "T[m,n] = X[m,k] * W[k,n]", "Z": "Z[m] = T[m,n]"})
    assert Facts(CONCAT, machine(64), Mapspace()).reached == {"C"}
    assert Facts(plain, machine(64), Mapspace()).reached == set()


def test_generators_know_parts() -> None:
    data: Data = {"name": "x", "ranks": {"v": 2}, "einsums": ["T[v+1] = exp(A[v])"], "initial": ["T"]}
    assert built({**data, "bits": 1}).parted == {"T": frozenset({0})}
