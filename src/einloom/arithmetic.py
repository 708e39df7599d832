"""Arithmetic in values: ``128 * MiB``, ``2 * tokens - 1``, evaluated exactly and without executing anything.

At the door, inside `located`: text and a table of names come in, an exact fraction goes out. The text is parsed with
Python's own parser and walked node by node; whatever is not a number, a known name, a parenthesis or one of
``+ - * / // % **`` is refused.
"""

from __future__ import annotations

import ast
import math
import warnings
from collections.abc import Mapping
from fractions import Fraction

from .errors import SpecError, nearest

MAX_EXPRESSION_LENGTH = 200
MAX_EXPONENT = 64
MAX_NUMBER_BITS = 4096

Number = int | float | Fraction


def arithmetic(text: str, names: Mapping[str, Number] | None = None) -> Fraction:
    """The exact value of an arithmetic expression; decimals count as written (0.1 is 1/10).

    >>> arithmetic("2 * tokens + 1", {"tokens": 2048})
    Fraction(4097, 1)

    Raises SpecError for anything but numbers, names of the table, parentheses and ``+ - * / // % **``, and for numbers
    beyond 4096 bits or exponents beyond 64.
    """
    if len(text) > MAX_EXPRESSION_LENGTH:
        raise SpecError(f"an expression may have at most {MAX_EXPRESSION_LENGTH} characters, this one has {len(text)}")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)
            warnings.simplefilter("ignore", DeprecationWarning)
            tree = ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise SpecError(f"cannot read {text!r} as a number or as arithmetic") from None
    return _value(tree.body, text, names or {})


def exact(number: Number) -> Fraction:
    """The number as a fraction, a float taken for the shortest decimal that prints it.

    >>> exact(0.1)
    Fraction(1, 10)
    """
    if isinstance(number, float):
        if not math.isfinite(number):
            raise SpecError(f"{number} is not a finite number")
        return Fraction(repr(number))
    return Fraction(number)


def _value(node: ast.expr, text: str, names: Mapping[str, Number]) -> Fraction:
    match node:
        case ast.Constant(value=bool()):
            pass
        case ast.Constant(value=int() | float() as number):
            return _bounded(exact(number), text)
        case ast.Name(id=name):
            if name in names:
                return exact(names[name])
            known = f"known are {', '.join(sorted(names))}" if names else "no names are known here"
            shown = known if len(known) < 300 else known[:300] + " ..."
            raise SpecError(f"unknown name {name!r} in {text!r}; {shown}", suggestion=nearest(name, names))
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand, text, names)
        case ast.UnaryOp(op=ast.UAdd(), operand=operand):
            return _value(operand, text, names)
        case ast.BinOp(left=left, op=operator, right=right):
            return _binary(operator, _value(left, text, names), _value(right, text, names), text)
    raise SpecError(f"{text!r} is not arithmetic: only numbers, names, parentheses and + - * / // % ** are read here")


def _binary(operator: ast.operator, left: Fraction, right: Fraction, text: str) -> Fraction:
    if isinstance(operator, ast.Div | ast.FloorDiv | ast.Mod) and right == 0:
        raise SpecError(f"division by zero in {text!r}")
    match operator:
        case ast.Add():
            result = left + right
        case ast.Sub():
            result = left - right
        case ast.Mult():
            result = left * right
        case ast.Div():
            result = left / right
        case ast.FloorDiv():
            result = Fraction(left // right)
        case ast.Mod():
            result = left % right
        case ast.Pow():
            result = _power(left, right, text)
        case _:
            raise SpecError(f"{text!r} is not arithmetic: only + - * / // % ** are read here")
    return _bounded(result, text)


def _power(base: Fraction, exponent: Fraction, text: str) -> Fraction:
    if exponent.denominator != 1 or abs(exponent) > MAX_EXPONENT:
        raise SpecError(f"an exponent must be an integer of at most {MAX_EXPONENT} in {text!r}")
    if base == 0 and exponent < 0:
        raise SpecError(f"division by zero in {text!r}")
    if max(base.numerator.bit_length(), base.denominator.bit_length()) * abs(exponent) > MAX_NUMBER_BITS:
        raise SpecError(f"a number in {text!r} is too large")
    return Fraction(base ** int(exponent))


def _bounded(number: Fraction, text: str) -> Fraction:
    if max(number.numerator.bit_length(), number.denominator.bit_length()) > MAX_NUMBER_BITS:
        raise SpecError(f"a number in {text!r} is too large")
    return number
