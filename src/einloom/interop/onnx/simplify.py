"""The program simplified, to a fixpoint: elementwise maps move into who reads them or who makes what they read.

A. A pointwise Einsum read once, by a map over the same points, moves into it.
B. A pointwise Einsum of one tensor becomes an epilogue of that tensor's only producer: it moves nothing more. One that
   narrows goes before A: the producer then writes few bits, and in its reader it would leave the many to be moved.
C. A tensor that all readers take at constant digits of one rank is written by one Einsum per digit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from .program import Array, Epilogue, GraphProgram, Meaning, Step, StepOperand
from .ranks import Affine, Stored, Var

DIGITS = 8


def simplify(program: GraphProgram, operands: int | None = None) -> None:
    """Change the program in place. operands: no merge makes an Einsum of more operands than so many."""
    while (
        _into_writers(program, narrowing=True)
        or _into_readers(program, operands)
        or _into_writers(program)
        or _by_digit(program)
    ):
        pass


def _bare(operand: StepOperand) -> tuple[Var, ...] | None:
    """The variables that index the tensor, if each rank has one of its own that reaches all of it."""
    found = [
        var for rank, affine in operand.places if (var := affine.bare) is not None and var.size == rank.root().size
    ]
    return tuple(found) if len(found) == len(operand.places) == len(set(found)) else None


def _into_readers(program: GraphProgram, most: int | None) -> bool:
    """Rule A, wherever it applies; True if it did."""
    readers, outputs = program.readers(), set(program.outputs)
    gone: set[Step] = set()
    for step in program.steps:
        users = readers.get(step.output, ())
        if not step.pointwise or step.places or step.output in outputs or len(users) != 1:
            continue
        reader = users[0]
        mine = [operand for operand in reader.operands if operand.tensor is step.output]
        product = reader.meaning is None and len(reader.operands) > 1
        if len(mine) != 1 or product or (reader.epilogues and reader.meaning is None and reader in gone):
            continue
        axes = _bare(mine[0])
        if axes is None or set(reader.points) != set(axes):
            continue
        if merged := _merged(step, reader, mine[0], axes, most):
            reader.operands, reader.constants, reader.meaning = merged
            copied = reader.function == "copy"
            reader.labels = (*reader.labels, *step.labels) if copied else (*step.labels, *reader.labels)
            reader.nodes = tuple(dict.fromkeys((*step.nodes, *reader.nodes)))
            alone = reader.function in ("", "copy") and not reader.reduced
            reader.function = (step.function if alone else "") or "elementwise"
            gone.add(step)
            for operand in step.operands:  # who reads it now
                users = [reader if user is step else user for user in readers[operand.tensor]]
                readers[operand.tensor] = list(dict.fromkeys(users))
    program.steps = [step for step in program.steps if step not in gone]
    return bool(gone)


def _merged(
    step: Step, reader: Step, mine: StepOperand, axes: Sequence[Var], most: int | None
) -> tuple[tuple[StepOperand, ...], tuple[StepOperand, ...], Meaning] | None:
    """Operands, constants and meaning of the reader with the step in it; None if the notation has no words for it."""
    table = {inner: Affine(((outer, 1),)) for inner, outer in zip(step.variables, axes, strict=True)}
    inner_operands = [operand.put(table) for operand in step.operands]
    inner_constants = [operand.put(table) for operand in step.constants]
    operands: list[StepOperand] = []
    where: dict[int, int] = {}
    outer = [operand for operand in reader.operands if operand is not mine]
    for operand in (*outer, *inner_operands):
        known = next((i for i, other in enumerate(operands) if other.same(operand)), None)
        if known is None and any(other.tensor is operand.tensor for other in operands):
            return None
        where[id(operand)] = len(operands) if known is None else known
        if known is None:
            operands.append(operand)
    if most is not None and len(operands) > max(most, len(reader.operands)):
        return None
    constants = (*reader.constants, *inner_constants)
    at = len(operands)
    of_reader = [None if o is mine else where[id(o)] for o in reader.operands]
    of_reader += [at + i for i in range(len(reader.constants))]
    of_step = [where[id(o)] for o in inner_operands]
    of_step += [at + len(reader.constants) + i for i in range(len(inner_constants))]
    return tuple(operands), constants, _composed(step.meaning, of_step, reader.meaning, of_reader)


def _composed(
    inner: Meaning | None, of_inner: Sequence[int], outer: Meaning | None, of_outer: Sequence[int | None]
) -> Meaning:
    """The outer function whose argument None is the inner one's result."""
    assert inner is not None

    def run(arrays: Sequence[Array]) -> Array:
        result = inner([arrays[i] for i in of_inner])
        return result if outer is None else outer([result if i is None else arrays[i] for i in of_outer])

    return run


