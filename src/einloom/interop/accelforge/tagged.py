"""AccelForge's YAML as located views: templates expanded, node tags kept as a field, merge keys merged.

Text comes in, a `Located` goes out whose places are those of the file that the user wrote. A tag such as ``!Memory`` of
a mapping becomes its first field, called `TAG`; a tag anywhere else is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ...errors import SpecError
from ...reading.located import Located, file_text
from ...reading.yamltree import MAX_YAML, Node, refuse_unreadable
from ...reading.yamltree import _tree as tree_of_events
from .expressions import Value
from .includes import Library
from .template import Expanded, expand

TAG = "!"
MERGE = "<<"
_BOOLEANS = {"True": True, "False": False, "TRUE": True, "FALSE": False}
TEMPLATE = re.compile(r"\{\{|\{%|\{#")


def read_tagged(
    path: str | Path, values: Mapping[str, Value] | None = None, folders: Sequence[str | Path] = ()
) -> Located:
    """The view of a file of at most 5 MB; `values` are the template's parameters.

    Files that it includes come from its own folder and from `folders`.
    """
    text = file_text(path)
    return parse_tagged(text, str(path), values, Library.of(path, folders))


def parse_tagged(
    text: str, file: str = "<text>", values: Mapping[str, Value] | None = None, library: Library | None = None
) -> Located:
    """The view of a text; `library` finds the files that it includes (none: it may include none).

    >>> view = parse_tagged("- !Memory {name: A}")
    >>> view.items()[0].require("!").text()
    'Memory'
    """
    if len(text) > MAX_YAML:
        raise SpecError(f"larger than {MAX_YAML // 10**6} MB; einloom does not read such YAML", file=file, line=1)
    from ruamel.yaml import YAML
    from ruamel.yaml.error import MarkedYAMLError, YAMLError

    refuse_unreadable(text, file)
    expanded = expand(text, file, values, library) if TEMPLATE.search(text) else None
    try:
        events = YAML(typ="safe", pure=True).parse(text if expanded is None else expanded.text)
        node = tree_of_events(_tags_as_fields(events, file, expanded), file)
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = None if mark is None else _origin(expanded, mark.line + 1)
        raise SpecError(f"not YAML: {error.problem or error.context}", file=file, line=line) from None
    except (YAMLError, ValueError) as error:
        raise SpecError(f"not YAML: {str(error).splitlines()[0]}", file=file) from None
    except SpecError as error:
        if expanded is None or error.line is None:
            raise
        raise error.at(file, _origin(expanded, error.line)) from None
    return Located(_merged(_placed(node, expanded), file), file, "", [])


def _tags_as_fields(events: Iterator[Any], file: str, expanded: Expanded | None) -> Iterator[Any]:
    from ruamel.yaml import events as kinds

    for event in events:
        tag = getattr(event, "tag", None)
        if tag is None:
            yield event
            continue
        name = str(tag)
        line = _origin(expanded, event.start_mark.line + 1)
        if not isinstance(event, kinds.MappingStartEvent) or not re.fullmatch(r"![A-Za-z_]\w*", name):
            raise SpecError(f"tag {name:.80} is not accepted here", file=file, line=line)
        start, end = event.start_mark, event.end_mark
        yield kinds.MappingStartEvent(event.anchor, None, True, start, end, flow_style=event.flow_style)
        for text in (TAG, name[1:]):
            yield kinds.ScalarEvent(None, None, (True, True), text, start, end, style='"')


def _origin(expanded: Expanded | None, line: int) -> int:
    """The line of the user's file that a line of the expanded text comes from."""
    return line if expanded is None else expanded.lines[min(line, len(expanded.lines)) - 1]


def _placed(node: Node, expanded: Expanded | None) -> Node:
    """The tree with the places of the user's file (no columns where a template printed) and YAML 1.1's booleans."""
    return replace(
        node,
        scalar=_BOOLEANS.get(node.scalar, node.scalar) if isinstance(node.scalar, str) else node.scalar,
        line=_origin(expanded, node.line),
        column=node.column if expanded is None else 1,
        items=tuple(_placed(item, expanded) for item in node.items),
        pairs=tuple((_placed(key, expanded), _placed(value, expanded)) for key, value in node.pairs),
    )


def _merged(node: Node, file: str) -> Node:
    """The tree with ``<<`` fields replaced by the fields of the mappings that they name; own fields win."""
    items = tuple(_merged(item, file) for item in node.items)
    pairs = [(key, _merged(value, file)) for key, value in node.pairs]
    own = {str(key.scalar) for key, _ in pairs}
    found = [(key, value) for key, value in pairs if key.scalar != MERGE]
    for key, value in pairs:
        if key.scalar != MERGE:
            continue
        for source in value.items if value.kind == "list" else (value,):
            if source.kind != "mapping":
                raise SpecError("'<<' merges mappings only", file=file, line=key.line)
            found += [pair for pair in source.pairs if str(pair[0].scalar) not in own]
            own |= {str(inner.scalar) for inner, _ in source.pairs}
    return replace(node, items=items, pairs=tuple(found))
