"""CPU, wall time and peak memory of a whole command: the process, its children, and theirs.

`measure` runs the command below a small supervisor (this file, run as a script) that adopts every orphan of the
command, waits for all of them and reports what they used together.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

PR_SET_CHILD_SUBREAPER = 36
TIMED_OUT = "timed out"


@dataclass(frozen=True)
class Measured:
    """What one run used: seconds of CPU (user and system), seconds of wall time, peak bytes of one process."""

    cpu: float
    wall: float
    rss: int
    code: int
    outcome: str
    out: str
    err: str


def measure(
    command: Sequence[str], folder: Path, timeout: float, environment: Mapping[str, str] | None = None
) -> Measured:
    """Run a command in `folder` for at most `timeout` seconds and measure it.

    Python may keep compiled sources, as it does where nothing is set: else each process compiles all of them anew.
    """
    supervisor = [sys.executable, str(Path(__file__).resolve()), str(timeout), *command]
    settings = {**os.environ, **(environment or {})}
    settings.pop("PYTHONDONTWRITEBYTECODE", None)
    done = subprocess.run(supervisor, cwd=folder, env=settings, capture_output=True, text=True, check=False)
    lines = done.stdout.splitlines()
    if not lines:
        raise RuntimeError(f"the measurement itself failed: {done.stderr[-500:]}")
    found = json.loads(lines[-1])
    out, err = (folder / name for name in ("out.log", "err.log"))
    return Measured(out=out.read_text(errors="replace"), err=err.read_text(errors="replace"), **found)


def supervise(timeout: float, command: Sequence[str]) -> dict[str, object]:
    """Run the command, adopt and await its orphans, and say what all of them used."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    started = time.monotonic()
    outcome = "finished"
    with open("out.log", "w") as out, open("err.log", "w") as err:
        process = subprocess.Popen(command, stdout=out, stderr=err, start_new_session=True)
        try:
            code = process.wait(timeout)
        except subprocess.TimeoutExpired:
            outcome, code = TIMED_OUT, 124
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        wall = time.monotonic() - started
    _await_orphans(process.pid)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    if code and outcome == "finished":
        outcome = f"failed with exit code {code}"
    return {
        "cpu": used.ru_utime + used.ru_stime,
        "wall": wall,
        "rss": used.ru_maxrss * 1024,
        "code": code,
        "outcome": outcome,
    }


def _await_orphans(group: int) -> None:
    """Reap what the command left running; after ten seconds its process group is killed."""
    limit = time.monotonic() + 10
    while True:
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            if time.monotonic() > limit:
                try:
                    os.killpg(group, signal.SIGKILL)
                except ProcessLookupError:
                    return
                limit = float("inf")
            time.sleep(0.05)


if __name__ == "__main__":
    print(json.dumps(supervise(float(sys.argv[1]), sys.argv[2:])))
