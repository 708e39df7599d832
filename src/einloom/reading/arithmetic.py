"""Arithmetic in values: ``128 * MiB``, ``2 * tokens - 1``, evaluated exactly and without executing anything.

At the door, inside `located`: text and a table of names come in, an exact number with its dimension goes out. The text
is parsed with Python's own parser and walked node by node; whatever is not a number, a known name, a parenthesis, one
of ``+ - * / // % **`` or a call of one of the `functions` is refused.
"""

from __future__ import annotations

import ast
import math
import warnings
from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction

from ..errors import ConsequentError, SpecError, nearest
from .dimensions import BASES, PLAIN, Dimension, Measure, dimension_text, of_product, of_sum
from .functions import FUNCTIONS, called, real_power

MAX_EXPRESSION_LENGTH = 500  # a table has a dozen values
MAX_EXPONENT = 64
MAX_NUMBER_BITS = 4096

Number = int | float | Fraction
Named = Number | Measure | None
"""What a name may stand for: a plain number, one with a dimension, or (None) something that could not be read."""
Suggest = Callable[[str], str | None]


def arithmetic(text: str, names: Mapping[str, Number] | None = None) -> Fraction:
    """The exact value of an arithmetic expression; decimals count as written (0.1 is 1/10).

    >>> arithmetic("2 * tokens + 1", {"tokens": 2048})
    Fraction(4097, 1)

    Raises SpecError for anything but numbers, names of the table, parentheses, ``+ - * / // % **`` and calls of
    `FUNCTIONS`, and for numbers beyond 4096 bits or whole exponents beyond 64.
    """
    return measure(text, names or {}).value


def measure(
    text: str,
    names: Mapping[str, Named],
    *,
    shown: str | None = None,
    listed: Iterable[str] | None = None,
    suggest: Suggest | None = None,
) -> Measure:
    """The value of an expression and its dimension, where names may have dimensions.

    shown: the text as the user wrote it, for messages. listed: of the names those that a message lists; by default
    all. suggest: what an unknown name may have meant; by default the nearest of those. Raises SpecError as
    `arithmetic`, and where sizes are added to energies; ConsequentError for a name that could not be read.
    """
    shown = text if shown is None else shown
    if len(shown) > MAX_EXPRESSION_LENGTH:
        raise SpecError(f"an expression may have at most {MAX_EXPRESSION_LENGTH} characters, this one has {len(shown)}")
    cut = "; within braces a value with commas stands in quotes" if text.count("(") > text.count(")") else ""
    tree = parsed(text.strip(), f"cannot read {shown!r} as a number or as arithmetic{cut}")
    known = tuple(names if listed is None else listed)
    return _Walk(shown, names, known, suggest or (lambda name: nearest(name, known))).value(tree)


def parsed(text: str, wrong: str) -> ast.expr:
    """The syntax tree of an expression, by Python's own parser. Raises SpecError, which says `wrong`, if it is none."""
    try:
        with warnings.catch_warnings(action="ignore"):
            return ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise SpecError(wrong) from None


def exact(number: Number) -> Fraction:
    """The number as a fraction, a float taken for the shortest decimal that prints it.

    >>> exact(0.1)
    Fraction(1, 10)
    """
    if isinstance(number, float):
        if not math.isfinite(number):
            raise SpecError(f"{number} is not a finite number")
        return Fraction(repr(float(number)))  # one of NumPy prints itself with its type
    return Fraction(number)


