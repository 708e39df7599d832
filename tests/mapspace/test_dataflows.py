"""Dataflows: every file that ships, what each leaves of the space and what not, mistakes, tiny ones by brute force."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from cases import FIVE_STEP_ATTENTION
from einloom.api import map as solve
from einloom.cost.evaluate import evaluate, legality
from einloom.dataflows import files as dataflow_files
from einloom.dataflows.casts import cast
from einloom.dataflows.families import NAMES, family
from einloom.dataflows.files import dataflow, parse_dataflow
from einloom.dataflows.rules import Dataflow
from einloom.errors import Infeasible, SpecError
from einloom.machine.levels import ComputeUnit, Machine, Memory
from einloom.mapping.legality.structure import problems
from einloom.mapping.text import parse_mapping
from einloom.mapping.tree import Mapping
from einloom.mapspace.ffm.enumerate import enumerate_trees
from einloom.mapspace.ffm.rules import outside
from einloom.mapspace.files import check_mapspace, mapspace_text, parse_mapspace
from einloom.mapspace.space import Mapspace
from einloom.problem import Objective
from einloom.questions import problem
from einloom.workload.build import build_workload
from einloom.workload.einsum import Workload
from einloom.workload.selectors import selector
from einloom.zoo.machine_by_name import load_machine
from einloom.zoo.workload_by_name import load_workload

SMALL = build_workload("small", FIVE_STEP_ATTENTION, {"h": 2, "m": 4, "l": 4, "k": 2, "n": 2}, bits=8)
SIMPLE = load_machine("simple")
PLAIN = tuple(name for name in dataflow_files.NAMES if dataflow(name).rewrite is None)


def small_tree(
    above: str = "", on_chip: str = "A B C D E F", outer: str = "", left: dict[str, int] | None = None
) -> Mapping:
    """A fused tree of SMALL: loops `above` the stores of the intermediates `on_chip`, plain nests below."""
    extents = {**SMALL.extents, **(left or {})}
    branches = "".join(
        "  - "
        + "".join(f"for {v} in {extents[v]}\n    " for v in e.variables if extents[v] > 1)
        + f"compute {e.name} @ MAC\n"
        for e in SMALL.einsums
    )
    text = f"store DRAM: Q K V G {outer}\n{above}store GLB: {on_chip}\nsplit sequential:\n{branches}"
    return parse_mapping(text, SMALL, SIMPLE)


def inside(name: str, tree: Mapping) -> bool:
    """True if a legal tree of `ffm` is in the dataflow; the tree must be one."""
    assert not problems(SMALL, SIMPLE, tree)
    assert not outside(SMALL, SIMPLE, Mapspace(), tree)
    reasons = outside(SMALL, SIMPLE, dataflow(name).mapspace(SMALL, SIMPLE), tree)
    assert all(reason.startswith("rule 12") for reason in reasons)
    return not reasons


WHOLE = small_tree()
HEADS = small_tree("for h in 2\n", left={"h": 1})
ROWS = small_tree("for h in 2\nfor m in 2\n", left={"h": 1, "m": 2})
SPILLED = small_tree(on_chip="A B C D E", outer="F")


@pytest.mark.parametrize(
    ("name", "accepted"),
    [
        ("uni-pipe", {"spilled"}),
        ("flat-m", {"whole"}),
        ("flat-b", {"whole"}),
        ("flat-h", {"whole", "heads"}),
        ("flat-r", {"whole", "heads", "rows"}),
        ("chimera", {"whole", "heads", "rows"}),
        ("tileflow-attention", {"whole", "heads", "rows"}),
        ("transfusion", {"whole", "heads", "rows"}),
        ("layerwise", set()),
        ("spread-attention", {"whole", "heads", "rows", "spilled"}),
    ],
)
def test_what_is_inside(name: str, accepted: set[str]) -> None:
    trees = {"whole": WHOLE, "heads": HEADS, "rows": ROWS, "spilled": SPILLED}
    assert {title for title, tree in trees.items() if inside(name, tree)} == accepted


def test_keys_cannot_be_tiled_above_the_softmax() -> None:
    tree = small_tree("for l in 2\n", left={"l": 2})
    reasons = problems(SMALL, SIMPLE, tree)
    assert len(reasons) == 2 and all("unfinished reduction: 'for l in 2' stands above" in r for r in reasons)


def test_transfusion_keeps_no_keys() -> None:
    kept = small_tree(on_chip="K A B C D E F")
    limits = dataflow("transfusion").mapspace(SMALL, SIMPLE)
    assert any("K" in reason and "rule 12" in reason for reason in outside(SMALL, SIMPLE, limits, kept))


@pytest.mark.parametrize("name", dataflow_files.NAMES)
def test_every_file_is_complete_and_serves_every_shape(name: str) -> None:
    flow = dataflow(name)
    assert flow.name == name and flow.source and flow.description
    assert flow.family.name in NAMES
    shapes = ("tileflow-bert-s", "tileflow-vit-16-h", "tileflow-xlm")
    for text in shapes if "attention" in flow.family.name else ("tileflow-cc1", "tileflow-cc5"):
        for machine in (load_machine("tileflow-edge"), load_machine("tileflow-cloud")):
            workload = flow.choices(load_workload(text))[-1].workload
            space = flow.mapspace(workload, machine)
            check_mapspace(workload, space)
            assert space.limits and parse_mapspace(mapspace_text(space), machine) == space


def test_files_are_those_that_are_named() -> None:
    assert {path.stem for path in dataflow_files.DATA.iterdir()} == set(dataflow_files.NAMES)


def test_names_mean_nothing() -> None:
    """The key's rank variable has another name in each Einsum, h and b are absent, tensors are called at random."""
    odd = build_workload(
        "odd",
        [
            "x1[i,j] = x2[i,d] * x3[d,j]",
            "x4[i] = max[p] x1[i,p]",
            "x5[i,p] = sub(x1[i,p], x4[i])",
            "x6[i,p] = exp(x5[i,p])",
            "x7[i] = x6[i,q]",
            "x8[i,q] = div(x6[i,q], x7[i])",
            "x9[i,e] = x8[i,q] * y[q,e]",
        ],
        {"i": 4, "j": 4, "d": 2, "p": 4, "q": 4, "e": 2},
        bits=8,
    )
    found = cast(family("attention"), odd)
    assert found.tensors["scores"] == "x1" and found.tensors["values"] == "y"
    assert [found.variables[e]["l"] for e in ("QK", "max", "sum", "AV")] == ["j", "p", "q", "q"]
    limits = dataflow("flat-r").mapspace(odd, SIMPLE).limits
    assert [(x.variables, x.einsums) for x in limits.loops] == [
        (("j", "d"), ("x1",)),
        (("p",), ("x4", "x5", "x6")),
        (("q",), ("x7", "x8")),
        (("q", "e"), ("x9",)),
    ]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (("max[l] A", "A"), "Einsum B is no max"),
        (("sub(A[h,m,l], B[h,m])", "sub(B[h,m], A[h,m,l])"), "B stands in a place of scores"),
        (("exp(C[h,m,l])", "add(C[h,m,l], C[h,m,l])"), "Einsum D is no exp"),
        (("sub(A[h,m,l], B[h,m])", "sub(A[h,m,l], X[h,m])"), "X stands in a place of peak"),
    ],
)
def test_what_is_no_attention(change: tuple[str, str], reason: str) -> None:
    texts = [text.replace(*change) for text in FIVE_STEP_ATTENTION]
    other = build_workload("other", texts, {"h": 2, "m": 4, "l": 4, "k": 2, "n": 2}, bits=8)
    with pytest.raises(SpecError, match=f"other is no attention: .*{reason}"):
        dataflow("flat-h").mapspace(other, SIMPLE)


