"""``constraints: {spatial: ...}`` of Timeloop's nodes as limits of a mapspace: what may be spread over which axis."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from ...machine.levels import Fanout, Machine
from ...mapspace.limits.data import AxisLimit, Limits, Numbers
from ...mapspace.space import SPACES, Mapspace
from ...reading.located import Located
from ..tileflow.operators import rank_variables
from ..tileflow.sections import known
from .sections import permutation

_FACTOR = re.compile(r"([A-Za-z_]\w*?)\s*(<=|=)\s*([0-9]{1,12})\Z")


def mapspace_from(
    spreads: Mapping[str, Located], machine: Machine, dimensions: Sequence[str], notes: list[str]
) -> Mapspace | None:
    """The mapspace that the constraints leave; spreads: fanout -> its section. None if there are none."""
    limits: list[AxisLimit] = []
    for fanout in machine.fanouts:
        if fanout.name in spreads:
            limits += _limits(fanout, spreads[fanout.name], tuple(dimensions), notes)
    return Mapspace(SPACES[0], limits=Limits(axes=tuple(limits))) if limits else None


def _limits(fanout: Fanout, view: Located, dimensions: tuple[str, ...], notes: list[str]) -> list[AxisLimit]:
    variables = rank_variables(dimensions)
    listed = view.get("permutation")
    order = () if listed is None else permutation(listed, dimensions)
    split = None if (field := view.get("split")) is None else field.integer(minimum=0)
    factors = {} if (field := view.get("factors")) is None else _factors(field, dimensions)
    view.finish()
    along = {name: "X" if name in order[:split] else "Y" for name in dimensions} if split is not None else {}
    found: list[AxisLimit] = []
    for axis in fanout.axes:
        barred = [name for name in dimensions if along.get(name, axis.name[-1]) != axis.name[-1]]
        barred += [name for name, (sign, number) in factors.items() if number == 1 and name not in barred]
        if barred:
            found.append(AxisLimit(axis.name, Numbers(values=(1,)), tuple(variables[name] for name in barred)))
        for name, (sign, number) in factors.items():
            if number > 1 and name not in barred:
                if len(fanout.axes) > 1 and not along:
                    notes.append(f"{fanout.name}: the factor of {name} is left out; it may go along either axis")
                    continue
                numbers = Numbers(values=(number,)) if sign == "=" else Numbers(most=number)
                found.append(AxisLimit(axis.name, numbers, (variables[name],)))
    return found


def _factors(view: Located, dimensions: tuple[str, ...]) -> dict[str, tuple[str, int]]:
    """``=`` or ``<=`` and the number, by dimension."""
    texts = [item.name() for item in view.items()] if view.is_list else view.text().replace(",", " ").split()
    found: dict[str, tuple[str, int]] = {}
    for text in texts:
        match = _FACTOR.match(text.strip())
        if match is None or int(match[3]) < 1:
            raise view.error(f"cannot read {text!r:.60}; factors are written C=1 or M<=8")
        known(view, (match[1],), dimensions, "dimension")
        found[match[1]] = (match[2], int(match[3]))
    return found
