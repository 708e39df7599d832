"""``loop_bounds`` of an AccelForge fanout as limits of a mapspace: what each rank variable may take of an axis.

A comparison names a set of rank variables by an expression that means something else in every Einsum (``~m``: all but
m), so one comparison becomes one limit per Einsum.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from ...errors import SpecError, nearest
from ...machine.levels import NOTHING
from ...mapspace.limits.data import AxisLimit, Numbers
from ...reading.located import Located
from ...workload.einsum import Workload
from ...workload.selectors import Selector, selected, selector

OPERATORS = ("==", "<=", ">=", "<", ">")
PRODUCT = "product"
_WORDS = {"All": "all", "Nothing": "nothing"}


def axis_limits(view: Located, axis: str, workload: Workload | None) -> list[AxisLimit]:
    """The limits that a list of comparisons sets on `axis`.

    Raises SpecError for operators and names that are unknown, for a product over some but not all rank variables, and
    where no workload is there to say what the expressions name.
    """
    limits: list[AxisLimit] = []
    for item in view.items():
        expression, operator, value = (item.require(key) for key in ("expression", "operator", "value"))
        item.finish()
        if workload is None:
            raise expression.error("loop_bounds speak of rank variables; read this together with a workload")
        word = operator.text()
        product = word.startswith(PRODUCT)
        if word.removeprefix(PRODUCT) not in OPERATORS:
            raise operator.unknown("operator", word, OPERATORS)
        allowed = _numbers(word.removeprefix(PRODUCT), value)
        for einsum in workload.einsums:
            with expression.placed():
                named = _variables(expression.text(), einsum.variables, workload)
            if product and len(named) > 1:
                if set(named) != set(einsum.variables):
                    raise operator.error(f"{word} of some rank variables only has no counterpart here")
                named = ()
            elif not named:
                continue
            limits.append(AxisLimit(axis, allowed, named, (einsum.name,)))
    return limits


def _numbers(operator: str, view: Located) -> Numbers:
    """The instances that a comparison with the value allows."""
    value = view.integer(minimum=1)
    if operator == "==":
        return Numbers(values=(value,))
    least = {">=": value, ">": value + 1}.get(operator, 1)
    most = {"<=": value, "<": value - 1}.get(operator)
    if most == 0:
        raise view.error("fewer than one instance is none")
    return Numbers(least, most)


def _variables(text: str, own: tuple[str, ...], workload: Workload) -> tuple[str, ...]:
    """The rank variables of one Einsum that the expression names."""
    known = {variable for einsum in workload.einsums for variable in einsum.variables}

    def word(match: re.Match[str]) -> str:
        """A rank written in capitals, as lists of them do, stands for the variable that runs over it."""
        name = _WORDS.get(match[0], match[0])
        return name.lower() if name not in known and name.lower() in known else name

    listed = re.sub(r"\{([\w\s,]*)\}", lambda match: f"({match[1].replace(',', ' | ')})", text)
    which = selector(re.sub(r"[A-Za-z_]\w*", word, listed))
    for name in which.names:
        if name not in known and name not in _WORDS.values():
            message = f"{name!r} in {text!r} is no rank variable; there are {', '.join(sorted(known))}"
            raise SpecError(message, suggestion=nearest(name, known))

    every = frozenset(own)
    words = {"all": every, "nothing": frozenset[str]()}
    chosen = selected(which.tree, every, lambda name: words.get(name, every & {name}))
    return tuple(variable for variable in own if variable in chosen)


def same_everywhere(limits: Iterable[AxisLimit], workload: Workload | None) -> tuple[AxisLimit, ...]:
    """The limits, with those that say the same of every Einsum written once."""
    everyone = () if workload is None else tuple(einsum.name for einsum in workload.einsums)
    grouped: dict[tuple[str, Numbers, tuple[str, ...]], list[str]] = {}
    for limit in limits:
        grouped.setdefault((limit.axis, limit.instances, limit.variables), []).extend(limit.einsums or everyone)
    return tuple(
        AxisLimit(axis, allowed, variables, None if set(einsums) == set(everyone) else tuple(einsums))
        for (axis, allowed, variables), einsums in grouped.items()
    )


def directions(reused: Selector) -> tuple[Selector, Selector]:
    """What an axis multicasts and what it reduces, of the tensors that it may reuse."""
    match reused.tree:
        case ("name", "input" | "weight" | "cascade_input"):
            return reused, NOTHING
        case ("name", "output" | "cascade_output"):
            return NOTHING, reused
        case ("or", ("and", _, ("not", ("name", "output"))), ("and", _, ("name", "output"))):
            parts = reused.text.split(" | ")
            if len(parts) == 2:
                return tuple(selector(_bare(part.rpartition(" & ")[0])) for part in parts)  # type: ignore[return-value]
    return reused, reused


def _bare(text: str) -> str:
    return text[1:-1] if text.startswith("(") and text.endswith(")") else text
