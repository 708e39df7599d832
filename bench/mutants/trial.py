"""One mutant against the tests that reach it, in a copy of the repository: the working tree is never touched.

Tests run quickest and most specific first, in three rounds, each a process of its own that stops at the first failure,
with limits on time and memory. A test that fails without the mutant too says nothing, and is left out from then on. A
mutant that no round notices survived.
"""

from __future__ import annotations

import compileall
import json
import os
import py_compile
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from bench.mutants.draw import Mutant
from bench.mutants.reach import Test

ROUNDS = ((15.0, 12), (90.0, 40))
"""Recorded seconds and test files of the first rounds; the last one takes what is left."""
SLACK = 3.0
START = 60.0
"""A round may take so many times the recorded CPU seconds of its tests, and so many seconds more."""
WALL = 30.0
"""So much more may pass on the clock: the machine may be busy with other things."""
MEMORY = 6 * 2**30


@dataclass(frozen=True, slots=True)
class Verdict:
    """caught: a test failed. time: the tests took too long. survived: none noticed. unreached: none executes it.

    test: the one that failed. tests: how many ran at most, of how many that reach the mutant. cpu, seconds: CPU time
    and time on the clock.
    """

    word: str
    test: str
    tests: int
    reaching: int
    cpu: float
    seconds: float


class Workshop:
    """A copy of the repository in which one file at a time is a mutant."""

    def __init__(self, root: Path, folder: Path, python: str = sys.executable) -> None:
        self.root, self.folder, self.python = root, folder, python
        self.broken: set[str] = set()  # tests that fail, whatever the mutant
        shutil.rmtree(folder, ignore_errors=True)
        for name in tracked(root):
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(root / name, target)
        # byte code is checked by content: a mutant may have the size and the second of the file before it
        mode = py_compile.PycInvalidationMode.CHECKED_HASH
        compileall.compile_dir(folder / "src", quiet=2, invalidation_mode=mode)

    @property
    def environment(self) -> dict[str, str]:
        path = os.pathsep.join((str(self.folder / "src"), str(self.folder), os.environ.get("PYTHONPATH", "")))
        cache = str(self.folder / ".compiled")
        return {**os.environ, "PYTHONPATH": path.rstrip(os.pathsep), "NUMBA_CACHE_DIR": cache, "PYTHONHASHSEED": "0"}

    def pytest(self, arguments: Sequence[str], limit: float, **environment: str) -> int | None:
        """The exit code of pytest in the copy; None if it ran past the limit of CPU seconds."""
        command = [self.python, "-m", "pytest", "-q", "-m", "not slow", "-p", "no:cacheprovider", "-p", "no:xdist"]
        with (self.folder / "pytest.log").open("w") as log:
            process = subprocess.Popen(
                [*command, *arguments],
                cwd=self.folder,
                env={**self.environment, **environment},
                stdout=log,
                stderr=log,
                preexec_fn=partial(_bounded, limit),
                start_new_session=True,
            )
            try:
                code = process.wait(WALL * limit)
                return None if code == -signal.SIGXCPU else code
            except subprocess.TimeoutExpired:
                return None
            finally:
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)
                    process.wait()

    def trial(self, mutant: Mutant, tests: Sequence[Test], most: float) -> Verdict:
        """What the tests say of a mutant; `most` recorded seconds of them are run at most."""
        started, cpu = time.monotonic(), _children()
        target = self.folder / mutant.change.file
        ran = 0
        try:
            for chosen in rounds(tests, most):
                ran += len(chosen)
                while left := [test for test in chosen if test.name not in self.broken]:
                    target.write_text(mutant.changed, encoding="utf-8")
                    word, test = self._round(left)
                    target.write_text(mutant.source, encoding="utf-8")
                    if word == "survived":
                        break
                    if word != "caught" or not self._fails(test, left):
                        return Verdict(word, test, ran, len(tests), _children() - cpu, time.monotonic() - started)
        finally:
            target.write_text(mutant.source, encoding="utf-8")
        word = "survived" if tests else "unreached"
        return Verdict(word, "", ran, len(tests), _children() - cpu, time.monotonic() - started)

    def _fails(self, name: str, chosen: Sequence[Test]) -> bool:
        """True if a test, or what is named in its place, fails without a mutant too."""
        failed = [test for test in chosen if name in (test.name, test.file)]
        if not failed or self._round(failed)[0] == "survived":
            return False
        self.broken |= {test.name for test in failed}
        return True

    def _round(self, chosen: Sequence[Test]) -> tuple[str, str]:
        names, failed = self.folder / "chosen.json", self.folder / "failed.txt"
        names.write_text(json.dumps([test.name for test in chosen]), encoding="utf-8")
        failed.unlink(missing_ok=True)
        code = self.pytest(
            ["-x", "-p", "bench.mutants.choosing", *sorted({test.file for test in chosen})],
            START + SLACK * sum(test.seconds for test in chosen),
            EINLOOM_CHOSEN=str(names),
            EINLOOM_FAILED=str(failed),
        )
        if code is None:
            return "time", ""
        if code == 0:
            return "survived", ""
        if code == 5:
            raise RuntimeError("the tests that were recorded are gone: record again")
        if failed.exists():
            return "caught", failed.read_text("utf-8")
        if code < 0:
            return "caught", f"killed by signal {-code}"
        log = (self.folder / "pytest.log").read_text()
        if code == 4 and "while loading conftest" in log:
            return "caught", "no test can be loaded"
        raise RuntimeError(f"pytest ended with {code}:\n{log[-2000:]}")


def rounds(tests: Sequence[Test], most: float) -> Iterator[list[Test]]:
    """The tests in the order in which they run, cut into rounds; nothing beyond `most` recorded seconds."""
    left = list(tests)
    for seconds, files in (*ROUNDS, (most, len(tests))):
        chosen: list[Test] = []
        later: list[Test] = []
        spent, seen = 0.0, set[str]()
        for test in left:
            if spent + test.seconds > min(seconds, most) or (test.file not in seen and len(seen) >= files):
                later.append(test)
                continue
            chosen.append(test)
            spent += test.seconds
            seen.add(test.file)
        if chosen:
            yield chosen
        left, most = later, most - spent


def tracked(root: Path) -> list[str]:
    """The files of the working tree that git does not ignore."""
    command = ["git", "ls-files", "-co", "--exclude-standard", "-z"]
    names = subprocess.run(command, cwd=root, capture_output=True, check=True).stdout.decode().split("\0")
    return [name for name in names if name and (root / name).is_file()]


def _bounded(seconds: float) -> None:
    """In the new process: its limits of memory and CPU time."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (int(seconds), int(seconds) + 10))


def _children() -> float:
    """CPU seconds of the processes that were started and have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
