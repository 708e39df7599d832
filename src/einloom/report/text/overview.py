"""What `einloom map` prints of a result: of small ones everything, of large ones about 60 lines with a row a module."""

from __future__ import annotations

from textwrap import wrap
from typing import Literal

from ...result import Result
from ...workload.views import called
from ..data.fusion import backings
from ..data.modules import FEW, MANY, Detail, ModuleRow, module_rows, shown_by, totals
from . import results as text
from .results import bits, joules, seconds
from .table import WIDTH, columns

By = Literal["layer", "module", "class", "einsum", "none"]
LARGE = 40
LINES = 60
LISTED = 10


def overview(result: Result, by: By | None = None) -> str:
    """The result on about one screen. by: what has a row; ``none``: the mapping and every Einsum, whatever the size."""
    if by == "none" or (by is None and len(result.workload.einsums) <= LARGE):
        return text.summary(result)
    head = [part for part in (text.headline(result), text.front(result)) if part]
    places = [part for part in (homes(result), not_fused(result), more(result)) if part]
    room = LINES - sum(part.count("\n") + 2 for part in (*head, *places))
    table = by_module(result, by, min(MANY, room - 6) if by is None else len(result.workload.einsums))
    return "\n\n".join([*head, table, *places]) + "\n"


def by_module(result: Result, by: Detail | None = None, most: int = MANY) -> str:
    """Work, energy and latency by module; of modules that are alike the numbers of one, and the share of all.

    by: ``class`` for Einsums that differ in names alone, whatever their module, with the numbers of all of them.
    """
    if by is None:
        most = max(most, FEW)
        by = shown_by(result, most)
    found = module_rows(result, by, most)
    rows = [
        (
            row.name,
            str(row.count) if row.count > 1 else "",
            *_work(row),
            joules(row.energy),
            f"{row.count * row.energy / result.energy:.1%}" if result.energy else "-",
            seconds(row.latency),
            row.limit,
            _share(row),
        )
        for row in found
    ]
    total = totals(found)
    rows.append(("total", "", *_work(total), joules(result.energy), "", seconds(result.latency), "", _share(total)))
    what = {"einsum": "Einsum", "class": "class"}.get(by or "module", "module")
    heads = (what, "x", "Einsums", "MAC", "energy", "%", "latency", "bound by", "fused")
    title = f"by {what}: numbers of one of x alike, % of all x; fused, of the intermediates that it writes"
    if by == "class":
        title = "by class: Einsums that differ in names alone, their numbers together; fused, of what they write"
    room = WIDTH - sum(max(len(row[i]) for row in (heads, *rows)) + 2 for i in range(1, len(heads))) - 2
    shown = [(_short(row[0], room), *row[1:]) for row in rows]
    return columns(title, heads, shown, left=(0, 7), rule=True)


def _short(name: str, room: int) -> str:
    """The name with dots for its middle if it is longer than there is room for.

    >>> _short("model.layers.0-31.self_attn.q_proj", 24)
    'model.l...lf_attn.q_proj'
    """
    head = max(room - 3, 9) // 3
    return name if len(name) <= room else f"{name[:head]}...{name[-2 * head :]}"


def _work(row: ModuleRow) -> tuple[str, str]:
    return str(row.einsums), many(row.multiplications)


def _share(row: ModuleRow) -> str:
    return f"{row.fused}/{row.written}" if row.written else "-"


def many(number: int) -> str:
    """A count in thousands, millions and so on, to four digits; ``-`` for none.

    >>> many(0), many(999), many(1_234_567)
    ('-', '999', '1.235 M')
    """
    for power, prefix in ((15, "P"), (12, "T"), (9, "G"), (6, "M"), (3, "k")):
        if number >= 10**power:
            return f"{number / 10**power:.4g} {prefix}"
    return str(number) if number else "-"


def homes(result: Result) -> str:
    """How many intermediates each memory backs."""
    outermost = result.machine.memories[0].name
    found: dict[str, list[tuple[int, bool]]] = {}
    for name, (memory, loops) in backings(result).items():
        tensor = result.workload.tensor(name)
        found.setdefault(memory, []).append((tensor.size * tensor.bits, not loops))
    rows = []
    for memory, kept in sorted(found.items(), key=lambda pair: result.machine.position.get(pair[0], 0)):
        whole = sum(one for _, one in kept)
        how = "not fused" if memory == outermost else f"fused, {whole} of them whole" if whole else "fused"
        rows.append((memory, str(len(kept)), bits(sum(size for size, _ in kept)), how))
    return columns("what is fused where", ("in", "tensors", "together", "how"), rows, left=(0, 3)) if rows else ""


def not_fused(result: Result) -> str:
    """The largest intermediates that pass through the outermost memory."""
    outermost, workload = result.machine.memories[0].name, result.workload
    names = [name for name, (memory, _) in backings(result).items() if memory == outermost]
    tensors = sorted((workload.tensor(name) for name in names), key=lambda tensor: -tensor.size * tensor.bits)
    rows = [
        (
            called(workload, t.name),
            bits(t.size * t.bits),
            f"{', '.join(workload.writers[t.name])} > {', '.join(workload.consumers[t.name])}",
        )
        for t in tensors[:LISTED]
    ]
    title = f"the largest of {len(names)} that are not fused" if len(names) > LISTED else "not fused"
    return columns(title, ("tensor", "size", "from > to"), rows, left=(0, 2)) if rows else ""


def more(result: Result) -> str:
    """Where the mapping is, which is not printed."""
    count = result.mapping_text.count("\n")
    module = next((einsum.group for einsum in result.workload.einsums if einsum.group), "")
    part = f", with --group {module} that of a module" if module else ""
    saved = f"`einloom show RESULT.json --tree` that of a saved result{part}"
    said = f"The mapping has {count:,} lines: --by none prints it, {saved}."
    return "\n".join(wrap(said, WIDTH, break_long_words=False, break_on_hyphens=False))
