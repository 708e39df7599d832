"""Rewritten cascades: they compute the same in the order of their mappings; what they count; mistakes in files."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import product
from math import exp, inf
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from click.testing import CliRunner

from cases import FIVE_STEP_ATTENTION
from einloom.api import explain, simulate, verify
from einloom.api import map as solve
from einloom.cli import main
from einloom.codegen.expected import computed, drawn
from einloom.dataflows.casts import cast
from einloom.dataflows.families import family
from einloom.dataflows.files import dataflow, parse_dataflow
from einloom.dataflows.rewrites import online_softmax, rewrite, windows
from einloom.errors import Infeasible, SpecError
from einloom.machine.levels import Axis, Fanout
from einloom.mapping.legality.structure import problems
from einloom.mapping.text import parse_mapping
from einloom.mapping.tree import Compute, Loop, Mapping, Nest, Split
from einloom.mapspace.limits.data import HoldLimit, LoopLimit, Numbers
from einloom.oracle.reference import evaluate_cascade, random_inputs
from einloom.problem import Guarantee
from einloom.questions import problems as asked
from einloom.report.text.results import summary
from einloom.result import Result
from einloom.search import several
from einloom.search.method import Recorder
from einloom.testing.problems.drawing import Wanted, draw_with
from einloom.workload.build import build_workload
from einloom.workload.einsum import Access, Einsum, Workload
from einloom.workload.files import parse_workload, workload_text
from einloom.workload.notation import einsum_text
from einloom.workload.padding import padded_variables
from einloom.workload.selectors import selector
from einloom.zoo.machine_by_name import load_machine
from einloom.zoo.workload_by_name import load_workload

SMALL = build_workload("small", FIVE_STEP_ATTENTION, {"h": 2, "m": 2, "l": 8, "k": 2, "n": 3}, bits=8)
SIMPLE = load_machine("simple")
STEPS = "A B_local B_running C D E_part B_change E_factor G_product"
FLASH = f"""
store DRAM: Q K V B G
for h in 2
for m in 2
store GLB: B E G_sums
split sequential:
  - for l_t in 4
    store GLB: {STEPS}
    split sequential:
      - for l_s in 2
        for k in 2
        compute A @ MAC
      - for l_s in 2
        compute B_local @ MAC
      - compute B @ MAC
      - compute B_running
      - for l_s in 2
        compute C @ MAC
      - for l_s in 2
        compute D @ MAC
      - for l_s in 2
        compute E_part @ MAC
      - compute B_change @ MAC
      - compute E_factor @ MAC
      - compute E @ MAC
      - for n in 3
        for l_s in 2
        compute G_product @ MAC
      - for n in 3
        compute G_sums @ MAC
  - for n in 3
    compute G @ MAC
