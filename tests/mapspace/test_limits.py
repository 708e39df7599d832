"""Limits of a mapspace: what `outside` says of them, files both ways, mistakes with their place."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random

import pytest

from einloom.api import map as solve
from einloom.api import verify
from einloom.cost.traffic.accesses import links
from einloom.cost.traffic.paths import paths
from einloom.errors import Infeasible, SpecError
from einloom.mapping.extents import addressed_paths
from einloom.mapping.legality.structure import problems
from einloom.mapping.text import parse_mapping
from einloom.mapping.tree import Compute, Mapping, Node
from einloom.mapspace.ffm.rules import full_use, outside
from einloom.mapspace.files import check_mapspace, mapspace_from_data, mapspace_text, parse_mapspace, read_mapspace
from einloom.mapspace.limits.checks import unmet
from einloom.mapspace.limits.data import AxisLimit, BackLimit, HoldLimit, Limit, Limits, LoopLimit, Numbers, TileLimit
from einloom.mapspace.space import Mapspace
from einloom.result import Result
from einloom.testing.problems.spaces import space
from einloom.workload.build import build_workload
from einloom.workload.notation import parse_einsum
from einloom.workload.selectors import selector
from einloom.zoo.machine_by_name import load_machine
from trees import Case, random_case

MACHINE = load_machine("simple")
ON = ("keep or bypass", "fetched once", "fusion limit", "loop limit", "tile limit", "axis limit")
LISTS = ("memories", "fusion", "loops", "tiles", "axes")
CHAIN = build_workload(
    "chain",
    [parse_einsum("B[m,n] = A[m,k] * W[k,n]"), parse_einsum("D[m,p] = B[m,n] * V[n,p]")],
    {"m": 4, "k": 4, "n": 4, "p": 4},
    bits={"default": 8},
)
FUSED = parse_mapping(
    """
store DRAM: A W V D
for m in 2
store GLB: B
split sequential:
  - store GLB: A W
    for m in 2
    for k in 4
    for n in 4
    compute B
  - for m in 2
    store GLB: V D
    for n in 4
    for p in 4
    compute D
""",
    CHAIN,
    MACHINE,
)


def limited(**limits: object) -> tuple[str, ...]:
    return outside(CHAIN, MACHINE, Mapspace(limits=Limits(**limits)), FUSED)  # type: ignore[arg-type]


def one(number: int) -> Numbers:
    return Numbers(values=(number,))


@pytest.mark.parametrize(
    ("limit", "reason"),
    [
        (HoldLimit("keep", "GLB", selector("A")), None),
        (HoldLimit("bypass", "GLB", selector("A")), "GLB holds A of B"),
        (HoldLimit("bypass", "GLB", selector("A"), ("D",)), None),
        (HoldLimit("bypass", "GLB", selector("input"), ("D",)), "GLB holds B of D"),
        (HoldLimit("may_keep", "GLB", selector("B | D | V"), ("B",)), "GLB holds A, W of B"),
        (HoldLimit("keep", "DRAM", selector("B"), ("D",)), "DRAM lacks B of D"),
    ],
)
def test_holds(limit: HoldLimit, reason: str | None) -> None:
    found = limited(holds=(limit,))
    assert found == () if reason is None else found == (f"rule 12: {reason}; asked: {limit}",)


@pytest.mark.parametrize(
    ("limit", "ok"), [(BackLimit(selector("B"), ("GLB",)), True), (BackLimit(selector("all"), ("DRAM",)), False)]
)
def test_backs(limit: BackLimit, ok: bool) -> None:
    assert (limited(backs=(limit,)) == ()) == ok


@pytest.mark.parametrize(
    ("limit", "reason"),
    [
        (LoopLimit(selector("B"), ("m",), one(2)), None),
        (LoopLimit(selector("B"), ("m",), one(4)), "B has 2 trips over m above B"),
        (LoopLimit(selector("all"), ("n", "k", "p"), one(1)), None),
        (LoopLimit(selector("B"), ("m",), one(1), ("D",)), "D has 2 trips over m above B"),
        (LoopLimit(selector("A | W | D"), ("m",), one(3)), None),  # not fused
    ],
)
def test_loops_are_those_above_a_fused_tensor(limit: LoopLimit, reason: str | None) -> None:
    found = limited(loops=(limit,))
    assert (found[:1] == (f"rule 12: {reason}; asked: {limit}",)) if reason else found == ()


@pytest.mark.parametrize(
    ("limit", "reason"),
    [
        (TileLimit("GLB", selector("B"), ("m",), one(2)), None),
        (TileLimit("GLB", selector("D"), ("m", "n"), one(2)), "D in GLB for D has m 1"),
        (TileLimit("GLB", selector("D"), ("m",), one(2), ("B",)), None),
        (TileLimit("DRAM", selector("A"), ("m",), Numbers(most=3)), "A in DRAM for B has m 4"),
    ],
)
def test_tiles(limit: TileLimit, reason: str | None) -> None:
    found = limited(tiles=(limit,))
    assert found == () if reason is None else found == (f"rule 12: {reason}; asked: {limit}",)


def test_axes_limit_what_full_use_means() -> None:
    on = load_machine("tpu-v4i")
    matmul = build_workload(
        "m", [parse_einsum("Z[m,n] = A[m,k] * B[k,n]")], {"m": 4, "k": 256, "n": 256}, bits={"default": 8}
    )
    unit = on.units_for(matmul.einsums[0])[0].name
    name = matmul.einsums[0].name
    free = full_use(matmul, on, name, unit)
    axis = next(a.name for a in on.axes.values() if a.use == "full")
    half = Limits(axes=(AxisLimit(axis, Numbers(most=on.axes[axis].size // 2)),))
    assert full_use(matmul, on, name, unit, half) < free
    result = solve(matmul, on, mapspace=Mapspace(limits=half))
    assert outside(matmul, on, Mapspace(limits=half), result.mapping) == ()
    assert outside(matmul, on, Mapspace(), result.mapping) != ()
    with pytest.raises(Infeasible):
        solve(matmul, on, mapspace=Mapspace(limits=Limits(axes=(AxisLimit(axis, one(3)),))))


TEXT = """
schema: mapspace/1
name: mine
max_fused_loops: 1
memories:
  GLB:
    - {keep: B}
    - {bypass: weight, einsums: [B]}
