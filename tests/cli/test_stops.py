"""SIGINT and SIGTERM at the places where they hurt: what is known is kept and said, and the exit code is the signal's.

The signal comes from inside the process, at a named place, so that every run is the same.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import einloom as el
from compilers import needs_compiler
from einloom import stops
from einloom.certify import verify as certify
from einloom.cli import main
from einloom.diagnose import Asker
from einloom.errors import Ended, SpecError
from einloom.mapping.tree import Mapping
from einloom.questions import problem
from einloom.result.sweep import read_sweep
from einloom.result.unmapped import Unmapped, read_answer
from einloom.search.exact import answer as exact_answer
from einloom.search.exact import branch_and_bound as engine
from einloom.search.exact import drawing
from einloom.search.exact.attempt import Attempt
from einloom.search.exact.incumbent import Incumbent
from einloom.search.method import Recorder
from einloom.sweep import sweep_capacity

ROOT = Path(__file__).resolve().parents[2]
CODES = {signal.SIGINT: 130, signal.SIGTERM: 143}
WORDS = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated"}
DIAMOND = ("residual-diamond", "simple:dram_energy=10,glb_bits=512", "--objective", "edp")
both = pytest.mark.parametrize("number", CODES, ids=lambda number: number.name)


def stopping(function: Callable[..., Any], number: int, call: int = 1, times: int = 1) -> Callable[..., Any]:
    """The function; before its call of that number the process gets the signal so many times."""
    calls = 0

    def stopped(*arguments: Any, **named: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == call:
            for _ in range(times):
                os.kill(os.getpid(), number)
        return function(*arguments, **named)

    return stopped


def run(*words: str | Path) -> tuple[int, str, str]:
    """(exit code, standard output, standard error); anything but an exit fails the test."""
    done = CliRunner().invoke(main, [str(word) for word in words])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise AssertionError(f"{words} ended in a traceback") from done.exception
    assert "Traceback" not in done.output
    return done.exit_code, done.stdout, done.stderr


@pytest.fixture
def saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "r.json"
    el.map("matmul:m=2,n=2,k=2", "simple:glb_bits=16,dram_energy=10").write(path)
    return path


@both
@pytest.mark.parametrize("presses", [1, 2])
def test_map_keeps_the_best_so_far(number: int, presses: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    heard, best = Recorder.incumbent, []

    def incumbent(self: Recorder, value: float, mapping: Any = None) -> None:
        heard(self, value, mapping)
        best.append(value)
        if len(best) == 1:
            for _ in range(presses):
                os.kill(os.getpid(), number)

    monkeypatch.setattr(Recorder, "incumbent", incumbent)
    path, text = tmp_path / "r.json", tmp_path / "m.txt"
    code, shown, said = run("map", *DIAMOND, "--json", path, "-o", text)
    assert (
        code == CODES[signal.Signals(number)] and f"einloom: {WORDS[signal.Signals(number)]}: this is the best" in said
    )
    found = read_answer(path)
    assert isinstance(found, el.Result) and found.ended is Ended.STOPPED and found.value <= best[0]
    assert found.certificate is not None and found.certificate.guarantee is el.Guarantee.BOUNDED
    assert "the search was stopped" in shown and "budget" not in shown + said
    assert text.read_text(encoding="utf-8") == found.mapping_text
    assert el.verify(path, quick=True).ok


@both
def test_map_without_a_mapping_draws_one(number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The bound is known when the search for mappings begins: there the signal comes."""
    monkeypatch.setattr(engine.Run, "_dives", stopping(engine.Run._dives, number))
    path = tmp_path / "r.json"
    code, shown, _ = run("map", *DIAMOND, "--json", path)
    assert code == CODES[signal.Signals(number)] and "the search was stopped" in shown
    found = read_answer(path)
    assert isinstance(found, el.Result) and found.ended is Ended.STOPPED and found.certificate is not None
    assert 0 < found.certificate.bound <= el.map(*DIAMOND[:2], "edp").value <= found.value
    assert el.verify(path, quick=True).ok


