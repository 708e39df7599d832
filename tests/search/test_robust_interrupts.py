"""Killed or interrupted at any moment, a search leaves nothing or a valid result; budgets end with true bounds.

Moments are CPU seconds of the searching process, drawn by seed between its first line and its usual end, so that
imports, search and writing are all hit, on a busy machine, too.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from functools import cache
from pathlib import Path
from random import Random

import pytest

from einloom import api as verbs
from einloom import questions
from einloom.mapping.tree import Mapping
from einloom.problem import Budget, Guarantee, Problem
from einloom.result import Result
from einloom.result.unmapped import Unmapped, read_answer
from einloom.search.exact import Exact
from einloom.search.method import Recorder
from tiny_problems import tiny_problem

ROOT = Path(__file__).resolve().parents[2]
PROBLEM = ("residual-diamond", "simple:dram_energy=10,glb_bits=512", "edp")
PREAMBLE = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in the background of a shell
moment, number = float(sys.argv[1]), getattr(signal, sys.argv[2])
if moment:
    signal.signal(signal.SIGPROF, lambda *_: os.kill(os.getpid(), number))
    signal.setitimer(signal.ITIMER_PROF, moment)
"""
SEARCH = """
from einloom.cli import main
main(["map", *sys.argv[3:], "--json", "r.json"])
"""
AT_FIRST_INCUMBENT = """
from einloom.search.method import Recorder
heard = Recorder.incumbent
def incumbent(self, value, mapping=None):
    first = self.best_mapping is None
    heard(self, value, mapping)
    if first and self.best_mapping is not None:
        for _ in range(int(os.environ["PRESSES"])):
            os.kill(os.getpid(), signal.SIGINT)
Recorder.incumbent = incumbent
"""


def searching(
    code: str, folder: Path, moment: float = 0.0, number: str = "SIGKILL", **environment: str
) -> subprocess.CompletedProcess[str]:
    workload, machine, objective = PROBLEM
    command = [sys.executable, "-c", code, str(moment), number, workload, machine, "--objective", objective]
    settings = {**os.environ, "PYTHONPATH": str(ROOT / "src"), **environment}
    return subprocess.run(command, cwd=folder, env=settings, capture_output=True, text=True, timeout=300, check=False)


@cache
def optimum() -> float:
    return verbs.map(PROBLEM[0], PROBLEM[1], PROBLEM[2]).value


def usual_seconds(folder: Path) -> float:
    """CPU seconds of an undisturbed run."""
    before = os.times()
    done = searching(PREAMBLE + SEARCH, folder)
    after = os.times()
    assert done.returncode == 0, done.stderr
    (folder / "r.json").unlink()
    return after.children_user + after.children_system - before.children_user - before.children_system


def checked(path: Path) -> Result | Unmapped:
    """The answer in the file: a result that `verify` accepts, or why there is none; its bound is one."""
    result = read_answer(path)
    if isinstance(result, Unmapped):
        assert result.status == "unfinished"
        assert 0 <= (result.bound or 0.0) <= optimum() * (1 + 1e-9)
        return result
    verdict = verbs.verify(result, quick=True)
    assert verdict.ok, verdict.reasons
    certificate = result.certificate
    assert certificate is not None
    assert 0 <= certificate.bound <= optimum() * (1 + 1e-9) <= certificate.value * (1 + 2e-9)
    if certificate.guarantee is Guarantee.OPTIMAL:
        assert certificate.value == pytest.approx(optimum(), rel=1e-9)
    return result


@pytest.mark.parametrize("moments", [3, pytest.param(6, marks=pytest.mark.slow)])
@pytest.mark.parametrize("number", ["SIGKILL", "SIGINT"])
def test_killed_at_any_moment(number: str, moments: int, tmp_path: Path) -> None:
    usual = usual_seconds(tmp_path)
    random = Random(number)
    disturbed = 0
    for at in range(moments):
        moment = usual * (at + random.random()) / moments
        done = searching(PREAMBLE + SEARCH, tmp_path, moment, number)
        written = tmp_path / "r.json"
        disturbed += done.returncode in (-signal.SIGKILL, -signal.SIGINT, 130)
        if written.exists():
            found = checked(written)
            assert isinstance(found, Result) or done.returncode
            written.unlink()
        elif number == "SIGINT":
            assert done.returncode
        for left in tmp_path.iterdir():  # a killed process cannot sweep up, and its file has another name
            assert number == "SIGKILL" and left.name.startswith(".r.json.") and left.name.endswith(".tmp")
            left.unlink()
    assert disturbed >= moments // 2