class _Walk:
    """Evaluates the nodes of one expression."""

    def __init__(self, text: str, names: Mapping[str, Named], listed: tuple[str, ...], suggest: Suggest) -> None:
        self.text, self.names, self.listed, self.suggest = text, names, listed, suggest

    def value(self, node: ast.expr) -> Measure:
        match node:
            case ast.Constant(value=bool()):
                pass
            case ast.Constant(value=int() | float() as number):
                return Measure(_bounded(exact(number), self.text))
            case ast.Name(id=name):
                return self.named(name)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                found = self.value(operand)
                return Measure(-found.value, found.dimension)
            case ast.UnaryOp(op=ast.UAdd(), operand=operand):
                return self.value(operand)
            case ast.BinOp(left=left, op=operator, right=right):
                return self.binary(operator, self.value(left), self.value(right))
            case ast.Call(func=ast.Name(id=name), args=given, keywords=[]):
                return self.called(name, given)
        message = (
            "is not arithmetic: only numbers, names, parentheses, + - * / // % ** and some functions are read here"
        )
        raise SpecError(f"{self.text!r} {message}")

    def named(self, name: str) -> Measure:
        if name in self.names:
            found = self.names[name]
            if found is None:
                raise ConsequentError(f"{self.text!r} uses {name}, which cannot be read")
            return found if isinstance(found, Measure) else Measure(exact(found))
        known = f"known are {', '.join(sorted(set(self.listed)))}" if self.listed else "no names are known here"
        shown = known if len(known) < 300 else known[:300] + " ..."
        raise SpecError(f"unknown name {name!r} in {self.text!r}; {shown}", suggestion=self.suggest(name))

    def called(self, name: str, given: list[ast.expr]) -> Measure:
        if name not in FUNCTIONS:
            message = f"{self.text!r} is not arithmetic: the functions are {', '.join(FUNCTIONS)}, not {name!r}"
            raise SpecError(message, suggestion=nearest(name, FUNCTIONS))
        found = called(name, [self.value(one) for one in given], self.text)
        return Measure(_bounded(found.value, self.text), found.dimension)

    def binary(self, operator: ast.operator, left: Measure, right: Measure) -> Measure:
        if isinstance(operator, ast.Pow) and right.dimension != PLAIN:
            raise SpecError(f"the exponent in {self.text!r} has the unit {dimension_text(right.dimension)}")
        if isinstance(operator, ast.Pow) and right.value.denominator != 1:
            return real_power(left, right.value, self.text)
        result = calculated(operator, left.value, right.value, self.text)
        match operator:
            case ast.Mult():
                return Measure(result, of_product(left.dimension, right.dimension))
            case ast.Div():
                return Measure(result, of_product(left.dimension, right.dimension, -1))
            case ast.FloorDiv():
                return Measure(result, self.counted(of_product(left.dimension, right.dimension, -1)))
            case ast.Pow():
                return Measure(result, of_product(PLAIN, left.dimension, int(right.value)))
        return Measure(result, self.common(left, right))

    def counted(self, found: Dimension) -> Dimension:
        """The dimension, if it counts whole things: 7 pJ // 2 would be nothing, because it rounds to whole joules."""
        if any(found[i] for i, base in enumerate(BASES) if base not in ("bit", "op")):
            raise SpecError(f"'//' in {self.text!r} would round to whole {dimension_text(found)}; write '/'")
        return found

    def common(self, left: Measure, right: Measure) -> Dimension:
        """The dimension of a sum; a plain number counts in the SI unit of the other one."""
        found = of_sum(left.dimension, right.dimension)
        if found is None:
            one, other = dimension_text(left.dimension), dimension_text(right.dimension)
            raise SpecError(f"{self.text!r} adds values of different units, {one} and {other}")
        return found


def calculated(operator: ast.operator, left: Fraction, right: Fraction, text: str) -> Fraction:
    """What one of ``+ - * / // % **`` makes of two numbers, exactly. text: the whole expression, for messages.

    Raises SpecError for other operators, divisions by zero, exponents beyond 64 and numbers beyond 4096 bits.
    """
    power = isinstance(operator, ast.Pow)
    if power and (right.denominator != 1 or abs(right) > MAX_EXPONENT):
        raise SpecError(f"an exponent must be an integer of at most {MAX_EXPONENT} in {text!r}")
    if (left == 0 and right < 0) if power else (right == 0 and isinstance(operator, ast.Div | ast.FloorDiv | ast.Mod)):
        raise SpecError(f"division by zero in {text!r}")
    if power and max(left.numerator.bit_length(), left.denominator.bit_length()) * abs(right) > MAX_NUMBER_BITS:
        raise SpecError(f"a number in {text!r} is too large")
    if type(operator) not in _OPERATORS:
        raise SpecError(f"{text!r} is not arithmetic: only + - * / // % ** are read here")
    return _bounded(_OPERATORS[type(operator)](left, right), text)


_OPERATORS: dict[type[ast.operator], Callable[[Fraction, Fraction], Fraction]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.Div: lambda a, b: a / b,
    ast.FloorDiv: lambda a, b: Fraction(a // b),
    ast.Mod: lambda a, b: a % b,
    ast.Pow: lambda a, b: Fraction(a ** int(b)),
}


def _bounded(number: Fraction, text: str) -> Fraction:
    if max(number.numerator.bit_length(), number.denominator.bit_length()) > MAX_NUMBER_BITS:
        raise SpecError(f"a number in {text!r} is too large")
    return number
