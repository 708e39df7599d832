"""The formulas of AccelForge's components that are recognised: latencies, room for one value, what a unit executes."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from fractions import Fraction
from typing import Literal

from ...errors import SpecError
from ...reading.located import Located
from .expressions import TensorSet, Value, evaluate, parse
from .scopes import Layered
from .sets import COPIED, PRODUCT


def ports(view: Located, variables: Mapping[str, Value]) -> tuple[Literal["shared", "separate"], float | None]:
    """Whether the times of actions add up, and the throughput that they share if the formula gives one.

    Two forms are read: sum or max over ``a.n_calls / a.throughput``, or over ``a.n_calls`` with divisors outside.
    """
    field = view.get("total_latency")
    if field is None:
        return "shared", None
    text = field.text(what="a formula")
    with field.placed():
        tree, divisor = parse(text), Fraction(1)
        while isinstance(tree, ast.BinOp) and isinstance(tree.op, ast.Div):
            found = evaluate(ast.unparse(tree.right), variables)
            if not isinstance(found, Fraction) or found <= 0:
                raise SpecError(f"{text!r} divides by something that is no positive number")
            tree, divisor = tree.left, divisor * found
        over = ast.comprehension
        match tree:
            case ast.Call(
                func=ast.Name(id="sum" | "max" as how),
                args=[ast.GeneratorExp(elt=element, generators=[over(iter=ast.Name(id="actions"), ifs=[])])],
            ):
                how_many: Literal["shared", "separate"] = "shared" if how == "sum" else "separate"
                match ast.unparse(element).replace(" ", "").split("."):
                    case [_, "n_calls"]:
                        return how_many, float(divisor)
                    case [_, part, "throughput"] if part.startswith("n_calls/") and divisor == 1:
                        return how_many, None
        raise SpecError(
            f"{text!r} is no latency that is carried over; only sum or max of a.n_calls / a.throughput over actions is"
        )


def one_value(text: str) -> bool:
    """True for ``X.bits_per_value if X else NUMBER``: room for one value."""
    match parse(text):
        case ast.IfExp(
            test=ast.Name(id=tested),
            body=ast.Attribute(value=ast.Name(id=used), attr="bits_per_value"),
            orelse=ast.Constant(),
        ):
            return tested == used
        case ast.Attribute(value=ast.Name(), attr="bits_per_value"):
            return True
    return False


def kinds_and_operands(view: Located | None, variables: Mapping[str, Value]) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """Kinds and numbers of operands that a condition over ``len(All)`` admits; copies need no unit here."""
    everything = ("multiply", "map")
    if view is None or (not view.is_text and view.boolean()):
        return everything, ()
    if not view.is_text:
        raise view.error("a component that is never enabled; leave it out")
    with view.placed():
        kept = {
            (kind, count)
            for kind in everything
            for count in range(1, 9)
            if evaluate(view.text(), Layered(_typical(kind, count), variables))
        }
        kinds = tuple(kind for kind in everything if any(k == kind for k, _ in kept))
        counts = tuple(count for count in range(1, 9) if any(c == count for _, c in kept))
        if not kept or kept != {(kind, count) for kind in kinds for count in counts}:
            raise SpecError(f"{view.text()!r} is no condition on the number of tensors; no other is carried over")
    return kinds, () if len(counts) == 8 else counts


def _typical(kind: str, operands: int) -> dict[str, Value]:
    """The sets of an Einsum of so many operands that is no copy."""
    names = frozenset(f"T{i}" for i in range(operands + 1))
    everything = TensorSet(names, names, {})
    nothing = everything.of(frozenset())
    return {
        "All": everything,
        "Tensors": everything,
        "Nothing": nothing,
        "Inputs": everything.of(frozenset(f"T{i}" for i in range(operands))),
        "Outputs": everything.of(frozenset((f"T{operands}",))),
        COPIED: nothing,
        PRODUCT: everything if kind == "multiply" else nothing,
    }
