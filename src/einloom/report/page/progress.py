"""How the search went: best value and proven bound against time, and how many points each rule dropped."""

from __future__ import annotations

from collections.abc import Mapping

from ...result import Result
from ...result.unmapped import Unmapped
from ..draw.markup import Html, el, table_of
from ..draw.progress import Progress, traced
from ..draw.svg import html_of


def picture(result: Result | Unmapped) -> Html:
    """Best and bound over time, or a sentence if nothing was searched or found."""
    found = traced(result)
    if not found.best and isinstance(result, Unmapped):
        return el("p", f"No mapping was found in {result.seconds:.3g} s: there is no progress to show.")
    if not found.best:
        return el("p", "This mapping was given, not searched for: there is no progress to show.")
    return html_of(Progress().draw([found]))


def counts(found: Mapping[str, int]) -> Html:
    """Points seen and dropped, by rule, with bars on a logarithmic scale."""
    if not found:
        return el("p", "No points were counted.")
    largest = max(found.values())
    rows = []
    for name, count in found.items():
        share = len(f"{count}") / len(f"{largest}") if count else 0
        bar = el("i", class_="countbar", style=f"width:{100 * share:.0f}%")
        rows.append(el("tr", el("th", name, scope="row"), el("td", f"{count:,}", class_="num"), el("td", bar)))
    caption = el("caption", "Points seen, kept and dropped")
    return table_of(("rule", "points", "(by digits)"), rows, numbers=(1,), caption=caption, class_="counts")
