"""A mapping as text, both ways: `print_mapping` lays a tree out by indentation, `parse_mapping` reads it back.

One node per line; the nodes of one nest stand at the same indentation; each branch of a split starts with ``- ``::

    store DRAM: A B D E
    for E0.m, E1.p in 4 tile 2      # "for m" if every Einsum below is bound by that name
    store GLB: C
    split sequential:
      - par E0.k in 2 @ X
        compute E0 @ MAC
      - compute E1 @ MAC

``#`` starts a comment. Full grammar: docs/mapping.md.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from typing import NoReturn

from ..dataclass import dataclass
from ..errors import SpecError, combined, nearest
from ..machine.levels import Machine
from ..workload.einsum import Workload
from .tree import Compute, Loop, Mapping, Nest, Node, Split, SplitKind, Store, einsums_below, every_node, lines

MAX_TEXT_LENGTH = 4_000_000
MAX_DEPTH = 64
_TOKEN = re.compile(r"[:,@]|[^\s:,@]+")
_KINDS: dict[str, SplitKind] = {"sequential": "sequential", "pipelined": "pipelined", "parallel": "parallel"}
_NODES = ("store", "for", "par", "split", "compute")
UNREAD = Compute("", None)
"""Stands for a leaf that cannot be read; what loops above it bind cannot be told."""


def print_mapping(mapping: Mapping, workload: Workload) -> str:
    """The mapping as text, one node per line; ends with a newline.

    `parse_mapping` gives the same tree back. A loop is written in the short form (``for m in 4``) if it binds every
    Einsum below by the same name, and with its tile if the tree gives one.
    """
    return "".join(f"{line}\n" for line in lines(mapping.nest))


@dataclass(frozen=True, slots=True)
class LocatedMapping:
    """A mapping and where it was read. lines: of its nodes, in the order of `every_node`; empty if they are not known.

    file: that the mapping, or the saved result with it, was read from; None for objects and texts.
    """

    mapping: Mapping
    file: str | None = None
    lines: tuple[int, ...] = ()

    @property
    def line_of_node(self) -> dict[int, int]:
        """The line of each node by the node's ``id``; nodes of a mapping that was read are distinct objects."""
        nodes = every_node(self.mapping.nest) if self.lines else ()
        return {id(node): line for node, line in zip(nodes, self.lines, strict=True)}


def parse_mapping(text: str, workload: Workload, machine: Machine, file: str | None = None) -> Mapping:
    """Read a mapping from text.

    Names are checked against the workload and the machine, the layout against the grammar; whether the tree is a legal
    schedule is the question of `structure.problems`. Raises SpecError with file, line and column: one for every line
    that cannot be read, and one for the layout, which is read no further than its first mistake.
    """
    return parse_located(text, workload, machine, file).mapping


def parse_located(text: str, workload: Workload, machine: Machine, file: str | None = None) -> LocatedMapping:
    """As `parse_mapping`, with the line of every node."""
    parser = _Parser(text, workload, machine, file)
    if not parser.items:
        raise SpecError("the mapping is empty", file=file, line=1)
    nest: Nest = ()
    with parser.noting():
        nest = parser.nest(parser.items[0].column, 0)
        if parser.at < len(parser.items):
            parser.fail("this line stands further left than the nest it follows", parser.items[parser.at].tokens[0])
    if parser.wrong:
        raise combined(sorted(parser.wrong, key=lambda error: (error.line or 0, error.column or 0)))
    return LocatedMapping(Mapping(nest), file, tuple(item.tokens[0].line for item in parser.items if not item.dash))


def begins_mapping(text: str) -> bool:
    """True for a text whose first word is the kind of a node.

    >>> begins_mapping("store DRAM: A"), begins_mapping("store.txt")
    (True, False)
    """
    word, space, _ = text.strip().partition(" ")
    return bool(space) and word in _NODES


@dataclass(frozen=True, slots=True)
class _Token:
    text: str
    line: int
    column: int


@dataclass(frozen=True, slots=True)
class _Item:
    """A node's tokens, or the dash of a branch (`tokens` holds the dash alone), at an indentation."""

    column: int
    tokens: tuple[_Token, ...]

    @property
    def dash(self) -> bool:
        return self.tokens[0].text == "-"


