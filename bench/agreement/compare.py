"""One network against its reference: the program as read, simplified, and as its workload's file says it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from einloom.errors import SpecError
from einloom.interop.onnx.check import NumbersChecked, compare, interpret
from einloom.interop.onnx.graph import Array, Graph
from einloom.interop.onnx.load import load
from einloom.interop.onnx.program import GraphProgram
from einloom.interop.onnx.reference import values_of
from einloom.interop.onnx.simplify import simplify
from einloom.interop.onnx.walk import program

from .faults import Fault, planted
from .written import as_written

CHOOSING = ("TopK",)
"""Operators that are cut at: what they choose is an input of the cascade."""
SAME = 1e-5
"""The largest difference of two values that count as the same, relative to the largest of their tensor."""


@dataclass(frozen=True)
class ReferenceRun:
    """A network, and all values of a run of it on random inputs (integers are 0 or 1)."""

    name: str
    graph: Graph
    values: Mapping[str, Array]


def reference(path: Path) -> ReferenceRun:
    """The network of a file with its values."""
    graph = load(path)
    return ReferenceRun(path.stem, graph, values_of(str(path), graph, None, 0))


@dataclass(frozen=True)
class Comparison:
    """What was compared at each stage: the program as read, simplified, and as its file says it."""

    einsums: tuple[int, int]
    raw: NumbersChecked
    simplified: NumbersChecked
    written: NumbersChecked
    made: GraphProgram

    @property
    def worst(self) -> float:
        found = [self.raw.worst, self.simplified.worst, self.written.worst]
        return float(np.inf) if np.isnan(found).any() else max(found)


def compared(run: ReferenceRun) -> Comparison:
    """All stages of one import. Raises SpecError where the import does."""
    found = program(run.graph, frozenset(node.name for node in run.graph.nodes if node.operator in CHOOSING))
    with np.errstate(all="ignore"):
        before = len(found.steps)
        raw = compare(found, interpret(found, run.values), run.values)
        simplify(found)
        found.alive()
        simplified = compare(found, interpret(found, run.values), run.values)
        again = as_written(found, run.graph)
        written = compare(again, interpret(again, run.values), run.values)
    return Comparison((before, len(found.steps)), raw, simplified, written, found)


@dataclass(frozen=True)
class Noticed:
    """Where a fault shows first, and how; an empty network if nowhere. same: networks whose numbers it leaves."""

    network: str = ""
    how: str = ""
    same: int = 0


def noticed(fault: Fault, runs: Sequence[ReferenceRun]) -> Noticed:
    """The first network that a fault shows in: by a wrong number, or by a shape that the graph contradicts."""
    same = 0
    for run in runs:
        try:
            with planted(fault):
                found = compared(run)
        except SpecError as error:
            return Noticed(run.name, f"refused: {error.message:.80}", same)
        except (ArithmeticError, AssertionError, LookupError, TypeError, ValueError) as error:
            return Noticed(run.name, f"{type(error).__name__}", same)
        if found.worst > SAME:
            return Noticed(run.name, f"{found.worst:.2g}", same)
        same += 1
    return Noticed(same=same)
