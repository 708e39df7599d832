"""The Einsum notation: what it reads, that it prints back, and what it refuses."""

from __future__ import annotations

import doctest

import pytest
from hypothesis import given
from hypothesis import strategies as st

import einloom.workload.notation as notation
from einloom.errors import SpecError
from einloom.workload.einsum import Access, Einsum, Index
from einloom.workload.notation import einsum_text, parse_einsum
from einloom.workload.selectors import KEYWORDS


def test_doctests() -> None:
    assert doctest.testmod(notation).failed == 0


def test_reserved_words_are_those_of_selectors() -> None:
    assert set(KEYWORDS) | {"default", "value"} == notation.RESERVED


@pytest.mark.parametrize(
    ("text", "kind", "reduction", "reduced"),
    [
        ("Z[m,n] = A[m,k] * B[k,n]", "multiply", "sum", ("k",)),
        ("O[p,k] = I[p+r,c] * W[r,c,k]", "multiply", "sum", ("r", "c")),
        ("O[p] = I[2*p+r-1] * W[r]", "multiply", "sum", ("r",)),
        ("S[m,p] = exp(QK[m,p])", "map", "sum", ()),
        ("Z[m] = add(X[m], Y[m])", "map", "sum", ()),
        ("I[b,m,d] = copy I_in[b,m,d]", "copy", "sum", ()),
        ("M[m] = max[p] X[m,p]", "multiply", "max", ("p",)),
        ("M[m] = online_softmax[p] X[m,p]", "multiply", "online_softmax", ("p",)),
        ("E[m] = max[p] exp(X[m,p])", "map", "max", ("p",)),
        ("Z[] = A[k] * B[k]", "multiply", "sum", ("k",)),
        ("Z[m] = max[m]", "multiply", "sum", ()),
        ("Z[m] = A[m] * B[m] * C[m]", "multiply", "sum", ()),
    ],
)
def test_reads_and_prints_back(text: str, kind: str, reduction: str, reduced: tuple[str, ...]) -> None:
    einsum = parse_einsum(text)
    assert (einsum.kind, einsum.reduction, einsum.reduced) == (kind, reduction, reduced)
    assert einsum_text(einsum) == text
    assert parse_einsum("".join(text.replace("copy ", "copy(").split()) + ")" * (kind == "copy")) == einsum


def test_index_expressions() -> None:
    first = parse_einsum("O[p] = I[2*p+r-1] * W[r]").inputs[0]
    assert first == Access("I", (Index((("p", 2), ("r", 1)), -1),))
    assert parse_einsum("O[p] = I[-1+p+2]").inputs[0] == Access("I", (Index((("p", 1),), 1),))
    assert parse_einsum("O[p] = I[0,p]").inputs[0].indices[0] == Index((), 0)


def test_sum_may_be_written_and_reduction_given_apart() -> None:
    assert parse_einsum("Z[m] = sum[k] A[m,k]") == parse_einsum("Z[m] = A[m,k]")
    assert parse_einsum("Z[m] = A[m,k]", "E", "max") == parse_einsum("Z[m] = max[k] A[m,k]", "E")


