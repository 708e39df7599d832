"""A picture as a piece of HTML for a notebook: no script, its style kept to itself."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files

from ..draw import palette
from ..draw.markup import Child, Html, el
from .shell import arrow

SCOPE = ".einloom"
ALONE = (
    ".why{display:none} a{color:inherit;text-decoration:none;pointer-events:none} header{padding:0}"
    ".tiles{margin-bottom:12px}"
)
"""Links lead to parts of a whole report, which a notebook does not have."""


def snippet(*children: Child) -> str:
    """The children inside a box that brings its own style."""
    return el("div", el("style", Html(_scoped_style())), palette.patterns(), arrow(), *children, class_="einloom")


@cache
def _scoped_style() -> str:
    """The report's style, each rule limited to the box; rules for phones and paper left out."""
    text = (
        files(__package__).joinpath("style.css").read_text(encoding="utf-8").partition("@media")[0]
        + palette.style()
        + ALONE
    )
    rules = re.findall(r"([^{}]+)\{([^{}]*)\}", text)
    return "".join(f"{','.join(map(_scoped, selectors.split(',')))}{{{body}}}" for selectors, body in rules)


def _scoped(selector: str) -> str:
    """A selector that matches inside the box only; what styles the page styles the box.

    >>> _scoped(" td.num"), _scoped("body")
    ('.einloom td.num', '.einloom')
    """
    plain = selector.strip()
    return SCOPE if plain in ("html", "body", ":root") else f"{SCOPE} {plain}"