"""
Floats = npt.NDArray[np.float64]
Point = dict[str, int]


def order(workload: Workload, nest: Nest, upwards: bool = True) -> Iterator[tuple[str, Point]]:
    """Every operation of a tree in the order of its loops; spatial loops count as loops."""

    def walk(nest: Nest, at: dict[str, dict[str, tuple[int, int]]]) -> Iterator[tuple[str, Point]]:
        for i, node in enumerate(nest):
            if isinstance(node, Loop):
                for trip in range(node.trips) if upwards else reversed(range(node.trips)):
                    inner = {einsum: dict(ranges) for einsum, ranges in at.items()}
                    for einsum, variable in node.binds:
                        start, size = inner[einsum][variable]
                        inner[einsum][variable] = (start + trip * (size // node.trips), size // node.trips)
                    yield from walk(nest[i + 1 :], inner)
                return
            if isinstance(node, Split):
                for branch in node.branches:
                    yield from walk(branch, at)
            elif isinstance(node, Compute):
                ranges = at[node.einsum]
                for values in product(*(range(start, start + size) for start, size in ranges.values())):
                    yield node.einsum, dict(zip(ranges, values, strict=True))

    yield from walk(nest, {e.name: {v: (0, workload.extents[v]) for v in e.variables} for e in workload.einsums})


def executed(
    workload: Workload, mapping: Mapping, inputs: dict[str, Floats], upwards: bool = True
) -> dict[str, Floats]:
    """All tensors, computed in the order of the tree with the meaning that `SCANS` gives to the scans."""
    players = cast(family("online-attention"), workload)
    role = {name: role for role, name in players.einsums.items()}
    values = {t.name: np.zeros(t.shape) for t in workload.tensors} | inputs
    for name in ("local", "peak", "running"):
        values[players.tensors[name]][...] = -inf
    running, where = values[players.tensors["running"]], players.variables["running"]["t"]
    operations: dict[str, Callable[[float, list[float], float], float]] = {
        **dict.fromkeys(("QK", "AV"), lambda old, x, last: old + x[0] * x[1]),
        **dict.fromkeys(("local", "peak"), lambda old, x, last: max(old, x[0])),
        "running": lambda old, x, last: max(last, x[0]),
        "sub": lambda old, x, last: x[0] - x[1],
        **dict.fromkeys(("exp", "factor"), lambda old, x, last: exp(x[0])),
        "part": lambda old, x, last: old + x[0],
        "change": lambda old, x, last: last - x[1],
        **dict.fromkeys(("total", "rescale"), lambda old, x, last: x[0] * old + x[1]),
        "div": lambda old, x, last: x[0] / x[1],
    }
    for name, point in order(workload, mapping.nest, upwards):
        einsum = workload.einsum(name)
        target, place = values[einsum.output.tensor], at(einsum.output, point)
        read = [float(values[access.tensor][at(access, point)]) for access in einsum.inputs]
        last = -inf
        if role[name] in ("running", "change") and point[where] > 0:
            last = float(running[at(einsum.output, {**point, where: point[where] - 1})])
        target[place] = operations[role[name]](float(target[place]), read, last)
    return values


def at(access: Access, point: Point) -> tuple[int, ...]:
    return tuple(sum(weight * point[v] for v, weight in index.terms) for index in access.indices)


def inputs_of(plain: Workload, tiled: Workload) -> tuple[dict[str, Floats], Floats]:
    """Inputs of a rewritten attention, and the attention of them, by NumPy and the names of rank variables alone."""
    draws = np.random.default_rng(0)
    first, *_, last = plain.einsums
    normal = plain.einsums[-2].output
    inputs = [access for access in (*first.inputs, *last.inputs) if access.tensor in plain.inputs]
    given = {access.tensor: 3 * draws.standard_normal(plain.tensor(access.tensor).shape) for access in inputs}
    scores = contracted(first, given).transpose([first.output.variables.index(v) for v in normal.variables])
    (key,) = (rank for rank, name in enumerate(normal.variables) if name in last.reduced)
    weights = np.exp(scores - scores.max(axis=key, keepdims=True))
    given[normal.tensor] = weights / weights.sum(axis=key, keepdims=True)
    expected = contracted(last, given)
    return {a.tensor: given[a.tensor].reshape(tiled.tensor(a.tensor).shape) for a in inputs}, expected


def contracted(einsum: Einsum, given: dict[str, Floats]) -> Floats:
    """A product of two tensors by `numpy.einsum`."""
    letters = dict(zip(einsum.variables, "abcdefgh", strict=False))
    texts = ["".join(letters[v] for v in access.variables) for access in (*einsum.inputs, einsum.output)]
    return np.einsum(f"{texts[0]},{texts[1]}->{texts[2]}", *(given[access.tensor] for access in einsum.inputs))


def computes(plain: Workload, tiled: Workload, mapping: Mapping, upwards: bool = True) -> bool:
    inputs, expected = inputs_of(plain, tiled)
    with np.errstate(all="ignore"):
        found = executed(tiled, mapping, inputs, upwards)[plain.einsums[-1].output.tensor]
        return bool(np.allclose(found, expected, rtol=1e-12, atol=1e-12))


def test_flash_attention_by_hand() -> None:
    """One legal tree, loop over tiles of keys above everything: it computes attention, but not with tiles downwards."""
    tiled = online_softmax(SMALL, 4)
    tree = parse_mapping(FLASH, tiled, SIMPLE)
    assert not problems(tiled, SIMPLE, tree)
    assert computes(SMALL, tiled, tree)
    assert not computes(SMALL, tiled, tree, upwards=False)
    done = simulate(tiled, SIMPLE, tree)
    assert done.ok, done.differences or done.simulation.reasons
    assert done.simulation.operations == {name: tiled.operations(name) for name in tiled.names}


ROWS = build_workload("rows", FIVE_STEP_ATTENTION, {"h": 1, "m": 2, "l": 4, "k": 2, "n": 2}, bits=8)


@pytest.mark.parametrize(
    ("tiles", "glb_bits", "fused"), [(1, 4096, 1), (2, 160, 2), (2, 4096, 1), (4, 320, 4), (4, 160, 2)]
)
def test_optima_compute_attention(tiles: int, glb_bits: int, fused: int) -> None:
    """What `exact` finds, with so many trips of a loop over tiles fused above the scores, computes attention."""
    tiled, machine = online_softmax(ROWS, tiles), load_machine(f"simple:glb_bits={glb_bits}")
    space = dataflow("flash-attention").mapspace(tiled, machine)
    loops = (*space.limits.loops, LoopLimit(selector("A"), ("l_t",), Numbers(values=(fused,))))
    found = solve(tiled, machine, mapspace=replace(space, limits=replace(space.limits, loops=loops)))
    assert computes(ROWS, tiled, found.mapping)


def test_every_operation_is_counted() -> None:
    """Products; max, sub, exp, sum per score; max, sub, exp, sum per step; rescaling per step, division at the end."""
    h, m, keys, k, n, t = 2, 2, 8, 2, 3, 4
    tiled = online_softmax(SMALL, t)
    total = sum(tiled.operations(name) for name in tiled.names)
    per_score, per_step = h * m * keys, h * m * t
    assert total == per_score * (k + n) + 4 * per_score + 4 * per_step + per_step * n + h * m * n
    assert tiled.operations("B_running") == 0 and tiled.outputs == ("B", "G")
    assert parse_workload(workload_text(tiled)) == tiled


def test_names_mean_nothing() -> None:
    """Keys are called differently in each Einsum, b and h are absent, and a new name is taken already."""
    odd = build_workload(
        "odd",
        [
            "x1[i,j] = x2[i,d] * x3[d,j]",
            "x4[i] = max[p] x1[i,p]",
            "x5[i,p] = sub(x1[i,p], x4[i])",
            "x4_local[i,p] = exp(x5[i,p])",
            "x7[i] = x4_local[i,q]",
            "x8[i,q] = div(x4_local[i,q], x7[i])",
            "x9[i,e] = x8[i,q] * y[q,e]",
        ],
        {"i": 4, "j": 4, "d": 2, "p": 4, "q": 4, "e": 2},
        bits={"default": 8, "x4": 16, "x9": 32},
    )
    tiled = online_softmax(odd, 2)
    players = cast(family("online-attention"), tiled)
    assert players.tensors["local"] == "x4_local_" and players.tensors["powers"] == "x4_local"
    assert [tiled.tensor(t).bits for t in ("x4_local_", "x4_local", "x9_sums", "x9")] == [16, 8, 32, 32]
    assert tiled.tensor("y").shape == (2, 2, 2)


def in_turn(workload: Workload) -> Mapping:
    """One Einsum after the other, each with its loops in the order of its rank variables, everything in DRAM."""
    text = ["store DRAM: " + " ".join(tensor.name for tensor in workload.tensors), "split sequential:"]
    for einsum in workload.einsums:
        loops = [f"for {v} in {workload.extents[v]}" for v in einsum.variables if workload.extents[v] > 1]
        node = f"compute {einsum.name}" + ("" if einsum.kind == "copy" else " @ MAC")
        first, *others = [*loops, node]
        text += [f"  - {first}", *(f"    {line}" for line in others)]
    return parse_mapping("\n".join(text), workload, SIMPLE)


def any_attention(seed: int) -> Workload:
    """Attention with ranks and operands in any order, with and without batch, heads and queries that share keys."""
    chance = random.Random(seed)
    shared = [v for v in "bh" if chance.random() < 0.6]
    own = [v for v in "q" if chance.random() < 0.6]

    def access(tensor: str, *ranks: str) -> str:
        order = [*ranks]
        chance.shuffle(order)
        return f"{tensor}[{','.join(order)}]"

    scores, weights = access("A", *shared, *own, "m", "l"), access("P", *shared, *own, "m", "l")
    one = [access("Q", *shared, *own, "m", "k"), access("K", *shared, "k", "l")]
    two = [weights, access("V", *shared, "l", "n")]
    for operands in (one, two):
        chance.shuffle(operands)
    if chance.random() < 0.5:
        softmax = [f"{weights} = softmax({scores})"]
    else:
        peak, total = access("B", *shared, *own, "m"), access("E", *shared, *own, "m")
        shifted, powers = access("C", *shared, *own, "m", "l"), access("D", *shared, *own, "m", "l")
        softmax = [f"{peak} = max[l] {scores}", f"{shifted} = sub({scores}, {peak})", f"{powers} = exp({shifted})"]
        softmax += [f"{total} = {powers}", f"{weights} = div({powers}, {total})"]
    mixed = access("G", *shared, *own, "m", "n")
    einsums = [f"{scores} = {' * '.join(one)}", *softmax, f"{mixed} = {' * '.join(two)}"]
    sizes = {"b": 2, "h": 3, "q": 2, "m": chance.choice((2, 4)), "l": 4, "k": 2, "n": chance.choice((2, 3))}
    used = (*shared, *own, *"mlkn")
    return build_workload("any", einsums, {v: sizes[v] for v in used}, bits={"default": 8, "P": 4, "A": 16})


@pytest.mark.parametrize("seed", range(24))
def test_attention_in_any_order_is_computed(seed: int) -> None:
    plain = any_attention(seed)
    tiled = online_softmax(plain, 2)
    assert computes(plain, tiled, in_turn(tiled))
    for tensor in ("Q", "K", "V", "G"):
        assert np.prod(tiled.tensor(tensor).shape) == np.prod(plain.tensor(tensor).shape)
    key, cut = plain.tensor("K").shape, tiled.tensor("K").shape
    keys = next(e for e in plain.einsums if e.name == "A").access("K").rank_of("l")
    assert keys is not None and cut == (*key[:keys], 2, 2, *key[keys + 1 :]), "keys in place, the rest as it was"
    assert tiled.einsums[0].output.tensor == "A"


def test_every_kind_of_attention_is_among_them() -> None:
    kinds = {(len(w.einsums), len(w.einsum("A").variables)) for w in map(any_attention, range(24))}
    assert kinds >= {(n, variables) for n in (3, 7) for variables in (4, 5, 6)}


def test_softmax_as_the_how_to_teaches_it() -> None:
    """The three Einsums of docs/how-to/my-model.md, and what FlashAttention leaves of them on a small buffer."""
    texts = ["QK[h,m,p] = Q[h,m,e] * K[h,p,e]", "S[h,m,p] = softmax(QK[h,m,p])", "AV[h,m,f] = S[h,m,p] * V[h,p,f]"]
    bits = {"default": 8, "QK": 32, "S": 16, "AV": 12}
    taught = build_workload("taught", texts, {"h": 2, "m": 2, "p": 4, "e": 2, "f": 2}, bits=bits)
    tiled = online_softmax(taught, 2)
    assert computes(taught, tiled, in_turn(tiled)) and not computes(taught, tiled, in_turn(tiled), upwards=False)
    widths = {name: tiled.tensor(name).bits for name in ("QK_peak", "QK_shifted", "S_powers", "S_total", "AV_sums")}
    assert widths == {"QK_peak": 32, "QK_shifted": 32, "S_powers": 16, "S_total": 16, "AV_sums": 12}
    assert tiled.outputs == ("QK_peak", "AV")
    found = solve(taught, load_machine("simple:glb_bits=8192"), dataflow="flash-attention")
    assert found.certificate is not None and found.certificate.guarantee is Guarantee.OPTIMAL
    assert computes(taught, found.workload, found.mapping)


GROUPED = (
    "QK[b,m,p,g,h] = Q[b,m,g,h,e] * K[b,p,g,e]",
    "S[b,m,p,g,h] = softmax(QK[b,m,p,g,h])",
    "AV[b,m,g,h,f] = S[b,m,p,g,h] * V[b,p,g,f]",
)


def test_grouped_queries_as_the_zoo_writes_them() -> None:
    """The attention of Llama 3, small: h queries read the keys of each of g heads."""
    shipped = [einsum_text(e).replace("QK_softmax", "S") for e in load_workload("llama3-8b").einsums]
    assert set(GROUPED) < set(shipped)
    grouped = build_workload("g", GROUPED, {"b": 1, "m": 2, "p": 2, "g": 2, "h": 3, "e": 2, "f": 1}, bits=8)
    players = cast(family("softmax-attention"), grouped).variables["QK"]
    assert players == {"b": "b", "h": "g", "q": "h", "m": "m", "l": "p", "k": "e"}, "m has the extent of the keys"
    tiled = online_softmax(grouped, 2)
    assert computes(grouped, tiled, in_turn(tiled))
    assert str(tiled.einsum("QK").output) == "QK[b,m,p_t,p_s,g,h]" and tiled.tensor("K").shape == (1, 2, 1, 2, 2)
    found = solve(grouped, load_machine("simple:glb_bits=8192"), dataflow="flash-attention")
    assert computes(grouped, found.workload, found.mapping)


def test_what_one_pass_does_not_leave_is_no_output() -> None:
    sizes = {"h": 2, "m": 2, "l": 8, "k": 2, "n": 3}
    for outputs, kept in ((["G", "E"], ("B", "E", "G")), (["G", "B"], ("B", "G"))):
        assert (
            online_softmax(build_workload("w", FIVE_STEP_ATTENTION, sizes, bits=8, outputs=outputs), 2).outputs == kept
        )
    for tensor, role in (("A", "scores"), ("D", "powers"), ("F", "weights")):
        with pytest.raises(SpecError, match=f"{tensor} is an output of w, but one pass over the keys leaves no {role}"):
            online_softmax(build_workload("w", FIVE_STEP_ATTENTION, sizes, bits=8, outputs=["G", tensor]), 2)


def chain(stride: int = 1, over: int = 1) -> Workload:
    """Two small convolutions; the first with a stride, the second with another."""
    h, w, taps = 6, 4, 3
    rows, columns = over * (h - 1) + taps, over * (w - 1) + taps
    weight = ("" if stride == 1 else f"{stride}*", "" if over == 1 else f"{over}*")
    return build_workload(
        "chain",
        [
            f"T[y,x,l] = I[{weight[0]}y+r,{weight[0]}x+s,c] * A[l,r,s,c]",
            f"Z[h,w,k] = T[{weight[1]}h+u,{weight[1]}w+v,l] * B[k,u,v,l]",
        ],
        {"y": rows, "x": columns, "l": 2, "r": 2, "s": 2, "c": 2, "h": h, "w": w, "k": 2, "u": taps, "v": taps},
        bits=8,
    )


@pytest.mark.parametrize(("stride", "over"), [(1, 1), (2, 1), (1, 2), (2, 3)])
@pytest.mark.parametrize(("height", "width"), [(1, 1), (3, 2), (6, 4)])
def test_tiled_convolutions_compute_the_same(stride: int, over: int, height: int, width: int) -> None:
    """Integers, exactly; the input has its shape, and the overlap of tiles is computed once more for each."""
    plain = chain(stride, over)
    tiled = windows(plain, height, width)
    assert [t.shape for t in tiled.tensors if t.name in tiled.inputs] == [
        plain.tensor(t.name).shape for t in tiled.tensors if t.name in tiled.inputs
    ]
    inputs = random_inputs(plain)
    expected = evaluate_cascade(plain, inputs)["Z"]
    assert (evaluate_cascade(tiled, inputs)["Z"].reshape(expected.shape) == expected).all()
    rows, columns = over * (6 // height - 1) + 3, over * (4 // width - 1) + 3
    assert tiled.operations("T") == height * rows * width * columns * 2 * 2 * 2 * 2
    assert tiled.operations("Z") == plain.operations("Z")


@pytest.mark.parametrize(
    ("einsums", "reason"),
    [
        (("T[y,l] = I[y+r-1,c] * A[l,r,c]", "Z[h,k] = T[h+u,l] * B[k,u,l]"), "is no convolution-chain"),
        (
            ("T[y,x,l] = I[y+r-1,x+s,c] * A[l,r,s,c]", "Z[h,w,k] = T[h+u,w+v,l] * B[k,u,v,l]"),
            "only whole tensors are rewritten",
        ),
    ],
)
def test_padding_is_refused(einsums: tuple[str, ...], reason: str) -> None:
    sizes = {"y": 6, "x": 6, "l": 2, "r": 3, "s": 3, "c": 2, "h": 4, "w": 4, "k": 2, "u": 3, "v": 3}
    used = {v: n for v, n in sizes.items() if v in "".join(einsums)}
    shapes = {"I": (6, 2)} if "x" not in used else {"I": (6, 8, 2)}
    padded = build_workload("padded", einsums, used, bits=8, shapes=shapes)
    with pytest.raises(SpecError, match=reason):
        windows(padded, 2)


def tiny_chain() -> Workload:
    return build_workload(
        "tiny",
        ["T[y,x,l] = I[y+r,x+s,c] * A[l,r,s,c]", "Z[h,w,k] = T[h+u,w+v,l] * B[k,u,v,l]"],
        {"y": 5, "x": 1, "l": 1, "r": 1, "s": 1, "c": 1, "h": 4, "w": 1, "k": 1, "u": 2, "v": 1},
        bits=1,
    )


@pytest.mark.slow
def test_exact_is_exhaustive_on_tiled_convolutions() -> None:
    """Two tiles of a row each, an overlap of one row, and a buffer of seven bits."""
    sizes = {**dict.fromkeys("xlrsckwv", 1), "y": 3, "h": 2, "u": 2}
    tiled = windows(build_workload("tiny", [einsum_text(e) for e in tiny_chain().einsums], sizes, bits=1), 2)
    machine = load_machine("simple:glb_bits=7,dram_energy=10")
    space = dataflow("fused-layer").mapspace(tiled, machine)
    held = HoldLimit("may_keep", "GLB", selector("intermediate"), None)
    space = replace(space, limits=replace(space.limits, holds=(held,)))
    one, other = (solve(tiled, machine, mapspace=space, method=method) for method in ("exact", "exhaustive"))
    assert one.value == pytest.approx(other.value, rel=1e-12)


@pytest.mark.parametrize(("glb_bits", "flat", "flash", "tiles"), [(240, 1152, 608, 4), (480, 384, 416, 1)])
def test_flash_attention_reads_keys_less_often(glb_bits: int, flat: float, flash: float, tiles: int) -> None:
    """A small buffer holds one row of all keys, or more rows of some keys: then keys and values are read less often.

    In a buffer that holds everything it only costs the statistics: 4 maxima of 8 bits are written.
    """
    rows = build_workload("rows", FIVE_STEP_ATTENTION, {"h": 1, "m": 4, "l": 8, "k": 2, "n": 2}, bits=8)
    machine = load_machine(f"simple:glb_bits={glb_bits},dram_energy=100")
    assert solve(rows, machine, "traffic:DRAM", dataflow="flat-r").value == flat
    found = solve(rows, machine, "traffic:DRAM", dataflow="flash-attention")
    assert found.value == flash and found.workload.extents["l_t"] == tiles
    assert found.certificate is not None and found.certificate.guarantee is Guarantee.OPTIMAL
    known = found.certificate.alternatives
    assert [one.label for one in known] == ["tiles=1", "tiles=2", "tiles=4", "tiles=8"]
    assert all(one.bound is not None and one.bound >= flash for one in known)
    assert "the best has tiles=" in summary(found)
    again = Result.from_json(found.to_json())
    assert again.certificate == found.certificate and again.workload == found.workload
    assert verify(again, quick=True).ok
    false = replace(found.certificate, alternatives=tuple(replace(one, bound=1.0) for one in known))
    assert any("choices" in reason for reason in verify(replace(found, certificate=false), quick=True).reasons)


def test_the_best_of_several_agrees_with_each_alone() -> None:
    machine = load_machine("simple:glb_bits=12,dram_energy=10,glb_throughput=1")
    each = asked(tiny_chain(), machine, "energy", dataflow="fused-layer")
    assert [one.label for one in each] == ["height=1, width=1", "height=2, width=1", "height=4, width=1"]
    alone = [solve(one.problem.workload, machine, dataflow="fused-layer").value for one in each]
    best = solve(tiny_chain(), machine, dataflow="fused-layer")
    assert best.value == pytest.approx(min(alone), rel=1e-12)
    assert verify(best, quick=True).ok


def test_nothing_fits() -> None:
    with pytest.raises(Infeasible, match="as with the others"):
        solve(tiny_chain(), load_machine("simple:glb_bits=1"), dataflow="fused-layer")
    explained = explain(tiny_chain(), "simple:glb_bits=1", dataflow="fused-layer")
    assert explained.status == "infeasible" and "as with the others" in str(explained)
    with pytest.raises(SpecError, match="one workload"):
        solve(tiny_chain(), "simple", "pareto", dataflow="fused-layer")


def test_an_ended_budget_leaves_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first choice is solved, then the watcher asks to stop: of the others only what is compulsory is known.
    With lower bounds of all, it is known to be the best by then."""
    machine = load_machine("simple:glb_bits=480")
    first = online_softmax(ROWS, 1)
    stopping: list[bool] = []
    watch = Recorder(stop=lambda: bool(stopping))
    watch.incumbent = lambda value, mapping=None: stopping.append(True)  # type: ignore[method-assign]
    compared = solve(ROWS, machine, dataflow="flash-attention", watch=watch)
    assert compared.certificate is not None and compared.certificate.guarantee is Guarantee.OPTIMAL
    stopping.clear()
    monkeypatch.setattr(several._Several, "compare", lambda self: None)
    found = solve(ROWS, machine, dataflow="flash-attention", watch=watch)
    assert found.workload == first and found.certificate is not None
    assert found.certificate.guarantee is Guarantee.BOUNDED and 0 < found.certificate.bound < found.value
    assert all(0 < (one.bound or 0) <= found.value for one in found.certificate.alternatives[1:])