def test_numpy_form() -> None:
    assert parse_einsum("mk,kn->mn") == parse_einsum("Z[m,n] = A[m,k] * B[k,n]")
    assert parse_einsum(" bhme , bhpe -> bhmp ", output="QK", inputs=("Q", "K")).tensors == ("QK", "Q", "K")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Z[m,n = A[m,k] * B[k,n]", "expected ',' or ']' at character 7, found '='"),
        ("Z[m] = A[m] B[m]", "at character 13, found 'B'"),
        ("Z[m] = A[m] ^ 2", "unexpected '^' at character 13"),
        ("Z[m] = ", "expected a tensor at the end"),
        ("", "expected a tensor"),
        ("Z[m] = A[-m]", "may not be subtracted"),
        ("Z[m] = A[2*3]", "expected a rank variable"),
        ("Z[m] = A[0*m]", "positive integer"),
        ("Z[m] = A[99999999999*m]", "at most 2147483648"),
        ("Z[m] = A[m,m]", "may index only one rank"),
        ("Z[m] = A[m+p,p]", "may index only one rank"),
        ("Z[m] = Z[m] * A[m]", "which it writes"),
        ("Z[m,k] = A[m] * A[k]", "equal index expressions"),
        ("Z[m-1] = A[m]", "begins before the tensor does"),
        ("Z[m] = exq(A[m])", "did you mean 'exp'"),
        ("Z[m] = exp(A[m], B[m])", "takes 1 operand"),
        ("Z[m] = softmax(A[m,p])", "a softmax has all ranks of its operand; Z[m] lacks p"),
        ("Z[m] = copy A[m,k]", "same bare rank variables"),
        ("Z[m] = copy A[m+1]", "same bare rank variables"),
        ("Z[m] = max[q] A[m,p]", "must name the rank variables that the output lacks: p"),
        ("weight[m] = A[m]", "may not be called 'weight'"),
        ("mk,kn->mx", "x is in no operand"),
        (
            f"{'Z' * 128}[m] = A[m]",
            "'ZZZZZZZZZZZZZZZZZZZZ'... is no name for an Einsum: it has 128 characters of at most 100",
        ),
        ("Z[m] = A[m]" + " * A[m]" * 2000, "at most 5000 characters"),
        ("Z[m] = __import__('os').system('x')", "unexpected"),
    ],
)
def test_refused(text: str, message: str) -> None:
    with pytest.raises(SpecError) as caught:
        parse_einsum(text)
    assert message in str(caught.value)


def test_refused_reductions() -> None:
    with pytest.raises(SpecError, match="did you mean 'max'"):
        parse_einsum("Z[m] = A[m,k]", reduction="mac")
    with pytest.raises(SpecError, match="nothing to reduce"):
        parse_einsum("Z[m] = A[m]", reduction="max")
    with pytest.raises(SpecError, match="reduces by max, but"):
        parse_einsum("Z[m] = max[k] A[m,k]", reduction="online_softmax")


@st.composite
def einsums(draw: st.DrawFn) -> Einsum:
    """Einsums over variables a to f, every input with its own tensor."""
    kept = draw(st.lists(st.sampled_from("abcdef"), unique=True, max_size=4))
    inputs = []
    for i in range(draw(st.integers(1, 3))):
        variables = draw(st.permutations(draw(st.lists(st.sampled_from("abcdef"), unique=True, max_size=5))))
        indices = []
        while variables:
            width = draw(st.integers(1, min(3, len(variables))))
            taken, variables = variables[:width], variables[width:]
            terms = tuple((name, draw(st.sampled_from((1, 1, 2, 7)))) for name in taken)
            indices.append(Index(terms, draw(st.sampled_from((0, 0, -1, 3)))))
        inputs.append(Access(f"T{i}", tuple(indices)))
    output = Access("Out", tuple(Index(((name, 1),)) for name in kept))
    function = draw(st.sampled_from((None, "add", "max")))
    plain = Einsum("Out", output, tuple(inputs), "map" if function else "multiply", function)
    reduction = draw(st.sampled_from(notation.REDUCTIONS)) if plain.reduced else "sum"
    return Einsum("Out", output, tuple(inputs), plain.kind, function, reduction)


@given(einsums())
def test_round_trip(einsum: Einsum) -> None:
    assert parse_einsum(einsum_text(einsum)) == einsum


@given(st.text("ABZmnk[],+*=()- 012->", max_size=40))
def test_any_text_is_an_einsum_or_a_spec_error(text: str) -> None:
    try:
        einsum = parse_einsum(text)
    except SpecError:
        return
    assert parse_einsum(einsum_text(einsum)) == einsum
