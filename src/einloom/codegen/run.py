"""Runs the program of a mapping, and compares: its results with NumPy's, what it moved with what `evaluate` says."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import time
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
from ..workload.einsum import Workload
from .expected import computed, drawn
from .functions import STAND_INS, Floats
from .source import Key, Program, Writer, refusals

COMPILERS = ("cc", "gcc", "clang")
FLAGS = ("-std=c99", "-O2")
LIMIT = 20_000_000_000  # operations and moves, about two minutes per ten billion
MEMORY = 8 << 30  # bytes
CLOSE = 1e-9  # of the largest value of a tensor: sums are added up in another order


@dataclass(frozen=True)
class Run:
    """One executed program.

    counts: (Einsum, memory, tensor, ``read`` or ``write``) -> values moved, all instances and repeats. operations: per
    Einsum. errors: per output the largest difference to NumPy's, relative to its largest value. reasons: what went
    wrong. stand_ins: functions that stand for what has no meaning value by value. seconds: of the program itself.
    """

    counts: dict[Key, int] = field(default_factory=dict)
    operations: dict[str, int] = field(default_factory=dict)
    errors: dict[str, float] = field(default_factory=dict)
    reasons: tuple[str, ...] = ()
    stand_ins: tuple[str, ...] = ()
    compiler: str = ""
    lines: int = 0
    seconds: float = 0.0

    @property
    def correct(self) -> bool:
        """True if all results are NumPy's."""
        return not self.reasons and all(error <= CLOSE for error in self.errors.values())

    @property
    def moves(self) -> int:
        return sum(self.counts.values())


def program(workload: Workload, machine: Machine, mapping: Mapping) -> Program:
    """The C program of a legal mapping. Raises SpecError if it has none, with what stands in the way."""
    if any(memory.through for memory in machine.memories):
        raise SpecError("no program yet where parts pass through a memory (through)", suggestion="einloom simulate")
    plan = Compiler(workload, machine, mapping).plan()
    why = [*plan.reasons, *refusals(plan, workload)]
    if why:
        raise SpecError(f"no program yet for this mapping: {'; '.join(dict.fromkeys(why))}", suggestion="einloom simulate")
    return Writer(workload, plan, mapping, machine.partial_sums == "once").program()


def run(
    workload: Workload, machine: Machine, mapping: Mapping, cost: Cost, seed: int = 0, keep: Path | None = None
) -> Run:
    """Write, compile and run the program of a legal mapping.

    cost: of the mapping; how long the program takes is judged by it. seed: of the inputs. keep: a folder for the
    program and its files. Raises SpecError if there is no program, no compiler, or the program is too large.
    """
    asked = program(workload, machine, mapping)
    compiler = _compiler()
    steps = sum(prod(workload.extents[v] for v in one.variables) for one in workload.einsums)
    steps += sum(a.count for a in cost.actions if a.tensor is not None and a.action in ("read", "write"))
    if steps > LIMIT:
        raise SpecError(f"the mapping takes {steps:,} operations and moves; a run has at most {LIMIT:,}")
    if asked.bytes > MEMORY:
        raise SpecError(f"the program would take {asked.bytes >> 20:,} MiB; at most {MEMORY >> 20:,} are allowed")
    inputs = drawn(workload, seed)
    with tempfile.TemporaryDirectory(prefix="einloom-") as temporary:
        folder = Path(temporary)
        (folder / "mapping.c").write_text(asked.text, encoding="utf-8")
        with (folder / "inputs.bin").open("wb") as file:
            for name in asked.inputs:
                file.write(inputs[name].astype(np.float64).tobytes())
        _told([compiler, *FLAGS, "-o", "mapping", "mapping.c", "-lm"], folder, "the C compiler fails")
        began = time.perf_counter()
        printed = _told(["./mapping"], folder, "the program of the mapping fails").split()
        seconds = time.perf_counter() - began
        found = _read(workload, asked, folder / "results.bin")
        if keep is not None:
            keep.mkdir(parents=True, exist_ok=True)
            for name in ("mapping.c", "inputs.bin", "results.bin"):
                shutil.copyfile(folder / name, keep / name)
    numbers = list(map(int, printed))
    counts = dict(zip(asked.counters, numbers, strict=False))
    operations = dict(zip(workload.names, numbers[len(asked.counters) :], strict=False))
    functions = {e.function for e in workload.einsums if e.kind == "map"}
    return Run(
        counts={key: n * workload.repeat for key, n in counts.items() if n},
        operations={name: n * workload.repeat for name, n in operations.items()},
        errors=_errors(workload, found, computed(workload, inputs)),
        reasons=(f"{numbers[-1]} values were not where the tree says",) if numbers[-1] else (),
        stand_ins=tuple(one for one in STAND_INS if one in functions),
        compiler=compiler,
        lines=asked.text.count("\n"),
        seconds=seconds,
    )


def _compiler() -> str:
    for name in COMPILERS:
        if (found := shutil.which(name)) is not None:
            return found
    raise SpecError(f"no C compiler is installed ({', '.join(COMPILERS)})", suggestion="einloom simulate")


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


def _read(workload: Workload, asked: Program, path: Path) -> dict[str, tuple[Floats, np.ndarray]]:
    """Per tensor its values and which of them the program finished."""
    found, data, at = {}, path.read_bytes(), 0
    for name in asked.results:
        shape = workload.tensor(name).shape
        size = prod(shape)
        values = np.frombuffer(data, np.float64, size, at).reshape(shape)
        done = np.frombuffer(data, np.uint8, size, at + 8 * size).reshape(shape)
        found[name], at = (values, done.astype(bool)), at + 9 * size
    return found


def _errors(
    workload: Workload, found: dict[str, tuple[Floats, np.ndarray]], wanted: dict[str, Floats]
) -> dict[str, float]:
    """Per output the largest difference; infinite where a value is missing or only one of the two is a number."""
    errors = {}
    for name in workload.outputs:
        values, done = found[name]
        numbers = np.isfinite(wanted[name])
        if not done.all() or not np.array_equal(np.isfinite(values), numbers):
            errors[name] = float("inf")
            continue
        scale = float(np.abs(wanted[name][numbers]).max(initial=0.0)) or 1.0
        errors[name] = float(np.abs(values - wanted[name])[numbers].max(initial=0.0)) / scale
    return errors
