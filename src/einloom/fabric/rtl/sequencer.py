"""The control of a fabric: phases of an operation, one after the other, each of a length that follows from the shape.

Comes in: start, the operation, the configuration and the lengths of the streams. Goes out: what every array does now. A
phase is as long as the last value needs to arrive; `cycles.py` has the same sums.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from amaranth.hdl import Module, Signal
from amaranth.lib.wiring import Component, In, Member, Out

from ..describe import OPERATIONS, Fabric
from .edge import table

STEPS_BITS = 16
PHASES = ("idle", "load", "swap", "run", "turn", "again", "drain")


def commands(fabric: Fabric) -> dict[str, Member]:
    """The ports that say what to run."""
    steps = {name: In(STEPS_BITS) for name in ("steps", "more_steps", "tiles")}
    return {"start": In(1), "operation": In(2), "configuration": In(fabric.configuration_bits), **steps}


class Sequencer(Component):
    """Runs one operation from `start` until `busy` falls."""

    def __init__(self, fabric: Fabric) -> None:
        self.fabric = fabric
        super().__init__(
            {
                **commands(fabric),
                "busy": Out(1),
                "turning": Out(1),
                "chosen": Out(fabric.configuration_bits),
                "column": Out(1),
                "shift": Out(2),
                "own": Out(2),
                "load": Out(1),
                "swap": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        phase, left = Signal(3), Signal(STEPS_BITS + 2)
        operation, steps, more, tiles = Signal(2), Signal(STEPS_BITS), Signal(STEPS_BITS), Signal(STEPS_BITS)
        number = {name: i for i, name in enumerate(PHASES)}
        op = {name: operation == i for i, name in enumerate(OPERATIONS)}

        def enter(name: str, length: object) -> None:
            m.d.sync += [phase.eq(number[name]), left.eq(length)]

        with m.If(phase == number["idle"]), m.If(self.start):
            m.d.sync += [
                operation.eq(self.operation),
                steps.eq(self.steps),
                more.eq(self.more_steps),
                tiles.eq(self.tiles),
                self.chosen.eq(self.configuration),
            ]
            fresh_rows, fresh_columns = self._extents(self.configuration)
            with m.If((self.operation == OPERATIONS.index("hold")) | (self.operation == OPERATIONS.index("column"))):
                enter("load", fresh_columns)
            with m.Else():
                enter("run", self.steps + fresh_rows + fresh_columns - 1)
        with m.Elif(left != 1):
            m.d.sync += left.eq(left - 1)
        self._follow(m, {name: phase == i for name, i in number.items()}, op, enter, steps, more, tiles)
        self._drive(m, phase, op, number)
        spare_unused = Signal(self.fabric.configuration_bits)
        m.d.comb += spare_unused.eq(self.configuration)
        return m

    def _extents(self, configuration: Signal) -> tuple[Any, Any]:
        """(rows, columns) of a configuration."""
        shapes = [c.extents(self.fabric) for c in self.fabric.configurations]
        rows, columns = zip(*shapes, strict=True)
        return table(rows, configuration), table(columns, configuration)

    def _follow(
        self,
        m: Module,
        at: dict[str, Any],
        op: dict[str, Any],
        enter: Callable[[str, object], None],
        steps: Signal,
        more: Signal,
        tiles: Signal,
    ) -> None:
        """Which phase comes after the one that ends: the last branches of the choice that `elaborate` began."""
        shadow = self.fabric.element.shadow
        rows, columns = self._extents(self.chosen)
        running = steps + rows + columns
        again = more + rows + columns

        def loaded(name: str, length: object) -> None:
            """After what was loaded stands in the elements: behind a swap, where there is a shadow register."""
            if shadow:
                enter("swap", 1)
            else:
                enter(name, length)

        with m.Elif(at["load"]):
            with m.If(op["column"]):
                loaded("run", running + columns)
            with m.Else():
                loaded("run", running)
        with m.Elif(at["swap"]):
            with m.If(op["tile"]):
                enter("again", again)
            with m.Elif(op["column"]):
                enter("run", running + columns)
            with m.Else():
                enter("run", running)
        with m.Elif(at["run"]):
            with m.If(op["tile"]):
                enter("turn", columns)
            with m.Elif(op["hold"]):
                m.d.sync += tiles.eq(tiles - 1)
                with m.If(tiles == 1):
                    enter("idle", 1)
                with m.Else():
                    enter("swap" if shadow else "load", 1 if shadow else columns)
            with m.Else():
                enter("drain", columns)
        with m.Elif(at["turn"]):
            loaded("again", again)
        with m.Else():
            enter("idle", 1)

    def _drive(self, m: Module, phase: Signal, op: dict[str, Any], number: dict[str, int]) -> None:
        """What the arrays do in each phase; bit 1 of shift and own is for the arrays that read from the others."""
        at = {name: phase == i for name, i in number.items()}
        loading = at["load"] | at["turn"]
        summing = at["run"] & (op["os"] | op["tile"])
        reading = at["run"] & op["column"]
        ahead = at["run"] & op["hold"]
        m.d.comb += [
            self.busy.eq(~at["idle"]),
            self.turning.eq(at["turn"]),
            self.column.eq(op["column"]),
            self.own.eq(summing | (reading << 1)),
            self.swap.eq(at["swap"]),
        ]
        if self.fabric.element.shadow:
            m.d.comb += [self.shift.eq(summing | (reading << 1)), self.load.eq(loading | ahead)]
        else:
            m.d.comb += [self.shift.eq(summing | loading | (reading << 1)), self.load.eq(0)]
