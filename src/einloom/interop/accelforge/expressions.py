"""Expressions in AccelForge's files, evaluated without executing anything.

Templates and values hold Python-like text: ``range(N + 1)``, ``1024*64*8``, ``weight.bits_per_value if weight else 0``.
The text is parsed with Python's own parser and walked node by node; only what is listed here has a meaning, every loop
and number is bounded, attributes exist only for the objects of this module, and nothing is called but these functions.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from operator import and_, ge, gt, le, lt, or_, sub
from typing import TypeAlias, TypeGuard

from ...dataclass import dataclass
from ...errors import SpecError, nearest
from ...reading.arithmetic import calculated, exact, parsed
from ...reading.located import Located

MAX_LENGTH = 2000
MAX_ITEMS = 10_000
MAX_STRING = 10_000
MAX_STEPS = 20_000

Value: TypeAlias = "Fraction | float | bool | str | list[Value] | dict[Value, Value] | TensorSet | None"


@dataclass(frozen=True, slots=True)
class Undefined:
    """A name that the table lacks; only ``default`` and ``is defined`` may meet it."""

    name: str
    suggestion: str | None


@dataclass(frozen=True, slots=True)
class TensorSet:
    """Tensors of one Einsum, within all of its tensors; ``bits`` is the width of their values if they agree."""

    names: frozenset[str]
    space: frozenset[str]
    bits: Mapping[str, int]

    def of(self, names: frozenset[str]) -> TensorSet:
        return TensorSet(names, self.space, self.bits)

    def attribute(self, name: str) -> Value:
        """``bits_per_value`` of the tensors in the set, or the set itself as ``tensors``."""
        if name == "tensors":
            return self
        if name != "bits_per_value":
            close = nearest(name, ["bits_per_value", "tensors"])
            raise SpecError(f"a set of tensors has no {name!r}", suggestion=close)
        widths = {self.bits[tensor] for tensor in self.names}
        if len(widths) != 1:
            listed = ", ".join(sorted(self.names)) or "no tensor"
            raise SpecError(f"'bits_per_value' needs tensors of one width; the set holds {listed}")
        return Fraction(widths.pop())


def evaluate(text: str, names: Mapping[str, Value]) -> Value:
    """The value of an expression over the table `names`.

    >>> evaluate("[2 * n for n in range(3)][1] if m > 1 else 0", {"m": Fraction(2)})
    Fraction(2, 1)

    Raises SpecError for anything outside the little language above, for unknown names, and for what would get too
    large or take too long.
    """
    return ExpressionEvaluator(text, names).run()


def parse(text: str) -> ast.expr:
    """The syntax tree of an expression; SpecError if it is none or too long."""
    if len(text) > MAX_LENGTH:
        raise SpecError(f"an expression may have at most {MAX_LENGTH} characters, this one has {len(text)}")
    return parsed(" ".join(text.split()), f"cannot read {text[:80]!r} as an expression")


class ExpressionEvaluator:
    """One evaluation: the text (for messages), the names, and the steps that are left."""

    def __init__(self, text: str, names: Mapping[str, Value]) -> None:
        self.text = text if len(text) <= 80 else text[:77] + "..."
        self.tree = parse(text)
        self.names = names  # looked up one by one: a table may evaluate its names only when asked
        self.bound: dict[str, Value] = {}
        self.steps = MAX_STEPS

    def run(self) -> Value:
        try:
            found = self.value(self.tree)
        except RecursionError:
            raise SpecError(f"{self.text!r} is nested too deep") from None
        return self.defined(found)

    def defined(self, found: Value | Undefined) -> Value:
        if isinstance(found, Undefined):
            raise SpecError(f"unknown name {found.name!r} in {self.text!r}", suggestion=found.suggestion)
        return found

    def get(self, node: ast.expr) -> Value:
        return self.defined(self.value(node))

    def value(self, node: ast.expr) -> Value | Undefined:
        self.steps -= 1
        if self.steps < 0:
            raise SpecError(f"{self.text!r} takes too many steps")
        match node:
            case ast.Constant(value=constant):
                return self.constant(constant)
            case ast.Name(id=name):
                return self.name(name)
            case ast.Attribute(value=inner, attr=name):
                found = self.get(inner)
                if isinstance(found, TensorSet):
                    return found.attribute(name)
            case ast.IfExp(test=test, body=body, orelse=other):
                return self.value(body if truth(self.get(test)) else other)
            case ast.BoolOp(op=operator, values=values):
                return self.boolean(isinstance(operator, ast.And), values)
            case ast.UnaryOp(op=operator, operand=operand):
                return self.unary(operator, self.get(operand))
            case ast.BinOp(
                left=left, op=ast.BitOr(), right=ast.Name(id=name) | ast.Call(func=ast.Name(id=name)) as right
            ) if name == "default" or name in _FILTERS:
                return self.filtered(self.value(left), name, getattr(right, "args", []))
            case ast.BinOp(left=left, op=operator, right=right):
                return self.binary(operator, self.get(left), self.get(right))
            case ast.Compare(left=left, ops=operators, comparators=others):
                return self.compared(left, operators, others)
            case ast.Call():
                return self.call(node)
            case ast.List(elts=elements) | ast.Tuple(elts=elements):
                return [self.get(element) for element in elements]
            case ast.Dict(keys=keys, values=values) if all(key is not None for key in keys):
                pairs = zip(keys, values, strict=True)
                return {_key(self.get(key)): self.get(value) for key, value in pairs if key is not None}
            case ast.ListComp(elt=element, generators=[one]) | ast.GeneratorExp(elt=element, generators=[one]):
                return self.comprehension(element, one)
            case ast.Subscript(value=inner, slice=index):
                return self.item(self.get(inner), self.get(index))
        raise self.refused(node)

    def refused(self, node: ast.AST) -> SpecError:
        shown = ast.unparse(node)
        shown = shown if len(shown) <= 60 else shown[:57] + "..."
        return SpecError(f"{shown!r} is not evaluated here (in {self.text!r})")

    def constant(self, constant: object) -> Value:
        if constant is None or isinstance(constant, bool):
            return constant
        if isinstance(constant, int | float):
            return exact(constant)
        if isinstance(constant, str) and len(constant) <= MAX_STRING:
            return constant
        raise SpecError(f"{constant!r:.40} has no place in {self.text!r}")

    def name(self, name: str) -> Value | Undefined:
        if name in self.bound:
            return self.bound[name]
        if name in self.names:
            return self.names[name]
        if name in _CONSTANTS:
            return _CONSTANTS[name]
        return Undefined(name, nearest(name, [*self.bound, *self.names, *_FUNCTIONS]))

    def boolean(self, conjunction: bool, values: list[ast.expr]) -> Value:
        found: Value = conjunction
        for node in values:
            found = self.get(node)
            if truth(found) is not conjunction:
                return found
        return found

    def unary(self, operator: ast.unaryop, found: Value) -> Value:
        if isinstance(operator, ast.Not):
            return not truth(found)
        if isinstance(operator, ast.Invert) and isinstance(found, TensorSet):
            return found.of(found.space - found.names)
        if isinstance(operator, ast.USub | ast.UAdd) and is_number(found):
            return -found if isinstance(operator, ast.USub) else found
        raise SpecError(f"an operator in {self.text!r} does not fit its operand")

    def binary(self, operator: ast.operator, left: Value, right: Value) -> Value:
        if isinstance(left, TensorSet) and isinstance(right, TensorSet) and type(operator) in _OF_SETS:
            return left.of(_OF_SETS[type(operator)](left.names, right.names))
        if is_number(left) and is_number(right):
            return self.arithmetic(operator, left, right)
        if isinstance(operator, ast.Add):
            if isinstance(left, str) and isinstance(right, str) and len(left) + len(right) <= MAX_STRING:
                return left + right
            if isinstance(left, list) and isinstance(right, list) and len(left) + len(right) <= MAX_ITEMS:
                return left + right
        if isinstance(operator, ast.Mult) and isinstance(left, list) and isinstance(right, Fraction):
            return self.repeated(left, right)
        raise SpecError(f"an operator in {self.text!r} does not fit its operands")

    def repeated(self, items: list[Value], times: Fraction) -> Value:
        if times.denominator != 1 or times < 0 or times > MAX_ITEMS or len(items) * times > MAX_ITEMS:
            raise SpecError(f"a list in {self.text!r} is repeated too often or no whole number of times")
        return items * int(times)

    def arithmetic(self, operator: ast.operator, left: Fraction | float, right: Fraction | float) -> Value:
        if isinstance(left, float) or isinstance(right, float):
            return self.unlimited(operator, float(left), float(right))
        return calculated(operator, left, right, self.text)

    def unlimited(self, operator: ast.operator, left: float, right: float) -> Value:
        """Arithmetic with ``inf``."""
        match operator:
            case ast.Mult() if left != 0 and right != 0:
                return left * right
            case ast.Add():
                found = left + right
            case ast.Sub():
                found = left - right
            case ast.Div() if right != 0 and math.isfinite(left):
                return Fraction(0)
            case ast.Div() if right != 0 and math.isfinite(right):
                return left / right
            case _:
                found = math.nan
        if math.isnan(found):
            raise SpecError(f"{self.text!r} has no value: infinity in the wrong place")
        return found

    def compared(self, left: ast.expr, operators: list[ast.cmpop], others: list[ast.expr]) -> Value:
        first = self.value(left)
        for operator, node in zip(operators, others, strict=True):
            if not isinstance(operator, ast.Is | ast.IsNot):
                second = self.get(node)
                if not self.holds(operator, self.defined(first), second):
                    return False
                first = second
                continue
            if not isinstance(node, ast.Name) or node.id not in ("defined", "undefined", "none"):
                raise self.refused(node)
            answer = first is None if node.id == "none" else isinstance(first, Undefined) is (node.id == "undefined")
            if answer is isinstance(operator, ast.IsNot):
                return False
        return True

    def holds(self, operator: ast.cmpop, left: Value, right: Value) -> bool:
        match operator:
            case ast.Eq():
                return left == right
            case ast.NotEq():
                return left != right
            case ast.In() | ast.NotIn() if isinstance(right, list | dict):
                return (left in right) is isinstance(operator, ast.In)
            case ast.In() | ast.NotIn() if isinstance(left, str) and isinstance(right, str):
                return (left in right) is isinstance(operator, ast.In)
        if not (is_number(left) and is_number(right)):
            raise SpecError(f"a comparison in {self.text!r} needs numbers")
        if type(operator) not in _OF_NUMBERS:
            raise SpecError(f"a comparison in {self.text!r} is not known here")
        return _OF_NUMBERS[type(operator)](left, right)

    def call(self, node: ast.Call) -> Value:
        if isinstance(node.func, ast.Name) and node.func.id not in _FUNCTIONS:
            name = node.func.id
            raise SpecError(f"{name!r} is no function that is known here", suggestion=nearest(name, _FUNCTIONS))
        if node.keywords:
            raise self.refused(node)
        arguments = [self.get(argument) for argument in node.args]
        match node.func:
            case ast.Name(id=name):
                try:
                    return _FUNCTIONS[name](*arguments)
                except (TypeError, ValueError, OverflowError):
                    raise SpecError(f"{name}(...) in {self.text!r} does not fit its arguments") from None
            case ast.Attribute(value=inner, attr=name):
                if not arguments and (text := ast.unparse(node)) in self.names:
                    return self.names[text]  # a question that the table answers: Macro.get_fanout()
                found = self.get(inner)
                if isinstance(found, dict) and not arguments and name in ("items", "keys", "values"):
                    return _entries(found, name)
                if isinstance(found, TensorSet) and not arguments and name == "tensors":
                    return found
        raise self.refused(node)

    def comprehension(self, element: ast.expr, one: ast.comprehension) -> Value:
        if not isinstance(one.target, ast.Name) or one.is_async:
            raise self.refused(one.target)
        items = self.get(one.iter)
        if not isinstance(items, list):
            raise self.refused(one.iter)
        name, before = one.target.id, dict(self.bound)
        found: list[Value] = []
        for item in items:
            self.bound[name] = item
            if all(truth(self.get(test)) for test in one.ifs):
                found.append(self.get(element))
        self.bound = before
        return found

    def item(self, found: Value, index: Value) -> Value:
        if isinstance(found, dict) and _key(index) in found:
            return found[_key(index)]
        whole = isinstance(index, Fraction) and index.denominator == 1
        if isinstance(found, list) and isinstance(index, Fraction) and whole and -len(found) <= index < len(found):
            return found[int(index)]
        raise SpecError(f"{self.text!r}: there is no such element")

    def filtered(self, found: Value | Undefined, name: str, nodes: list[ast.expr]) -> Value:
        """``x | default(1)``, ``x | int`` and the like."""
        arguments = [self.get(node) for node in nodes]
        if name == "default":
            if len(arguments) != 1:
                raise SpecError(f"'default' in {self.text!r} needs one value")
            return arguments[0] if isinstance(found, Undefined) else found
        return _FILTERS[name](self.defined(found))


def truth(value: Value) -> bool:
    """Whether a value counts as true: not zero, not empty, not none."""
    return bool(value.names) if isinstance(value, TensorSet) else bool(value)


def is_number(value: Value | Undefined) -> TypeGuard[Fraction | float]:
    """True for numbers, not for booleans."""
    return isinstance(value, Fraction | float)


def whole(view: Located, names: Mapping[str, Value]) -> int:
    """A positive whole number, plain or as an expression."""
    if not view.is_text:
        return view.integer(minimum=1)
    with view.placed():
        return positive_integer(view.text(), names)


def positive_integer(text: str, names: Mapping[str, Value]) -> int:
    """The value of an expression that must be a whole number of at least 1."""
    found = evaluate(text, names)
    if not isinstance(found, Fraction) or found.denominator != 1 or found < 1:
        raise SpecError(f"{text!r:.60} is no positive whole number")
    return int(found)


def shown(value: Value) -> str:
    """The value as a template prints it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Fraction):
        return str(int(value)) if value.denominator == 1 else repr(float(value))
    if isinstance(value, float):
        return "inf" if value > 0 else "-inf"
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return f"[{', '.join(shown(item) for item in value)}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{shown(key)}: {shown(item)}' for key, item in value.items())}}}"
    raise SpecError(f"a {type(value).__name__} cannot be printed")


