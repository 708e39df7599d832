"""Every one-place change of a function: its source in, `Change`s out.

A change replaces one piece of text by another, so that the file still parses and its syntax tree differs. Left alone
are docstrings, annotations, decorators, messages of errors, and f-strings, whose parts have no place in a file.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

OPERATORS: dict[type[ast.AST], tuple[str, tuple[str, ...]]] = {
    ast.Lt: ("<", ("<=", ">=")),
    ast.LtE: ("<=", ("<", ">")),
    ast.Gt: (">", (">=", "<=")),
    ast.GtE: (">=", (">", "<")),
    ast.Eq: ("==", ("!=",)),
    ast.NotEq: ("!=", ("==",)),
    ast.In: ("in", ("not in",)),
    ast.NotIn: ("not in", ("in",)),
    ast.Is: ("is", ("is not",)),
    ast.IsNot: ("is not", ("is",)),
    ast.Add: ("+", ("-",)),
    ast.Sub: ("-", ("+",)),
    ast.Mult: ("*", ("//", "+")),
    ast.FloorDiv: ("//", ("*",)),
    ast.Div: ("/", ("*",)),
    ast.Mod: ("%", ("//",)),
    ast.Pow: ("**", ("*",)),
    ast.BitAnd: ("&", ("|",)),
    ast.BitOr: ("|", ("&",)),
    ast.And: ("and", ("or",)),
    ast.Or: ("or", ("and",)),
}
TWINS = {"min": "max", "minimum": "maximum", "any": "all", "fmin": "fmax", "argmin": "argmax", "floor": "ceil"}
TWINS |= {other: one for one, other in TWINS.items()}
UNORDERED = ("min", "max", "minimum", "maximum", "gcd", "lcm", "isclose", "isinstance", "getattr", "hasattr")
DEFAULTS = {
    "int": "0",
    "float": "0.0",
    "str": "''",
    "bytes": "b''",
    "list": "[]",
    "dict": "{}",
    "tuple": "()",
    "set": "set()",
}


@dataclass(frozen=True, slots=True)
class Change:
    """One change. function: dotted, from the top of the file. start, end: the bytes that `after` replaces."""

    file: str
    function: str
    line: int
    kind: str
    start: int
    end: int
    before: str
    after: str

    def applied(self, source: str) -> str:
        """The source with the change made."""
        raw = source.encode()
        return (raw[: self.start] + self.after.encode() + raw[self.end :]).decode()


@dataclass(frozen=True)
class Source:
    """A file that may be changed."""

    file: str
    text: str

    @cached_property
    def raw(self) -> bytes:
        return self.text.encode()

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text)

    @cached_property
    def _starts(self) -> list[int]:
        return [0, *(found.end() for found in re.finditer(rb"\n", self.raw))]

    def at(self, line: int, column: int) -> int:
        """The byte at a place of the syntax tree, whose columns count bytes."""
        return self._starts[line - 1] + column

    def span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        assert node.end_lineno is not None and node.end_col_offset is not None
        return self.at(node.lineno, node.col_offset), self.at(node.end_lineno, node.end_col_offset)

    def piece(self, start: int, end: int) -> str:
        return self.raw[start:end].decode()

    def line(self, byte: int) -> int:
        return self.raw.count(b"\n", 0, byte) + 1


Function = ast.FunctionDef | ast.AsyncFunctionDef
Edit = tuple[str, int, int, str]
"""Kind, first byte, byte after the last, new text."""


def functions(tree: ast.Module) -> Iterator[tuple[str, Function]]:
    """Every function with its dotted name, methods and inner functions too."""

    def walk(node: ast.AST, prefix: str) -> Iterator[tuple[str, Function]]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, Function | ast.ClassDef):
                name = f"{prefix}{child.name}"
                if not isinstance(child, ast.ClassDef):
                    yield name, child
                yield from walk(child, f"{name}.")
            else:
                yield from walk(child, prefix)

    return walk(tree, "")


def changes(source: Source) -> dict[str, list[Change]]:
    """The changes of each function of a file, by its name; functions that offer none are left out.

    Some may not parse or be the same program; `counts` tells.
    """
    found: dict[str, list[Change]] = {}
    for name, function in functions(source.tree):
        for kind, start, end, after in _edits(source, function):
            change = Change(source.file, name, source.line(start), kind, start, end, source.piece(start, end), after)
            found.setdefault(name, []).append(change)
    return found


def counts(source: Source, change: Change) -> bool:
    """True if the changed file is a program, and another one."""
    try:
        return ast.dump(ast.parse(change.applied(source.text))) != ast.dump(source.tree)
    except SyntaxError:
        return False


def _edits(source: Source, function: Function) -> Iterator[Edit]:
    for node in _nodes(function):
        yield from _of_node(source, node, function)


def _nodes(function: Function) -> Iterator[ast.AST]:
    """The nodes of a function's own body, with what is left alone left out."""
    body = function.body
    if (
        isinstance(body[0], ast.Expr)
        and isinstance(body[0].value, ast.Constant)
        and isinstance(body[0].value.value, str)
    ):
        body = body[1:]
    waiting: list[ast.AST] = [*reversed(body)]
    while waiting:
        node = waiting.pop()
        if isinstance(node, Function | ast.ClassDef | ast.JoinedStr | ast.Raise | ast.Import | ast.ImportFrom):
            continue
        yield node
        children = list(ast.iter_child_nodes(node))
        if isinstance(node, ast.AnnAssign):
            children = [child for child in children if child is not node.annotation]
        if isinstance(node, ast.Assert):
            children = [node.test]
        waiting += reversed(children)


