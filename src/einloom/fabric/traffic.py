"""What a fabric moves between its buffer and its arrays, and how long it takes: the best legal choice per operator.

A multiplication C[M,L] = A[M,K] B[K,L] keeps a tile of one operand in the elements, of the size of a region; the others
stream past it. Partial sums that leave are counted once per visit. Two multiplications are fused by tile (a block of C
stays in the elements between them) or by column (a block of A stays in one region and one of E in the next, C crosses).
The choices are few, and the least of them is the optimum within what the description allows: a closed form.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from ..dataclass import dataclass
from ..errors import SpecError
from ..search.principles.matmul import OPERANDS, Matmul, Operand, ceil_div, missing, traffic
from ..search.principles.pairs import Pair, fused_schedule
from .cycles import cycles
from .describe import Configuration, Fabric, Operation

STATIONARY: dict[str, Operand] = {"WS": "B", "IS": "A", "OS": "C"}
Goal = Literal["traffic", "roofline", "seconds"]


@dataclass(frozen=True, slots=True)
class OperatorRun:
    """One way of running an operator. stationary: the operand in the elements (E and A of a column: both).

    moved: elements between buffer and arrays. steps: cycles if nothing filled or drained. taken: cycles of the exact
    model. operations: multiplications. All over all `count` occurrences.
    """

    fabric: Fabric
    operation: Operation
    configuration: Configuration
    stationary: str
    moved: int
    steps: int
    taken: int
    operations: int

    @property
    def transfer(self) -> float:
        """Seconds of the traffic at the bandwidth between buffer and arrays."""
        return self.moved * self.fabric.element.operand_bits / self.fabric.bandwidth

    @property
    def roofline(self) -> float:
        """Seconds without filling, draining and switching."""
        return max(self.steps / self.fabric.clock, self.transfer)

    @property
    def seconds(self) -> float:
        """Seconds by the exact cycle model, transfers behind them."""
        return max(self.taken / self.fabric.clock, self.transfer)

    def by(self, goal: Goal) -> float:
        return float(self.moved) if goal == "traffic" else float(getattr(self, goal))


def choices(fabric: Fabric, matmul: Matmul, count: int = 1) -> Iterator[OperatorRun]:
    """Every legal way of running `count` multiplications, each operand and each region once."""
    for mode in fabric.element.stationary:
        x = STATIONARY[mode]
        operation: Operation = "os" if x == "C" else "hold"
        first, second = OPERANDS[x]
        third = missing(x)
        for one in fabric.configurations:
            if one.column:
                continue
            rows, columns = one.extents(fabric)
            n1, n2 = ceil_div(matmul.extent(first), rows), ceil_div(matmul.extent(second), columns)
            trips = {first: n1, second: n2, third: 1}
            moved = traffic(matmul, x, (trips["M"], trips["K"], trips["L"]), "once") * count
            depth = matmul.extent(third)
            each = ceil_div(n1 * n2 * count, one.copies(fabric))
            taken = cycles(fabric, operation, one, depth, tiles=each)
            if operation == "os":
                taken *= each
            yield OperatorRun(fabric, operation, one, x, moved, each * depth, taken, matmul.operations * count)


def fused_choices(fabric: Fabric, pair: Pair, count: int = 1) -> Iterator[OperatorRun]:
    """Every legal way of fusing `count` pairs."""
    operations = (pair.first.operations + pair.second.operations) * count
    for operation, one in fabric.operations():
        rows, columns = one.extents(fabric)
        if operation == "tile":
            kept, block = "", (min(rows, pair.m), min(columns, pair.l))
            steps, more = pair.k, pair.n
        elif operation == "column" and pair.k <= columns and pair.n <= columns:
            kept, block = "AE", (min(rows, pair.m), 1)
            steps, more = pair.l, 0
        else:
            continue
        fused = fused_schedule(pair, "m outside", kept, block)
        blocks = fused.trips[0] * (fused.trips[1] if operation == "tile" else 1) * count
        each = ceil_div(blocks, one.copies(fabric))
        taken = each * cycles(fabric, operation, one, steps, more)
        held = "C" if operation == "tile" else "A and E"
        yield OperatorRun(fabric, operation, one, held, fused.traffic * count, each * (steps + more), taken, operations)


def best(found: Iterator[OperatorRun], goal: Goal = "traffic") -> OperatorRun | None:
    """The choice that is best in `goal`; of equal ones the quicker, then the one that moves less."""
    return min(found, key=lambda c: (c.by(goal), c.seconds, c.moved), default=None)


def best_pair(fabric: Fabric, pair: Pair, count: int = 1, goal: Goal = "traffic") -> tuple[OperatorRun, ...]:
    """The best way of running `count` pairs: one fused choice, or one for each multiplication."""
    apart = tuple(c for m in (pair.first, pair.second) if (c := best(choices(fabric, m, count), goal)) is not None)
    if len(apart) < 2:
        raise SpecError(f"{fabric.name} has no configuration for one multiplication")
    fused = best(fused_choices(fabric, pair, count), goal)
    if fused is not None and fused.by(goal) < sum(c.by(goal) for c in apart):
        return (fused,)
    return apart
