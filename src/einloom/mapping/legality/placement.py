"""Where things stand: units, stores and spatial loops of every path against the machine's levels and limits."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from ...machine.levels import ComputeUnit, Link, Machine, Memory
from ...workload.einsum import Workload
from ...workload.selectors import select
from ..analysed import Analysed
from ..extents import Address, Trail
from ..tree import Compute, Loop, Nest, Store, describe
from .reason import Reason

Stores = tuple[tuple[int, Store], ...]  # of one path, with their places there
Spread = list[tuple[int, Loop, str | None]]  # its spatial loops, with their places and the variables that they iterate


def placement_problems(machine: Machine, tree: Analysed) -> Iterator[Reason]:
    """Reasons about units, the order of stores and fanouts, and what each memory must, may and may not hold."""
    workload = tree.workload
    for einsum, nodes in tree.paths.items():
        leaf, stores = nodes[-1], tree.stores[einsum]
        spread = [one for one in tree.loops[einsum] if one[1].axis is not None]
        assert isinstance(leaf, Compute)
        yield from _unit_problems(workload, machine, leaf, nodes)
        yield from _order_problems(workload, machine, leaf, stores, spread)
        yield from _axis_problems(workload, machine, einsum, spread)
        yield from _holding_problems(workload, machine, leaf, stores)
    yield from _backing_problems(machine, tree)


def visible_memories(machine: Machine, unit: str | None) -> tuple[Memory, ...]:
    """Memories whose limits an Einsum on `unit` meets: those listed before it, for a copy before the first unit."""
    return machine.seen.get(unit, machine.memories)


def held_tensors(workload: Workload, machine: Machine, einsum: str, stores: Stores) -> dict[str, set[str]]:
    """Memory -> the tensors of `einsum` that the stores of its path hold, for every memory of the machine."""
    mine = set(workload.einsum(einsum).tensors)
    found: dict[str, set[str]] = {memory.name: set() for memory in machine.memories}
    for _, node in stores:
        found[node.memory] |= mine.intersection(node.tensors)
    return found


def _unit_problems(workload: Workload, machine: Machine, leaf: Compute, nodes: Nest) -> Iterator[Reason]:
    einsum = workload.einsum(leaf.einsum)
    if einsum.kind == "copy":
        if leaf.unit is not None:
            yield Reason(f"Einsum {leaf.einsum} is a copy and runs on no unit, not on {leaf.unit}", leaf)
        return
    if leaf.unit is None:
        yield Reason(f"Einsum {leaf.einsum} names no compute unit; {_units(machine.units_for(einsum))}", leaf)
        return
    if not machine.unit(leaf.unit).accepts(einsum):
        yield Reason(
            f"{leaf.unit} does not execute Einsum {leaf.einsum} ({einsum.kind}, {len(einsum.inputs)} operands); "
            f"{_units(machine.units_for(einsum))}",
            leaf,
        )
    place = machine.position[leaf.unit]
    mine = set(einsum.tensors)
    for node in nodes:
        if isinstance(node, Store) and machine.position[node.memory] > place:
            for tensor in (t for t in node.tensors if t in mine):
                words = f"{leaf.einsum}: {tensor} is stored in {node.memory}, which {leaf.unit} cannot see"
                yield Reason(words, node)
        if isinstance(node, Loop) and node.axis is not None and machine.position[node.axis] > place:
            words = f"{leaf.einsum}: '{describe(node)}' spreads over {node.axis}, which is listed after {leaf.unit}"
            yield Reason(words, node)


def _units(units: tuple[ComputeUnit, ...]) -> str:
    return f"it may run on {', '.join(unit.name for unit in units)}" if units else "no unit executes it"


def _order_problems(
    workload: Workload, machine: Machine, leaf: Compute, stores: Stores, spread: Spread
) -> Iterator[Reason]:
    """Stores of a tensor go inwards; stores stand on the right side of spatial loops; every tensor has a store."""
    einsum = leaf.einsum
    mine = set(workload.einsum(einsum).tensors)
    # what a store keeps for other Einsums is in an instance of their own loops
    own = [(j, n) for j, n in stores if not mine.isdisjoint(n.tensors)]
    for tensor in workload.einsum(einsum).tensors:
        homes = [n for _, n in own if tensor in n.tensors]
        if not homes:
            yield Reason(f"{einsum}: {tensor} has no store on its path", leaf)
        for above, below in pairwise(homes):
            outer, inner = above.memory, below.memory
            if outer == inner:
                yield Reason(f"{einsum}: {tensor} is stored twice in {outer}", below)
            elif machine.position[outer] > machine.position[inner]:
                words = f"{einsum}: {tensor} is stored in {inner} below its store in {outer}, which is further in"
                yield Reason(words, below)
    for i, loop, _ in spread:
        assert loop.axis is not None
        place, said = machine.position[loop.axis], f"'{describe(loop)}' but is listed"
        for j, node in own:
            if j < i and machine.position[node.memory] > place:
                yield Reason(f"{einsum}: store {node.memory} stands above {said} after {loop.axis}", node)
            if j > i and machine.position[node.memory] < place:
                yield Reason(f"{einsum}: store {node.memory} stands below {said} before {loop.axis}", node)


def _axis_problems(workload: Workload, machine: Machine, einsum: str, spread: Spread) -> Iterator[Reason]:
    used: dict[str, int] = {}
    beyond: dict[str, Loop] = {}  # axis -> the first loop that needs more instances than it has
    for _, node, variable in spread:
        assert node.axis is not None
        axis = machine.axes[node.axis]
        used[axis.name] = used.get(axis.name, 1) * node.trips
        if used[axis.name] > axis.size:
            beyond.setdefault(axis.name, node)
        for tensor in sorted(select(axis.only_irrelevant_to, workload, einsum)):
            if node.trips > 1 and variable in workload.einsum(einsum).access(tensor).variables:
                yield Reason(
                    f"{einsum}: '{describe(node)}': {axis.name} takes only rank variables that {tensor} lacks, and "
                    f"{tensor} has {variable}",
                    node,
                )
    for name, loop in beyond.items():
        yield Reason(f"{einsum} uses {used[name]} instances along {name}, which has {machine.axes[name].size}", loop)


def _holding_problems(workload: Workload, machine: Machine, leaf: Compute, stores: Stores) -> Iterator[Reason]:
    """Every memory that the Einsum sees holds what it must and nothing that it may not."""
    einsum = leaf.einsum
    holds = held_tensors(workload, machine, einsum, stores)
    bound = len(visible_memories(machine, leaf.unit))  # the first of all
    above: set[str] = set()
    for i, memory in enumerate(machine.memories):
        held = holds[memory.name]
        must = select(memory.must, workload, einsum, above)
        may = select(memory.may, workload, einsum, above)
        for tensor in sorted(must - held) if i < bound else ():
            yield Reason(f"{einsum}: {memory.name} must hold {tensor} (must: {memory.must})", leaf)
        for tensor in sorted(held - may - must) if not isinstance(memory, Link) else ():
            store = next(n for _, n in stores if n.memory == memory.name and tensor in n.tensors)
            yield Reason(f"{einsum}: {memory.name} may not hold {tensor} (may: {memory.may})", store)
        above |= held


def _backing_problems(machine: Machine, tree: Analysed) -> Iterator[Reason]:
    """One backing store per tensor, in a memory that may back it, outermost for the cascade's inputs and outputs."""
    workload = tree.workload
    users: dict[str, list[str]] = {tensor.name: [] for tensor in workload.tensors}
    for einsum in tree.trails:
        for name in workload.einsum(einsum).tensors:
            users[name].append(einsum)
    for tensor in workload.tensors:
        stores: dict[Address, tuple[str, Store, Trail]] = {}
        for einsum in users[tensor.name]:
            steps = tree.trails[einsum]
            for i, node in tree.stores[einsum]:
                if tensor.name in node.tensors:
                    stores.setdefault(steps[i][0], (einsum, node, steps[:i]))
                    memory = machine.memory(node.memory)
                    if tensor.name not in select(memory.backs, workload, einsum) and not isinstance(memory, Link):
                        backs = machine.memory(node.memory).backs
                        words = f"{node.memory} may not be the backing memory of {tensor.name} (backs: {backs})"
                        yield Reason(words, node)
                    break
        if len(stores) > 1:
            where = ", ".join(f"{store.memory} for {einsum}" for einsum, store, _ in stores.values())
            yield Reason(f"{tensor.name} has no common backing store: {where}", [*stores.values()][1][1])
        for einsum, store, above in stores.values():
            yield from _backing_limits(workload, machine, tensor.name, einsum, store, above)


def _backing_limits(
    workload: Workload, machine: Machine, tensor: str, einsum: str, store: Store, above: Trail
) -> Iterator[Reason]:
    if tensor in workload.ends:
        home = outermost_home(workload, machine, einsum, tensor)
        if home is not None and home != store.memory:
            part = "an output" if tensor in workload.outputs else "an input"
            words = f"{tensor} is {part} of the cascade and must be backed by {home}, not by {store.memory}"
            yield Reason(words, store)
    if workload.tensor(tensor).persistent:
        for _, node in above:
            if isinstance(node, Loop) and node.trips > 1:
                words = f"'{describe(node)}' stands above its backing store in {store.memory}"
                yield Reason(f"{tensor} is persistent, but {words}", node)


def outermost_home(workload: Workload, machine: Machine, einsum: str, tensor: str) -> str | None:
    """The outermost memory that may hold and back `tensor`, as `einsum` meets it; None if there is none."""
    for memory in machine.memories:
        may = machine.may_hold(memory, workload, einsum, ())
        if tensor in may and tensor in select(memory.backs, workload, einsum):
            return memory.name
    return None