def test_stopped_before_any_choice_is_looked_at() -> None:
    """A mapping is drawn, and what is compulsory is its bound."""
    found = solve(
        ROWS, load_machine("simple:glb_bits=480"), dataflow="flash-attention", watch=Recorder(stop=lambda: True)
    )
    assert found.certificate is not None and found.certificate.guarantee is Guarantee.BOUNDED
    assert 0 < found.certificate.bound < found.value
    assert verify(found, quick=True).ok


def test_rewritten_workloads_stay_as_they_are() -> None:
    flow = dataflow("flash-attention")
    tiled = online_softmax(ROWS, 2)
    assert [choice.workload for choice in flow.choices(tiled)] == [tiled]
    assert [choice.label for choice in flow.choices(ROWS)] == ["tiles=1", "tiles=2", "tiles=4"]
    with pytest.raises(SpecError, match="matmul is no attention"):
        flow.choices(load_workload("matmul"))


HEAD = "schema: dataflow/1\nname: mine\nsource: me\nkind: assumed\nfamily: online-attention\n"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("rewrite: {online_softmx: {tiles: 2}}", "did you mean 'online_softmax'"),
        ("rewrite: {windows: {height: 2}}", "windows makes tiled-convolution-chain of convolution-chain"),
        ("rewrite: {online_softmax: {tile: 2}}", "did you mean 'tiles'"),
        ("rewrite: {online_softmax: {tiles: all}}", "'all' is none of divisors"),
        ("rewrite: {online_softmax: {tiles: 0}}", "0"),
        ("rewrite: {online_softmax: {tiles: []}}", "an empty list"),
        ("rewrite: {online_softmax: {}}", "which tiles"),
        ("rewrite: {}", "expected one rewrite"),
    ],
)
def test_mistakes_in_files_are_located(line: str, message: str) -> None:
    with pytest.raises(SpecError) as caught:
        parse_dataflow(f"{HEAD}{line}\n", "mine.yaml")
    assert message in str(caught.value) and caught.value.line == 6