fusion: {fused: B, unfused: nothing, backed: {GLB: B}}
loops: [{tensors: B, variables: [m, n], trips: {least: 1, most: 2}}]
tiles: [{memory: GLB, tensors: B, variables: m, sizes: [1, 2], einsums: D}]
axes: []
"""


def test_files_round_trip(tmp_path: Path) -> None:
    space = parse_mapspace(TEXT, MACHINE)
    assert space.title == "mine"
    assert space.max_fused_loops == 1
    assert space.limits.holds[1] == HoldLimit("bypass", "GLB", selector("weight"), ("B",))
    assert space.limits.tiles[0].sizes == Numbers(values=(1, 2))
    again = parse_mapspace(mapspace_text(space), MACHINE)
    assert again == space
    path = tmp_path / "mine.yaml"
    path.write_text(TEXT)
    assert read_mapspace(path, MACHINE) == space


def test_a_result_carries_its_limits(tmp_path: Path) -> None:
    space = Mapspace(limits=Limits(backs=(BackLimit(selector("B"), ("GLB",)),)), title="fused")
    result = solve(CHAIN, MACHINE, mapspace=space)
    result.write(tmp_path / "r.json")
    again = Result.read(tmp_path / "r.json")
    assert again.problem.mapspace == space
    assert "B backed in GLB" in again.certificate.mapspace  # type: ignore[union-attr]
    assert verify(again).ok
    assert result.value >= solve(CHAIN, MACHINE).value


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ("memories: {GBL: {keep: B}}", r"wrong.yaml:3.*'GBL' is not a memory of the machine.*did you mean 'GLB'"),
        ("memories: {GLB: {kep: B}}", r"unknown key 'kep'.*did you mean 'keep'"),
        ("loops: [{tensors: B, variables: [m], trips: 0}]", "must be at least 1"),
        ("loops: [{tensors: B, variables: [m], trips: {least: 4, most: 2}}]", "least 4 is above most 2"),
        ("tiles: [{memory: GLB, variables: [m], sizes: []}]", "an empty list"),
        ("axes: [{axis: Z, instances: 2}]", "'Z' is not an axis of the machine"),
        ("space: fmf", "did you mean 'ffm'"),
        ("fusion: {fuse: B}", r"unknown key 'fuse'.*did you mean 'fused'"),
        ("memories: {GLB: {keep: 'B |'}}", "ends too early"),
    ],
)
def test_mistakes_have_a_place(wrong: str, message: str) -> None:
    with pytest.raises(SpecError, match=f"(?s){message}"):
        parse_mapspace(f"schema: mapspace/1\nname: wrong\n{wrong}\n", MACHINE, "wrong.yaml")


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        (Limits(holds=(HoldLimit("keep", "GLB", selector("BB")),)), "'BB' is no tensor"),
        (Limits(loops=(LoopLimit(selector("B"), ("x",), one(1)),)), "'x' is no rank variable"),
        (Limits(tiles=(TileLimit("GLB", selector("B"), ("m",), one(1), ("E9",)),)), "'E9' is no Einsum"),
    ],
)
def test_names_that_the_workload_lacks(limits: Limits, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        check_mapspace(CHAIN, Mapspace(limits=limits))


def test_names_that_the_workload_lacks_have_a_line(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("schema: mapspace/1\nloops:\n  - {tensors: BB, variables: [m], trips: 2}\nfusion: {fused: C}\n")
    with pytest.raises(SpecError, match=r"(?s)mine.yaml:3.*'BB' is no tensor.*mine.yaml:4.*'C' is no tensor"):
        solve(CHAIN, MACHINE, mapspace=str(path))


def test_fetched_once_means_that_as_much_comes_as_if_no_loop_repeated_it() -> None:
    """On random trees: a store of a plain tensor breaks the limit where more values come than different ones."""
    kinds = Counter[bool]()
    for seed in range(250):
        case = random_case(seed)
        if problems(case.workload, case.machine, case.mapping):
            continue
        nests = {leaf.einsum: trail for leaf, trail in trails(case.mapping)}
        for link in links(case.workload, case.machine, paths(case.workload, case.mapping)):
            plain = not any(link.path.complex_rank(link.access, rank) for rank in range(len(link.access.indices)))
            if link.child is None or link.written or not plain or len(link.users) > 1 or link.path.derived:
                continue
            einsum, memory = link.path.einsum.name, link.child.memory
            limits = Limits(holds=(HoldLimit("once", memory, selector(link.tensor), (einsum,)),))
            trail = nests[einsum]
            said = list(unmet(case.workload, case.machine, limits, einsum, trail, [{} for _ in trail]))
            again = link.moved(at_parent=False, picks=None) > link.moved(at_parent=False, picks=None, fresh=True)
            assert bool(said) == again, (seed, said)
            assert all("comes to" in text and "again in" in text for text in said)
            kinds[again] += 1
    assert min(kinds[True], kinds[False]) > 30, kinds


@pytest.mark.parametrize("count", [20, pytest.param(40, marks=pytest.mark.slow)])
def test_limits_say_together_what_each_says_alone(count: int) -> None:
    """On random trees, with two to six limits of every kind: no limit hides another one."""
    kinds = ("holds", "backs", "loops", "tiles", "axes")
    said = dict.fromkeys(kinds, 0)
    for seed in range(count):
        case = random_case(seed)
        if problems(case.workload, case.machine, case.mapping):
            continue
        together: dict[str, list[Limit]] = {kind: [] for kind in kinds}
        for draw in range(6):
            rng = Random(f"limits {seed} {draw}")
            data = space(rng, ON, case.workload, case.machine)
            drawn = {"schema": "mapspace/1", **{key: data[key] for key in LISTS if key in data}}
            limits = mapspace_from_data(drawn, case.machine).limits
            for kind in kinds:
                together[kind] += [one for one in getattr(limits, kind) if one not in together[kind]]
        for kind, limits_of_kind in together.items():
            alone = [asked_for(case, {kind: (one,)}) for one in limits_of_kind]
            every = asked_for(case, {kind: tuple(limits_of_kind)})
            if kind == "axes":  # of an axis that several limits leave no instances one reason speaks of them all
                assert bool(every) >= any(alone), seed
            else:
                assert every == set[str]().union(*alone), (seed, kind)
            said[kind] += sum(map(bool, alone))
    assert min(said.values()) > count // 4, said


def asked_for(case: Case, limits: dict[str, tuple[Limit, ...]]) -> set[str]:
    """The reasons of rule 12 against the tree of a case."""
    found = outside(case.workload, case.machine, Mapspace(limits=Limits(**limits)), case.mapping)  # type: ignore[arg-type]
    return {reason for reason in found if reason.startswith("rule 12")}


def trails(mapping: Mapping) -> list[tuple[Compute, tuple[Node, ...]]]:
    """Every leaf with all nodes on the way to it."""
    found = []
    for steps in addressed_paths(mapping.nest).values():
        leaf = steps[-1][1]
        assert isinstance(leaf, Compute)
        found.append((leaf, tuple(node for _, node in steps)))
    return found
