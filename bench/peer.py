"""einloom and AccelForge on the same problems, in one run: ``python -m bench.peer``. See bench/README.md.

Every problem is written as AccelForge YAML by `einloom.interop.accelforge`, solved by the peer from its own virtual
environment, and solved by einloom twice, with an empty and with a filled compile cache. One CSV row per problem.
Figures of earlier runs are never printed: a problem that the CSV has already is skipped by name.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from einloom import questions
from einloom.interop.accelforge import export
from einloom.version import VERSION

from .measure import Measured, measure
from .problems import PROBLEMS, BenchProblem
from .rows import append, commit

HERE = Path(__file__).resolve().parent
PEER_PYTHON = HERE / ".venv-peer" / "bin" / "python"
RESULTS = HERE / "results" / "peer.csv"
PEER_FILES = ("arch.yaml", "workload.yaml", "mapper.yaml")
COLUMNS = (
    "problem time einloom_version commit peer_version objective einloom_command peer_command "
    "einloom_cold_cpu_s einloom_cold_wall_s einloom_cold_rss_mb einloom_warm_cpu_s einloom_warm_wall_s "
    "einloom_warm_rss_mb peer_cpu_s peer_wall_s peer_rss_mb einloom_optimum peer_optimum relative_difference "
    "cpu_ratio_warm cpu_ratio_cold einloom_outcome peer_outcome"
).split()


class NoPeer(Exception):
    """The peer cannot be run; the message says what is missing."""


@dataclass(frozen=True)
class Side:
    """What one tool did on one problem: its measurements, and its optimum (None if it has none)."""

    measured: Measured
    optimum: float | None


def peer_version() -> str:
    """The version of the peer in its environment; NoPeer if it cannot be imported or lacks graphviz."""
    hint = "run bench/setup_peer.sh first (it needs Python 3.12)"
    if not PEER_PYTHON.exists():
        raise NoPeer(f"AccelForge is not installed: {hint}")
    question = "import importlib.metadata as m, shutil; print(m.version('accelforge'), bool(shutil.which('dot')))"
    asked = subprocess.run([str(PEER_PYTHON), "-c", question], capture_output=True, text=True, check=False)
    if asked.returncode:
        raise NoPeer(f"AccelForge is not installed in its environment: {hint}")
    version, dot = asked.stdout.split()
    if dot != "True":
        raise NoPeer("AccelForge needs graphviz's 'dot' to hand back its result; Debian: apt-get install graphviz")
    return version


def run_peer(objective: str, folder: Path, timeout: float, *options: str) -> Side:
    """The peer's answer to a problem whose YAML stands in `folder`. options: more words for `peer_run.py`."""
    driver = str(HERE / "peer_run.py")
    measured = measure([str(PEER_PYTHON), driver, *PEER_FILES, *options], folder, timeout)
    if measured.outcome != "finished":
        return Side(measured, None)
    answer = json.loads(measured.out.splitlines()[-1])
    powers = {"energy": (1, 0), "latency": (0, 1), "edp": (1, 1)}[objective]
    return Side(measured, min(float(e ** powers[0] * t ** powers[1]) for e, t in answer["points"]))


def run_einloom(problem: BenchProblem, folder: Path, cache: Path, timeout: float) -> Side:
    """einloom's answer, from the command line to the written JSON, with compiled code kept in `cache`."""
    command = [sys.executable, "-m", "einloom", *arguments(problem), "--json", "result.json"]
    path = str(HERE.parent / "src")
    measured = measure(command, folder, timeout, {"NUMBA_CACHE_DIR": str(cache), "PYTHONPATH": path})
    if measured.outcome != "finished":
        return Side(measured, None)
    result = json.loads((folder / "result.json").read_text())
    return Side(measured, float(result["certificate"]["value"]))


def arguments(problem: BenchProblem) -> list[str]:
    """The arguments of `einloom` for a problem."""
    words = ["map", problem.workload, problem.machine, "--objective", problem.objective]
    if problem.max_fused_loops is not None:
        words += ["--max-fused-loops", str(problem.max_fused_loops)]
    if problem.dataflow is not None:
        words += ["--dataflow", problem.dataflow]
    return words


def compare(problem: BenchProblem, version: str, timeout: float) -> dict[str, object]:
    """Both tools on one problem, as a row of the CSV."""
    asked = questions.problem(problem.workload, problem.machine, problem.objective, problem.max_fused_loops)
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch)
        folders = {name: root / name for name in ("peer", "cold", "warm", "cache")}
        for folder in folders.values():
            folder.mkdir()
        export(asked.workload, asked.machine, asked.objective, asked.mapspace).write(folders["peer"])
        started = datetime.now().astimezone().isoformat(timespec="seconds")
        cold = run_einloom(problem, folders["cold"], folders["cache"], timeout)
        warm = run_einloom(problem, folders["warm"], folders["cache"], timeout)
        peer = run_peer(problem.objective, folders["peer"], timeout)
    for side in (cold, warm, peer):
        if side.optimum is None and side.measured.err.strip():
            print(f"    {side.measured.outcome}: {side.measured.err.strip().splitlines()[-1]}", file=sys.stderr)
    values = (
        problem.name,
        started,
        VERSION,
        commit(),
        version,
        problem.objective,
        " ".join(["einloom", *arguments(problem)]),
        " ".join(["python peer_run.py", *PEER_FILES]),
        *_numbers(cold),
        *_numbers(warm),
        *_numbers(peer),
        _shown(warm.optimum),
        _shown(peer.optimum),
        _shown(_difference(warm.optimum, peer.optimum)),
        _ratio(peer, warm),
        _ratio(peer, cold),
        warm.measured.outcome,
        peer.measured.outcome,
    )
    return dict(zip(COLUMNS, values, strict=True))


