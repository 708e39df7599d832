"""Runs the program of a mapping, and compares: its results with NumPy's, what it moved with what `evaluate` says."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import field
from math import prod
from pathlib import Path

import numpy as np

from ..cost.breakdown import Cost
from ..dataclass import dataclass
from ..errors import EinloomError, SpecError
from ..machine.levels import Machine
from ..mapping.tree import Mapping
from ..oracle.compile import Compiler
from ..reading.writing import folder as new_folder
from ..reading.writing import write
from ..workload.einsum import Workload
from .expected import computed, drawn, scans, touched
from .functions import STAND_INS, Floats, Mask
from .source import CProgram, Key, Writer

COMPILERS = ("cc", "gcc", "clang")
FLAGS = ("-std=c99", "-O3")
LIMIT = 20_000_000_000  # operations and moves together
A_SECOND = 70_000_000  # of these, about, on one core
MEMORY = 8 << 30  # bytes of a program's stores
CLOSE = 1e-9  # of the largest value of a tensor: sums are added up in another order


@dataclass(frozen=True)
class MappingRun:
    """One executed program.

    counts: (Einsum, memory or toll, tensor, ``read``, ``write``, ``down`` or ``up``) -> values moved, all instances and
    repeats. operations: per Einsum. errors: per output the largest difference to NumPy's, relative to its largest
    value. infinite: per output how many values are no finite numbers, in NumPy as here: of these no difference is
    known. reasons: what went wrong. stand_ins: functions that something else stands for. online: softmax in one pass
    over tiles of keys, compared with that over all at once. lines: of the program. seconds: that it took.
    """

    counts: dict[Key, int] = field(default_factory=dict)
    operations: dict[str, int] = field(default_factory=dict)
    errors: dict[str, float] = field(default_factory=dict)
    infinite: dict[str, int] = field(default_factory=dict)
    reasons: tuple[str, ...] = ()
    stand_ins: tuple[str, ...] = ()
    online: bool = False
    compiler: str = ""
    lines: int = 0
    seconds: float = 0.0

    @property
    def correct(self) -> bool:
        """True if all results are NumPy's."""
        return not self.reasons and all(error <= CLOSE for error in self.errors.values())

    @property
    def moves(self) -> int:
        """All values moved."""
        return sum(self.counts.values())


def program(workload: Workload, machine: Machine, mapping: Mapping) -> CProgram:
    """The C program of a legal mapping. Raises SpecError if it has none, with what stands in the way."""
    plan = Compiler(workload, machine, mapping).plan()
    if plan.reasons:
        raise SpecError(f"no program for this mapping: {'; '.join(dict.fromkeys(plan.reasons))}")
    return Writer(workload, plan, mapping, machine.partial_sums == "once", scans(workload)).program()


def run(
    workload: Workload,
    machine: Machine,
    mapping: Mapping,
    cost: Cost,
    seed: int = 0,
    keep: Path | None = None,
    said: Callable[[str], object] = str,
) -> MappingRun:
    """Write, compile and run the program of a legal mapping.

    cost: of the mapping, from which it is known how long the program takes. seed: of the inputs. keep: a folder for the
    program and its files. said: hears what is going on if it takes more than a second. Raises SpecError if there is no
    program, no compiler, or the program is too large; EinloomError if the compiler or the program fails.
    """
    if seed < 0:
        raise SpecError(f"seed: at least 0, not {seed}")
    compiler, steps = _compiler(), _steps(workload, cost)
    asked = program(workload, machine, mapping)
    tell = said if steps > A_SECOND else str
    if asked.bytes > MEMORY:
        raise SpecError(f"the program would take {asked.bytes >> 20:,} MiB; {MEMORY >> 20:,} are allowed")
    inputs = drawn(workload, seed)
    with tempfile.TemporaryDirectory(prefix="einloom-") as temporary:
        folder = Path(temporary)
        write(asked.text, folder / "mapping.c")
        for number, name in enumerate(asked.inputs):
            write(inputs[name].tobytes(), folder / f"input{number}.bin")
        tell(f"compiling {asked.text.count(chr(10)):,} lines of C")
        _told([compiler, *FLAGS, "-o", "mapping", "mapping.c", "-lm"], folder, f"{compiler} fails")
        tell(f"running {steps:,} operations and moves, about {steps / A_SECOND:.0f} s")
        began = time.perf_counter()
        printed = _told(["./mapping"], folder, "the program of the mapping fails").splitlines()
        seconds = time.perf_counter() - began
        found = _read(workload, asked, folder / "results.bin")
        if keep is not None:
            for name in files_of(asked):
                write((folder / name).read_bytes(), new_folder(keep) / name)
    tell("comparing with NumPy")
    wanted = computed(workload, inputs)
    numbers = [int(line.rsplit("\t", 1)[-1]) for line in printed]
    counts = dict(zip(asked.counters, numbers, strict=False))
    operations = dict(zip(workload.names, numbers[len(asked.counters) :], strict=False))
    functions = {e.function for e in workload.einsums if e.kind == "map"}
    return MappingRun(
        counts={key: n * workload.repeat for key, n in counts.items() if n},
        operations={name: n * workload.repeat for name, n in operations.items()},
        errors=_errors(workload, found, wanted),
        infinite={name: n for name in workload.outputs if (n := int((~np.isfinite(wanted[name])).sum()))},
        reasons=(f"{numbers[-1]:,} values were not where the tree says",) if numbers[-1] else (),
        stand_ins=tuple(one for one in STAND_INS if one in functions),
        online=scans(workload) is not None,
        compiler=compiler,
        lines=asked.text.count("\n"),
        seconds=seconds,
    )


