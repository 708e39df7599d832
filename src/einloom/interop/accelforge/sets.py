"""Set expressions both ways: einloom's selectors as AccelForge's, and back.

The names mean: ``All`` every tensor of the Einsum, ``Intermediates`` those that some Einsum writes and some reads,
``Inputs`` and ``Outputs`` of the Einsum at hand, ``Above`` (or the name of the only memory further out) what is held
further out. ``input``, ``weight`` and ``output`` are renames over there and roles here.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Mapping, Sequence

from ...errors import SpecError, nearest
from ...machine.levels import Memory
from ...reading.arithmetic import parsed
from ...workload.selectors import Selector, selector

COPIED = "Copied"
PRODUCT = "Product"
_OUT: Mapping[str, str] = {
    "all": "All",
    "nothing": "Nothing",
    "input": "input",
    "weight": "weight",
    "output": "output",
    "intermediate": "Intermediates",
    "cascade_input": "(Inputs - Intermediates)",
    "cascade_output": "(Outputs - Intermediates)",
    "persistent": "Persistent",
    "copy": COPIED,
    "unheld": "~Above",
}
_IN: Mapping[str, str] = {
    "All": "all",
    "Tensors": "all",
    "Nothing": "nothing",
    "Inputs": "~output",
    "Outputs": "output",
    "Intermediates": "intermediate",
    "Persistent": "persistent",
    "Above": "~unheld",
    COPIED: "copy",
    "input": "input",
    "weight": "weight",
    "output": "output",
}
_SPECIAL = {
    "(~output) & ~intermediate": "cascade_input",
    "output & ~intermediate": "cascade_output",
}
MAX_SET_LENGTH = 2000


def set_names() -> tuple[str, ...]:
    """The words with which AccelForge names sets, those that `write` adds included."""
    return (*_IN, *_OUT.values(), PRODUCT)


def exported_set(which: Selector) -> str:
    """The selector as AccelForge writes it.

    >>> exported_set(selector("(input | output) & ~copy"))
    '(input | output) & ~Copied'
    """
    text = _written(which.tree, 0)
    return text[1:-1] if text.startswith("(") and text in _OUT.values() else text


def _written(node: tuple[object, ...], binding: int) -> str:
    if node[0] == "name":
        text = _OUT.get(str(node[1]), str(node[1]))
        return text[1:] if binding == 3 and text.startswith("~") else text
    children = [child for child in node[1:] if isinstance(child, tuple)]
    if node[0] == "not":
        inner = children[0]
        if inner == ("name", "unheld"):
            return "Above"
        return f"~{_written(inner, 2)}"
    level, sign = (1, " & ") if node[0] == "and" else (0, " | ")
    text = sign.join(_written(child, level) for child in children)
    return f"({text})" if binding > level else text


def imported_set(text: str, above: Sequence[str], known: Collection[str] = ()) -> Selector:
    """The selector that an AccelForge set expression means.

    >>> imported_set("~MainMemory.tensors", ["MainMemory"]).text
    'unheld'

    above: names of the memories further out; their names stand for what they hold. known: names of tensors (empty:
    any name may be one). Raises SpecError for anything else than names, ``| & - ~``, parentheses and these.
    """
    if len(text) > MAX_SET_LENGTH:
        raise SpecError(f"a set expression may have at most {MAX_SET_LENGTH} characters, this one has {len(text)}")
    tree = parsed(text.strip(), f"cannot read {text[:80]!r} as a set expression")
    found = _Reader(text, tuple(above), known).read(tree)
    found = _SPECIAL.get(found, found)
    return selector(found[1:-1] if found.startswith("(") and _wrapped(found) else found)


def _wrapped(text: str) -> bool:
    """True if the first parenthesis closes at the end."""
    depth = 0
    for i, sign in enumerate(text):
        depth += (sign == "(") - (sign == ")")
        if depth == 0:
            return i == len(text) - 1
    return False


class _Reader:
    """Turns the syntax tree of a set expression into a selector's text."""

    def __init__(self, text: str, above: tuple[str, ...], known: Collection[str]) -> None:
        self.text, self.above, self.known = text, above, known

    def read(self, node: ast.expr) -> str:
        match node:
            case ast.Name(id=name):
                return self.name(name)
            case ast.Attribute(value=ast.Name(id=name), attr="tensors") if name in self.above:
                return self.name(name)
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="tensors"), args=[]) if name in self.above:
                return self.name(name)
            case ast.UnaryOp(op=ast.Invert(), operand=operand):
                return _complement(self.read(operand))
            case ast.BinOp(left=left, op=ast.BitOr(), right=right):
                return f"{self.read(left)} | {self.read(right)}"
            case ast.BinOp(left=left, op=ast.BitAnd(), right=right):
                return f"{_bound(self.read(left))} & {_bound(self.read(right))}"
            case ast.BinOp(left=left, op=ast.Sub(), right=right):
                return f"{_bound(self.read(left))} & {_complement(self.read(right))}"
        raise SpecError(f"{self.text!r} is no set expression: only names and the operators | & - ~ are read here")

    def name(self, name: str) -> str:
        if name in _IN:
            return _IN[name] if not (name == "Above" and not self.above) else "nothing"
        if name in self.above:
            if len(self.above) > 1:
                raise SpecError(
                    f"{self.text!r}: what {name} holds has no selector here, as {', '.join(self.above)} stand further "
                    "out; only 'Above' (what any of them holds) has"
                )
            return "~unheld"
        if self.known and name not in self.known:
            names = [*_IN, *self.above, *self.known]
            raise SpecError(f"unknown name {name!r} in {self.text!r}", suggestion=nearest(name, names))
        return name


def _bound(text: str) -> str:
    return f"({text})" if " | " in text and not _wrapped(text) else text


def _complement(text: str) -> str:
    if text.startswith("~") and " " not in text:
        return text[1:]
    return f"~({text})" if " " in text and not (text.startswith("(") and _wrapped(text)) else f"~{text}"


def always_held_above(above: Sequence[Memory]) -> bool:
    """True if some memory further out must hold every tensor that is not held still further out."""
    return any(memory.must.text in ("all", "unheld") for memory in above)
