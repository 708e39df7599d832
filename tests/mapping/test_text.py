"""The text form: golden files, round trips, and the message for every mistake."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases import arrayed, cascade, simple
from einloom.errors import SpecError
from einloom.machine.levels import Machine
from einloom.mapping.legality.structure import problems
from einloom.mapping.normal import normal_form
from einloom.mapping.text import MAX_DEPTH, parse_mapping, print_mapping
from einloom.mapping.tree import Compute, Loop, Mapping, Nest, Node, Split, Store, describe
from einloom.workload.einsum import Workload

GOLDEN = Path(__file__).parent / "golden"


def attention() -> Workload:
    return cascade(
        """
        QK: P[m,n,h] = Q[m,h,e] * K[n,h,e]
        S: R[m,p,h] = exp(P[m,p,h])
        AV: Z[m,h,f] = R[m,p,h] * V[p,h,f]
        """,
        {"m": 4, "n": 4, "p": 4, "h": 2, "e": 2, "f": 2},
    )


def nested() -> Workload:
    return cascade(
        """
        E0: X[m,n] = A[m,k] * B[k,n]
        E1: Y[n,q] = C[n,l] * D[l,q]
        E2: Z[m,q] = X[m,n] * Y[n,q]
        """,
        {"m": 4, "n": 4, "k": 4, "q": 4, "l": 4},
    )


@pytest.mark.parametrize(
    ("name", "workload", "machine"), [("attention", attention(), arrayed()), ("nested", nested(), simple())]
)
def test_golden_files_are_legal_and_round_trip(name: str, workload: Workload, machine: Machine) -> None:
    text = (GOLDEN / f"{name}.map").read_text()
    mapping = parse_mapping(text, workload, machine, name)
    assert print_mapping(mapping, workload) == text
    if name == "nested":
        assert problems(workload, machine, mapping) == ()


def test_bindings_are_explicit_where_names_differ() -> None:
    text = "store DRAM: A\nfor E0.m, E1.q in 2\nsplit sequential:\n  - compute E0 @ MAC\n  - compute E1 @ MAC\n"
    loop = parse_mapping(text, nested(), simple()).nest[1]
    assert loop == Loop((("E0", "m"), ("E1", "q")), 2)
    assert describe(Loop((("E0", "m"), ("E2", "m")), 2)) == "for m in 2"


def test_short_form_binds_every_einsum_below() -> None:
    text = "for n in 2 tile 2\nsplit sequential:\n  - compute E0\n  - compute E1 @ MAC\n"
    mapping = parse_mapping(text, nested(), simple())
    assert mapping.nest[0] == Loop((("E0", "n"), ("E1", "n")), 2, 2)
    assert print_mapping(mapping, nested()) == text


def test_concurrent_splits_slots_and_shares_are_read() -> None:
    text = "store GLB: X slots 2\nsplit pipelined @ X shares 1 3:\n  - compute E0 @ MAC\n  - compute E1 @ MAC\n"
    mapping = parse_mapping(text, nested(), arrayed())
    split = mapping.nest[1]
    assert isinstance(split, Split)
    assert (split.kind, split.where, split.shares) == ("pipelined", "X", (1, 3))
    assert print_mapping(mapping, nested()) == text
    for where in ("shared", "@ unit"):
        text = f"split parallel {where}:\n  - compute E0 @ MAC\n  - compute E1 @ MAC\n"
        assert print_mapping(parse_mapping(text, nested(), simple()), nested()) == text


def test_comments_blank_lines_and_wide_indentation() -> None:
    text = "# all\n\n   store DRAM: A  # here\n   split sequential:\n     -  compute E0\n     -\n          compute E1\n"
    assert parse_mapping(text, nested(), simple()).einsums == ("E0", "E1")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "x.map:1: the mapping is empty"),
        ("store DRAN: A\ncompute E0", "x.map:1:7: expected a memory (one of DRAM, GLB, Reg), found 'DRAN'; did you"),
        ("store DRAM: Aa\ncompute E0", "expected a tensor (one of A, B, X, C, D, Y, Z), found 'Aa'; did you mean 'A'"),
        ("store DRAM A\ncompute E0", "x.map:1:12: expected ':', found 'A'"),
        ("store DRAM:\ncompute E0", "x.map:1:12: the line ends where a tensor is expected"),
        ("compute e0", "x.map:1:9: the workload has no Einsum 'e0'; did you mean 'E0'?"),
        ("compute E0 @ MCA", "x.map:1:14: expected a compute unit, found 'MCA'; did you mean 'MAC'?"),
        ("compute E0 MAC", "x.map:1:12: unexpected 'MAC' at the end of the line"),
        ("par m in 2 @ XX\ncompute E0", "x.map:1:14: expected an axis, found 'XX'; did you mean 'X'?"),
        ("par m in 2\ncompute E0", "x.map:1:1: 'par' needs '@ AXIS'"),
        ("for m in 2 @ X\ncompute E0", "x.map:1:1: 'par' needs '@ AXIS', and only 'par' has one"),
        ("for mm in 2\ncompute E0", "Einsum E0 has no rank variable 'mm', it has m, n, k; did you mean 'm'?"),
        ("for E0.q in 2\ncompute E0", "x.map:1:5: Einsum E0 has no rank variable 'q'"),
        ("for E1.q in 2\ncompute E0", "x.map:1:5: Einsum E1 is not below this loop"),
        ("for E0.m, n in 2\ncompute E0", "x.map:1:11: 'n' stands among EINSUM.VARIABLE pairs"),
        ("for m of 2\ncompute E0", "x.map:1:7: expected 'in', found 'of'"),
        ("for m in 0\ncompute E0", "x.map:1:10: expected a number of trips (a positive integer), found '0'"),
        ("for m in 2 tile -1\ncompute E0", "x.map:1:17: expected a tile size"),
        ("for m in 2 title 2\ncompute E0", "x.map:1:12: unexpected 'title'"),
        (
            "fro m in 2\ncompute E0",
            "unknown node 'fro'; known are store, for, par, split, compute; did you mean 'for'?",
        ),
        ("for m in 2\n  compute E0", "x.map:2:3: unexpected indentation: this nest stands at column 1"),
        ("  for m in 2\ncompute E0", "x.map:2:1: the nest before this point has no leaf"),
        ("for m in 2", "the nest before this point has no leaf"),
        ("compute E0\ncompute E1", "x.map:2:1: nothing may follow a split or a compute"),
        ("  compute E0\ncompute E1", "x.map:2:1: this line stands further left"),
        ("split sequentially:\n  - compute E0", "x.map:1:7: expected a kind of split (one of"),
        ("split sequential @ X:\n  - compute E0", "a sequential split says no place"),
        ("split parallel:\n  - compute E0", "a parallel split must say its place"),
        ("split sequential:", "x.map:1:17: a split needs branches"),
        ("split sequential:\n  -\n  - compute E0", "x.map:2:3: an empty branch"),
        ("split sequential:\n  - compute E0\n   - compute E1", "x.map:3:4: unexpected indentation: the branches"),
        ("\tcompute E0", "x.map:1:1: a tab"),
    ],
)
def test_mistakes_are_placed(text: str, message: str) -> None:
    with pytest.raises(SpecError) as error:
        parse_mapping(text, nested(), arrayed(), "x.map")
    assert message in str(error.value)


def test_too_deep_is_refused() -> None:
    depth = MAX_DEPTH + 2
    lines = ["  " * 2 * i + ("- " if i else "") + "split sequential:" for i in range(depth)]
    text = "\n".join(lines).replace("    - split", "  - split")
    with pytest.raises(SpecError):
        parse_mapping(text, nested(), simple())


WORKLOAD = nested()
NAMES = [e.name for e in WORKLOAD.einsums]


@st.composite
def nests(draw: st.DrawFn, einsums: tuple[str, ...], depth: int = 0) -> Nest:
    """Any nest over `einsums` that the grammar can write, legal or not."""
    heads: list[Node] = []
    for _ in range(draw(st.integers(0, 3))):
        if draw(st.booleans()):
            memory = draw(st.sampled_from(["DRAM", "GLB", "Reg"]))
            tensors = draw(st.lists(st.sampled_from("ABXCDYZ"), min_size=1, max_size=3, unique=True))
            heads.append(Store(memory, tuple(tensors)))
        else:
            bound = draw(st.lists(st.sampled_from(einsums), min_size=1, unique=True))
            binds = tuple((e, draw(st.sampled_from(WORKLOAD.einsum(e).variables))) for e in bound)
            tile = draw(st.none() | st.integers(1, 4))
            heads.append(Loop(binds, draw(st.integers(1, 4)), tile, draw(st.none() | st.just("X"))))
    if len(einsums) == 1 and (depth > 2 or draw(st.booleans())):
        return (*heads, Compute(einsums[0], draw(st.none() | st.just("MAC"))))
    cut = draw(st.integers(1, len(einsums)))
    parts = [part for part in (einsums[:cut], einsums[cut:]) if part]
    return (*heads, Split("sequential", tuple(draw(nests(part, depth + 1)) for part in parts)))


TREES = nests(tuple(NAMES)).map(Mapping)


@given(TREES)
def test_text_round_trips_for_every_tree(mapping: Mapping) -> None:
    text = print_mapping(mapping, WORKLOAD)
    assert parse_mapping(text, WORKLOAD, arrayed()) == mapping
    assert print_mapping(parse_mapping(text, WORKLOAD, arrayed()), WORKLOAD) == text


@given(TREES)
def test_normal_form_is_a_fixed_point_and_illegal_trees_never_raise(mapping: Mapping) -> None:
    normal = normal_form(mapping, WORKLOAD)
    assert normal_form(normal, WORKLOAD) == normal
    assert parse_mapping(print_mapping(normal, WORKLOAD), WORKLOAD, arrayed()) == normal
    assert isinstance(problems(WORKLOAD, arrayed(), mapping), tuple)


def test_a_tile_is_left_out_where_what_is_left_above_it_says_it() -> None:
    """Of ten values in two steps of five: three steps of two need no tile, two steps of four do."""
    asked = cascade("E: Z[m] = exp(A[m])", {"m": 10})
    tree = "store DRAM: A Z\nfor m in 2\nfor m in {}\ncompute E\n"
    plain, short = (parse_mapping(tree.format(loop), asked, simple()) for loop in ("3 tile 2", "2 tile 4"))
    assert normal_form(plain, asked) == parse_mapping(tree.format("3"), asked, simple())
    assert normal_form(short, asked) == short
