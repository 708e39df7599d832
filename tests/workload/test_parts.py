"""Tensors written in parts: what is read and written back, and every reason to refuse one."""

from __future__ import annotations

from collections import Counter
from itertools import combinations, product
from math import prod
from random import Random

import pytest

from einloom.errors import SpecError
from einloom.workload.build import build_workload
from einloom.workload.einsum import Einsum, Workload
from einloom.workload.files import parse_workload, workload_text
from einloom.workload.notation import parse_einsum
from einloom.workload.orders import awaited, orders

SIZES = {"m": 4, "a": 8, "b": 16, "c": 24, "p": 3, "q": 5, "t": 16, "one": 1}
CONCAT = ("A: C[m,a] = relu(X[m,a])", "B: C[m,b+8] = exp(Y[m,b])")
READER = "R: Z[m] = C[m,c]"


def build(*lines: str, **more: object) -> Workload:
    """A workload of lines ``NAME: EINSUM``, with the sizes above, or other ones."""
    einsums = [parse_einsum(text, name) for name, text in (line.split(": ") for line in lines)]
    sizes = {**SIZES, **more.pop("sizes", {})}  # type: ignore[dict-item]
    used = {v: sizes[v] for e in einsums for v in e.variables}
    return build_workload("parts", einsums, used, bits=8, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("lines", "initial", "shape", "cut"),
    [
        ((*CONCAT, READER), [], (4, 24), {1}),
        (("A: C[m,2*a] = relu(X[m,a])", "B: C[m,2*a+1] = exp(X[m,a])", "R: Z[m] = C[m,b]"), [], (4, 16), {1}),
        (("A: C[5*p+q+1] = relu(X[p,q])", "B: C[0] = relu(X1[])", "R: Z[t] = exp(C[t])"), [], (16,), {0}),
        (("A: C[5*p+q] = relu(X[p,q])",), [], (15,), {0}),
        (("A: C[one+15] = relu(X[one])", "R: Z[t] = exp(C[t])"), ["C"], (16,), {0}),
        (("A: C[m] = relu(X[m])",), ["C"], (4,), set()),
    ],
    ids=["concat", "even and odd", "class token", "sum", "cache", "all of it"],
)
def test_what_is_written_in_parts(
    lines: tuple[str, ...], initial: list[str], shape: tuple[int, ...], cut: set[int]
) -> None:
    w = build(*lines, initial=initial)
    assert w.tensor("C").shape == shape
    assert dict(w.parted) == {"C": cut}
    assert w.writers["C"] == tuple(line[0] for line in lines if " C[" in line.partition("=")[0])
    assert w.producers["C"] == "A"
    again = parse_workload(workload_text(w))
    assert again == w
    assert workload_text(again) == workload_text(w)


def test_an_ordinary_workload_has_no_parts() -> None:
    w = build("A: T[m,a] = relu(X[m,a])", "B: Z[m] = T[m,a]")
    assert not w.parted
    assert w.tied("T", 0)
    assert w.tied("T", 1)


@pytest.mark.parametrize(
    ("lines", "more", "message", "path"),
    [
        (
            CONCAT,
            {"sizes": {"a": 9}},
            "write the same elements of C; parts of one tensor must be disjoint",
            "einsums.B",
        ),
        (CONCAT, {"sizes": {"a": 7}}, "tensor C has 96 elements, but A (C[m,a]), B (C[m,b+8]) write 92", "einsums.B"),
        ((*CONCAT, READER), {"sizes": {"c": 25}}, "size 24 by the Einsums that write it", "einsums.R"),
        ((*CONCAT, READER), {"sizes": {"c": 23}}, "size 24 by the Einsums that write it", "einsums.R"),
        (("A: C[4*p+q] = relu(X[p,q])",), {}, "4*p+q reaches some position more than once", "einsums.A"),
        (("A: C[p+q] = relu(X[p,q])",), {}, "p+q reaches some position more than once", "einsums.A"),
        (
            ("A: C[m+2] = relu(X[m])",),
            {"shapes": {"C": [5]}, "initial": ["C"]},
            "positions 2 to 5 of a rank of size 5",
            "einsums.A",
        ),
        (("A: C[m+2] = relu(X[m])",), {}, "write the others, too, or list C under initial", "einsums.A"),
        (
            ("A: C[2*a] = relu(X[a])", "B: C[2*a+2] = exp(X[a])"),
            {"initial": ["C"]},
            "write the same elements",
            "einsums.B",
        ),
        (
            (CONCAT[0], READER, "B: C[m,b+8] = copy Z1[m,b]", "D: Z1[m,b] = mul(Z[m], Y[b])"),
            {},
            "(C is read when all its parts are written)",
            "einsums.R",
        ),
        ((*CONCAT, READER), {"initial": ["X"]}, "initial names tensor X, which no Einsum writes", "initial"),
        ((*CONCAT, READER), {"initial": ["Q"]}, "initial names tensor Q, which no Einsum accesses", "initial"),
        (("A: C[m,a] = relu(X[m,a])", "B: C[b] = relu(Y[b])"), {}, "2 rank(s) in Einsum A", "einsums.B"),
        (("C: C[m,a] = relu(X[m,a])", "C: C[m,b+8] = exp(Y[m,b])"), {}, "need names of their own", "einsums.C"),
    ],
)
def test_refused(lines: tuple[str, ...], more: dict[str, object], message: str, path: str) -> None:
    with pytest.raises(SpecError) as caught:
        build(*lines, **more)
    assert message in caught.value.message
    assert caught.value.path == path


