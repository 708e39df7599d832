"""A program: Einsums under construction with their NumPy meaning, as one pass over the graph makes them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from math import prod
from typing import Any, Literal

from ...dataclass import dataclass
from ...workload.einsum import NetworkNode
from .ranks import Affine, Place, Stored, Var, View

Array = Any
Meaning = Callable[[Sequence[Array]], Array]
Reduction = Literal["sum", "max"]
FateKind = Literal["cut", "boundary"]


@dataclass(eq=False)
class StepOperand:
    """A tensor as an Einsum reads it, rank by rank."""

    tensor: Stored
    places: tuple[Place, ...]

    @property
    def variables(self) -> tuple[Var, ...]:
        return tuple(dict.fromkeys(var for _, affine in self.places for var, _ in affine.terms))

    def put(self, table: dict[Var, Affine]) -> StepOperand:
        return StepOperand(self.tensor, tuple((rank, affine.put(table)) for rank, affine in self.places))

    def same(self, other: StepOperand) -> bool:
        """True if it reads the same values at every point."""
        return self.tensor is other.tensor and [(set(a.terms), a.constant) for _, a in self.places] == [
            (set(a.terms), a.constant) for _, a in other.places
        ]


@dataclass(eq=False)
class Epilogue:
    """An elementwise operator that is absorbed: applied to the result, with constants that nobody moves."""

    label: str
    meaning: Meaning
    constants: tuple[StepOperand, ...] = ()


@dataclass(eq=False)
class Step:
    """One Einsum under construction.

    variables: of the output's ranks, in their order. places: where a point stands in the output, if the Einsum writes
    only a part of it. meaning: what a map applies to operands and then constants, None
    for a product. labels: the ONNX operators in it, innermost first. nodes: of the graph that are in it.
    """

    output: Stored
    variables: tuple[Var, ...]
    operands: tuple[StepOperand, ...]
    constants: tuple[StepOperand, ...] = ()
    function: str = ""
    meaning: Meaning | None = None
    reduction: Reduction = "sum"
    epilogues: tuple[Epilogue, ...] = ()
    labels: tuple[str, ...] = ()
    group: str = ""
    nodes: tuple[NetworkNode, ...] = ()
    places: tuple[Place, ...] = ()

    @property
    def points(self) -> tuple[Var, ...]:
        """All variables, the output's first."""
        inner = (var for operand in (*self.operands, *self.constants) for var in operand.variables)
        return tuple(dict.fromkeys((*self.variables, *inner)))

    @property
    def reduced(self) -> tuple[Var, ...]:
        kept = set(self.variables)
        return tuple(var for var in self.points if var not in kept)

    @property
    def pointwise(self) -> bool:
        """True for a map that reduces nothing and was given no epilogue."""
        return self.meaning is not None and not self.reduced and not self.epilogues

    @property
    def multiplications(self) -> int:
        """Points of a product of at least two tensors that sums something, 0 for everything else."""
        if self.meaning is not None or len(self.operands) < 2:
            return 0
        return prod(var.size for var in self.points)


@dataclass(frozen=True)
class Fate:
    """What became of a node that is no arithmetic."""

    kind: FateKind
    node: str
    operator: str
    reason: str
    values: int
    """How many values are handed over through the outermost memory."""


@dataclass
class GraphProgram:
    """A cascade under construction, in program order."""

    steps: list[Step] = field(default_factory=list)
    outputs: list[Stored] = field(default_factory=list)
    fates: list[Fate] = field(default_factory=list)
    nodes: dict[str, int] = field(default_factory=dict)
    """Nodes by what became of them: constant, control, view, arithmetic, cut, boundary, unused."""
    results: dict[str, View] = field(default_factory=dict)
    """The graph's outputs by name, as views of what is stored."""

    def readers(self) -> dict[Stored, list[Step]]:
        """Tensor -> the steps that read it as an operand, under its own ranks or others."""
        found: dict[Stored, list[Step]] = {}
        for step in self.steps:
            for tensor in dict.fromkeys(t for o in step.operands for t in (o.tensor, o.tensor.base)):
                found.setdefault(tensor, []).append(step)
        return found

    def writers(self) -> dict[Stored, Step]:
        """Tensor -> the step that writes all of it."""
        return {step.output: step for step in self.steps if not step.places}

    def alive(self) -> None:
        """Drop the steps that no output needs."""
        read: dict[Stored, list[Stored]] = {}
        for step in self.steps:
            read.setdefault(step.output, []).extend(operand.tensor.base for operand in step.operands)
        wanted = list(self.outputs)
        needed: set[Stored] = set()
        while wanted:
            tensor = wanted.pop()
            if tensor not in needed:
                needed.add(tensor)
                wanted += read.get(tensor, [])
        self.steps = [step for step in self.steps if step.output in needed]
