"""The cascade as its file says it: the Einsums of a written workload, with the functions that the import knows.

What a workload's file keeps is read back and interpreted: names, index expressions, shapes, reductions. NumPy functions
and constants that are not moved stand in no file; they are those of the program that the file was written of.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from einloom.interop.onnx.emit import Emission
from einloom.interop.onnx.graph import Graph
from einloom.interop.onnx.program import Array, Epilogue, GraphProgram, Step, StepOperand
from einloom.interop.onnx.ranks import Affine, Place, Rank, Stored, Var
from einloom.workload.einsum import Access, Einsum, Index, Workload
from einloom.workload.files import parse_workload, workload_text


def as_written(program: GraphProgram, graph: Graph) -> GraphProgram:
    """The program of the workload that is written of a program and read back."""
    emission = Emission(program)
    workload = parse_workload(workload_text(emission.workload(graph, {}, {})))
    tensors = {
        tensor.name: Stored(tensor.name, tuple(map(_rank, tensor.shape)), tensor.bits) for tensor in workload.tensors
    }
    for original, name in emission.tensors.items():
        if name in tensors:
            made = tensors[name]
            made.value, made.data, made.select, made.fill = (
                original.value, original.data, original.select, original.fill,
            )  # fmt: skip
            made.constant, made.name = original.constant, original.name
    for view in workload.views:
        of = tensors[view.tensor]
        tensors[view.name] = Stored(view.name, tuple(map(_rank, view.shape)), of.bits, of.constant, of=of)
    left = iter(program.steps)
    steps = []
    for einsum in workload.einsums:
        origin = None if einsum.name in emission.copies else next(left)
        steps.append(_step(workload, einsum, origin, tensors, emission))
    if next(left, None) is not None:
        raise ValueError("the file has fewer Einsums than the program")
    return GraphProgram(steps)


def _rank(size: int) -> Rank:
    return Rank(size, object())


def _step(
    workload: Workload, einsum: Einsum, origin: Step | None, tensors: Mapping[str, Stored], emission: Emission
) -> Step:
    """An Einsum of the file. origin: of the program; a copy has none."""
    variables = {name: Var(_rank(workload.extents[name])) for name in einsum.variables}
    operands = tuple(StepOperand(tensors[a.view or a.tensor], _places(a, tensors, variables)) for a in einsum.inputs)
    kept = tuple(variables[name] for name in einsum.output.variables)
    target = tensors[einsum.output.tensor]
    alone = len(workload.writers[einsum.output.tensor]) == 1 and target.fill is None
    whole = alone and all(index.simple for index in einsum.output.indices)
    places = () if whole else _places(einsum.output, tensors, variables)
    step = Step(target, kept, operands, (), "", None, einsum.reduction, places=places)
    if origin is None:
        step.meaning = _first
        return step
    table = {var: Affine(((variables[name], 1),)) for var, name in emission.named(origin).items()}
    step.constants = tuple(operand.put(table) for operand in origin.constants)
    step.epilogues = tuple(
        Epilogue(e.label, e.meaning, tuple(o.put(table) for o in e.constants)) for e in origin.epilogues
    )
    step.meaning = None if einsum.kind == "multiply" else origin.meaning
    return step


def _places(access: Access, tensors: Mapping[str, Stored], variables: Mapping[str, Var]) -> tuple[Place, ...]:
    ranks = tensors[access.view or access.tensor].ranks
    return tuple((rank, _affine(index, variables)) for rank, index in zip(ranks, access.indices, strict=True))


def _affine(index: Index, variables: Mapping[str, Var]) -> Affine:
    return Affine(tuple((variables[name], factor) for name, factor in index.terms), index.constant)


def _first(arrays: Sequence[Array]) -> Array:
    return arrays[0]
