"""A ``Toll`` of an AccelForge architecture: which tensors it charges on which way, and how wide a value is there.

``direction`` is a word for all tensors or a table from set expressions to words. Whatever passes a toll on the way in
is held further out, and goes there on the way out, so ``Above`` says nothing about a toll and is read as all tensors.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from fractions import Fraction
from math import inf, isfinite, lcm

from ...dataclass import dataclass
from ...machine.levels import ALL, NOTHING, Toll
from ...reading.arithmetic import exact
from ...reading.located import Located
from ...workload.selectors import Selector, select, selector
from .components import ComponentAction, Components, speed
from .formulas import ports as ports_of

WAYS = ("down", "up", "up_and_down")
IN_FRONT = (
    "AccelForge's own scripts put a memory in front of such a macro; say so in a file beside, for example "
    "'einloom: {main_memory: MainMemory}'"
)


@dataclass(frozen=True, slots=True)
class Widths:
    """Bits of a value of each tensor, and of an access, as whole numbers. free: tensors of no bits, never charged."""

    widths: tuple[tuple[Selector, int], ...]
    access: int
    free: tuple[Selector, ...] = ()


class Tolls(Components):
    """Reads what values pass: nodes of the kind ``Toll``, and memories that keep nothing over time."""

    def toll(self, view: Located, written: str) -> Toll:
        with view.require("direction").placed():
            keep = self.tolled(view.get("tensors"))
            down, up = charged(keep, view.require("direction"), self.all_of)
        idle = keep.text == "nothing"
        action = self.actions(view, () if idle else ("read",)).get("read", ComponentAction(0.0, inf, Fraction(1)))
        _, formula = ports_of(view, self.symbols.variables)
        found = self.toll_widths(view, action)
        for free in found.free:
            without = selector(f"~{_bound(free.text)}")
            down, up = (common(way, without) if self.selects(way, free) else way for way in (down, up))
        scales = self.scales(view)
        leakage, area = self.idle(view, written, scales)
        return Toll(
            self.names.get(written, written),
            energy=action.energy * scales.energy,
            bits_per_access=found.access,
            throughput=speed(scales.speed(action.throughput, formula), found.access),
            down=down,
            up=up,
            widths=found.widths,
            leakage=leakage,
            area=area,
        )

    def tolled(self, view: Located | None) -> Selector:
        """The tensors that a toll charges."""
        if view is None:
            return ALL
        keep, may = view.get("keep"), view.get("may_keep")
        if may is not None and self.all_of(may, may.text()).text != "nothing":
            raise may.error("may_keep of a Toll has no counterpart here: what passes it is charged; say keep")
        view.finish()
        return NOTHING if keep is None else self.all_of(keep, keep.text(what="a set expression"))

    def all_of(self, view: Located, text: str) -> Selector:
        """A set of tensors that pass a toll."""
        return self.named(view, anywhere(text))

    def selects(self, which: Selector, part: Selector) -> bool:
        """May one tensor be in both?"""
        workload = self.symbols.workload
        return workload is None or any(
            select(which, workload, e.name) & select(part, workload, e.name) for e in workload.einsums
        )

    def windowed(self, which: Selector) -> bool:
        """Is one of the tensors read through windows?"""
        workload = self.symbols.workload
        return workload is not None and any(
            not index.simple and access.tensor in select(which, workload, einsum.name)
            for einsum in workload.einsums
            for access in einsum.accesses
            for index in access.indices
        )

    def toll_widths(self, view: Located, action: ComponentAction) -> Widths:
        """Bits per value and per access of a toll."""
        field = view.get("values_per_action")
        own = self.by_set(view.table("bits_per_value"), "a width")
        if field is not None and field.keys:
            return per_value(field, self.by_set(field.entries(), "a count"))
        return in_whole_bits(view, own, action.bits, self.common_widths)

    def by_set(self, entries: list[tuple[str, Located, Located]], what: str) -> list[tuple[Selector, Fraction]]:
        """Numbers for sets of tensors that pass a toll."""
        return [(self.all_of(key, text), positive(value, self.agreed(value), what)) for text, key, value in entries]

    def passing(self, view: Located) -> Toll | None:
        """The memory as a toll, if it keeps nothing over time and costs nothing; None if it is a memory indeed."""
        tensors = view.get("tensors")
        field = None if tensors is None else tensors.get("no_resend_to_below")
        if tensors is None or field is None:
            return None
        name, keep, sent = view.require("name").name(), tensors.get("keep"), self.all_of(field, field.text())
        actions = self.actions(view, ("read", "write"))
        free = all(action.energy == 0 and action.throughput == inf for action in actions.values())
        whole = keep is not None and self.all_of(keep, keep.text()) == sent and tensors.get("may_keep") is None
        if not free or not whole:
            raise field.error(
                "no_resend_to_below has a counterpart only for a memory that costs nothing and keeps nothing else, "
                "which is a place that values pass"
            )
        tensors.finish()
        for key in ("size", "values_per_action", "bits_per_value", "total_latency"):
            view.get(key)
        leakage, area = self.idle(view, name, self.scales(view))
        self.notes.append(f"{name}: no_resend_to_below makes it a place that values pass, without a size, here")
        if self.windowed(sent):
            self.notes.append(
                f"{name}: each instance's window passes it by itself; AccelForge sends shared values once"
            )
        return Toll(self.names.get(name, name), down=sent, up=NOTHING, leakage=leakage, area=area)


def charged(keep: Selector, view: Located, read: Callable[[Located, str], Selector]) -> tuple[Selector, Selector]:
    """The tensors among `keep` that are charged on the way (down, up), as the field ``direction`` says.

    read: the selector of a key of that field, which is at most `keep`.
    """
    if not view.is_mapping:
        way = view.choice(WAYS)
        return (keep if way != "up" else NOTHING), (keep if way != "down" else NOTHING)
    found: dict[str, list[str]] = {"down": [], "up": []}
    for text, key, value in view.entries():
        way = value.choice(WAYS)
        mine = common(keep, read(key, text))
        for side in found:
            if side in way.split("_and_") and mine.text != "nothing":
                found[side].append(mine.text)
    down, up = (selector(" | ".join(_bound(t) for t in texts)) if texts else NOTHING for texts in found.values())
    return down, up


def common(first: Selector, second: Selector) -> Selector:
    """What both select, in few words where one says it all."""
    if "nothing" in (first.text, second.text):
        return NOTHING
    if "all" in (first.text, second.text) or first == second:
        return second if first.text == "all" else first
    return selector(f"{_bound(first.text)} & {_bound(second.text)}")


def anywhere(text: str) -> str:
    """A set expression without ``Above``: what passes a toll is held above it."""
    return re.sub(r"\bAbove\b", "All", re.sub(r"\s*&\s*Above\b|\bAbove\s*&\s*", "", text))


def per_value(view: Located, counts: list[tuple[Selector, Fraction]]) -> Widths:
    """Widths under which an action moves so many values of each tensor."""
    if not all(count for _, count in counts):
        raise view.error("values_per_action must be greater than zero")
    scale = lcm(*(count.numerator for _, count in counts))
    return Widths(tuple((which, int(scale / count)) for which, count in counts), scale)


def in_whole_bits(
    view: Located, widths: list[tuple[Selector, Fraction]], access: Fraction, others: tuple[int, ...]
) -> Widths:
    """The same widths in a unit in which all are whole.

    others: the tensors' own bits per value, which count where no width is said. Raises SpecError if they differ, or are
    not known, and must be rewritten.
    """
    free = tuple(which for which, bits in widths if bits == 0)
    named = [(which, bits) for which, bits in widths if bits]
    scale = lcm(access.denominator, *(bits.denominator for _, bits in named))
    found = [(which, int(bits * scale)) for which, bits in named]
    if scale > 1 and len(others) == 1:
        found.append((ALL, others[0] * scale))
    elif scale > 1 and not widths:
        raise view.error("a width of actions that is not whole needs one width of all tensors; read it with a workload")
    return Widths(tuple(found), int(access * scale), free)


def _bound(text: str) -> str:
    return f"({text})" if " " in text else text


def positive(view: Located, number: Fraction | float, what: str) -> Fraction:
    """The number as a fraction. Raises SpecError with its place if it is below zero or not finite."""
    if isinstance(number, float) and not isfinite(number):
        raise view.error(f"{what} must be a finite number")
    if number < 0:
        raise view.error(f"{what} may not be negative")
    return exact(number)