def test_a_machine_with_one_memory_keeps_nothing_on_chip() -> None:
    bare = Machine("bare", (Memory("DRAM"), ComputeUnit("MAC", throughput=1.0, energy=1.0)))
    with pytest.raises(SpecError, match="bare has one memory, so nothing can be buffers"):
        dataflow("flat-h").mapspace(SMALL, bare)


GOOD = "schema: dataflow/1\nname: mine\nfamily: attention\nsource: me\nkind: assumed\n"


@pytest.mark.parametrize(
    ("more", "line", "reason"),
    [
        ("fusion:\n- {tensors: scorse, at: buffers}\n", 7, "'scorse' is not a tensor of.*did you mean 'scores'"),
        ("fusion:\n- {tensors: scores, at: bufers}\n", 7, "did you mean 'buffers'"),
        ("loops:\n- {tensors: scores, over: [g]}\n", 7, "'g' is not a rank of.*known are b, h, q"),
        ("memories:\n- {at: first, keep: all, einsums: [Max]}\n", 7, "'Max' is not an Einsum of.*did you mean 'max'"),
        ("tiles:\n- {at: first, variables: [l], sizes: hole}\n", 7, "hole"),
        ("axes:\n- {over: [h]}\n", 7, "an axis is meant by"),
        ("axes:\n- {at: inner, over: [h]}\n", 7, "'inner' is none of outer, array"),
        ("binding: {kind: pipelined, stages: [[QK], [AV]]}\n", 6, "must hold each of QK, max, sub"),
        ("binding: {kind: sequential, stages: [[QK]]}\n", 6, "a sequential binding has no stages"),
        ("needs: magic\n", 6, "needs"),
        ("fusoin: []\n", 6, "unknown key 'fusoin'; did you mean 'fusion'"),
    ],
)
def test_mistakes_have_a_place(more: str, line: int, reason: str) -> None:
    with pytest.raises(SpecError, match=reason) as caught:
        parse_dataflow(GOOD + more, "mine.yaml")
    assert f"mine.yaml:{line}:" in str(caught.value)