def test_numbers_of_tiles() -> None:
    flow = parse_dataflow(f"{HEAD}rewrite: {{online_softmax: {{tiles: [2, 3, 4]}}}}\n")
    assert [choice.label for choice in flow.choices(ROWS)] == ["tiles=2", "tiles=4"]
    with pytest.raises(SpecError, match="tiles is 3, but small has 8 to divide"):
        parse_dataflow(f"{HEAD}rewrite: {{online_softmax: {{tiles: 3}}}}\n").choices(SMALL)
    for name, numbers, message in (
        ("online_softmax", {"tiles": 3}, "3 tiles do not divide the 8 keys"),
        ("online_softmax", {"tile": 2}, "did you mean 'tiles'"),
        ("online_softmax", {}, "needs a number of tiles"),
        ("online", {"tiles": 2}, "unknown rewrite 'online'"),
    ):
        with pytest.raises(SpecError, match=message):
            rewrite(SMALL, name, **numbers)


def test_the_command_line_prints_the_rewritten_workload(tmp_path: Path) -> None:
    run = CliRunner()
    done = run.invoke(main, ["rewrite", "tileflow-bert-s", "online_softmax:tiles=4"])
    assert done.exit_code == 0 and parse_workload(done.output).extents["l_t"] == 4
    for call, message in (("online_softmax:tiles=1/2", "whole number"), ("onlin:tiles=2", "unknown rewrite")):
        wrong = run.invoke(main, ["rewrite", "tileflow-bert-s", call])
        assert wrong.exit_code == 2 and message in wrong.output
    source, saved = tmp_path / "rows.yaml", tmp_path / "rows.json"
    source.write_text(workload_text(ROWS), encoding="utf-8")
    call = ["map", str(source), "simple", "--dataflow", "flash-attention", "--json", str(saved)]
    done = run.invoke(main, call)
    assert done.exit_code == 0 and "rows (online softmax, 1 tile) on simple" in done.output
    assert Result.read(saved).workload == online_softmax(ROWS, 1)
    assert run.invoke(main, ["verify", "--quick", str(saved)]).exit_code == 0


