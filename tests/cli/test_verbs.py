"""The verbs on honest input: what they print, what they write, and that Python and the command line agree."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

import einloom as el
from compilers import COMPILER
from einloom.cli import main
from einloom.report.text import nests
from einloom.report.text import results as text
from einloom.report.text.live import line
from einloom.report.text.table import WIDTH
from einloom.search.method import Recorder

PLAIN = "store DRAM: A B Z\nfor m in 2\nfor n in 2\nfor k in 2\ncompute Z @ MAC\n"
TINY = "matmul:m=2,n=2,k=2"
SMALL_BUFFER = "simple:glb_bits=16,dram_energy=10"


def run(*arguments: str | Path) -> str:
    result = CliRunner().invoke(main, [str(argument) for argument in arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    path = tmp_path / "r.json"
    run("map", TINY, SMALL_BUFFER, "--method", "exhaustive", "--json", path)
    return path


def test_map_writes_what_it_prints(tmp_path: Path) -> None:
    path, mapping = tmp_path / "r.json", tmp_path / "m.txt"
    output = run("map", TINY, SMALL_BUFFER, "--method", "exhaustive", "--json", path, "-o", mapping)
    data = json.loads(path.read_text(encoding="utf-8"))
    for field in (
        *("energy", "latency", "edp", "objective", "mapping", "workload", "machine", "mapspace", "latency_rule"),
        *("certificate", "breakdown", "occupancy", "schema", "model_version", "method", "seconds", "trace", "digest"),
    ):
        assert field in data, field
    assert set(data["certificate"]) == {"guarantee", "value", "bound", "gap", "mapspace", "counts"}
    assert data["certificate"]["value"] == data["energy"] == 1736
    assert "optimal" in output
    assert "1736 J" in output
    assert data["mapping"] == mapping.read_text(encoding="utf-8")
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []
    assert "1736 J" in run("evaluate", TINY, SMALL_BUFFER, mapping)
    assert "1736 J" in run("evaluate", TINY, SMALL_BUFFER, path)
    assert "1736 J" in run("evaluate", path)
    assert "counts agree" in run("simulate", path)
    if COMPILER:
        assert "counts as priced" in run("run", path, "--keep", tmp_path / "program")
        assert (tmp_path / "program" / "mapping.c").read_text(encoding="utf-8").endswith("compute Z @ MAC\n*/\n")
    assert "verified" in run("verify", path)
    assert "verified" in run("verify", "--quick", path)


def test_verify_with_a_budget_that_ends_notes_what_it_left_out(saved: Path) -> None:
    output = run("verify", saved, "--budget-seconds", "1e-6")
    assert "note  again         the optimum is not derived again: the budget of seconds ended" in output
    assert "enumeration of all trees finds 1736" in run("verify", saved, "--budget-seconds", "60")


def test_json_on_standard_output_is_all_there_is(tmp_path: Path) -> None:
    mapping = tmp_path / "m.txt"
    mapping.write_text(PLAIN, encoding="utf-8")
    for verb in ("evaluate", "simulate", *(["run"] if COMPILER else [])):
        json.loads(run(verb, TINY, "simple", mapping, "--json", "-"))
    assert json.loads(run("zoo", "--json", "-")).keys() == {"workloads", "machines", "dataflows"}
    assert json.loads(run("zoo", "simple", "--json", "-"))["schema"] == "machine/1"


def test_a_saved_mapping_is_priced_for_another_objective(saved: Path) -> None:
    assert "objective   edp" in run("evaluate", saved, "--objective", "edp")
    assert "objective   energy" in run("evaluate", saved)
    refused = CliRunner().invoke(main, ["evaluate", str(saved), "--objective", "enrgy"])
    assert refused.exit_code == 2
    assert "did you mean 'energy'" in refused.output
    assert str(el.evaluate(str(saved), objective="edp").problem.objective) == "edp"
    front = el.map(TINY, SMALL_BUFFER, "edp")
    assert str(el.evaluate(front).problem.objective) == "edp"


def test_show_stays_within_the_page(saved: Path) -> None:
    views = [run("show", saved)]
    views += [run("show", saved, f"--{view}") for view in ("tree", "loops", "breakdown", "occupancy")]
    assert all(len(row) <= WIDTH for view in views for row in view.splitlines())
    assert "for k in 2" in views[1]


def test_wide_mappings_are_folded() -> None:
    workload, machine = el.load_workload("matmuls:n=12,m=4,kn=4"), el.load_machine("two-level")
    names = [einsum.name for einsum in workload.einsums]
    loop = "for " + ", ".join(f"{name}.m" for name in names[:-1]) + " in 1"
    branches = "".join(
        f"  - for m in 4\n    for n{i} in 4\n    for n{i + 1} in 4\n    compute {name} @ MAC\n"
        for i, name in enumerate(names)
    )
    tensors = " ".join(tensor.name for tensor in workload.tensors)
    tree = f"store DRAM: {tensors}\n{loop}\nstore GLB: {tensors}\nsplit sequential:\n{branches}"
    result = el.evaluate(workload, machine, tree)
    for view in (text.summary, text.tree, nests.loops, text.breakdown, text.occupancy):
        assert all(len(row) <= WIDTH for row in view(result).splitlines()), view.__name__


def test_zoo_prints_files_that_can_be_read(tmp_path: Path) -> None:
    listed = run("zoo")
    assert "gpt3-6.7b" in listed
    assert "tpu-v4i" in listed
    (tmp_path / "w.yaml").write_text(run("zoo", TINY), encoding="utf-8")
    (tmp_path / "m.yaml").write_text(run("zoo", "simple"), encoding="utf-8")
    (tmp_path / "m.txt").write_text(PLAIN, encoding="utf-8")
    from_files = run("evaluate", tmp_path / "w.yaml", tmp_path / "m.yaml", tmp_path / "m.txt")
    assert from_files == run("evaluate", TINY, "simple", tmp_path / "m.txt")


def test_a_budget_gives_a_bound() -> None:
    data = json.loads(
        run("map", "matmul:m=4,n=4,k=4", "simple", "--method", "exhaustive", "--budget-seconds", "0.2", "--json", "-")
    )
    assert data["certificate"]["guarantee"] == "bounded"
    assert data["certificate"]["bound"] <= data["certificate"]["value"]


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def _wait_for_cpu(pid: int, seconds: float) -> None:
    """Until the process has used so much CPU time: a busy machine may be slow to start it."""
    ticks = os.sysconf("SC_CLK_TCK")
    for _ in range(600):
        used = sum(int(field) for field in Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[11:13])
        if used >= seconds * ticks:
            return
        time.sleep(0.1)


def test_interrupted_with_the_best_so_far_kept(tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    command = [sys.executable, "-m", "einloom", "map", "matmul:m=8,n=8,k=8", "simple", "--method", "exhaustive"]
    with subprocess.Popen([*command, "--json", path], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        _wait_for_cpu(process.pid, 2.0)
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert b"interrupted" in errors
    assert b"bounded" in output
    assert el.Result.read(path).certificate is not None
    assert el.verify(path, quick=True).ok


def test_python_and_command_line_agree(saved: Path) -> None:
    found = el.map(el.zoo.matmul(m=2, n=2, k=2), el.zoo.simple(glb_bits=16, dram_energy=10), method="exhaustive")
    read = el.Result.read(saved)
    assert (found.energy, found.latency, found.edp) == (read.energy, read.latency, read.edp)
    assert found.certificate is not None
    assert found.certificate.gap == 0
    assert el.evaluate(read).energy == read.energy
    assert el.simulate(read).ok
    assert not COMPILER or el.run(read).ok
    assert el.verify(saved).ok
    assert "gpt3_6_7b" in dir(el.zoo)
    with pytest.raises(AttributeError, match="did you mean"):
        el.zoo.tpu_v5i  # noqa: B018 - the attribute is the point
    with pytest.raises(el.SpecError):
        el.evaluate(found.workload)


def test_results_survive_json() -> None:
    found = el.map(TINY, SMALL_BUFFER, method="exhaustive")
    again = el.Result.from_json(found.to_json())
    assert again == found
    assert again.to_json() == found.to_json()


def test_recorder_keeps_best_bound_and_counts() -> None:
    now = iter(range(100))
    recorder = Recorder(clock=lambda: float(next(now)))
    recorder.stage("tables", 1, 3)
    recorder.bound(1.0)
    recorder.incumbent(4.0)
    recorder.incumbent(5.0)
    recorder.bound(0.5)
    recorder.incumbent(2.0)
    recorder.count("capacity", 7)
    recorder.count("capacity")
    assert [(point.best, point.bound) for point in recorder.trace] == [(None, 1.0), (4.0, 1.0), (2.0, 1.0)]
    assert recorder.counts == {"capacity": 8}
    assert recorder.gap == 0.5
    shown = line(recorder, el.Problem(*_parts()).objective)
    assert "tables 1/3" in shown
    assert "best 2 J" in shown
    assert "gap 50.00%" in shown
    recorder.incumbent(1.0)
    assert recorder.gap == 0.0
    small = Recorder()
    small.bound(0.25)
    assert small.gap is None
    small.incumbent(1.0)
    assert small.gap == 0.75
    small.incumbent(0.0)
    assert small.gap == 0.0


def _parts() -> tuple[object, ...]:
    found = el.evaluate(TINY, "simple", PLAIN)
    return found.workload, found.machine, found.mapspace, found.objective


def test_importing_is_fast_and_lazy() -> None:
    code = "import sys, einloom; print([m for m in ('numpy', 'numba', 'rich', 'ruamel', 'click') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "[]"


HEAVY = {"numpy", "scipy", "numba", "ruamel", "rich", "einloom.api", "einloom.search", "einloom.cli.commands"}
READERS = {"einloom.reading.keys", "einloom.reading.located", "einloom.workload.einsum", "einloom.dataflows.files"}
SHOWN_BY = {"show": HEAVY - {"numpy"}, "zoo": HEAVY | READERS, "--help": HEAVY | READERS | {"einloom.cli.listing"}}


@pytest.mark.parametrize("verb", SHOWN_BY)
def test_a_quick_verb_imports_no_more_than_it_needs(verb: str, saved: Path) -> None:
    """NumPy alone takes longer than all that `einloom zoo` needs; `show` has it from the cost model."""
    words = [verb, str(saved)] if verb == "show" else [verb]
    command = [sys.executable, "-X", "importtime", "-m", "einloom", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines() if line.startswith("import time:")}
    assert "einloom.cli.group" in imported
    assert not {name for name in imported for heavy in SHOWN_BY[verb] if f"{name}.".startswith(f"{heavy}.")}


def test_help_lists_every_verb_with_a_line_of_its_own() -> None:
    shown = run("--help").partition("Commands:\n")[2]
    rows = {line.split()[0]: line.split(maxsplit=1)[1] for line in shown.splitlines()}
    assert len(rows) == len(set(rows.values())) == 19
    assert list(rows) == sorted(rows) == main.list_commands(click.Context(main))
    for verb in rows:
        assert verb in run(verb, "--help")
