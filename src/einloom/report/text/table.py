"""Plain-text tables and folded lines of at most 100 columns."""

from __future__ import annotations

import csv
import io
from collections.abc import Collection, Mapping, Sequence
from textwrap import wrap

from .names import shortened

WIDTH = 100
_GAP = "  "
_ELLIPSIS = "..."


def fold(line: str, width: int = WIDTH) -> list[str]:
    """The line in pieces of at most `width`, the later ones indented four further."""
    if len(line) <= width:
        return [line]
    margin = min(len(line) - len(line.lstrip(" -|")), width // 2)
    rest = wrap(line[margin:], width - margin - 4, break_long_words=True, break_on_hyphens=False)
    return [line[:margin] + rest[0], *(" " * (margin + 4) + more for more in rest[1:])]


def labelled(lead: str, text: str) -> list[str]:
    """The text beside its label, folded."""
    return wrap(text, WIDTH, initial_indent=lead, subsequent_indent=" " * len(lead)) or [lead.rstrip()]


def columns(
    title: str,
    heads: Sequence[str],
    rows: Sequence[Sequence[str]],
    left: Collection[int] | None = None,
    rule: bool = False,
) -> str:
    """A titled table; the widest columns give way until it fits into 100 columns.

    Texts that are too long are cut, different ones of a column differently (`shortened`).
    left: columns that are aligned left (all by default, others right). rule: a line above the last row.
    """
    widths = [max(len(str(row[i])) for row in (heads, *rows)) for i in range(len(heads))]
    while sum(widths) + len(_GAP) * len(widths) > WIDTH and max(widths) > 8:
        widths[widths.index(max(widths))] -= 1

    def line(cells: Sequence[str]) -> str:
        pairs = zip(cells, widths, strict=True)
        sides = [one.ljust(n) if left is None or i in left else one.rjust(n) for i, (one, n) in enumerate(pairs)]
        return (_GAP + _GAP.join(sides)).rstrip()

    texts = [shortened([row[i] for row in rows], width, _ELLIPSIS) for i, width in enumerate(widths)]
    bar = _GAP + _GAP.join("-" * width for width in widths)
    body = [line(cells) for cells in zip(*texts, strict=True)]
    if rule and len(body) > 1:
        body.insert(-1, bar)
    return "\n".join([title, line(shortened(heads, widths, _ELLIPSIS)), bar, *body])


def csv_text(records: Sequence[Mapping[str, object]]) -> str:
    """The records as CSV: their keys, which are those of the first, then a line each."""
    out = io.StringIO()
    writer = csv.DictWriter(out, list(records[0]) if records else [], lineterminator="\n")
    writer.writeheader()
    writer.writerows(records)
    return out.getvalue()
