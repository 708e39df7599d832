"""The RTL executed: jobs in, the sums that left and the cycles that were taken out.

With Verilator a fabric is compiled once and then fed any number of jobs; Amaranth's own simulator needs no other
program and is slow, so it takes a few.
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ..dataclass import dataclass
from ..errors import SpecError, need
from ..reading import writing
from .describe import OPERATIONS, Fabric
from .streams import Job, Matrix, expected, packed, results, unpacked, words_out
from .tools import tool


@dataclass(frozen=True)
class Ran:
    """What the hardware did with a job. cycles: that it was busy. right: every element is what NumPy says."""

    job: Job
    cycles: int
    answers: tuple[Matrix, ...]

    @property
    def right(self) -> bool:
        pairs = zip(self.answers, expected(self.job), strict=True)
        return all(np.array_equal(got, wanted) for got, wanted in pairs)

    @property
    def on_time(self) -> bool:
        """True if it took as many cycles as the model says."""
        return self.cycles == self.job.cycles


def warnings(verilog: Path) -> int:
    """Number of warnings of ``verilator --lint-only -Wall``. Raises SpecError where Verilator is missing."""
    command = [tool("verilator"), "--lint-only", "-Wall", "--top-module", "fabric", str(verilog)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return sum(line.startswith(("%Warning", "%Error:")) for line in done.stderr.splitlines()) if done.returncode else 0


class Compiled:
    """A fabric compiled by Verilator in a folder; runs lists of jobs. Raises SpecError where a program is missing."""

    def __init__(self, fabric: Fabric, folder: Path) -> None:
        from .rtl.write import testbench, verilog

        self.fabric, self.folder = fabric, folder
        verilator = tool("verilator")
        for name in ("g++", "make"):
            tool(name)
        source, bench = verilog(fabric, folder), testbench(fabric, folder)
        quick = ["-CFLAGS", "-std=c++17", "-MAKEFLAGS", "OPT_FAST=-O0 OPT_SLOW=-O0 OPT_GLOBAL=-O0"]
        command = [verilator, "--cc", "--exe", "--build", "-Wno-fatal", *quick, "--top-module", "fabric"]
        done = subprocess.run(
            [*command, source.name, bench.name, "-o", "bench"], cwd=folder, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise SpecError(f"verilator could not compile the fabric: {done.stderr.strip()[-400:]}")

    def run(self, jobs: Sequence[Job]) -> list[Ran]:
        """Every job, one after the other."""
        asked, said = self.folder / "jobs.bin", self.folder / "answers.bin"
        writing.write(b"".join(_words(job) for job in jobs), asked)
        subprocess.run([str(self.folder / "obj_dir" / "bench"), str(asked), str(said)], check=True)
        words = np.frombuffer(said.read_bytes(), dtype="<u4")
        found, at = [], 0
        for job in jobs:
            width = words_out(self.fabric)
            size = job.cycles * width
            seen = unpacked(words[at + 1 : at + 1 + size].reshape(job.cycles, width), job)
            found.append(Ran(job, int(words[at]), tuple(results(job, seen))))
            at += 1 + size
        return found


def _words(job: Job) -> bytes:
    """A job as the testbench reads it."""
    number = job.fabric.configurations.index(job.configuration)
    operation = OPERATIONS.index(job.operation)
    head = np.array([operation, number, job.steps, job.more, job.tiles, job.shift, job.cycles, 0], "<u4")
    return head.tobytes() + np.concatenate(packed(job), axis=1).tobytes()


def by_amaranth(jobs: Sequence[Job]) -> list[Ran]:
    """The jobs, all of one fabric, in Amaranth's simulator. Raises MissingExtra without the extra ``rtl``."""
    need("amaranth", "rtl")
    from .rtl.inside import run_inside

    ran = run_inside(jobs)
    return [Ran(job, taken, tuple(results(job, seen))) for job, (taken, seen) in zip(jobs, ran, strict=True)]
