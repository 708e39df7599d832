"""YAML text as a plain tree of nodes with line and column; nothing is constructed, resolved by tag or executed.

Below `located`: text comes in, `Node`s go out. ruamel.yaml's event stream is read without recursion, so deep nesting
and alias bombs are counted and refused before they cost anything. JSON is YAML, and comes through the same door.
"""

from __future__ import annotations

import re
from io import StringIO
from typing import TYPE_CHECKING, Any

from ..dataclass import dataclass
from ..errors import SpecError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

MAX_FILE_BYTES = 5_000_000
MAX_YAML = 2_000_000
MAX_DEPTH = 40
MAX_NODES = 50_000
MAX_TAG = 1000

_INTEGER = re.compile(r"[-+]?[0-9]+\Z|0x[0-9a-fA-F]+\Z")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?\Z")
_FORBIDDEN = "[^\\x09\\x0A\\x0D\\x20-\\x7E\\x85\\xA0-\\uD7FF\\uE000-\\uFFFD\\U00010000-\\U0010FFFF]"
_FORBIDDEN_ASCII = "[^\\x09\\x0A\\x0D\\x20-\\x7E]"  # the other takes 3 ms to compile
_MANY_OPEN = re.compile(r"(?:[\[{][^\[\]{}\n]{0,20}){100}")
_LONG_TAG = re.compile(rf"(?<!\S)!\S{{{MAX_TAG}}}")
_SPECIAL = {"": None, "~": None, "null": None, "true": True, "false": False}
MAX_DIGITS = 400
SURROGATE = re.compile("[\ud800-\udfff]")
HALF = "a lone surrogate is half a character, which no text can hold"
"""What is wrong with a text in which an escape such as ``\\ud800`` stands alone."""
_UNFOLDED = 10**6

Scalar = str | int | float | bool | None
Place = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Node:
    """One value with its place: a scalar, a list of nodes, or a list of (key node, value node) pairs."""

    kind: str
    line: int
    column: int
    scalar: Scalar = None
    items: tuple[Node, ...] = ()
    pairs: tuple[tuple[Node, Node], ...] = ()


@dataclass(slots=True)
class _Open:
    """A list or mapping whose end has not come yet."""

    kind: str
    line: int
    column: int
    anchor: str | None
    children: list[Node]


def parse_yaml(text: str, file: str, repeated: list[SpecError] | None = None) -> Node:
    """The single document in `text`.

    repeated: a list for the errors of duplicate keys, of which the last then counts; without it they are raised. Raises
    SpecError with file, line and column for broken YAML, duplicate keys, tags, more than one document, and anything
    larger than the limits of this module.
    """
    if len(text) > MAX_YAML:
        raise SpecError(f"larger than {MAX_YAML // 10**6} MB; einloom does not read such YAML", file=file, line=1)
    refuse_unreadable(text, file)
    from ruamel.yaml import YAML
    from ruamel.yaml.error import MarkedYAMLError, YAMLError

    try:
        return _tree(YAML(typ="safe", pure=True).parse(text), file, repeated)
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line, column = (mark.line + 1, mark.column + 1) if mark else (None, None)
        raise SpecError(f"not YAML: {error.problem or error.context}", file=file, line=line, column=column) from None
    except (YAMLError, ValueError) as error:
        raise SpecError(f"not YAML: {str(error).splitlines()[0]}", file=file) from None


def refuse_unreadable(text: str, file: str) -> None:
    """Raise SpecError for characters that YAML does not allow, and for what would cost its parser quadratic time."""
    forbidden = re.compile(_FORBIDDEN_ASCII if text.isascii() else _FORBIDDEN)
    for pattern, message in (
        (forbidden, "not YAML: the character U+{:04X} is not allowed"),
        (_LONG_TAG, f"not YAML: a tag of more than {MAX_TAG} characters"),
        (_MANY_OPEN, f"nested deeper than {MAX_DEPTH} levels"),
    ):
        match = pattern.search(text)
        if match is not None:
            raise refused_at(match.start(), message.format(ord(match.group()[0])), text, file)


def place(text: str, offset: int) -> Place:
    """Line and column of a character of the text, both from 1."""
    return text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset)


def refused_at(offset: int, message: str, text: str, file: str) -> SpecError:
    """The error that points at a character of the text."""
    line, column = place(text, offset)
    return SpecError(message, file=file, line=line, column=column)