def files_of(asked: CProgram) -> tuple[str, ...]:
    """The names of a program's files."""
    return ("mapping.c", *(f"input{number}.bin" for number in range(len(asked.inputs))), "results.bin")


def _steps(workload: Workload, cost: Cost) -> int:
    """Operations and moves of one repeat. Raises SpecError if they are too many."""
    steps = sum(prod(workload.extents[v] for v in one.variables) for one in workload.einsums)
    steps += sum(a.count for a in cost.actions if a.tensor is not None and a.action != "compute") // workload.repeat
    if steps > LIMIT:
        raise SpecError(
            f"the mapping of {workload.name} takes {steps:,} operations and moves, and {LIMIT:,} are run at most; "
            "take smaller sizes"
        )
    return steps


def _compiler() -> str:
    for name in COMPILERS:
        if (found := shutil.which(name)) is not None:
            return found
    raise SpecError(f"no C compiler is installed: none of {', '.join(COMPILERS)} is found; `simulate` needs none")


def _told(command: list[str], folder: Path, what: str) -> str:
    """What a command prints. Raises EinloomError with its first line of errors if it fails."""
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    except OSError as error:
        raise EinloomError(f"{what}: {error}") from error
    if done.returncode:
        first = next(iter(done.stderr.splitlines()), f"exit status {done.returncode}")
        raise EinloomError(f"{what}: {first}")
    return done.stdout


def _read(workload: Workload, asked: CProgram, path: Path) -> dict[str, tuple[Floats, Mask]]:
    """Per tensor its values and which of them the program finished."""
    found, data, at = {}, path.read_bytes(), 0
    for name in asked.results:
        shape = workload.tensor(name).shape
        size = prod(shape)
        values = np.frombuffer(data, np.float64, size, at).reshape(shape)
        done = np.frombuffer(data, np.uint8, size, at + 8 * size).reshape(shape)
        found[name], at = (values, done.astype(bool)), at + 9 * size
    return found


def _errors(workload: Workload, found: dict[str, tuple[Floats, Mask]], wanted: dict[str, Floats]) -> dict[str, float]:
    """Per output the largest difference; infinite where a value is missing or only one of the two is a number."""
    errors = {}
    for name in workload.outputs:
        values, done = found[name]
        written = np.zeros(values.shape, np.bool_)
        for einsum in workload.writers[name]:
            written |= touched(workload, workload.einsum(einsum))
        numbers = np.isfinite(wanted[name])
        if (written & ~done).any() or not np.array_equal(np.isfinite(values)[done], numbers[done]):
            errors[name] = float("inf")
            continue
        both = numbers & done
        scale = float(np.abs(wanted[name][both]).max(initial=0.0)) or 1.0
        errors[name] = float(np.abs(values - wanted[name])[both].max(initial=0.0)) / scale
    return errors