def test_unknown_names() -> None:
    with pytest.raises(SpecError, match="did you mean 'flat-h'"):
        dataflow("flat-hh")
    with pytest.raises(SpecError, match=r"unknown family of workloads 'attentoin'.*did you mean 'attention'") as caught:
        parse_dataflow(GOOD.replace("attention", "attentoin"), "mine.yaml")
    assert "mine.yaml:3:" in str(caught.value)
    with pytest.raises(SpecError, match="one of the two"):
        problem(SMALL, SIMPLE, mapspace=Mapspace(), dataflow="flat-h")


# ---- tiny problems, every tree ----------------------------------------------------------------------------------

MACHINE = Machine(
    "tiny",
    (
        Memory("DRAM", read_energy=10.0, write_energy=12.0, read_throughput=8.0, write_throughput=8.0),
        Memory(
            "GLB",
            size=120,
            read_energy=1.0,
            write_energy=2.0,
            read_throughput=16.0,
            write_throughput=16.0,
            must=selector("all"),
        ),
        ComputeUnit("MAC", throughput=1.0, energy=1.0),
    ),
)
SHORT = """
schema: family/1
name: short-attention
description: attention without softmax
einsums:
  QK: 'scores[h,m,l] = query[h,m,k] * key[h,k,l]'
  AV: 'mixed[h,m,n] = scores[h,m,l] * values[h,l,n]'
"""
LONGER = SHORT.replace("scores[h,m,l] *", "weights[h,m,l] *") + "  S: 'weights[h,m,l] = exp(scores[h,m,l])'\n"
ATTENTION = ("A[h,m,l] = Q[h,m,k] * K[h,k,l]", "Z[h,m,n] = A[h,m,l] * V[h,l,n]")
WITH_EXP = (ATTENTION[0], "P[h,m,l] = exp(A[h,m,l])", "Z[h,m,n] = P[h,m,l] * V[h,l,n]")
CHAIN = ("T[y,x,l] = I[y+r,x+s,c] * W[l,r,s,c]", "O[h,w,k] = T[h+u,w+v,l] * X[k,u,v,l]")
ONES = dict.fromkeys("yxlrschwkuv", 1)
RULES = {
    "layerwise": "fusion:\n- {tensors: intermediate, at: outermost}\n",
    "heads": "fusion:\n- {tensors: intermediate, at: buffers}\nloops:\n- {tensors: intermediate, over: [h]}\n",
    "rows": "fusion:\n- {tensors: intermediate, at: buffers}\nloops:\n- {tensors: intermediate, over: [h, m]}\n",
    "whole": (
        "fusion:\n- {tensors: scores, at: buffers}\n"
        "tiles:\n- {at: buffers, tensors: scores, variables: [m], sizes: whole}\n"
    ),
}


