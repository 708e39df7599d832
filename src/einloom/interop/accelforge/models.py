"""Numbers that AccelForge would ask a component model for, given in a file instead.

The section ``einloom: {models: ...}`` may stand in any file that is read together with the architecture::

    einloom:
      models:
        GlobalBuffer: {read: 12 pJ, write: 14 pJ, leakage: 1 mW, area: 0.2 mm2}
        MAC: {compute: {energy: 0.6 pJ, throughput: 200 MHz}}

Energies are per action, throughputs in actions per second. `Missing` says which are not given, as a file to fill in.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from ...dataclass import dataclass
from ...reading.located import Located


@dataclass(frozen=True, slots=True)
class Modelled:
    """What is given for one component: joules and actions per second by action, watts, square metres."""

    energies: Mapping[str, float] = field(default_factory=dict)
    throughputs: Mapping[str, float] = field(default_factory=dict)
    leakage: float | None = None
    area: float | None = None


def read_models(view: Located | None) -> dict[str, Modelled]:
    """The numbers of each component, by its name in the architecture. Raises SpecError with the place."""
    return {name: _modelled(value) for name, _, value in view.entries()} if view is not None else {}


def _modelled(view: Located) -> Modelled:
    energies: dict[str, float] = {}
    throughputs: dict[str, float] = {}
    for action in ("read", "write", "compute"):
        given = view.get(action)
        if given is None:
            continue
        energy = given.require("energy") if given.is_mapping else given
        energies[action] = float(energy.number("energy", minimum=0))
        if given.is_mapping:
            if (speed := given.get("throughput")) is not None:
                throughputs[action] = float(speed.number("rate", positive=True))
            given.finish()
    leakage, area = view.get("leakage"), view.get("area")
    view.finish()
    return Modelled(
        energies,
        throughputs,
        None if leakage is None else float(leakage.number("power", minimum=0)),
        None if area is None else float(area.number("area", minimum=0)),
    )


class Missing:
    """The actions whose energy would come from a component model and stands nowhere."""

    def __init__(self) -> None:
        self.first: Located | None = None
        self.components: dict[str, tuple[str, list[str]]] = {}

    def add(self, place: Located, component: str, kind: str, action: str) -> None:
        self.first = place if self.first is None else self.first
        self.components.setdefault(component, (kind, []))[1].append(action)

    def check(self, wanted: Mapping[str, str]) -> None:
        """Raise SpecError with all of them, if any, and the variables `wanted`, as a template of the file to write."""
        if self.first is None:
            return
        count = sum(len(actions) for _, actions in self.components.values())
        listed = "; ".join(f"{name} ({kind}): {', '.join(a)}" for name, (kind, a) in self.components.items())
        raise self.first.error(
            f"{count} energies would come from component models, which are not part of einloom: {listed}. Write a file "
            f"such as this, with numbers for FILL, and read it too:\n{self.template(wanted)}"
        )

    def template(self, wanted: Mapping[str, str] | None = None) -> str:
        """The file to write, with FILL where a number is to stand."""
        lines = ["einloom:", "  models:"]
        for name, (kind, actions) in self.components.items():
            numbers = ", ".join(f"{action}: FILL pJ" for action in actions)
            lines.append(f"    {name}: {{{numbers}}}  # {kind}")
        if wanted:
            lines += ["  values:", *(f"    {name}: FILL" for name in wanted)]
        return "\n".join([*lines, "# energies per action"])