@pytest.mark.parametrize("presses", [1, 2])
def test_interrupt_keeps_the_best_so_far(presses: int, tmp_path: Path) -> None:
    """Ctrl-C as soon as something is known: the answer is that mapping, BOUNDED; twice: the same, at once."""
    code = PREAMBLE + AT_FIRST_INCUMBENT + SEARCH
    done = searching(code, tmp_path, PRESSES=str(presses))
    assert done.returncode == 130, done.stderr
    assert "interrupted" in done.stderr
    assert "Traceback" not in done.stderr
    result = checked(tmp_path / "r.json")
    assert isinstance(result, Result)
    assert result.certificate is not None
    assert result.certificate.guarantee is Guarantee.BOUNDED
    assert result.certificate.bound > 0
    assert [path.name for path in tmp_path.iterdir()] == ["r.json"]


class Impatient(Recorder):
    """Asks to stop at one of its questions, and counts them."""

    def __init__(self, patience: int) -> None:
        super().__init__(stop=self._late)
        self.asked = 0
        self.patience = patience

    def _late(self) -> bool:
        self.asked += 1
        return self.asked > self.patience


def test_stopped_at_every_question() -> None:
    """Whenever the search asks whether to go on and is told no, it ends with a legal mapping and a true bound."""
    problem = questions.problem(*PROBLEM)
    whole = Impatient(10**9)
    Exact().search(problem, Budget(), whole)
    assert whole.asked > 20
    bounded = 0
    for patience in sorted({0, 1, 2, *(whole.asked * i // 9 for i in range(9))}):
        result = Exact().search(problem, Budget(), Impatient(patience))
        certificate = result.certificate
        assert certificate is not None and certificate.guarantee is Guarantee.BOUNDED
        assert certificate.bound <= optimum() * (1 + 1e-9) <= result.value * (1 + 2e-9)
        assert verbs.verify(result, quick=True).ok
        bounded += 1
    assert bounded


TINY = (16, 71, 1104, 1206, 1425)
Answer = tuple[Guarantee, float, float, Mapping]


def answer(problem: Problem, steps: int) -> Answer:
    """(guarantee, value, bound, mapping) under a budget of steps: there is a mapping however few they are."""
    result = Exact().search(problem, Budget(steps=steps))
    assert result.certificate is not None
    return result.certificate.guarantee, result.value, result.certificate.bound, result.mapping


def test_bounds_are_true_at_every_step() -> None:
    """bound <= optimum <= value for each number of steps, twice the same answer, and OPTIMAL when steps suffice.

    The optima of these problems are compared with those of all trees in test_exact_equals_exhaustive.
    """
    seen = set()
    for seed in TINY:
        problem = tiny_problem(seed)
        whole = Exact().search(problem)
        assert whole.certificate is not None
        best, total = whole.value, whole.certificate.counts["evaluated"]
        for steps in range(0, total + 2, max(1, total // 25)):
            guarantee, value, bound, _ = found = answer(problem, steps)
            seen.add(guarantee)
            assert bound <= best * (1 + 1e-9), (seed, steps)
            assert bound > 0 and best <= value * (1 + 1e-9), (seed, steps)
            if guarantee is Guarantee.OPTIMAL:
                assert value == pytest.approx(best, rel=1e-9, abs=0), (seed, steps)
            if steps % 5 == 0:
                assert found == answer(problem, steps), (seed, steps)
        assert answer(problem, total + 1)[0] is Guarantee.OPTIMAL
    assert seen == {Guarantee.BOUNDED, Guarantee.OPTIMAL}
