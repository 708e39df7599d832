"""Runs a plan: all loops in program order, all spatial instances in the same step, one operation at a time."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

import numpy as np

from ..workload.einsum import Workload
from .lifetime import Peaks
from .plan import (
    Coords,
    Element,
    Gate,
    LeafPlan,
    LoopPlan,
    NestPlan,
    OccupancyMoment,
    Operand,
    Plan,
    SplitPlan,
    StorePlan,
)
from .reference import Array, apply_function, combine, written_elements
from .stores import Lane, Stores

Asked = tuple[str | Gate, Coords, Element]


class Execution:
    """One run of a plan on given inputs; afterwards `stores`, `peaks` and `operations` hold what happened.

    operations: per Einsum, operations of every spatial instance.
    """

    def __init__(self, workload: Workload, plan: Plan, inputs: dict[str, Array], once: bool) -> None:
        self.plan = plan
        self.stores = Stores(
            {name: _given(workload, name, array) for name, array in inputs.items()},
            {einsum.name: einsum.reduction for einsum in workload.einsums},
            workload.writers,
            once,
        )
        self.peaks = Peaks()
        self.operations: dict[str, dict[Coords, int]] = {einsum.name: {} for einsum in workload.einsums}
        self.time: list[int] = []
        self.worked: Callable[[LeafPlan], None] = _nothing

    def run(self) -> None:
        """Execute everything, then empty all stores."""
        self._nest(self.plan.root, 0, [Lane((), list(self.plan.ranges))])
        self.stores.empty_all(self.plan.root.tops)

    def _nest(self, nest: NestPlan, at: int, lanes: list[Lane]) -> None:
        for i in range(at, len(nest.nodes)):
            node = nest.nodes[i]
            if isinstance(node, StorePlan):
                step = tuple(self.time)
                for site in node.sites:
                    self.stores.visit(site, lanes, step)
            elif isinstance(node, OccupancyMoment):
                for lane in lanes:
                    self.peaks.at(node, lane.coords)
            elif isinstance(node, LoopPlan):
                self._loop(nest, i, node, lanes)
                return
            elif isinstance(node, LeafPlan):
                self._leaf(node, lanes)
            else:
                self._split(node, lanes)

    def _loop(self, nest: NestPlan, at: int, loop: LoopPlan, lanes: list[Lane]) -> None:
        if loop.axis is not None:
            spread = [inner for lane in lanes for i in range(loop.trips) for inner in _enter(loop, lane, i)]
            if spread:
                self._nest(nest, at + 1, spread)
            return
        for i in range(loop.trips):
            inner = [found for lane in lanes for found in _enter(loop, lane, i)]
            if inner:
                self.time.append(i)
                self._nest(nest, at + 1, inner)
                self.time.pop()

    def _split(self, split: SplitPlan, lanes: list[Lane]) -> None:
        for i, branch in enumerate(split.branches):
            busy = [lane for lane in lanes if branch.mask & ~lane.dead]
            if busy:
                if split.walled[i] is not None:
                    self.stores.observer.entered(split.walled[i])
                self._nest(branch, 0, busy)
                self.stores.empty_all(split.handed[i] if split.concurrent else branch.tops)
                if split.walled[i] is not None:
                    self.stores.observer.left()

    # -- leaves ------------------------------------------------------------------------------------------------

    def _leaf(self, leaf: LeafPlan, lanes: list[Lane]) -> None:
        """One operation in every spatial instance that has work in this step."""
        asked: set[Asked] = set()
        contributions = []
        operations = self.operations[leaf.einsum]
        for lane in lanes:
            point = tuple(lane.ranges[place][0] for place in leaf.places)
            if point in leaf.done:
                self.stores.reason("recomputation", f"{leaf.einsum} repeats an operation")
                continue
            leaf.done.add(point)
            values = [self._operand(leaf, operand, lane, asked) for operand in leaf.inputs]
            contributions.append((lane, _result(leaf, values)))
            if leaf.unit is not None:
                operations[lane.coords] = operations.get(lane.coords, 0) + 1
        self._accumulate(leaf, contributions, asked)
        self.worked(leaf)

    def _operand(self, leaf: LeafPlan, operand: Operand, lane: Lane, asked: set[Asked]) -> int | None:
        """The value of one operand, None for padding. Operands of one tensor take the same value, read once."""
        element = _element(operand, lane)
        if element is None:
            return None
        coords = lane.coords[: operand.site.depth]
        held = operand.site.held.get(coords)
        cell = held.cells.get(element) if held else None
        if not leaf.free:
            key = (operand.tensor, tuple(lane.coords[j] for j in operand.apart), element)
            if key not in asked:
                asked.add(key)
                self.stores.count(leaf.einsum, operand.site, "read", coords)
            for gate in operand.gates:
                for way, told in (("down", gate.down), ("up", gate.up)):
                    self._pass(leaf, gate, way, told, lane, element, asked)
        if cell is None or cell[1] != operand.site.needed.at(element):
            what = f"{operand.tensor}{list(element)} in {operand.site.memory}"
            if cell is not None:
                text = f"{leaf.einsum} reads {what} after {cell[1]} of {operand.site.needed.at(element)} operations"
                self.stores.reason("unfinished", text)
            elif element in self.stores.results.get(operand.tensor, {}):
                self.stores.reason("recomputation", f"{leaf.einsum} reads {what} after its store dropped it")
            else:
                self.stores.reason("missing", f"{leaf.einsum} reads {what}, which is not there")
        value = cell[0] if cell is not None else None
        return 0 if value is None else value

    def _pass(
        self,
        leaf: LeafPlan,
        gate: Gate,
        way: str,
        told: Coords | None,
        lane: Lane,
        element: Element,
        asked: set[Asked],
    ) -> None:
        """An operation's value goes through a toll, once for all instances that `told` does not tell apart."""
        if told is None:
            return
        key = (gate, tuple(lane.coords[j] for j in told), element)
        if key not in asked:
            asked.add(key)
            self.stores.passed(leaf.einsum, gate, way, lane.coords)

    def _accumulate(
        self,
        leaf: LeafPlan,
        contributions: list[tuple[Lane, int | None]],
        asked: set[Asked],
    ) -> None:
        """Add every instance's result to the output's innermost store."""
        output, site = leaf.output, leaf.output.site
        written: set[tuple[Coords, Element]] = set()
        gone: set[Asked] = set()
        for lane, value in contributions:
            element = _element(output, lane)
            if element is None:
                continue
            coords = lane.coords[: site.depth]
            held = site.held.get(coords)
            if held is None or element not in held.window:
                self.stores.reason("lost", f"{leaf.einsum} writes {output.tensor}{list(element)} outside its tile")
                continue
            apart = tuple(lane.coords[j] for j in output.apart)
            own = (lane.coords, element)
            again = own in leaf.seen
            for gate in output.gates:
                self._pass(leaf, gate, "up", gate.up, lane, element, gone)
                if again:
                    self._pass(leaf, gate, "down", gate.down, lane, element, asked)
            if not again:
                leaf.seen.add(own)
            elif leaf.unit is not None and (output.tensor, apart, element) not in asked:
                asked.add((output.tensor, apart, element))
                self.stores.count(leaf.einsum, site, "read", coords)
            if not leaf.free and (apart, element) not in written:
                written.add((apart, element))
                self.stores.count(leaf.einsum, site, "write", coords)
            old, done = held.cells.get(element, (None, 0))
            held.cells[element] = (combine(leaf.reduction, old, value), done + 1)
            held.changed.add(element)


