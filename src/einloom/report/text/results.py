"""Results as plain text of at most 100 columns: pure functions of a saved result, no search and no pricing.

`summary` is what `einloom map` prints; `einloom show` adds `breakdown`, `occupancy` and the loop nests of `nests`.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from textwrap import indent, wrap

from ...mapping.extents import Address, addresses, edge_tiles
from ...mapping.tree import Loop, Nest, Node, Split, Store, einsums_below, lines
from ...problem import METHODS, PRICED, Alternative, Certificate, Guarantee, Objective
from ...problem.any_tiles import any_tiles
from ...problem.few_divisors import few_divisors
from ...reading.units import format as with_unit
from ...result import Result
from ...result.unmapped import Unmapped
from ...workload.views import called
from ..data.bars import sums
from ..data.fusion import backings
from ..data.padding import nothing_read
from ..data.rereads import read_for_each
from ..data.use import idle, kept_off
from ..data.views import latency_rows
from .limits import limits
from .table import WIDTH, columns, fold, labelled

MAX_COMPONENTS = 5


def joules(value: float, digits: int = 4) -> str:
    return with_unit(float(value), "energy", digits)


def seconds(value: float, digits: int = 4) -> str:
    return with_unit(float(value), "time", digits)


def bits(value: int) -> str:
    """A number of bits in the unit that reads best, rounded to four digits.

    >>> bits(134217728 * 8), bits(1000001)
    ('128 MiB', '122.1 KiB')
    """
    for power, prefix in ((4, "Ti"), (3, "Gi"), (2, "Mi"), (1, "Ki")):
        if value >= 8 * 1024**power:
            return f"{value / (8 * 1024**power):.4g} {prefix}B"
    return f"{value} bit"


def objective_value(objective: Objective, value: float, digits: int = 8) -> str:
    """The value of an objective with its unit."""
    return f"{value:.{digits}g} {objective.unit}"


def summary(result: Result) -> str:
    """Everything that one screen can hold: totals, certificate, what is fused where, the tree, the breakdown."""
    drawn = f"mapping\n{indent(tree(result), '  ')}"
    parts = [headline(result), front(result), fusion(result), drawn, by_einsum(result)]
    return "\n\n".join(part for part in parts if part) + "\n"


def front(result: Result) -> str:
    """The Pareto set, or what is known of it, a line per mapping; empty if the result has none."""
    if not result.front:
        return ""
    title = "Pareto front: nothing beats one of these in both"
    if not result.optimal:
        title = "Part of the Pareto front, as known when the search ended: none of these beats another in both"
    rows = [
        (f"{i + 1}", joules(p.energy, 6), seconds(p.latency, 6), f"{p.energy * p.latency:.6g} J s")
        for i, p in enumerate(result.front)
    ]
    return columns(title, ("", "energy", "latency", "EDP"), rows, left=())


def headline(result: Result) -> str:
    """Title, totals, certificate and where the numbers come from."""
    rows = [
        ("objective", str(result.objective)),
        ("energy", f"{joules(result.energy, 6)}  ({result.energy:.8g} J)"),
        ("latency", f"{seconds(result.latency, 6)}  ({result.latency:.8g} s; rule '{result.latency_rule}')"),
        ("EDP", f"{result.edp:.8g} J s"),
        *latency_rows(result.latencies),
        *([("idle", without)] if (without := idle(result)) else []),
    ]
    if result.objective.name == "traffic":
        rows.insert(1, ("traffic", f"{bits(int(result.value))}  ({result.value:.10g} bit)"))
    rows += [(name, line) for name, line in certificate_lines(result)]
    known = result.provenance
    if known.facts:
        share = f"{known.assumed} of {known.facts} sourced numbers are assumptions ({known.assumed_share:.0%})"
        rows.append(("sources", share))
    if result.workload.absorbed:
        rows.append(("absorbed", ", ".join(result.workload.absorbed)))
    rows += [("note", note) for note in result.notes]
    return "\n".join([f"{result.workload.name} on {result.machine.name}", *_labelled(rows)])


def _labelled(rows: list[tuple[str, str]]) -> list[str]:
    """Label and text, a line or more for each."""
    return [line for name, text in rows for line in labelled(f"  {name:<10}  ", text)]


def nothing(found: Unmapped) -> str:
    """Why no mapping was found, what the memories can hold, and what must be held."""
    problem = found.problem
    counts = ", ".join(f"{name} {number:,}" for name, number in found.counts.items())
    known = "no mapping of the space is legal" if found.status == "infeasible" else "no legal mapping was found"
    rows = [
        ("answer", f"{found.status}: {known}"),
        ("reason", found.reason),
        ("space", problem.mapspace.shown),
        ("objective", str(problem.objective)),
        ("searched", f"method '{found.method}', {found.seconds:.3g} s" + (f"; {counts}" if counts else "")),
    ]
    if found.status == "infeasible":
        rows.append(("more", "`einloom explain` finds the smallest set of limits to blame, and what would help"))
    if note := few_divisors(problem):
        rows.append(("note", note))
    if found.bound:
        rows.append(("bound", f"no mapping has less than {objective_value(problem.objective, found.bound)}"))
    lines = [f"{problem.workload.name} on {problem.machine.name}", *_labelled(rows)]
    heads = ("memory", "size", "of these", "must hold", "may hold", "largest of them")
    listed = [
        (
            limit.memory,
            "unlimited" if limit.size is None else bits(limit.size),
            f"{limit.instances:,}",
            " ".join(limit.must) or "-",
            " ".join(limit.may) or "-",
            f"{limit.largest[0]} {bits(limit.largest[1])}" if limit.largest else "-",
        )
        for limit in limits(problem)
    ]
    return "\n".join([*lines, "", columns("what the memories can and must hold", heads, listed, left=(0, 3, 4, 5)), ""])


def certificate_lines(result: Result) -> list[tuple[str, str]]:
    """(label, text) pairs that say what is proven and how."""
    certificate = result.certificate
    if certificate is None:
        return [("proof", "none: this mapping was given, not searched for")]
    counts = ", ".join(f"{name} {number:,}" for name, number in certificate.counts.items())
    how = f"method '{result.method}', {result.seconds:.3g} s" + (f"; {counts}" if counts else "")
    note, space = few_divisors(result.problem, result.value), result.mapspace
    return [
        ("proof", f"{claimed(result)}{proof(result.objective, certificate)}"),
        *([] if certificate.integer is None else [("any tiles", within_any_tiles(result))]),
        *([("ended", f"{result.ended.words}; this is the best so far")] if result.ended else []),
        *([("choices", choices(result.objective, certificate))] if certificate.alternatives else []),
        ("space", space.shown if certificate.mapspace == space.describe() else certificate.mapspace),
        *(("note", one) for one in (note, kept_off(result), nothing_read(result), read_for_each(result)) if one),
        ("found by", how),
    ]


def claimed(result: Result) -> str:
    """Whose word the proof is, where the method does not ship and nothing of einloom has checked it; else empty."""
    certificate = result.certificate
    if certificate is None or certificate.guarantee is Guarantee.NONE or result.method in (*METHODS, *PRICED):
        return ""
    return f"claimed by method {result.method!r:.80}, not checked: "


def choices(objective: Objective, certificate: Certificate) -> str:
    """The best of several problems in one sentence, and what is known of the others."""
    found = [one for one in certificate.alternatives if one.value == certificate.value]
    others = [
        f"{one.label}: {_known(objective, one, certificate.guarantee)}"
        for one in certificate.alternatives
        if one not in found[:1]
    ]
    return "; ".join([f"the best has {found[0].label}" if found else "", *others])


def _known(objective: Objective, one: Alternative, guarantee: Guarantee) -> str:
    if one.bound is None:
        return "nothing legal"
    if one.value == one.bound:
        return objective_value(objective, one.bound, 5)
    if one.bound == 0 and one.value is None:
        return "nothing better was found" if guarantee is Guarantee.NONE else "nothing is known"
    if one.bound == 0 and one.value is not None:
        return f"{objective_value(objective, one.value, 5)} was reached"
    return f"not below {objective_value(objective, one.bound, 5)}"


def proof(objective: Objective, certificate: Certificate) -> str:
    """The certificate in one sentence."""
    bound = objective_value(objective, certificate.bound)
    if certificate.guarantee is Guarantee.OPTIMAL:
        return f"optimal: no mapping of the space has less than {bound} (gap {certificate.gap:.3g})"
    if certificate.guarantee is Guarantee.BOUNDED and objective.name == "pareto":
        return (
            f"bounded: no mapping has an EDP below {bound} (gap {certificate.gap:.3%}); no more is proven of the front"
        )
    if certificate.guarantee is Guarantee.BOUNDED:
        return f"bounded: no mapping of the space has less than {bound} (gap {certificate.gap:.3%})"
    return "none: this method proves nothing"


def within_any_tiles(result: Result) -> str:
    """What is proven of mappings with any integer tiles."""
    certificate, which = result.certificate, any_tiles(result.workload)
    if certificate is None or certificate.integer_gap is None or certificate.integer is None:
        return "not asked"
    if certificate.integer_gap == 0:
        return f"as good as {which} can be"
    least = objective_value(result.objective, certificate.integer)
    return f"within {certificate.integer_gap:.3%} of {which}: no such mapping has less than {least}"


def fusion(result: Result) -> str:
    """For every intermediate, the memory that backs it and the loops that cut it there."""
    outermost = result.machine.memories[0].name
    rows = []
    for name, (memory, loops) in backings(result).items():
        users = " > ".join(", ".join(each[name]) for each in (result.workload.writers, result.workload.consumers))
        where = "not fused" if memory == outermost else ("fused, whole" if not loops else "fused, " + _cuts(loops))
        rows.append((called(result.workload, name), memory, users, where))
    return columns("what is fused where", ("tensor", "in", "from > to", "how"), rows) if rows else ""


def _cuts(loops: tuple[Loop, ...]) -> str:
    words = []
    for loop in loops:
        names = "/".join(dict.fromkeys(variable for _, variable in loop.binds))
        words.append(f"{names} in {loop.trips}" + (f" @ {loop.axis}" if loop.axis else ""))
    return "below " + ", ".join(words)


def tree(result: Result, einsums: Collection[str] | None = None) -> str:
    """The mapping as text, long lines folded; a comment says where the last tile of a loop is smaller.

    einsums: only their branches, and only their tensors.
    """
    nest, last = result.mapping.nest, edge_tiles(result.workload, result.mapping.nest)
    told, places = [], list(addresses(nest))
    if einsums is not None:
        told.append(f"# {len(einsums)} of {len(result.workload.einsums)} Einsums")
        nest, places = _part(nest, einsums, {t for e in einsums for t in result.workload.einsum(e).tensors})
    for line, address in zip(lines(nest), places, strict=True):
        told += fold(line, WIDTH - 2)
        if address in last:
            told[-1] += f"  # the last tile: {last[address]}"
    return "\n".join(told)


def _part(
    nest: Nest, einsums: Collection[str], tensors: Collection[str], above: Address = ()
) -> tuple[Nest, list[Address]]:
    """What of a nest concerns some Einsums and tensors, and the address of every node that is left."""
    left: list[Node] = []
    places: list[Address] = []
    for i, node in enumerate(nest):
        below: list[Address] = []
        match node:
            case Store():
                node = replace(node, tensors=tuple(tensor for tensor in node.tensors if tensor in tensors))
            case Loop():
                node = replace(node, binds=tuple(bind for bind in node.binds if bind[0] in einsums))
            case Split():
                kept = [j for j, branch in enumerate(node.branches) if any(e in einsums for e in einsums_below(branch))]
                parts = [_part(node.branches[j], einsums, tensors, (*above, i, j)) for j in kept]
                below = [address for _, found in parts for address in found]
                shares = tuple(node.shares[j] for j in kept) if node.shares else ()
                node = replace(node, branches=tuple(branch for branch, _ in parts), shares=shares)
        if not isinstance(node, Store) or node.tensors:
            left.append(node)
            places += [(*above, i), *below]
    return tuple(left), places


def by_einsum(result: Result) -> str:
    """Energy of every Einsum by component, its latency, and the component that bounds it."""
    table = result.cost.energy_by("einsum", "component")
    totals: dict[str, float] = {}
    for (_, component), energy in table.items():
        totals[str(component)] = totals.get(str(component), 0.0) + energy
    used = sorted((c for c in totals if totals[c]), key=lambda c: result.machine.position[c])
    shown = used if len(used) <= MAX_COMPONENTS else sorted(used, key=lambda c: -totals[c])[: MAX_COMPONENTS - 1]
    shown = [component for component in used if component in shown]
    rest = [component for component in used if component not in shown]
    latency = dict(result.cost.einsum_latency)
    rows = []
    for name in result.mapping.einsums:
        energies = [table.get((name, component), 0.0) for component in shown]
        energies += [sum(table.get((name, component), 0.0) for component in rest)] if rest else []
        total = sum(energy for (einsum, _), energy in table.items() if einsum == name)
        rows.append(
            (name, joules(total), *map(joules, energies), seconds(latency.get(name, 0.0)), bounding(result, name))
        )
    sums = [totals[component] for component in shown] + ([sum(totals[c] for c in rest)] if rest else [])
    rows.append(("total", joules(result.energy), *map(joules, sums), seconds(result.latency), ""))
    heads = ("Einsum", "energy", *shown, *(["others"] if rest else []), "latency", "bound by")
    return columns("energy by Einsum and component, and latency", heads, rows, left=(0, len(heads) - 1), rule=True)


def bounding(result: Result, einsum: str) -> str:
    """The component that keeps an Einsum busy for longest; ``-`` if nothing takes time."""
    mine = [(t, component) for name, component, t in result.cost.busy if name == einsum and t > 0]
    return max(mine)[1] if mine else "-"


def breakdown(result: Result) -> str:
    """Energy by Einsum, and energy and bits by component, tensor and action."""
    position = result.machine.position
    rows = [
        (
            component,
            tensor,
            action,
            f"{count:,}",
            bits(moved) if action not in ("compute", "leak") else "-",
            joules(energy),
            f"{energy / result.energy:.1%}" if result.energy else "-",
        )
        for (component, tensor, action), (count, moved, energy) in sorted(
            sums(result, "component", "tensor", "action").items(), key=lambda item: (position[item[0][0]], -item[1][2])
        )
    ]
    heads = ("component", "tensor", "action", "count", "moved", "energy", "share")
    return by_einsum(result) + "\n\n" + columns("all actions", heads, rows, left=(0, 1, 2))


def occupancy(result: Result) -> str:
    """For every memory, the bits of one instance in use at the worst moment, and by which tensors."""
    rows = []
    for o in result.cost.occupancy:
        size = "unlimited" if o.size is None else bits(o.size)
        share = "" if o.size is None else f"{o.bits / o.size:.1%}" if o.size else "-"
        alive = ", ".join(f"{tensor} {bits(number)}" for tensor, number in o.tensors)
        room = WIDTH - 50
        first, *more = wrap(alive, room, break_on_hyphens=False) or [""]
        rows += [(o.memory, bits(o.bits), size, share, first), *(("", "", "", "", line) for line in more)]
    heads = ("memory", "peak", "size", "used", "alive at the peak")
    return columns("occupancy of one instance", heads, rows, left=(0, 4))