def _key(value: Value) -> Value:
    if isinstance(value, list | dict | TensorSet):
        raise SpecError("a key must be text or a number")
    return value


def _entries(table: dict[Value, Value], what: str) -> list[Value]:
    if what == "items":
        return [[key, value] for key, value in table.items()]
    return list(table if what == "keys" else table.values())


def _range(*bounds: Value) -> Value:
    numbers = [_whole(bound) for bound in bounds]
    if not 1 <= len(numbers) <= 3 or (len(numbers) == 3 and numbers[2] == 0):
        raise ValueError
    span = range(*numbers)
    if len(span) > MAX_ITEMS:
        raise SpecError(f"a range of {len(span)} numbers; at most {MAX_ITEMS} are read")
    return [Fraction(i) for i in span]


def _whole(value: Value) -> int:
    if not isinstance(value, Fraction) or value.denominator != 1:
        raise ValueError
    return int(value)


def _integer(value: Value) -> Value:
    if isinstance(value, str):
        return Fraction(int(value[:100]))
    if not isinstance(value, Fraction):
        raise ValueError
    return Fraction(math.trunc(value))


def _rounded(rounding: Callable[[Fraction], int]) -> Callable[[Value], Value]:
    def apply(value: Value) -> Value:
        if not isinstance(value, Fraction):
            raise ValueError
        return Fraction(rounding(value))

    return apply


