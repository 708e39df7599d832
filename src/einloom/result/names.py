"""Names in the tables of a result file, held against the workload and the machine of the same file.

What is drawn or printed of a result looks its names up there; here they are refused with their place if they are none.
"""

from __future__ import annotations

from collections.abc import Collection

from ..errors import nearest
from ..machine.levels import ComputeUnit, Machine, Memory, Toll
from ..mapping.tree import Mapping
from ..reading.located import Located
from ..workload.einsum import Workload

_DOERS: dict[str, tuple[type[Memory | Toll | ComputeUnit], str]] = {
    "read": (Memory, "memory"),
    "write": (Memory, "memory"),
    "down": (Toll, "toll"),
    "up": (Toll, "toll"),
    "compute": (ComputeUnit, "compute unit"),
}
"""Action -> what does it, and of a tensor unless it is `compute`; everything leaks."""


class Names:
    """The names that the tables of one result file may use."""

    def __init__(self, workload: Workload, machine: Machine) -> None:
        self._workload = workload
        self._components = {component.name: component for component in machine.components}
        self._memories = {memory.name for memory in machine.memories}
        self._tensors = {tensor.name for tensor in workload.tensors}

    def einsum(self, view: Located) -> str:
        return _one_of(view, self._workload.names, "an Einsum of the workload")

    def memory(self, view: Located) -> str:
        return _one_of(view, self._memories, "a memory of the machine")

    def component(self, view: Located) -> str:
        return _one_of(view, self._components, "a component of the machine")

    def tensor(self, view: Located) -> str:
        return _one_of(view, self._tensors, "a tensor of the workload")

    def action(self, view: Located, einsum: str, component: str, tensor: Located | None) -> str | None:
        """The tensor of an action (None: of none), which `einsum` must access and `component` must be able to move."""
        name = view.text()
        kind, what = _DOERS.get(name, (object, ""))
        if not isinstance(self._components[component], kind):
            raise view.error(f"{name!r} is what a {what} does, and {component!r:.80} is none")
        moved = name not in ("compute", "leak")
        if tensor is None:
            if moved:
                raise view.error(f"{name!r} without a tensor")
            return None
        if not moved:
            raise tensor.error(f"{name!r} is an action on no tensor")
        return _one_of(tensor, self._workload.einsum(einsum).tensors, f"a tensor that {einsum} accesses")

    def mapping(self, view: Located, mapping: Mapping) -> None:
        """Refuse a mapping that does not compute every Einsum once."""
        found = mapping.einsums
        missing = [name for name in self._workload.names if name not in found]
        if missing:
            raise view.error(f"the mapping does not compute {', '.join(missing[:6])}")
        twice = [name for name in self._workload.names if found.count(name) > 1] if len(found) > len(set(found)) else []
        if twice:
            raise view.error(f"the mapping computes {', '.join(twice[:6])} more than once")


def _one_of(view: Located, known: Collection[str], what: str) -> str:
    name = view.name()
    if name not in known:
        raise view.error(f"{name!r:.80} is not {what}", nearest(name, known))
    return name