class _Parser:
    """Reads items (nodes and branch dashes with their columns) into nests."""

    def __init__(self, text: str, workload: Workload, machine: Machine, file: str | None) -> None:
        self.workload, self.machine, self.file = workload, machine, file
        if len(text) > MAX_TEXT_LENGTH:
            raise SpecError(f"a mapping may have at most {MAX_TEXT_LENGTH} characters", file=file)
        self.items: list[_Item] = []
        self.at = 0
        self.wrong: list[SpecError] = []
        for number, raw in enumerate(text.split("\n"), 1):
            line = raw.split("#", 1)[0].rstrip()
            if "\t" in line:
                raise SpecError("a tab; indent with spaces", file=file, line=number, column=line.index("\t") + 1)
            tokens = [_Token(m.group(), number, m.start() + 1) for m in _TOKEN.finditer(line)]
            while tokens and tokens[0].text == "-":
                self.items.append(_Item(tokens[0].column, (tokens.pop(0),)))
            if tokens:
                self.items.append(_Item(tokens[0].column, tuple(tokens)))

    def fail(self, message: str, token: _Token, known: Iterable[str] = (), wanted: str | None = None) -> NoReturn:
        suggestion = nearest(wanted or token.text, known)
        raise SpecError(message, file=self.file, line=token.line, column=token.column, suggestion=suggestion)

    @contextmanager
    def noting(self) -> Iterator[None]:
        """Keep a SpecError of the block in `wrong`, and go on after the block."""
        try:
            yield
        except SpecError as error:
            self.wrong.append(error)

    def nest(self, column: int, depth: int) -> Nest:
        """The nodes that stand at `column`, up to the compute or split that ends them."""
        if depth > MAX_DEPTH:
            self.fail(f"splits may be nested at most {MAX_DEPTH} deep", self.items[self.at].tokens[0])
        heads: list[Store | _Words] = []
        last: Node | None = None
        while last is None:
            if self.at == len(self.items) or self.items[self.at].column < column or self.items[self.at].dash:
                token = self.items[min(self.at, len(self.items) - 1)].tokens[0]
                self.fail("the nest before this point has no leaf: its last node must be a split or a compute", token)
            item = self.items[self.at]
            if item.column > column:
                self.fail(f"unexpected indentation: this nest stands at column {column}", item.tokens[0])
            self.at += 1
            word, words = item.tokens[0].text, _Words(self, item.tokens)
            if word == "compute":
                last = UNREAD
                with self.noting():
                    last = self.compute(words)
            elif word == "split":
                last = self.split(words, column, depth)
            elif word in ("for", "par"):
                heads.append(words)
            else:
                with self.noting():
                    if word != "store":
                        self.fail(f"unknown node {word!r}; known are {', '.join(_NODES)}", item.tokens[0], _NODES)
                    heads.append(self.store(words))
        if self.at < len(self.items) and self.items[self.at].column == column and not self.items[self.at].dash:
            self.fail("nothing may follow a split or a compute in its nest", self.items[self.at].tokens[0])
        below = einsums_below((last,))
        nodes: list[Node] = []
        for head in heads:
            if isinstance(head, Store):
                nodes.append(head)
            elif UNREAD.einsum not in below:
                with self.noting():
                    nodes.append(self.loop(head, below))
        return (*nodes, last)

    def compute(self, words: _Words) -> Compute:
        einsum = self.einsum(words.take("an Einsum"))
        unit = None
        if words.skip("@"):
            unit = words.take("a compute unit", [u.name for u in self.machine.units]).text
        words.end()
        return Compute(einsum, unit)

    def split(self, words: _Words, column: int, depth: int) -> Split:
        kind = _KINDS[words.take("a kind of split", list(_KINDS)).text]
        where: str | None = None
        if words.skip("@"):
            where = words.take("an axis or 'unit'", ["unit", *self.machine.axes]).text
        elif words.skip("shared"):
            where = "shared"
        shares: list[int] = []
        if words.skip("shares"):
            while words.peek() != ":":
                shares.append(words.number("a share"))
        head = words.take("':'", [":"])
        words.end()
        if (where is not None) == (kind == "sequential"):
            wrong = "says no place" if kind == "sequential" else "must say its place: '@ AXIS', '@ unit' or 'shared'"
            self.fail(f"a {kind} split {wrong}", words.tokens[0])
        branches: list[Nest] = []
        dash: int | None = None
        while self.at < len(self.items) and self.items[self.at].dash and self.items[self.at].column > column:
            item = self.items[self.at]
            if dash is not None and item.column != dash:
                self.fail(f"unexpected indentation: the branches of this split stand at column {dash}", item.tokens[0])
            dash = item.column
            self.at += 1
            if self.at == len(self.items) or self.items[self.at].column <= dash or self.items[self.at].dash:
                self.fail("an empty branch", item.tokens[0])
            branches.append(self.nest(self.items[self.at].column, depth + 1))
        if not branches:
            self.fail("a split needs branches: lines below it that start with '- '", head)
        return Split(kind, tuple(branches), where, tuple(shares))

    def store(self, words: _Words) -> Store:
        memory = words.take("a memory", [m.name for m in self.machine.memories]).text
        words.take("':'", [":"])
        tensors = [self.tensor(words)]
        slots = None
        while words.peek() is not None:
            if words.skip("slots"):
                slots = words.number("a number of slots")
                words.end()
            else:
                tensors.append(self.tensor(words))
        return Store(memory, tuple(tensors), slots)

    def tensor(self, words: _Words) -> str:
        view = next((view for view in self.workload.views if view.name == words.peek()), None)
        if view is not None:
            token = words.take("a tensor")
            self.fail(f"{view.name} is a view; a store holds its tensor", token, [view.tensor], view.tensor)
        return words.take("a tensor", self.workload.consumers).text

    def loop(self, words: _Words, below: tuple[str, ...]) -> Loop:
        binds: list[tuple[str, str]] = []
        first = words.take("a rank variable")
        if "." not in first.text:
            binds = [(einsum, self.variable(first, einsum, first.text)) for einsum in below]
        else:
            binds.append(self.bind(first, below))
            while words.skip(","):
                binds.append(self.bind(words.take("EINSUM.VARIABLE"), below))
        words.take("'in'", ["in"])
        trips = words.number("a number of trips")
        tile = axis = None
        while words.peek() is not None:
            if tile is None and words.skip("tile"):
                tile = words.number("a tile size")
            elif axis is None and words.skip("@"):
                axis = words.take("an axis", list(self.machine.axes)).text
            else:
                words.end()
        if (axis is not None) != (words.tokens[0].text == "par"):
            self.fail("'par' needs '@ AXIS', and only 'par' has one", words.tokens[0])
        return Loop(tuple(binds), trips, tile, axis)

    def bind(self, token: _Token, below: tuple[str, ...]) -> tuple[str, str]:
        name, dot, variable = token.text.rpartition(".")
        if not dot:
            self.fail(f"{token.text!r} stands among EINSUM.VARIABLE pairs and must be one too", token)
        einsum = self.einsum(_Token(name, token.line, token.column))
        if einsum not in below:
            self.fail(f"Einsum {einsum} is not below this loop", token, below, einsum)
        return einsum, self.variable(token, einsum, variable)

    def variable(self, token: _Token, einsum: str, name: str) -> str:
        known = self.workload.einsum(einsum).variables
        if name not in known:
            self.fail(f"Einsum {einsum} has no rank variable {name!r}, it has {', '.join(known)}", token, known, name)
        return name

    def einsum(self, token: _Token) -> str:
        known = self.workload.names
        if token.text not in known:
            self.fail(f"the workload has no Einsum {token.text!r}", token, known)
        return token.text