def _into_writers(program: GraphProgram, narrowing: bool = False) -> bool:
    """Rule B, wherever it applies; True if it did. narrowing: only for results of fewer bits than their operand."""
    readers, writers, outputs = program.readers(), program.writers(), set(program.outputs)
    gone: set[Step] = set()
    for step in program.steps:
        if not step.pointwise or len(step.operands) != 1:
            continue
        operand = step.operands[0]
        if narrowing and step.output.bits >= operand.tensor.bits:
            continue
        writer, axes = writers.get(operand.tensor), _bare(operand)
        alone = len(readers[operand.tensor]) == 1 and operand.tensor not in outputs
        if writer is None or not alone or axes is None or set(axes) != set(step.variables):
            continue
        of_mine = dict(zip(axes, writer.variables, strict=True))
        table = {var: Affine(((mine, 1),)) for var, mine in of_mine.items()}
        constants = tuple(constant.put(table) for constant in step.constants)
        assert step.meaning is not None
        writer.variables = tuple(of_mine[var] for var in step.variables)
        if writer.pointwise:
            writer.meaning = _after(writer, step.meaning, len(constants))
            writer.constants += constants
            writer.function = writer.function if step.function == "copy" else "elementwise"
        elif step.function != "copy":
            writer.epilogues += (Epilogue(step.labels[-1], step.meaning, constants),)
        inside = step.function == "copy" and writer.meaning is not None
        writer.labels = (*step.labels, *writer.labels) if inside else (*writer.labels, *step.labels)
        writer.nodes = tuple(dict.fromkeys((*writer.nodes, *step.nodes)))
        writer.output = step.output
        writer.places = tuple((rank, affine.put(table)) for rank, affine in step.places)
        if not step.places:
            writers[step.output] = writer
        gone.add(step)
    program.steps = [step for step in program.steps if step not in gone]
    return bool(gone)


def _after(writer: Step, meaning: Meaning, constants: int) -> Meaning:
    """The writer's function, then `meaning` of its result and the last `constants` arguments."""
    count = len(writer.operands) + len(writer.constants)
    return _composed(writer.meaning, range(count), meaning, [None, *range(count, count + constants)])


def _by_digit(program: GraphProgram) -> bool:
    """Rule C for one tensor; True if it applied."""
    readers, outputs = program.readers(), set(program.outputs)
    for tensor, step in program.writers().items():
        operands = [o for reader in readers.get(tensor, ()) for o in reader.operands]
        if tensor in outputs or any(o.tensor.of is tensor for o in operands):
            continue
        accesses = [o for o in operands if o.tensor is tensor]
        for rank, size in enumerate(tensor.sizes):
            taken = [o.places[rank][1] for o in accesses]
            if size <= DIGITS and not any(a.terms for a in taken) and {a.constant for a in taken} == set(range(size)):
                _written_apart(program, step, rank, size, accesses)
                return True
    return False


def _written_apart(program: GraphProgram, step: Step, rank: int, size: int, accesses: Sequence[StepOperand]) -> None:
    """One Einsum per digit of this rank of the output."""
    var, tensor = step.variables[rank], step.output
    made: list[Step] = []
    for digit in range(size):
        table = {var: Affine((), digit)}
        part = Stored(f"{tensor.name}_{digit}", tensor.ranks[:rank] + tensor.ranks[rank + 1 :], tensor.bits)
        part.value, part.select = tensor.value, (*tensor.select, (rank, digit, size))
        epilogues = tuple(
            Epilogue(e.label, e.meaning, tuple(o.put(table) for o in e.constants)) for e in step.epilogues
        )
        variables = step.variables[:rank] + step.variables[rank + 1 :]
        operands, constants = (tuple(o.put(table) for o in read) for read in (step.operands, step.constants))
        made.append(
            replace(step, output=part, variables=variables, operands=operands, constants=constants, epilogues=epilogues)
        )
    for operand in accesses:
        operand.tensor = made[operand.places[rank][1].constant].output
        operand.places = operand.places[:rank] + operand.places[rank + 1 :]
    at = program.steps.index(step)
    program.steps[at : at + 1] = made