def _log2(value: Value) -> Value:
    """Exact for powers of two, else as good as a double."""
    if not isinstance(value, Fraction) or value <= 0:
        raise ValueError
    whole = value.numerator.bit_length() - value.denominator.bit_length()
    return Fraction(whole) if Fraction(2) ** whole == value else exact(math.log2(value))


def _numbers(values: tuple[Value, ...]) -> list[Fraction | float]:
    items = values[0] if len(values) == 1 and isinstance(values[0], list) else list(values)
    found = [item for item in items if isinstance(item, Fraction | float)]
    if len(found) != len(items):
        raise ValueError
    return found


def _length(value: Value) -> Value:
    if isinstance(value, TensorSet):
        return Fraction(len(value.names))
    if not isinstance(value, str | list | dict):
        raise ValueError
    return Fraction(len(value))


_OF_SETS: dict[type[ast.operator], Callable[..., frozenset[str]]] = {ast.BitOr: or_, ast.BitAnd: and_, ast.Sub: sub}
_OF_NUMBERS: dict[type[ast.cmpop], Callable[..., bool]] = {ast.Lt: lt, ast.LtE: le, ast.Gt: gt, ast.GtE: ge}
_CONSTANTS: dict[str, Value] = {"inf": math.inf, "true": True, "false": False, "none": None, "pi": exact(math.pi)}
_FUNCTIONS: dict[str, Callable[..., Value]] = {
    "range": _range,
    "len": _length,
    "int": _integer,
    "min": lambda *values: min(_numbers(values)),
    "max": lambda *values: max(_numbers(values)),
    "sum": lambda values: sum(_numbers((values,)), Fraction(0)),
    "ceil": _rounded(math.ceil),
    "floor": _rounded(math.floor),
    "round": _rounded(round),
    "log2": _log2,
    "dict": dict,
    "list": list,
}
_FILTERS: dict[str, Callable[[Value], Value]] = {"int": _integer, "length": _length, "round": _rounded(round)}
