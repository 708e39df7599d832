"""Straight-line programs: what the analysis computes of tiles, recorded once and run on many tiles.

`record` hands symbols to a function of tiles and writes down every `+ - * / // %`, minimum, comparison and selection
that it does with them; constants are folded and equal steps kept once. `Program.run` executes the steps in NumPy, block
by block in buffers that stay in the cache; `compiled` makes machine code of them. Nothing is counted here: the formulas
are those that the recorded function ran through.

All steps are done in 64-bit floats, which hold integers exactly up to 2**53; who records must see to it that no count
is larger (`arrays` does). Floored division is exact then, too: a/b is at least 1/b away from the next integer, and a
rounding error is less than that.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...dataclass import dataclass

EXACT = 2**53  # integers up to here are exact in 64-bit floats
BLOCK = 4096  # choices that are priced at a time: the buffers of a block stay in the cache

Operand = int | float  # an int names a step (or an input), a float is a constant

ARITHMETIC = ("add", "subtract", "multiply", "divide", "minimum", "maximum", "negative", "floor", "ceil")
COMPARISONS = ("less", "less_equal", "greater", "greater_equal", "equal", "not_equal", "logical_and")
UFUNCS: dict[str, np.ufunc] = {name: getattr(np, name) for name in (*ARITHMETIC, *COMPARISONS)}


@dataclass(frozen=True, slots=True)
class Instruction:
    """One step: the name of an operation and its operands. flag: the result is true or false."""

    name: str
    operands: tuple[Operand, ...]
    flag: bool


@dataclass(frozen=True, slots=True)
class Program:
    """Steps over `inputs` numbers per choice; step i has the number inputs + i. outputs: an operand for each result."""

    inputs: int
    steps: tuple[Instruction, ...]
    outputs: tuple[Operand, ...]

    def run(self, columns: Sequence[NDArray[np.int64]], results: Sequence[NDArray[Any]]) -> None:
        """Write the outputs of every choice into `results`; columns: one array of integers per input, of one length."""
        (count,) = columns[0].shape
        plan = _Plan(self, min(BLOCK, count))
        for start in range(0, count, BLOCK):
            plan.run(columns, results, start, min(start + BLOCK, count))


class _Plan:
    """The steps of a program with a buffer for each; a buffer is used again when its number was read for the last."""

    def __init__(self, program: Program, size: int) -> None:
        self.program = program
        last: dict[int, int] = {}
        for i, step in enumerate(program.steps):
            last.update({o: i for o in step.operands if isinstance(o, int)})
        last.update({o: len(program.steps) for o in program.outputs if isinstance(o, int)})
        self.buffers: list[NDArray[Any]] = [np.empty(size) for _ in range(program.inputs)]
        free: dict[bool, list[NDArray[Any]]] = {True: [], False: []}
        for i, step in enumerate(program.steps):
            mine = free[step.flag].pop() if free[step.flag] else np.empty(size, np.bool_ if step.flag else np.float64)
            self.buffers.append(mine)
            for operand in {o for o in step.operands if isinstance(o, int) and o >= program.inputs}:
                if last[operand] == i:
                    free[self.buffers[operand].dtype == np.bool_].append(self.buffers[operand])

    def run(self, columns: Sequence[NDArray[np.int64]], results: Sequence[NDArray[Any]], start: int, stop: int) -> None:
        """Choices start to stop."""
        program, size = self.program, stop - start
        views: list[NDArray[Any]] = [buffer[:size] for buffer in self.buffers]
        for view, column in zip(views, columns, strict=False):
            np.copyto(view, column[start:stop], casting="unsafe")
        for i, step in enumerate(program.steps, program.inputs):
            given = [views[o] if isinstance(o, int) else o for o in step.operands]
            if step.name == "where":
                np.copyto(views[i], given[2])
                np.copyto(views[i], given[1], where=given[0])
            elif step.name == "number":
                np.copyto(views[i], given[0])
            else:
                UFUNCS[step.name](*given, out=views[i])
        for operand, result in zip(program.outputs, results, strict=True):
            np.copyto(result[start:stop], views[operand] if isinstance(operand, int) else operand, casting="unsafe")


class Symbol(np.ndarray[Any, Any]):
    """A number that is not known yet. Looks like an array to the analysis; what is done with it is written down."""

    recorder: ProgramRecorder
    operand: int

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        if method != "__call__" or options:
            raise TypeError(f"cannot record {ufunc.__name__}.{method}")
        return self.recorder.apply(ufunc.__name__, inputs)

    def __array_function__(self, function: Any, types: Any, args: Any, options: Any) -> Any:
        if function is not np.where or len(args) != 3 or options:
            raise TypeError(f"cannot record {function.__name__}")
        return self.recorder.apply("where", args)

    def astype(self, *args: Any, **options: Any) -> Any:
        """The same number: flags count as 0 and 1 wherever a number is wanted."""
        return self

    def __bool__(self) -> bool:
        raise TypeError("a decision that depends on tiles cannot be recorded")


class ProgramRecorder:
    """Writes steps down; equal ones get one number, and what is known already is computed at once."""

    def __init__(self, inputs: int) -> None:
        self.inputs = inputs
        self.steps: list[Instruction] = []
        self.known: dict[tuple[str, tuple[tuple[bool, Operand], ...]], int] = {}

    def symbol(self, operand: int) -> Symbol:
        made = np.ndarray.__new__(Symbol, (0,))
        made.recorder, made.operand = self, operand
        return made

    def operand(self, value: Any) -> Operand:
        """The operand that a value of the analysis stands for."""
        if isinstance(value, Symbol):
            return value.operand
        if isinstance(value, (int, np.integer)) and abs(int(value)) > EXACT:
            raise OverflowError(f"{value} is not exact in 64-bit floats")
        return float(value)

    def apply(self, name: str, inputs: Sequence[Any]) -> Any:
        """The result of an operation of the analysis: a symbol or, if it is known, what plain numbers would give."""
        made = self.operation(name, tuple(self.operand(value) for value in inputs))
        if isinstance(made, int):
            return self.symbol(made)
        if name in COMPARISONS or name == "bitwise_and":
            return bool(made)
        return int(made) if made.is_integer() and name != "true_divide" else made

    def operation(self, name: str, o: tuple[Operand, ...]) -> Operand:
        """An operation in the words of `Step`: floored division and remainder become division and floor."""
        if name in ("floor_divide", "remainder"):
            quotient = self.quotient(*o)
            if name == "floor_divide":
                return quotient
            return self.operation("subtract", (o[0], self.operation("multiply", (o[1], quotient))))
        if name == "true_divide":
            name = "divide"
        if name == "bitwise_and":
            name = "logical_and"
        if name == "where":
            if isinstance(o[0], float):
                return o[1] if o[0] else o[2]
            o = (o[0] if self.is_flag(o[0]) else self.operation("not_equal", (o[0], 0.0)), *map(self.number, o[1:]))
            return o[1] if o[1] == o[2] and type(o[1]) is type(o[2]) else self.step(name, o)
        if name in ARITHMETIC:
            o = tuple(map(self.number, o))
        if all(isinstance(x, float) for x in o):
            return float(UFUNCS[name](*o))
        short = self.shortcut(name, o)
        return self.step(name, o) if short is None else short

    def quotient(self, a: Operand, b: Operand) -> Operand:
        """floor(a / b); of a negated dividend as a negated ceiling: both roundings of a/b then share one division."""
        opposite = self.opposite(a)
        if opposite is None:
            return self.operation("floor", (self.operation("divide", (a, b)),))
        return self.operation("negative", (self.operation("ceil", (self.operation("divide", (opposite, b)),)),))

    def opposite(self, a: Operand) -> Operand | None:
        """-a, if that is simpler than a; else None."""
        if isinstance(a, float):
            return -a if a < 0 else None
        if a >= self.inputs and self.steps[a - self.inputs].name == "negative":
            return self.steps[a - self.inputs].operands[0]
        return None

    def shortcut(self, name: str, o: tuple[Operand, ...]) -> Operand | None:
        """The result where it needs no step: x+0, x-0, x*1, x*0, -(-x), min(x,x), x == x, true and x."""
        if name == "negative":
            return self.opposite(o[0])
        if len(o) != 2:
            return None
        a, b = o
        same = a == b and type(a) is type(b)
        if name in ("minimum", "maximum") and same:
            return a
        if name == "equal" and same:
            return 1.0
        for x, y in ((a, b), (b, a)):
            if not isinstance(x, float):
                continue
            if name in ("add", "multiply", "logical_and") and x == (0.0 if name == "add" else 1.0):
                return y
            if name in ("multiply", "logical_and") and x == 0.0:
                return 0.0
        if isinstance(b, float) and (name, b) in (("subtract", 0.0), ("divide", 1.0)):
            return a
        return None

    def number(self, operand: Operand) -> Operand:
        """The operand as a number: flags become 0 and 1."""
        return self.step("number", (operand,)) if self.is_flag(operand) else operand

    def is_flag(self, operand: Operand) -> bool:
        return isinstance(operand, int) and operand >= self.inputs and self.steps[operand - self.inputs].flag

    def step(self, name: str, operands: tuple[Operand, ...]) -> int:
        key = (name, tuple((isinstance(o, int), o) for o in operands))  # step 1 is not the constant 1.0
        if key not in self.known:
            self.known[key] = self.inputs + len(self.steps)
            self.steps.append(Instruction(name, operands, name in COMPARISONS))
        return self.known[key]


def record(inputs: int, function: Callable[[list[Any]], Sequence[Any]]) -> Program:
    """The program of `function`, which gets `inputs` numbers and returns the outputs.

    Raises TypeError if the function decides something by one of the numbers, OverflowError for a constant that is not
    exact in 64-bit floats.

    >>> steps = record(1, lambda tiles: [-(-7 // tiles[0]) * tiles[0]]).steps
    >>> [step.name for step in steps]
    ['divide', 'ceil', 'multiply']
    """
    recorder = ProgramRecorder(inputs)
    outputs = [recorder.operand(value) for value in function([recorder.symbol(i) for i in range(inputs)])]
    return _needed(Program(inputs, tuple(recorder.steps), tuple(outputs)))


def _needed(program: Program) -> Program:
    """The program without the steps that no output needs."""
    needed = {o for o in program.outputs if isinstance(o, int)}
    for i in range(len(program.steps) - 1, -1, -1):
        if program.inputs + i in needed:
            needed.update(o for o in program.steps[i].operands if isinstance(o, int))
    numbers: dict[int, int] = {i: i for i in range(program.inputs)}
    steps: list[Instruction] = []

    def renamed(operand: Operand) -> Operand:
        return numbers[operand] if isinstance(operand, int) else operand

    for i, step in enumerate(program.steps, program.inputs):
        if i in needed:
            numbers[i] = program.inputs + len(steps)
            steps.append(Instruction(step.name, tuple(map(renamed, step.operands)), step.flag))
    return Program(program.inputs, tuple(steps), tuple(map(renamed, program.outputs)))