def _tree(events: Iterator[Any], file: str, repeated: list[SpecError] | None = None) -> Node:
    from ruamel.yaml import events as kinds

    stack: list[_Open] = [_Open("stream", 1, 1, None, [])]
    anchors: dict[str, tuple[Node, int]] = {}
    count = 0
    for event in events:
        line, column = event.start_mark.line + 1, event.start_mark.column + 1
        if getattr(event, "tag", None) is not None:
            raise SpecError(f"tag {event.tag!s:.80} is not accepted", file=file, line=line, column=column)
        node: Node | None = None
        anchor: str | None = None
        if isinstance(event, kinds.MappingStartEvent | kinds.SequenceStartEvent):
            kind = "mapping" if isinstance(event, kinds.MappingStartEvent) else "list"
            stack.append(_Open(kind, line, column, event.anchor, []))
            if len(stack) > MAX_DEPTH:
                raise SpecError(f"nested deeper than {MAX_DEPTH} levels", file=file, line=line, column=column)
        elif isinstance(event, kinds.MappingEndEvent | kinds.SequenceEndEvent):
            ended = stack.pop()
            node, anchor = _closed(ended, file, repeated), ended.anchor
        elif isinstance(event, kinds.ScalarEvent):
            scalar = _resolve(event.value, file, line, column) if event.style in (None, "") else str(event.value)
            if isinstance(scalar, str) and SURROGATE.search(scalar):
                raise SpecError(f"{scalar!a:.40}: {HALF}", file=file, line=line, column=column)
            node, anchor = Node("scalar", line, column, scalar), event.anchor
        elif isinstance(event, kinds.AliasEvent):
            if event.anchor not in anchors:
                raise SpecError(f"alias *{event.anchor} has no anchor", file=file, line=line, column=column)
            node, size = anchors[event.anchor]
            count += size - 1
        if node is None:
            continue
        count += 1
        if count > MAX_NODES:
            raise SpecError(f"more than {MAX_NODES} values", file=file, line=line, column=column)
        if anchor is not None:
            anchors[anchor] = (node, _size(node))
        stack[-1].children.append(node)
    documents = stack[0].children
    if len(documents) != 1:
        what = "is empty" if not documents else f"holds {len(documents)} YAML documents; one is expected"
        raise SpecError(f"the file {what}", file=file)
    return documents[0]


def _closed(ended: _Open, file: str, repeated: list[SpecError] | None) -> Node:
    if ended.kind == "list":
        return Node("list", ended.line, ended.column, items=tuple(ended.children))
    pairs = tuple(zip(ended.children[::2], ended.children[1::2], strict=True))
    seen: dict[str, tuple[Node, Node]] = {}
    for key, value in pairs:
        if key.kind != "scalar":
            raise SpecError("a key must be plain text", file=file, line=key.line, column=key.column)
        name = str(key.scalar)
        if name in seen:
            message = f"key {name!r} stands here twice, first in line {seen[name][0].line}"
            error = SpecError(message, file=file, line=key.line, column=key.column)
            if repeated is None:
                raise error
            repeated.append(error)
        seen[name] = (key, value)
    return Node("mapping", ended.line, ended.column, pairs=tuple(seen.values()))


def _size(node: Node) -> int:
    """Number of nodes in a tree that may share subtrees, counted as if written out; stops above the limit."""
    total, waiting = 0, [node]
    while waiting and total <= MAX_NODES:
        top = waiting.pop()
        total += 1
        waiting.extend(top.items)
        waiting.extend(part for pair in top.pairs for part in pair)
    return total


def _resolve(text: str, file: str, line: int, column: int) -> Scalar:
    """A plain scalar by YAML 1.2's core rules: null, booleans, integers, floats, else text."""
    if text in _SPECIAL:
        return _SPECIAL[text]
    number = _INTEGER.match(text) or _FLOAT.match(text)
    if number and len(text) > MAX_DIGITS:
        raise SpecError("a number of more than 400 digits", file=file, line=line, column=column)
    if _INTEGER.match(text):
        return int(text, 16) if text.startswith("0x") else int(text)
    return float(text) if number else text


def dump_yaml(data: Mapping[str, object], width: int = 110) -> str:
    """Plain data as YAML text, keys in their order, short lists and mappings on one line of at most `width`."""
    text = _dumped(data, width, plain_unicode=True)
    printable = text.replace("\n", "").isprintable()
    if printable and "\\" not in text:
        return text
    # ruamel.yaml folds a text in quotes between two escapes, and the fold reads back as a blank: no folds here
    return _dumped(data, _UNFOLDED, plain_unicode=printable)


def _dumped(data: Mapping[str, object], width: int, plain_unicode: bool) -> str:
    from ruamel.yaml import YAML

    writer = YAML(typ="rt", pure=True)
    writer.default_flow_style = None
    writer.width = width
    writer.allow_unicode = plain_unicode
    writer.representer.ignore_aliases = lambda *_: True
    scalar = writer.representer.represent_scalar
    # ruamel.yaml writes ?x and :x as they are, and in a list or mapping on one line those read as parts of a pair
    writer.representer.represent_scalar = lambda tag, value, style=None, anchor=None: scalar(
        tag, value, '"' if str(value).startswith(("?", ":")) else style, anchor
    )
    stream = StringIO()
    writer.dump(data, stream)
    return stream.getvalue()
