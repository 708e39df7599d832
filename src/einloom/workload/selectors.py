"""Selectors: small set expressions that say which tensors a limit speaks of, as plain data.

Machine and mapspace files carry them; `select` evaluates one for one Einsum. Grammar, `|` weakest::

    expression := term ('|' term)*      term := factor ('&' factor)*
    factor := '~' factor | '(' expression ')' | NAME

Names: ``all``, ``nothing``; roles ``input``, ``weight``, ``output`` (of the Einsum at hand); ``intermediate``,
``cascade_input``, ``cascade_output``, ``persistent``; ``copy`` (every tensor, if the Einsum is a copy);
``unheld`` (tensors that no memory further out holds); any other name is a tensor's.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from functools import lru_cache

from ..dataclass import dataclass
from ..errors import SpecError
from .einsum import Workload

KEYWORDS: Mapping[str, Callable[[Workload, str, str, frozenset[str]], bool]] = {
    "all": lambda workload, einsum, tensor, held: True,
    "nothing": lambda workload, einsum, tensor, held: False,
    "input": lambda workload, einsum, tensor, held: workload.role(einsum, tensor) == "input",
    "weight": lambda workload, einsum, tensor, held: workload.role(einsum, tensor) == "weight",
    "output": lambda workload, einsum, tensor, held: workload.role(einsum, tensor) == "output",
    "intermediate": lambda workload, einsum, tensor, held: (
        tensor in workload.producers and bool(workload.consumers[tensor])
    ),
    "cascade_input": lambda workload, einsum, tensor, held: tensor not in workload.producers,
    "cascade_output": lambda workload, einsum, tensor, held: tensor in workload.outputs,
    "persistent": lambda workload, einsum, tensor, held: workload.tensor(tensor).persistent,
    "copy": lambda workload, einsum, tensor, held: workload.einsum(einsum).kind == "copy",
    "unheld": lambda workload, einsum, tensor, held: tensor not in held,
}
"""Words with a meaning of their own, and which tensors of an Einsum they name; held: by memories further out."""
_TOKEN = re.compile(r"\s*(?:([A-Za-z_][A-Za-z0-9_.]*)|([|&~()]))")
_OPERATORS = (("|", "or"), ("&", "and"))
MAX_SELECTOR_LENGTH = 2000


@dataclass(frozen=True, slots=True)
class Selector:
    """A parsed set expression; `text` is what the user wrote, `tree` nested tuples of operators and names."""

    text: str
    tree: tuple[object, ...]

    def __str__(self) -> str:
        return self.text

    @property
    def names(self) -> tuple[str, ...]:
        """All names in the expression, keywords included."""
        return tuple(match[1] for match in _TOKEN.finditer(self.text) if match[1])


@lru_cache(maxsize=4096)
def selector(text: str) -> Selector:
    """Parse a set expression.

    >>> selector("~intermediate | I").names
    ('intermediate', 'I')

    Raises SpecError for anything that is not in the grammar.
    """
    if len(text) > MAX_SELECTOR_LENGTH:
        raise SpecError(f"a selector may have at most {MAX_SELECTOR_LENGTH} characters, this one has {len(text)}")
    tokens: list[str] = []
    position = 0
    stripped = text.rstrip()
    while position < len(stripped):
        match = _TOKEN.match(stripped, position)
        if match is None:
            raise SpecError(f"selector {text!r}: unexpected {stripped[position:].strip()[0]!r}")
        tokens.append(match.group(1) or match.group(2))
        position = match.end()
    if not tokens:
        raise SpecError("a selector may not be empty; write 'nothing' for the empty set")
    if tokens.count("(") > 50 or tokens.count("~") > 50:
        raise SpecError("a selector may hold at most 50 parentheses and 50 complements")
    tree, rest = _expression(tokens, 0, text)
    if rest != len(tokens):
        raise SpecError(f"selector {text!r}: unexpected {tokens[rest]!r}")
    return Selector(text, tree)


def _expression(tokens: list[str], at: int, text: str, binding: int = 0) -> tuple[tuple[object, ...], int]:
    """binding: of the operators, weakest first, those before this one are left to whoever asked."""
    if binding == len(_OPERATORS):
        return _factor(tokens, at, text)
    sign, word = _OPERATORS[binding]
    node, at = _expression(tokens, at, text, binding + 1)
    parts = [node]
    while at < len(tokens) and tokens[at] == sign:
        node, at = _expression(tokens, at + 1, text, binding + 1)
        parts.append(node)
    return (parts[0] if len(parts) == 1 else (word, *parts)), at


def _factor(tokens: list[str], at: int, text: str) -> tuple[tuple[object, ...], int]:
    if at >= len(tokens):
        raise SpecError(f"selector {text!r} ends too early")
    token = tokens[at]
    if token == "~":
        node, at = _factor(tokens, at + 1, text)
        return ("not", node), at
    if token == "(":
        node, at = _expression(tokens, at + 1, text)
        if at >= len(tokens) or tokens[at] != ")":
            raise SpecError(f"selector {text!r}: a parenthesis is not closed")
        return node, at + 1
    if token in "|&)":
        raise SpecError(f"selector {text!r}: unexpected {token!r}")
    return ("name", token), at + 1


NONE: frozenset[str] = frozenset()


def select(which: Selector, workload: Workload, einsum: str, held_above: Collection[str] = ()) -> frozenset[str]:
    """The tensors of `einsum` that `which` names; `held_above` answers ``unheld``.

    A name that is no tensor of this Einsum selects nothing; unknown names are refused when a machine meets a workload
    (`unknown_names`).
    """
    held = frozenset(held_above) if held_above and "unheld" in which.text else NONE
    key = (which.text, einsum, held)
    found = workload.selected.get(key)
    if found is None:
        found = workload.selected[key] = _select(which, workload, einsum, held)
    return found


def _select(which: Selector, workload: Workload, einsum: str, held_above: frozenset[str]) -> frozenset[str]:
    mine = frozenset(workload.einsum(einsum).tensors)

    def named(name: str) -> frozenset[str]:
        means = KEYWORDS.get(name)
        if means is None:
            return mine & {name}
        return frozenset(tensor for tensor in mine if means(workload, einsum, tensor, held_above))

    return selected(which.tree, mine, named)


def selected(node: tuple[object, ...], every: frozenset[str], named: Callable[[str], frozenset[str]]) -> frozenset[str]:
    """What the expression selects among `every`; `named`: what a name alone selects."""
    if node[0] == "name":
        return named(str(node[1]))
    children = [selected(child, every, named) for child in node[1:] if isinstance(child, tuple)]
    if node[0] == "not":
        return every - children[0]
    if node[0] == "or":
        return frozenset().union(*children)
    return frozenset.intersection(*children)


def unknown_names(which: Selector, workload: Workload) -> tuple[str, ...]:
    """Names in `which` that are neither keywords nor tensors of `workload`."""
    known = {tensor.name for tensor in workload.tensors}
    return tuple(name for name in which.names if name not in KEYWORDS and name not in known)