def renewed(row: dict[str, str], problem: BenchProblem, timeout: float) -> dict[str, str]:
    """A row with einloom's side measured again; the peer's stays."""
    with tempfile.TemporaryDirectory() as scratch:
        folders = {name: Path(scratch) / name for name in ("cold", "warm", "cache")}
        for folder in folders.values():
            folder.mkdir()
        started = datetime.now().astimezone().isoformat(timespec="seconds")
        cold, warm = (run_einloom(problem, folders[name], folders["cache"], timeout) for name in ("cold", "warm"))
    theirs = float(row["peer_optimum"]) if row["peer_optimum"] else None
    found = {"time": started, "einloom_version": VERSION, "commit": commit(), "einloom_outcome": warm.measured.outcome}
    for name, side in (("cold", cold), ("warm", warm)):
        numbers = zip(("cpu_s", "wall_s", "rss_mb"), _numbers(side), strict=True)
        found |= {f"einloom_{name}_{what}": number for what, number in numbers}
        ratio = theirs is not None and side.optimum is not None
        found[f"cpu_ratio_{name}"] = f"{float(row['peer_cpu_s']) / side.measured.cpu:.1f}" if ratio else ""
    shown = {"einloom_optimum": warm.optimum, "relative_difference": _difference(warm.optimum, theirs)}
    return {**row, **found, **{name: _shown(value) for name, value in shown.items()}}


def renew(path: Path, timeout: float) -> int:
    """Measure einloom's side of every row of the CSV again; 1 if a run failed."""
    with path.open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    problems = {problem.name: problem for problem in PROBLEMS}
    for i, row in enumerate(rows):
        rows[i] = renewed(row, problems[row["problem"]], timeout)
        print(line(dict(rows[i])), flush=True)
        with path.open("w", newline="", encoding="utf-8") as stream:
            writer = csv.DictWriter(stream, COLUMNS)
            writer.writeheader()
            writer.writerows(rows)
    return 1 if any(row["einloom_outcome"] != "finished" for row in rows) else 0


def _numbers(side: Side) -> tuple[str, str, str]:
    m = side.measured
    return f"{m.cpu:.2f}", f"{m.wall:.2f}", f"{m.rss / 10**6:.0f}"


def _difference(ours: float | None, theirs: float | None) -> float | None:
    """(ours - theirs) / theirs; positive where einloom's optimum is the worse one."""
    if ours is None or theirs is None:
        return None
    return 0.0 if ours == theirs else math.inf if theirs == 0 else (ours - theirs) / theirs


def _ratio(peer: Side, ours: Side) -> str:
    if peer.optimum is None or ours.optimum is None:
        return ""
    return f"{peer.measured.cpu / ours.measured.cpu:.1f}"


def _shown(value: float | None) -> str:
    return "" if value is None else repr(value)


def measured_before(path: Path, version: str) -> dict[str, str]:
    """Problem -> time, of the rows of both versions that the CSV has already."""
    if not path.exists():
        return {}
    with path.open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    return {r["problem"]: r["time"] for r in rows if r["peer_version"] == version and r["einloom_version"] == VERSION}


def line(row: dict[str, object]) -> str:
    """One row for the terminal."""
    return (
        f"{row['problem']:<26} einloom {row['einloom_warm_cpu_s']:>7} s ({row['einloom_cold_cpu_s']} s cold)   peer "
        f"{row['peer_cpu_s']:>8} s   ratio {row['cpu_ratio_warm'] or '-':>7}   {row['einloom_optimum'] or '-'} | "
        f"{row['peer_optimum'] or row['peer_outcome']}   difference {row['relative_difference'] or '-'}"
    )


def main(words: Sequence[str] | None = None) -> int:
    """Measure, print progress, write the CSV. 2 if the peer is missing, 1 if an optimum differs or a run failed."""
    parser = argparse.ArgumentParser(prog="python -m bench.peer", description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="only problems where the peer needs less than a minute")
    parser.add_argument("--only", action="append", metavar="NAME", help="only this problem (may be given again)")
    parser.add_argument("--timeout", type=float, default=3600, metavar="SECONDS", help="for each run (default 3600)")
    parser.add_argument("--again", action="store_true", help="measure also what the CSV has already")
    parser.add_argument("-o", "--output", type=Path, default=RESULTS, metavar="CSV")
    parser.add_argument("--ours", action="store_true", help="measure only einloom's side of the CSV's rows again")
    options = parser.parse_args(words)
    if options.ours:
        return renew(options.output, options.timeout)
    known = [p.name for p in PROBLEMS]
    for name in options.only or ():
        if name not in known:
            parser.error(f"unknown problem {name!r}; known are {', '.join(known)}")
    try:
        version = peer_version()
    except NoPeer as error:
        print(f"bench: {error}", file=sys.stderr)
        return 2
    chosen = [p for p in PROBLEMS if (p.name in options.only if options.only else not (options.quick and p.slow))]
    before = {} if options.again else measured_before(options.output, version)
    failures = 0
    for i, problem in enumerate(chosen, 1):
        if problem.name in before:
            print(f"[{i}/{len(chosen)}] {problem.name}: measured {before[problem.name]} (--again repeats it)")
            continue
        print(f"[{i}/{len(chosen)}] {problem.name} ...", file=sys.stderr, flush=True)
        row = compare(problem, version, options.timeout)
        append(options.output, row)
        print(line(row), flush=True)
        differs = row["relative_difference"] == "" or abs(float(str(row["relative_difference"]))) > 1e-6
        failures += differs
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
