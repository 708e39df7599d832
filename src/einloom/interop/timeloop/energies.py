"""Timeloop's energy reference table (``ERT``): picojoules per action of every component."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import field

from ...dataclass import dataclass
from ...errors import SpecError
from ...reading.arithmetic import exact
from ...reading.located import Located

_INSTANCES = re.compile(r"\[[0-9]+\.\.[0-9]+\]\Z")
_PICO = 10**12
MOST = 1e30
NONE = "none"


@dataclass
class Energies:
    """pJ per action, by component; `table` None if there is no ERT, `free` if nothing is to cost anything."""

    table: Mapping[str, Mapping[str, float]] | None
    free: bool = False
    missing: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def of(self, component: str, actions: tuple[str, ...]) -> tuple[float, ...]:
        """Joules of the actions; what is in no table is remembered for `check`."""
        if self.free:
            return (0.0,) * len(actions)
        mine = (self.table or {}).get(component, {})
        absent = tuple(action for action in actions if action not in mine)
        if absent:
            self.missing[component] = absent
        return tuple(float(exact(mine.get(action, 0.0)) / _PICO) for action in actions)

    def leakage(self, component: str, clock: float) -> float:
        """Watts of one instance at so many cycles per second; 0 where the table says nothing of it."""
        leak = 0.0 if self.free else (self.table or {}).get(component, {}).get("leak", 0.0)
        return float(exact(leak) * exact(clock) / _PICO)

    def check(self, view: Located) -> None:
        """SpecError with every missing energy and the file to write."""
        if not self.missing:
            return
        lines = ["ERT:", "  version: 0.4", "  tables:"]
        for name, actions in self.missing.items():
            listed = ", ".join(f"{{name: {action}, energy: FILL}}" for action in actions)
            lines.append(f"  - {{name: {name}, actions: [{listed}]}}")
        template = "\n".join(lines)
        raise view.error(
            f"no energies for {', '.join(self.missing)}: Timeloop has them from Accelergy, which is not part of "
            "einloom. Read its ERT.yaml too (ert=ERT.yaml), or a file such as this with pJ for FILL, or say "
            f"energy=none:\n{template}"
        )


def energies_from(view: Located | None, choice: str | None) -> Energies:
    """The table of a file; choice: ``none`` for energies of zero."""
    if choice not in (None, NONE):
        raise SpecError(f"energy={choice:.40}: the one choice is energy={NONE}; energies come from an ERT")
    if view is None:
        return Energies(None, choice == NONE)
    view.get("version")
    table: dict[str, dict[str, float]] = {}
    for item in view.require("tables").items():
        place = item.require("name")
        name = _INSTANCES.sub("", place.name()).rsplit(".", 1)[-1]
        if name in table:
            raise place.error(f"two tables for {name}")
        table[name] = {}
        for action in item.require("actions").items():
            energy = float(action.require("energy").number("energy", minimum=0))
            if energy > MOST:
                raise action.require("energy").error(f"{energy:g} pJ is too large")
            table[name][action.require("name").name()] = energy
            action.get("arguments")
            action.finish()
        item.finish()
    view.finish()
    return Energies(table, choice == NONE)