PADDED = build_workload(
    "padded",
    [
        "T[k,p,q] = I[c,2*p+r-1,2*q+s-1] * W[k,c,r,s]",
        "U[l,y,x] = T[k,y+u-1,x+v-2] * V[l,k,u,v]",
        "O[l,y,x] = add(U[l,y,x], T[l,y,x])",
    ],
    {"k": 3, "c": 2, "p": 4, "q": 4, "r": 3, "s": 3, "l": 3, "y": 4, "x": 4, "u": 3, "v": 3},
    bits=8,
    shapes={"I": (2, 8, 8), "T": (3, 4, 4)},
)


def test_stored_padding_computes_the_same_with_zeros_around() -> None:
    """Two convolutions, one with a stride and one with a kernel that is not in the middle, and a residual sum."""
    made = rewrite(PADDED, "stored_padding")
    assert {t.name: t.shape for t in made.tensors if t.shape != PADDED.tensor(t.name).shape} == {
        "I": (2, 9, 9),
        "T": (3, 6, 6),
    }
    assert [t.name for t in made.tensors if t.initial] == ["T"]
    assert [made.operations(e.name) for e in made.einsums] == [PADDED.operations(e.name) for e in PADDED.einsums]
    assert not any(padded_variables(made, name) for name in made.names)
    given = drawn(PADDED, 3)
    around = {"I": ((0, 0), (1, 0), (1, 0)), "T": ((0, 0), (1, 1), (2, 0))}
    inputs = {name: np.pad(values, around.get(name, ((0, 0),) * values.ndim)) for name, values in given.items()}
    inputs["T"] = np.zeros((3, 6, 6))
    np.testing.assert_allclose(computed(made, inputs)["O"], computed(PADDED, given)["O"], rtol=1e-12)