def test_errors_of_a_file_have_their_line() -> None:
    text = """schema: workload/1
name: overlap
ranks: {m: 4}
bits: 8
einsums:
  - {name: A, einsum: "C[m] = relu(X[m])"}
  - {name: B, einsum: "C[m+3] = relu(Y[m])"}
"""
    with pytest.raises(SpecError, match="must be disjoint") as caught:
        parse_workload(text, "overlap.yaml")
    assert (caught.value.file, caught.value.line) == ("overlap.yaml", 7)


def test_parts_of_any_size_are_told_apart() -> None:
    large = {"a": 2**38}
    w = build("A: C[2*a] = relu(X[a])", "B: C[2*a+1] = exp(X[a])", sizes=large)
    assert w.tensor("C").shape == (2**39,)
    with pytest.raises(SpecError, match=r"tensor C: .* too many to be compared") as caught:
        build("A: C[2*a] = relu(X[a])", "B: C[3*a+1] = exp(X[a])", sizes=large, initial=["C"])
    assert caught.value.path == "einsums.B"


def test_readers_come_after_all_parts() -> None:
    w = build(READER, *CONCAT)
    assert list(w.names) == ["A", "B", "R"]
    assert awaited(w) == (0, 0, 0b11)
    assert [tuple(one.names) for one in orders(w)] == [("A", "B", "R"), ("B", "A", "R")]


def test_an_output_in_parts_is_one_output() -> None:
    assert build(*CONCAT).outputs == ("C",)


def written(einsum: Einsum, sizes: dict[str, int]) -> Counter[tuple[int, ...]]:
    """How often an Einsum writes each element, point by point."""
    variables = einsum.output.variables
    found = Counter[tuple[int, ...]]()
    for point in product(*(range(sizes[v]) for v in variables)):
        at = dict(zip(variables, point, strict=True))
        found[tuple(i.constant + sum(c * at[v] for v, c in i.terms) for i in einsum.output.indices)] += 1
    return found


def random_parts(rng: Random) -> list[Einsum]:
    """One to three Einsums that write one tensor anywhere."""
    ranks, found = rng.choice((1, 2)), []
    for name in "ABC"[: rng.choice((1, 2, 2, 3))]:
        left = rng.sample("abcdef", 6)
        taken = [[left.pop() for _ in range(rng.choice((0, 1, 1, 2)))] for _ in range(ranks)]
        sums = [
            "+".join([*(f"{rng.choice((1, 1, 2, 3))}*{v}" for v in vs), str(rng.choice((0, 0, 1, 2)))]) for vs in taken
        ]
        read = ",".join(v for vs in taken for v in vs)
        found.append(parse_einsum(f"C[{','.join(sums)}] = exp(X{name}[{read}])", name))
    return found


def test_what_is_accepted_is_disjoint_and_complete() -> None:
    """Against a list of all elements. Refused besides are sums whose terms are no digits, by that name."""
    seen = Counter[str]()
    for seed in range(1500):
        rng = Random(seed)
        einsums, sizes = random_parts(rng), {v: rng.choice((1, 2, 3, 4)) for v in "abcdef"}
        initial = ["C"] if rng.random() < 0.5 else []
        parts = [written(einsum, sizes) for einsum in einsums]
        shape = [
            1 + max(element[rank] for part in parts for element in part) for rank in range(len(next(iter(parts[0]))))
        ]
        good = all(max(part.values()) == 1 for part in parts)
        good = good and not any(one.keys() & other.keys() for one, other in combinations(parts, 2))
        good = good and (bool(initial) or sum(map(len, parts)) == prod(shape))
        used = {v: n for v, n in sizes.items() if any(v in e.variables for e in einsums)}
        try:
            build_workload("parts", einsums, used, bits=8, initial=initial)
        except SpecError as error:
            seen["no digits" if good and "more than once" in error.message else f"refused, good: {good}"] += 1
        else:
            seen[f"accepted, good: {good}"] += 1
    assert set(seen) == {"accepted, good: True", "refused, good: False", "no digits"}
    assert min(seen["accepted, good: True"], seen["refused, good: False"]) > 300
