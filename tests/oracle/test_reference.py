"""The NumPy evaluation that judges executions, itself judged by plain loops and by `numpy.einsum`."""

from __future__ import annotations

import numpy as np

from cases import cascade
from einloom.oracle import evaluate_cascade, random_inputs
from einloom.oracle.reference import apply_function, combine


def test_matmul_is_numpys() -> None:
    workload = cascade("E: Z[m,n] = A[m,k] * B[k,n]", {"m": 3, "n": 4, "k": 5})
    inputs = random_inputs(workload, 7)
    assert np.array_equal(evaluate_cascade(workload, inputs)["Z"], inputs["A"] @ inputs["B"])


def test_padding_is_zero() -> None:
    workload = cascade("E: O[p] = I[2*p+r-1] * F[r]", {"p": 3, "r": 3}, shapes={"I": (5,)})
    inputs = random_inputs(workload)
    padded = np.concatenate([[0], inputs["I"], [0]])
    expected = [sum(padded[2 * p + r] * inputs["F"][r] for r in range(3)) for p in range(3)]
    assert evaluate_cascade(workload, inputs)["O"].tolist() == expected


def test_maximum_skips_padding() -> None:
    workload = cascade("E: O[p] = max: identity(I[p+r-1])", {"p": 3, "r": 3}, shapes={"I": (3,)})
    inputs = {"I": np.array([-5, -7, -9])}
    assert evaluate_cascade(workload, inputs)["O"].tolist() == [-5, -5, -7]


def test_copy_and_chain() -> None:
    workload = cascade("C: I[k,m] = copy(J[m,k])\nE: Z[m] = I[k,m]", {"m": 2, "k": 3})
    inputs = random_inputs(workload)
    values = evaluate_cascade(workload, inputs)
    assert np.array_equal(values["I"], inputs["J"].T)
    assert np.array_equal(values["Z"], inputs["J"].sum(axis=1))


def test_functions_and_parts() -> None:
    assert apply_function("sub", (5, 2)) == 3
    assert apply_function("relu", (-5,)) == 0
    assert apply_function("exp", (3,)) != apply_function("exp", (4,))
    assert apply_function("div", (3, 4)) != apply_function("div", (4, 3))
    assert combine("sum", None, 4) == 4
    assert combine("max", 3, -1) == 3
    assert combine("max", -3, None) == -3