def test_stored_padding_lets_windows_spread() -> None:
    """On four elements that take anything, one channel of a padded convolution runs on all of them, not on one: of two
    instances in a row none is without padding."""
    layer = build_workload("layer", ["O[p] = I[p+r-1] * W[r]"], {"p": 8, "r": 3}, bits=8, shapes={"I": (8,)})
    machine = load_machine("two-level:glb_bits=4096")
    unit = replace(machine.levels[-1], throughput=1.0)
    machine = replace(machine, levels=(*machine.levels[:-1], Fanout("A", (Axis("x", 2), Axis("y", 2))), unit))
    before, after = (solve(one, machine, "latency") for one in (layer, rewrite(layer, "stored_padding")))
    assert "on no axis, because as many of their positions reach padding as an axis takes: p of O" in summary(before)
    assert "on no axis" not in summary(after)
    assert "@ x" in str(after.mapping) and "@ x" not in str(before.mapping)


def test_stored_padding_says_what_it_cannot_do() -> None:
    with pytest.raises(SpecError, match="no window of matmul reaches outside"):
        rewrite(load_workload("matmul"), "stored_padding")
    with pytest.raises(SpecError, match="stored_padding takes no numbers, but tiles is given"):
        rewrite(PADDED, "stored_padding", tiles=2)
    with pytest.raises(SpecError, match="unknown rewrite 'stored_pading'"):
        rewrite(PADDED, "stored_pading")