def _of_node(source: Source, node: ast.AST, function: Function) -> Iterator[Edit]:
    match node:
        case ast.Compare(left=left, ops=ops, comparators=comparators):
            operands = [left, *comparators]
            for one, operator, other in zip(operands, ops, operands[1:], strict=False):
                yield from _turned(source, "comparison", one, operator, other)
        case ast.BinOp(left=left, op=operator, right=right):
            if not (_is_text(left) or _is_text(right) or _are_types(source, left, right)):
                yield from _turned(source, "arithmetic", left, operator, right)
        case ast.AugAssign(target=target, op=operator, value=value):
            yield from _turned(source, "arithmetic", target, operator, value)
            yield ("statement", *source.span(node), "pass")
        case ast.BoolOp(op=operator, values=values):
            for one, other in pairwise(values):
                yield from _turned(source, "and/or", one, operator, other)
                yield "condition", source.span(one)[0], source.span(other)[0], ""
            yield "condition", source.span(values[-2])[1], source.span(values[-1])[1], ""
        case ast.UnaryOp(op=ast.Not() | ast.USub() as operator, operand=operand):
            kind = "not" if isinstance(operator, ast.Not) else "minus"
            yield kind, source.span(node)[0], source.span(operand)[0], ""
        case ast.Constant(value=bool(value)):
            yield ("boolean", *source.span(node), str(not value))
        case ast.Constant(value=int(value)):
            yield ("constant", *source.span(node), str(value + 1))
            yield ("constant", *source.span(node), str(value - 1) if value else "-1")
        case ast.Name(id=name) | ast.Attribute(attr=name) if name in TWINS and isinstance(node.ctx, ast.Load):  # type: ignore[union-attr]
            end = source.span(node)[1]  # type: ignore[arg-type]
            yield "min/max", end - len(name), end, TWINS[name]
        case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test):
            for value in ("True", "False") if not isinstance(node, ast.While) else ("False",):
                yield ("condition", *source.span(test), value)
        case ast.comprehension(ifs=ifs):
            for test in ifs:
                yield ("condition", *source.span(test), "True")
        case ast.Return(value=ast.expr() as value):
            for text in _defaults(value, function):
                yield ("return", *source.span(value), text)
        case ast.Call(args=[_, _, *_] as args) if _ordered(node, args):
            for one, other in pairwise(args):
                yield _swapped(source, one, other)
        case ast.Expr(value=ast.Call()):
            yield ("statement", *source.span(node), "pass")
        case ast.Continue():
            yield ("loop", *source.span(node), "break")
        case ast.Break():
            yield ("loop", *source.span(node), "continue")


def _turned(source: Source, kind: str, one: ast.expr, operator: ast.AST, other: ast.expr) -> Iterator[Edit]:
    """The operator between two operands turned into others."""
    text, others = OPERATORS.get(type(operator), ("", ()))
    start, end = source.span(one)[1], source.span(other)[0]
    pattern = r"\s+".join(map(re.escape, text.split()))
    found = re.search(rf"\b{pattern}\b" if text[:1].isalpha() else pattern, source.piece(start, end))
    if text and found is not None:
        for new in others:
            yield kind, start + found.start(), start + found.end(), new


def _swapped(source: Source, one: ast.expr, other: ast.expr) -> Edit:
    (a, b), (c, d) = source.span(one), source.span(other)
    return "argument", a, d, source.piece(c, d) + source.piece(b, c) + source.piece(a, b)


def _defaults(value: ast.expr, function: Function) -> Iterator[str]:
    """What a function that did nothing would return, by its annotation."""
    said = "" if function.returns is None else ast.unparse(function.returns)
    if said == "bool":
        yield f"not ({ast.unparse(value)})"
        return
    default = next((text for name, text in DEFAULTS.items() if re.match(rf"{name}\b", said)), "None")
    if ast.unparse(value) != default:
        yield default


def _ordered(call: ast.Call, args: list[ast.expr]) -> bool:
    """True for arguments whose order a mistake could be in: not of `min`, not of isinstance, which would only fail."""
    function = call.func
    name = function.id if isinstance(function, ast.Name) else getattr(function, "attr", "")
    return name not in UNORDERED and not any(isinstance(arg, ast.Starred) for arg in args)


def _are_types(source: Source, left: ast.expr, right: ast.expr) -> bool:
    """True for ``Loop | Split``, a union of classes."""
    names = [source.piece(*source.span(node)).rpartition(".")[2] for node in (left, right)]
    return all(name[:1].isupper() and name.isidentifier() for name in names)


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))
