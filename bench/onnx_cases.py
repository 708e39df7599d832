"""The one-operator cases of the package onnx: ``python -m bench.onnx_cases`` counts what became of each.

Every case is read as a model, its cascade interpreted in NumPy, and every tensor held against the expected outputs and
the values between. A case is equal, cut or refused by name; exits with 1 if one is wrong or fails otherwise.
"""

from __future__ import annotations

import argparse
import collections
import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from einloom.errors import SpecError
from einloom.interop.onnx.check import compare, interpret
from einloom.interop.onnx.expand import expanded
from einloom.interop.onnx.load import from_model
from einloom.interop.onnx.operators import MALFORMED_WORDS
from einloom.interop.onnx.reference import operators
from einloom.interop.onnx.simplify import simplify
from einloom.interop.onnx.walk import program

SINGLE, HALF, BRAIN = 2e-4, 2e-3, 1e-2
"""Tolerances, relative to a tensor's largest value: single precision (some cases print four digits), half, bfloat16."""
KEPT = 10**6
MISTAKES = (ArithmeticError, AssertionError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)


@dataclass(frozen=True)
class CaseOutcome:
    """What became of a case. fate: equal, cut, refused, wrong or failed; why: in words."""

    name: str
    operator: str
    fate: str
    why: str = ""


def cases(limit: int | None = None, words: str = "") -> Iterator[CaseOutcome]:
    """The outcome of every case whose name contains `words`, of at most `limit`."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from onnx.backend.test.case.node import collect_testcases

        found = [case for case in collect_testcases(None) if words in case.name]
        step = 1 if limit is None else max(1, len(found) // limit)
        for case in found[::step]:
            yield outcome(case)


def outcome(case: Any) -> CaseOutcome:
    """What becomes of one case."""
    operator = case.model.graph.node[0].op_type
    try:
        fate, why = _judged(case)
    except SpecError as error:
        fate, why = "failed" if MALFORMED_WORDS in str(error) else "refused", error.message
    except MISTAKES as error:
        fate, why = "failed", f"{type(error).__name__}: {error}"
    return CaseOutcome(case.name, operator, fate, why)


def _judged(case: Any) -> tuple[str, str]:
    import onnx

    model = onnx.ModelProto()
    model.CopyFrom(case.model)
    inputs, expected = ([_plain(value) for value in values] for values in case.data_sets[0])
    given = dict(zip([value.name for value in model.graph.input], inputs, strict=True))
    for name, value in list(given.items())[1:]:  # sizes and axes, which an exporter writes as constants
        if isinstance(value, np.ndarray) and value.dtype == np.int64 and value.ndim <= 1:
            model.graph.initializer.append(onnx.numpy_helper.from_array(value, name))
    inlined = expanded(onnx, onnx.inliner.inline_local_functions(model) if model.functions else model)
    graph = from_model(model, case.name, {}, KEPT)
    found = program(graph)
    simplify(found)
    if found.fates:
        return "cut", found.fates[0].reason
    values = {name: value for name, value in graph.constants.items() if value is not None}
    values |= _between(inlined, given) | given
    values |= dict(zip([value.name for value in model.graph.output], expected, strict=True))
    with np.errstate(all="ignore"):
        checked = compare(found, interpret(found, values), values)
    kinds = {np.asarray(value).dtype for value in (*inputs, *expected)}
    tolerance = BRAIN if "bfloat16" in map(str, kinds) else HALF if any(k.itemsize < 4 for k in kinds) else SINGLE
    if checked.worst <= tolerance:
        return "equal", f"{checked.tensors} tensors"
    return "wrong", f"{checked.where} differs by {checked.worst:.3g} of its largest value"


def _plain(value: Any) -> Any:
    """An array of whatever a case holds."""
    import onnx

    return onnx.numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else value


def _between(model: Any, given: dict[str, Any]) -> dict[str, Any]:
    """The values that the reference implementation computes on the way; none if it cannot run the model."""
    import onnx.reference

    try:
        run = onnx.reference.ReferenceEvaluator(model, new_ops=operators(model))
        return {k: v for k, v in run.run(None, given, intermediate=True).items() if isinstance(v, np.ndarray)}
    except MISTAKES:
        return {}


def main() -> int:
    """Count, and name every case that is wrong or failed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--words", default="", help="only cases whose names contain this")
    parser.add_argument("--limit", type=int, help="only so many, spread evenly")
    parser.add_argument("--refused", action="store_true", help="list the operators that are refused or cut")
    asked = parser.parse_args()
    found = list(cases(asked.limit, asked.words))
    counts = collections.Counter(one.fate for one in found)
    print(f"{len(found)} cases: " + ", ".join(f"{n} {fate}" for fate, n in counts.most_common()))
    if asked.refused:
        for fate in ("cut", "refused"):
            listed = collections.Counter(one.operator for one in found if one.fate == fate)
            print(f"{fate}: " + ", ".join(f"{operator} {n}" for operator, n in listed.most_common()))
    bad = [one for one in found if one.fate in ("wrong", "failed")]
    for one in bad:
        print(f"{one.fate}: {one.name}: {one.why}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