@pytest.mark.parametrize("seeds", [range(25), pytest.param(range(25, 300), marks=pytest.mark.slow)])
def test_stored_padding_of_random_workloads(seeds: range) -> None:
    """Random cascades with padding compute the same, element by element, when zeros stand around what is given."""
    seen = 0
    for seed in seeds:
        drawn_one = draw_with(Wanted(("padding",)), seed)
        read = None if drawn_one is None else drawn_one.files.read
        if read is None or not any(padded_variables(read[0], name) for name in read[0].names):
            continue
        workload = read[0]
        made = with_rims(workload)
        if made is None:
            assert workload.views
            continue
        assert not any(padded_variables(made, name) for name in made.names)
        assert [made.operations(e) for e in made.names] == [workload.operations(e) for e in workload.names]
        given = drawn(workload, seed)
        inputs = {t.name: np.zeros(t.shape) for t in made.tensors if t.initial or t.name in made.inputs}
        for name, values in given.items():
            inputs[name][inside(workload, made, name)] = values
        before, after = computed(workload, given), computed(made, inputs)
        for name in workload.outputs:
            found = after[name][inside(workload, made, name)]
            np.testing.assert_allclose(found, before[name], rtol=1e-9, atol=1e-12, equal_nan=True)
        seen += 1
    assert seen > len(seeds) / 3


def with_rims(workload: Workload) -> Workload | None:
    """The workload with its padding stored; None where that is refused."""
    try:
        return rewrite(workload, "stored_padding")
    except SpecError:
        return None


def inside(workload: Workload, made: Workload, tensor: str) -> tuple[slice, ...]:
    """Where the elements of a tensor are in the one with a rim."""
    pairs = {
        (a.tensor, rank, j.constant - i.constant)
        for e, f in zip(workload.einsums, made.einsums, strict=True)
        for a, b in zip((e.output, *e.inputs), (f.output, *f.inputs), strict=True)
        for rank, (i, j) in enumerate(zip(a.indices, b.indices, strict=True))
        if not a.view
    }
    lows = {(name, rank): low for name, rank, low in pairs}
    shape = workload.tensor(tensor).shape
    return tuple(slice(low := lows.get((tensor, r), 0), low + n) for r, n in enumerate(shape))