class _Words:
    """The words of one line, taken from left to right."""

    def __init__(self, parser: _Parser, tokens: tuple[_Token, ...]) -> None:
        self.parser, self.tokens, self.at = parser, tokens, 1

    def peek(self) -> str | None:
        return self.tokens[self.at].text if self.at < len(self.tokens) else None

    def skip(self, text: str) -> bool:
        found = self.peek() == text
        self.at += found
        return found

    def take(self, what: str, known: Collection[str] | None = None) -> _Token:
        """The next word; it must be one of `known` if that is given."""
        if self.at == len(self.tokens):
            last = self.tokens[-1]
            end = _Token("", last.line, last.column + len(last.text))
            self.parser.fail(f"the line ends where {what} is expected", end)
        token = self.tokens[self.at]
        self.at += 1
        if known is not None and token.text not in known:
            listed = f" (one of {', '.join(known)})" if 1 < len(known) <= 12 else ""
            self.parser.fail(f"expected {what}{listed}, found {token.text!r}", token, known)
        return token

    def number(self, what: str) -> int:
        token = self.take(what)
        if not re.fullmatch(r"[0-9]{1,18}", token.text) or int(token.text) < 1:
            self.parser.fail(f"expected {what} (a positive integer), found {token.text!r}", token)
        return int(token.text)

    def end(self) -> None:
        if self.at < len(self.tokens):
            token = self.tokens[self.at]
            self.parser.fail(f"unexpected {token.text!r} at the end of the line", token)