@both
def test_map_left_without_a_mapping_has_the_bound(number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two signals in a row leave no time to draw one."""
    monkeypatch.setattr(drawing, "AFTER", float("inf"))
    monkeypatch.setattr(engine.Run, "_dives", stopping(engine.Run._dives, number, times=2))
    path = tmp_path / "r.json"
    code, _, said = run("map", *DIAMOND, "--json", path)
    assert code == CODES[signal.Signals(number)]
    found = read_answer(path)
    assert isinstance(found, Unmapped) and (found.status, found.ended) == ("unfinished", Ended.STOPPED)
    assert found.bound is not None and 0 < found.bound <= el.map(*DIAMOND[:2], "edp").value
    assert found.reason.startswith("the search was stopped before a legal mapping was found")
    assert found.reason in said and "budget" not in said


@both
def test_map_of_several_leaves_an_answer(number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two signals before the first mapping of any number of tiles."""
    monkeypatch.setattr(Attempt, "lower_bound", stopping(Attempt.lower_bound, number, times=2))
    path = tmp_path / "r.json"
    asked = ("conv-chain:c=2,h=4,w=4,l=2,k=2", "two-level", "--dataflow", "isos")
    code, _, _ = run("map", *asked, "--json", path)
    assert code == CODES[signal.Signals(number)]
    assert isinstance(found := read_answer(path), Unmapped) and found.ended is Ended.STOPPED


def test_a_search_that_was_done_is_not_cut_short(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The signal comes when everything is proven: the answer is that, and the exit code 0."""
    monkeypatch.setattr(exact_answer, "result", stopping(exact_answer.result, signal.SIGTERM))
    code, shown, _ = run("map", *DIAMOND, "--json", tmp_path / "r.json")
    assert code == 0 and "optimal" in shown


@both
def test_explain_keeps_what_is_known(number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Asker, "feasible", stopping(Asker.feasible, number, call=2))
    path = tmp_path / "why.json"
    code, shown, said = run("explain", "matmuls:n=2,m=4,kn=8", "two-level:glb_bits=8", "--json", path)
    assert code == CODES[signal.Signals(number)] and WORDS[signal.Signals(number)] in said
    data = json.loads(path.read_text(encoding="utf-8"))
    assert data["status"] == "infeasible" and data["complete"] is False and len(data["runs"]) >= 1
    assert "the budget ended" not in shown + said


@both
def test_verify_keeps_the_checks(number: int, saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second solution is what takes long."""
    monkeypatch.setattr(certify, "_solved_again", stopping(certify._solved_again, number))
    code, shown, said = run("verify", saved, "--json", "v.json")
    assert code == CODES[signal.Signals(number)] and WORDS[signal.Signals(number)] in said
    data = json.loads(Path("v.json").read_text(encoding="utf-8"))
    assert (data["ok"], data["stopped"]) == (False, True)
    assert {"legality", "energy", "bound"} <= {check["name"] for check in data["checks"] if check["passed"]}
    assert "not verified: stopped before every claim was checked" in shown


@both
@pytest.mark.parametrize(
    ("words", "module", "name"),
    [
        (("simulate", "r.json", "--json", "out"), "einloom.oracle.simulate", "evaluate_cascade"),
        pytest.param(("run", "r.json", "--json", "out"), "einloom.codegen.run", "computed", marks=needs_compiler),
        (("report", "r.json", "-o", "out"), "einloom.report.page.page", "paged"),
        (("compare", "r.json", "r.json", "-o", "out"), "einloom.report.compare", "read_answer"),
        (("show", "r.json", "--json", "out"), "einloom.cli.show", "read_answer"),
    ],
    ids=lambda words: words[0] if isinstance(words, tuple) else "",
)
def test_the_others_leave_what_was_there(
    words: tuple[str, ...], module: str, name: str, number: int, saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = import_module(module)
    monkeypatch.setattr(place, name, stopping(getattr(place, name), number))
    Path("out").write_text("old", encoding="utf-8")
    code, shown, said = run(*words)
    assert (code, shown, said) == (CODES[signal.Signals(number)], "", f"einloom: {WORDS[signal.Signals(number)]}\n")
    assert Path("out").read_text(encoding="utf-8") == "old"
    assert sorted(path.name for path in saved.parent.iterdir()) == ["out", "r.json"]


@both
def test_sweep_goes_on_where_it_was_stopped(number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ("sweep", *DIAMOND[:2], "--memory", "GLB", "--capacities", "256 bit, 512 bit, 2048 bit", *DIAMOND[2:])
    solve, kept = Incumbent.found, []

    def found(self: Incumbent, solution: engine.Solution) -> None:
        solve(self, solution)
        if not kept and len(list((tmp_path / "s" / "fused").iterdir())) == 1:  # the second capacity
            kept.append(solution.value)
            os.kill(os.getpid(), number)

    monkeypatch.setattr(Incumbent, "found", found)
    code, _, said = run(*words, "-o", tmp_path / "s")
    assert code == CODES[signal.Signals(number)] and "2 of 3 capacities are not done" in said
    first, second = (point.answer for point in read_sweep(tmp_path / "s" / "fused.json").points)
    assert isinstance(first, el.Result) and first.ended is None
    assert isinstance(second, el.Result) and second.ended is Ended.STOPPED and second.value <= kept[0]
    code, _, said = run(*words, "-o", tmp_path / "s")
    assert code == 0 and said.count("(kept)") == 1
    answers = [point.answer for point in read_sweep(tmp_path / "s" / "fused.json").points]
    assert [answer.ended for answer in answers] == [None] * 3
    assert isinstance(answers[1], el.Result) and answers[1].value <= second.value


def test_processes_of_a_sweep_stop_too(tmp_path: Path) -> None:
    """Both write what they have, also that there is no mapping: this could once not be handed over."""
    asked = problem("gpt3-6.7b:batch=1,tokens=2048", "tpu-v4i", "edp")
    sizes = [2**power for power in (20, 21, 22, 23)]
    begun = time.monotonic()
    done = sweep_capacity(asked, "GLB", sizes, tmp_path, jobs=2, stop=lambda: time.monotonic() > begun)
    assert len(done.points) < len(sizes)
    assert all(point.answer.ended is Ended.STOPPED for point in done.points)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="no /proc tells which signals are heard")
@both
def test_imports_are_left_without_a_traceback(number: int, tmp_path: Path) -> None:
    """As soon as the process listens at all: long before it has imported NumPy."""
    command = [sys.executable, "-X", "importtime", "-m", "einloom", "zoo"]
    settings = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    with subprocess.Popen(command, env=settings, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        while process.poll() is None and not _heard(process.pid) >> (signal.SIGTERM - 1) & 1:
            time.sleep(0.001)
        process.send_signal(number)
        shown, said = process.communicate(timeout=60)
    assert process.returncode == CODES[signal.Signals(number)] and shown == b""
    lines = [line for line in said.decode().splitlines() if not line.startswith("import time")]
    assert lines == [f"einloom: {WORDS[signal.Signals(number)]}"]
    assert b"einloom.cli.commands" not in said


def _heard(pid: int) -> int:
    """Bits of the signals that a process hears."""
    try:
        status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
        return int(status.split("SigCgt:")[1].split()[0], 16)
    except (OSError, IndexError):
        return 0


def test_handlers_are_put_back(saved: Path) -> None:
    before = [signal.getsignal(number) for number in stops.HEARD]
    assert run("show", saved)[0] == 0
    assert [signal.getsignal(number) for number in stops.HEARD] == before


def test_the_second_of_two_polite_stops_raises() -> None:
    with stops.listening(), stops.politely() as asked:
        os.kill(os.getpid(), signal.SIGTERM)
        assert asked == [signal.SIGTERM]
        heard_inside = []
        with pytest.raises(stops.Interrupted), stops.held():
            heard_inside += [os.kill(os.getpid(), signal.SIGINT), *asked]
        assert heard_inside == [None, signal.SIGTERM]
        assert asked == [signal.SIGTERM, signal.SIGINT]


PROBLEM, SMALL = DIAMOND[:2], ("matmul:m=2,n=2,k=2", "simple:glb_bits=16,dram_energy=10")


class Pressing(Recorder):
    """Ctrl-C is pressed so often when the first mapping is known."""

    def __init__(self, times: int) -> None:
        super().__init__()
        self.left = times

    def incumbent(self, value: float, mapping: Mapping | None = None) -> None:
        super().incumbent(value, mapping)
        while self.left:
            self.left -= 1
            signal.raise_signal(signal.SIGINT)


@pytest.mark.parametrize("method", ["exact", "anneal"])
def test_ctrl_c_in_python_ends_the_search_with_the_best_so_far(method: str) -> None:
    before = signal.getsignal(signal.SIGINT)
    watch = Pressing(1)
    found = el.map(*PROBLEM, objective="edp", method=method, watch=watch)
    assert found.ended is Ended.STOPPED and found.certificate is not None
    assert found.value == watch.best and found.trace == tuple(watch.trace) and found.trace
    assert el.verify(found, quick=True)
    with pytest.raises(KeyboardInterrupt):
        el.map(*PROBLEM, objective="edp", method=method, watch=Pressing(2))
    assert signal.getsignal(signal.SIGINT) is before


def test_ctrl_c_in_python_before_a_mapping_is_known() -> None:
    class Early(Recorder):
        def stopped(self) -> bool:
            signal.raise_signal(signal.SIGINT)
            return True

    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt, match="before a legal mapping was found"):
        el.map(*SMALL, method="exhaustive", watch=Early())
    with pytest.raises(el.BudgetExhausted):
        el.map(*SMALL, method="exhaustive", watch=Recorder(stop=lambda: True))
    assert signal.getsignal(signal.SIGINT) is before


def test_a_handler_of_the_user_s_own_and_other_threads_are_left_alone() -> None:
    heard: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, frame: heard.append(number))
    try:
        found = el.map(*PROBLEM, objective="edp", watch=Pressing(1))
    finally:
        signal.signal(signal.SIGINT, before)
    assert found.ended is None and heard == [signal.SIGINT]
    seen: list[object] = []
    watch = Recorder(on_change=lambda _: seen.append(signal.getsignal(signal.SIGINT)))
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(el.map, *PROBLEM, watch=watch).result().ended is None
    assert set(seen) == {before}


def test_ctrl_c_in_python_ends_a_sweep_with_what_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine.Run, "_dives", stopping(engine.Run._dives, signal.SIGINT))
    asked = ("matmuls:n=2,m=8,kn=8", "two-level", "GLB", [1024, 2048], tmp_path)
    with pytest.warns(el.EinloomWarning, match="interrupted: [12] of 2 capacities are not done"):
        assert len(el.sweep_capacities(*asked).points) < 3
    assert [point.answer.ended for point in el.sweep_capacities(*asked).points] == [None, None]


def test_what_is_no_watcher_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SpecError, match=r"is no watcher: it lacks incumbent; a function .* Recorder\(on_change"):
        el.map(*PROBLEM, watch=print)  # type: ignore[arg-type]
    with pytest.raises(SpecError, match="is no watcher: it is a class"):
        el.explain(*PROBLEM, watch=Recorder)  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


def test_a_budget_of_explain_counts_from_the_start_of_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    left: list[float] = []

    def explained(problem: object, quick: bool, seconds: float, watch: object) -> None:
        left.append(seconds)
        raise SpecError("enough")

    monkeypatch.setattr("einloom.cli.explain.explain_problem", explained)
    monkeypatch.setattr("einloom.stops.begun", lambda: time.monotonic() - 2.0)
    run("explain", "matmul:m=4,n=4,k=4", "two-level", "--budget-seconds", "30")
    assert 0 < left[0] < 28


@both
def test_compare_stopped_in_its_first_run(number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that did not end is no run to compare; the exit code is the signal's all the same."""
    monkeypatch.setattr(engine.Run, "_dives", stopping(engine.Run._dives, number))
    page = tmp_path / "c.html"
    code, shown, said = run("compare", *DIAMOND, "--methods", "exact", "-o", page)
    assert code == CODES[signal.Signals(number)]
    assert shown == "" and not page.exists()
    assert f"{WORDS[signal.Signals(number)]}: no run has ended, so there is nothing to compare" in said
