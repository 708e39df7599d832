"""In which order Einsums are joined: that of the program, or every order that their data allows.

Comes in: a workload. Goes out: the sets of Einsums that may have run, by size, and the steps that lead to each. A set
is an int: bit i stands for the Einsum at place i of the program. Those of all orders are the down-sets of who reads
what.
"""

from __future__ import annotations

from typing import NamedTuple

from ....errors import SpecError
from ....machine.levels import Machine
from ....mapping.legality.placement import outermost_home
from ....workload.einsum import Einsum, Workload
from ....workload.orders import awaited, earlier

MOST = 20_000  # sets of Einsums that have run, beyond which orders are too many to join


class JoinStep(NamedTuple):
    """One Einsum more. position: its place in the program; before: the Einsums that have run."""

    position: int
    before: int

    @property
    def done(self) -> int:
        """The Einsums that have run then."""
        return self.before | 1 << self.position

    @property
    def as_written(self) -> bool:
        """True if the Einsums that have run are those before it in the program."""
        return self.before + 1 == 1 << self.position


def as_written(position: int) -> JoinStep:
    """The step to the Einsum at a place of the program, in program order."""
    return JoinStep(position, (1 << position) - 1)


Layer = dict[int, list[JoinStep]]  # set of Einsums that have run -> the steps that lead to it


def layers(workload: Workload, free: bool) -> list[Layer]:
    """The sets of one Einsum, of two, and so on. free: of all orders, not of the program's alone.

    Raises SpecError if all orders have too many.
    """
    count = len(workload.einsums)
    if not free:
        return [{step.done: [step]} for step in map(as_written, range(count))]
    waits, found, total = awaited(workload), list[Layer](), 0
    for _ in range(count):
        layer: Layer = {}
        for before in found[-1] if found else (0,):
            for i in range(count):
                if not before >> i & 1 and not waits[i] & ~before:
                    layer.setdefault(before | 1 << i, []).append(JoinStep(i, before))
        found.append(layer)
        total += len(layer)
        if total > MOST:
            raise SpecError(
                f"exact joins at most {MOST} sets of Einsums, and {workload.name} has more in free order",
                suggestion="order: program",
            )
    return found


def refuse_first_readers(workload: Workload, machine: Machine) -> None:
    """Raise SpecError if it matters which of several Einsums reads an input of the cascade first, or writes the first
    part of a tensor.

    The first one says which memory must back it, and, where that has a size, how wide a value and how long a rank is.
    """
    before = earlier(workload)
    for tensor in workload.inputs:
        readers = [workload.position[name] for name in workload.consumers[tensor]]
        first = [i for i in readers if not any(before[i] >> j & 1 for j in readers)]
        if len({_stored(workload, machine, workload.einsums[i], tensor) for i in first}) > 1:
            raise SpecError(
                f"exact searches no free order where the first reader of {tensor} decides how it is stored",
                suggestion="order: program",
            )

    for tensor in workload.parted.keys() & workload.writers.keys():
        widths = {tuple(m.bits(workload, name, tensor) for m in machine.memories) for name in workload.writers[tensor]}
        homes = {outermost_home(workload, machine, name, tensor) for name in workload.writers[tensor]}
        if len(widths) > 1 or (tensor in workload.ends and len(homes) > 1):
            raise SpecError(
                f"exact searches no free order where the first writer of {tensor} decides how it is stored",
                suggestion="order: program",
            )


def _stored(workload: Workload, machine: Machine, einsum: Einsum, tensor: str) -> tuple[object, ...]:
    """What the Einsum says of an input that it is the first to read."""
    home = outermost_home(workload, machine, einsum.name, tensor)
    if home is None or machine.memory(home).size is None:
        return (home,)
    indices = einsum.access(tensor).indices
    extents = tuple(workload.extents[index.variables[0]] if index.simple else None for index in indices)
    return home, machine.memory(home).bits(workload, einsum.name, tensor), extents