@cache
def trees(workload: Workload) -> tuple[tuple[Mapping, float, float], ...]:
    """Every legal tree of the unrestricted space with energy and latency."""
    found = []
    for tree in enumerate_trees(workload, MACHINE, Mapspace()):
        if not legality(workload, MACHINE, tree):
            cost = evaluate(workload, MACHINE, tree)
            found.append((tree, cost.energy, cost.latency))
    return tuple(found)


def best(workload: Workload, space: Mapspace, energy: bool) -> float:
    """The least value of all trees of `space`."""
    kept = (e if energy else t for tree, e, t in trees(workload) if not outside(workload, MACHINE, space, tree))
    return min(kept, default=float("inf"))


def agree(workload: Workload, flow: Dataflow) -> None:
    """`exact` finds what brute force finds within the dataflow, never better than the unrestricted space."""
    space = flow.mapspace(workload, MACHINE)
    for objective in ("energy", "latency"):
        least = best(workload, space, objective == "energy")
        if least == float("inf"):
            with pytest.raises(Infeasible):
                solve(workload, MACHINE, objective, dataflow=flow)
            continue
        found = solve(workload, MACHINE, objective, dataflow=flow)
        assert Objective(objective).value(found.cost) == pytest.approx(least, rel=1e-9)
        assert least >= best(workload, Mapspace(), objective == "energy")
        assert not outside(workload, MACHINE, space, found.mapping)


def own(folder: Path, rules: str, short: str = SHORT) -> Dataflow:
    """A dataflow and a family of a user's own, in two files."""
    (folder / "short.yaml").write_text(short)
    (folder / "mine.yaml").write_text(GOOD.replace("attention", "short.yaml") + RULES[rules])
    return dataflow(str(folder / "mine.yaml"))


@pytest.mark.parametrize(
    ("rules", "ranks"),
    [
        pytest.param("whole", "hl", marks=pytest.mark.slow),
        *(pytest.param(rules, "hml", marks=pytest.mark.slow) for rules in RULES),
    ],
)
def test_tiny_attention_equals_brute_force(rules: str, ranks: str, tmp_path: Path) -> None:
    flow = own(tmp_path, rules)
    values = set()
    for v in ranks:
        workload = build_workload("tiny", ATTENTION, {"h": 1, "m": 1, "l": 1, "k": 1, "n": 1, v: 2}, bits=8)
        agree(workload, flow)
        values.add(best(workload, flow.mapspace(workload, MACHINE), energy=True))
    assert len(values) > 1


@pytest.mark.slow
@pytest.mark.parametrize("v", "hml")
def test_three_einsums_equal_brute_force(v: str, tmp_path: Path) -> None:
    lines = LONGER.splitlines()
    lines[-1], lines[-2] = lines[-2], lines[-1]
    workload = build_workload("tiny", WITH_EXP, {"h": 1, "m": 1, "l": 1, "k": 1, "n": 1, v: 2}, bits=8)
    for rules in RULES:
        agree(workload, own(tmp_path, rules, "\n".join(lines)))


CONVOLUTIONS = [n for n in PLAIN if dataflow(n).family.name == "convolution-chain" and not n.startswith("spread")]


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(n, marks=pytest.mark.slow if n.startswith("layerwise") or n == "tileflow-convolution" else ())
        for n in CONVOLUTIONS
    ],
)
def test_tiny_convolutions_equal_brute_force(name: str) -> None:
    for sizes in ({"l": 2}, {"h": 2, "y": 2}):
        agree(build_workload("tiny", CHAIN, {**ONES, **sizes}, bits=8), dataflow(name))


@pytest.mark.slow
@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_windows_and_channels_equal_brute_force(name: str) -> None:
    for sizes in ({"l": 2, "c": 2}, {"h": 2, "u": 2, "y": 3}):
        agree(build_workload("tiny", CHAIN, {**ONES, **sizes}, bits=8), dataflow(name))
