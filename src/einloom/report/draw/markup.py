"""HTML by construction: whatever is not markup already is escaped, so no name or source in a file can become markup."""

from __future__ import annotations

from collections.abc import Container, Iterable
from html import escape

VOID = frozenset({"meta", "br", "input", "col", "hr", "rect", "path", "line", "polyline", "circle"})
Child = object
"""Text, a number, `Html`, None or False (nothing), or a list or tuple of these."""


class Html(str):
    """Text that is markup: made by `el`, or by hand from constants."""

    __slots__ = ()


def el(tag: str, *children: Child, **attributes: object) -> Html:
    """An element. ``class_`` stands for ``class``, other underscores for hyphens; None and False leave a thing out.

    >>> el("b", "1 < 2", class_="x", data_t=3)
    '<b class="x" data-t="3">1 &lt; 2</b>'
    """
    given = "".join(_attribute(name, value) for name, value in attributes.items() if value is not None)
    if tag in VOID:
        return Html(f"<{tag}{given}/>" if tag in ("rect", "path", "line", "polyline", "circle") else f"<{tag}{given}>")
    return Html(f"<{tag}{given}>{join(children)}</{tag}>")


def join(children: Iterable[Child]) -> Html:
    """The children one after the other, text escaped."""
    return Html("".join(map(_text, children)))


def _text(child: Child) -> str:
    if child is None or child is False:
        return ""
    if isinstance(child, Html):
        return str(child)
    if isinstance(child, (list, tuple)):
        return join(child)
    return escape(str(child), quote=True)


def _attribute(name: str, value: object) -> str:
    if value is False:
        return ""
    plain = name.rstrip("_").replace("_", "-")
    if value is True:
        return f" {plain}"
    return f' {plain}="{escape(str(value), quote=True)}"'


def link(target: str, *children: Child, **attributes: object) -> Html:
    """A link to another part of the page."""
    return el("a", *children, href=f"#{target}", **attributes)


def table_of(
    heads: Iterable[Child],
    rows: Iterable[Html],
    numbers: Container[int] = (),
    caption: Html | None = None,
    **attributes: object,
) -> Html:
    """A table of rows (elements ``tr``) below its column heads; the columns in `numbers` are headed as numbers."""
    cells = (el("th", head, scope="col", class_="num" if i in numbers else None) for i, head in enumerate(heads))
    return el("table", caption, el("thead", el("tr", *cells)), el("tbody", *rows), **attributes)


def number(value: float) -> str:
    """A coordinate with at most two decimals.

    >>> number(12.0), number(33.33333)
    ('12', '33.33')
    """
    return f"{value:.2f}".rstrip("0").rstrip(".")
