"""How many instances of its compute unit each Einsum uses: those that its spatial loops give work."""

from __future__ import annotations

from fractions import Fraction

from ...mapping.tree import Compute, Loop, Nest, Split
from ...mapspace.divisors import divisors_up_to
from ...result import Result
from ...workload.padding import padding_reach

IDLE_BELOW, GROUPS, NAMES = 0.5, 4, 3  # a smaller share is told of; so many numbers, and Einsums of each


def used(result: Result) -> dict[str, tuple[str, int, int]]:
    """(compute unit, instances with work, all instances that it may have) of every Einsum that computes.

    Spatial loops of an Einsum multiply: 8 rows by 4 columns give 32 instances work. Einsums that run at the same time
    on an axis have their share of it; they are left out where no shares are said.
    """
    found: dict[str, tuple[str, int, int]] = {}
    _walk(result, result.mapping.nest, (), Fraction(1), found)
    return found


def _walk(
    result: Result, nest: Nest, above: tuple[Loop, ...], part: Fraction, found: dict[str, tuple[str, int, int]]
) -> None:
    for node in nest:
        match node:
            case Loop():
                above = above if node.axis is None else (*above, node)
            case Compute(einsum, unit) if unit is not None:
                work = 1
                for loop in above:
                    work *= loop.trips if loop.variable(einsum) is not None else 1
                found[einsum] = unit, work, int(part * result.machine.instances(unit))
            case Split(where=str(axis)) if axis in result.machine.axes:
                for branch, share in zip(node.branches, node.shares, strict=False):
                    mine = part * Fraction(share, result.machine.axes[axis].size)
                    _walk(result, branch, above, mine, found)
            case Split():
                for branch in node.branches:
                    _walk(result, branch, above, part, found)


def kept_off(result: Result) -> str:
    """Of the Einsums that leave most instances idle the rank variables that would fit an axis, but for as many
    positions with padding, in a sentence; empty if there are none."""
    told = []
    for einsum, (unit, work, every) in used(result).items():
        variables = _kept_off(result, einsum, unit) if work < IDLE_BELOW * every else []
        if variables:
            told.append(f"{', '.join(variables)} of {einsum}")
    more = len(told) - NAMES
    rest = f" and of {more} more" if more > 0 else ""
    return (
        f"on no axis, because as many of their positions reach padding as an axis takes: {'; '.join(told[:NAMES])}"
        f"{rest}; `einloom rewrite WORKLOAD stored_padding` stores the padding instead (docs/mapspace.md)"
        if told
        else ""
    )


def _kept_off(result: Result, einsum: str, unit: str) -> list[str]:
    """Variables with a divisor that an axis above the unit has room for, none of them above what rule 11 asks."""
    workload, place = result.workload, result.machine.position
    sizes = [axis.size for axis in result.machine.axes.values() if place[axis.name] < place[unit]]
    found = []
    for v, reach in padding_reach(workload, einsum).items():
        fits = [n for n in divisors_up_to(workload.extents[v], max(sizes, default=1)) if n > 1]
        if fits and max(fits) <= reach:
            found.append(v)
    return found


def idle(result: Result) -> str:
    """The Einsums that leave more than half of their unit's instances without work, in a sentence; empty if none do."""
    groups: dict[tuple[str, int, int], list[str]] = {}
    for einsum, use in used(result).items():
        if use[1] < IDLE_BELOW * use[2]:
            groups.setdefault(use, []).append(einsum)
    told = []
    for (unit, work, every), einsums in sorted(groups.items(), key=lambda item: item[0][1] / item[0][2]):
        more = len(einsums) - NAMES
        names = ", ".join(einsums[:NAMES]) + (f" and {more} more" if more > 0 else "")
        told.append(f"{names} {'uses' if len(einsums) == 1 else 'use'} {work:,} of {every:,} {unit}")
    rest = len(told) - GROUPS
    return "; ".join(told[:GROUPS] + ([f"and {rest} more"] if rest > 0 else []))
