"""The modules of a network as a list that folds: each with its work, energy and time, and what is in it."""

from __future__ import annotations

from ...result import Result
from ...workload.notation import einsum_text
from ..data.modules import ModuleNode, module_tree
from ..draw.markup import Html, el
from ..draw.scene import energy, time
from ..text.overview import many

OPEN = 6
"""So many modules on top are opened from the start."""


def given(result: Result) -> bool:
    """True if Einsums say which module they are part of."""
    return any(einsum.group for einsum in result.workload.einsums)


def panel(result: Result) -> Html:
    """All modules; modules that are alike are one, with the numbers of one and the share of all."""
    found = module_tree(result)
    words = "Numbers are those of one of × alike; the share is that of all of them in the energy."
    lines = [_module(result, node, len(found) <= OPEN) for node in found]
    return el("div", el("p", words, class_="note"), *lines, class_="modules")


def _module(result: Result, node: ModuleNode, opened: bool) -> Html:
    row = node.row
    cells = (
        f"× {row.count}" if row.count > 1 else "",
        f"{row.einsums} Einsum{'s' if row.einsums > 1 else ''}",
        f"{many(row.multiplications)} MAC" if row.multiplications else "",
        energy(row.energy),
        f"{node.share:.1%}" if node.share is not None else "",
        time(row.latency),
        row.limit,
    )
    head = el("summary", el("b", node.name), *(el("span", cell) for cell in cells))
    own = [el("li", el("code", f"{name}: {einsum_text(result.workload.einsum(name))}")) for name in node.own]
    inside = [_module(result, part, False) for part in node.parts]
    return el("details", head, *inside, el("ul", *own) if own else None, open=opened and bool(inside))
