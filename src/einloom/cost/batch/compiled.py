"""Recorded programs as machine code: one loop over the choices, every step a line of it, compiled by Numba.

The source of a kernel stands in a file of the user's cache folder (NUMBA_CACHE_DIR, else the usual one), because Numba
keeps machine code beside source files: a second process finds the code and compiles nothing. The file is written, never
read: what is compiled is always made anew from the recorded program. Where no folder can be written to, every process
compiles.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any, cast

from ...errors import SpecError
from ...reading import writing
from .program import Instruction, Operand, Program

FORMS = {
    "add": "{0} + {1}",
    "subtract": "{0} - {1}",
    "multiply": "{0} * {1}",
    "divide": "{0} / {1}",
    "less": "{0} < {1}",
    "less_equal": "{0} <= {1}",
    "greater": "{0} > {1}",
    "greater_equal": "{0} >= {1}",
    "equal": "{0} == {1}",
    "not_equal": "{0} != {1}",
    "logical_and": "{0} & {1}",
    "negative": "-{0}",
    "floor": "floor({0})",
    "ceil": "ceil({0})",
    "minimum": "{0} if {0} < {1} else {1}",
    "maximum": "{0} if {0} > {1} else {1}",
    "where": "{1} if {0} else {2}",
    "number": "1.0 if {0} else 0.0",
}


def source(program: Program) -> str:
    """Python source of `kernel(inputs…, outputs…)`, which fills the output arrays."""
    columns = [f"in{i}" for i in range(program.inputs)]
    results = [f"out{i}" for i in range(len(program.outputs))]
    lines = [f"def kernel({', '.join((*columns, *results))}):", f"    for i in range({columns[0]}.shape[0]):"]
    lines += [f"        v{i} = float({column}[i])" for i, column in enumerate(columns)]
    lines += [f"        v{i} = {_line(step)}" for i, step in enumerate(program.steps, program.inputs)]
    lines += [f"        {result}[i] = {_name(o)}" for result, o in zip(results, program.outputs, strict=True)]
    return "\n".join(lines) + "\n"


def _line(step: Instruction) -> str:
    return FORMS[step.name].format(*map(_name, step.operands))


def _name(operand: Operand) -> str:
    return f"v{operand}" if isinstance(operand, int) else f"({operand!r})"


@lru_cache(maxsize=64)
def kernel(program: Program) -> Callable[..., None]:
    """Machine code of a program: takes its input columns (int64) and its output columns (float64), all contiguous."""
    import numba
    from numpy import ceil, floor

    text = source(program)
    path = _source_file(text)
    # Numba asks for the module again when it loads machine code, so this must be one that can be imported
    namespace: dict[str, Any] = {"floor": floor, "ceil": ceil, "__name__": __name__}
    # the text was made above, of numbered variables and numbers; nothing in it comes from a file or from a user
    exec(compile(text, str(path or "<program>"), "exec"), namespace)  # noqa: S102
    arrays = ["int64[::1]"] * program.inputs + ["float64[::1]"] * len(program.outputs)
    compiler = numba.njit(f"void({', '.join(arrays)})", cache=path is not None, error_model="numpy")
    return cast(Callable[..., None], compiler(namespace["kernel"]))


def _source_file(text: str) -> Path | None:
    """Where the source stands, named by its content; None if it cannot be written."""
    given = os.environ.get("NUMBA_CACHE_DIR")
    try:
        base = Path(given) if given else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    except RuntimeError:  # there is no home folder
        return None
    path = base / "einloom" / f"kernel_{hashlib.sha256(text.encode()).hexdigest()[:24]}.py"
    try:
        if not path.exists():
            writing.write(text, writing.folder(path.parent) / path.name)
    except (SpecError, OSError):
        return None
    return path