def _nothing(leaf: LeafPlan) -> None:
    """Nobody watches."""


def _enter(loop: LoopPlan, lane: Lane, i: int) -> list[Lane]:
    """The instance inside iteration `i` of `loop`; nothing if no Einsum below has work in it."""
    ranges, dead = list(lane.ranges), lane.dead
    for cut, side in loop.step(lane.ranges, i):
        ranges[cut.place] = side
        if side[0] >= side[1]:
            dead |= cut.einsum_bit
    if not loop.mask & ~dead:
        return []
    return [Lane(lane.coords if loop.axis is None else (*lane.coords, i), ranges, dead)]


def _element(operand: Operand, lane: Lane) -> Element | None:
    """The element that an instance accesses; None outside the declared shape."""
    found = []
    for expression in operand.expressions:
        position = expression.position(lane.ranges)
        if not 0 <= position < expression.size:
            return None
        found.append(position)
    return tuple(found) if operand.view is None else operand.view.of(tuple(found))


def _result(leaf: LeafPlan, values: list[int | None]) -> int | None:
    """The value of one operation; padding counts as 0, and a maximum skips it."""
    if leaf.reduction == "max" and any(value is None for value in values):
        return None
    numbers = [0 if value is None else value for value in values]
    if leaf.kind == "map":
        return apply_function(leaf.function, tuple(numbers))
    return prod(numbers)


def _given(workload: Workload, tensor: str, array: Array) -> dict[Element, int]:
    """The elements of a tensor that are there from the start: those that no Einsum writes."""
    made = {element for name in workload.writers.get(tensor, ()) for element in written_elements(workload, name)}
    return {index: int(value) for index, value in np.ndenumerate(array) if index not in made}
