"""First mappings on all pairs of the zoo's workloads and machines: ``python -m bench.first --seconds 3``.

Each pair is a process of its own, forked from one that has imported everything, in which `exact` is stopped after so
many CPU seconds, as Ctrl-C would. A row says when the first mapping was known and its gap, the gap after 1, 3 and 10
CPU seconds (empty where the search had not run so long; of a proof that ended before, 0), the seconds from the stop to
the answer, what ended the search, and the most memory that the process held. CPU seconds count from the reading of the
names. The objective is EDP, or what the machine has numbers for. A pair that is in the CSV already is skipped.

``--hardest`` takes the twenty pairs of which the tests want a first mapping without a step, into a CSV of its own, with
the gap after 60 CPU seconds, too, where they ran so long; ``--open`` takes all others that the usual CSV has no proof
of, one machine after the other in turn, so that a part of them is like the whole. ``--networks`` takes whole networks,
which are left out else, into another.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import resource
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import zip_longest
from pathlib import Path

from einloom import zoo
from einloom.errors import EinloomError
from einloom.problem import Budget, keeps_time
from einloom.questions import problems
from einloom.result import Result, TracePoint
from einloom.search.answer import answer
from einloom.search.method import Recorder
from einloom.zoo.machine_by_name import load_machine
from einloom.zoo.workload_by_name import load_workload

from .rows import ROOT, append, had, stamp

CSV = ROOT / "bench" / "results" / "first.csv"
HARDEST_CSV = ROOT / "bench" / "results" / "first-hardest.csv"
OPEN_CSV = ROOT / "bench" / "results" / "first-open.csv"
NETWORKS_CSV = ROOT / "bench" / "results" / "first-networks.csv"
MOMENTS = (1.0, 3.0, 10.0)
LONG = (*MOMENTS, 60.0)
NETWORKS = 50  # Einsums above which a workload is one of --networks
LOST = 60  # seconds after which a process that has not answered is killed, for each second of the budget
HARDEST = (  # pairs of the zoo whose spatial choices, windows or full use keep a search longest from its first mapping
    ("matmul", "tileflow-cloud"),
    ("residual-diamond", "tileflow-cloud"),
    ("residual-diamond", "tileflow-edge"),
    ("conv-chain", "tileflow-edge"),
    ("conv-chain", "tileflow-cloud"),
    ("conv-chain", "tileflow-edge-code"),
    ("tileflow-bert-s", "tileflow-edge"),
    ("tileflow-bert-b", "tileflow-cloud"),
    ("tileflow-vit-16-h", "tileflow-edge-code"),
    ("tileflow-cc1", "tileflow-edge"),
    ("tileflow-cc2", "tileflow-edge-code"),
    ("tileflow-cc3", "tileflow-cloud"),
    ("tileflow-cc4", "tileflow-edge"),
    ("tileflow-cc5", "tileflow-edge-code"),
    ("mobilenet-block", "tileflow-edge"),
    ("mobilenet-block", "nvdla"),
    ("resnet18", "tileflow-edge-code"),
    ("vgg16", "tileflow-edge"),
    ("vgg16", "ffm-edge"),
    ("gpt3-175b:tokens=2048", "tpu-v4i-free"),
)


def row(workload: str, machine: str, seconds: float, moments: Sequence[float] = MOMENTS) -> dict[str, object]:
    """The measured columns of one pair, with the gaps at some moments."""
    began = time.process_time()
    objective = _objective(machine)
    asked = problems(workload, machine, objective)
    count = len(asked[0].problem.workload.einsums)

    def used() -> float:
        return time.process_time() - began

    recorder = Recorder(stop=lambda: used() > seconds, clock=used)
    found = answer(asked, "exact", Budget(seconds=1e6), recorder)
    end = used()
    mapped = [point for point in recorder.trace if point.best is not None]
    value = found.certificate if isinstance(found, Result) else None
    first = mapped[0].seconds if mapped else end if value else ""
    gap = "" if value is None else value.gap
    begun = min((point.seconds for point in recorder.trace), default=0.0)
    return {
        "workload": workload,
        "machine": machine,
        "objective": objective,
        "einsums": count,
        "first_s": _short(first),
        "first_gap": _short(_gap(mapped[0]) if mapped else gap),
        **{f"gap_{moment:g}s": _short(_at(recorder.trace, moment, end)) for moment in moments},
        "gap": _short(gap),
        "end_s": _short(end),
        "late_s": _short(max(0.0, end - seconds)),
        "bound_s": _short(begun),
        "ended": (found.ended.value if found.ended else "proof") if isinstance(found, Result) else found.status,
        "reason": "" if isinstance(found, Result) else found.reason,
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1000,
    }


def _objective(machine: str) -> str:
    """EDP; energy on a machine without a throughput, latency on one where nothing takes energy."""
    chip = load_machine(machine)
    if not keeps_time(chip):
        return "energy"
    powered = any(m.read_energy or m.write_energy for m in chip.memories) or any(unit.energy for unit in chip.units)
    return "edp" if powered else "latency"


def _short(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _gap(point: TracePoint) -> float:
    assert point.best is not None
    return 0.0 if not point.best else max(0.0, 1 - (point.bound or 0.0) / point.best)


def _at(trace: Sequence[TracePoint], moment: float, end: float) -> float | str:
    """The gap that was known after so many seconds."""
    if end < moment and (not trace or trace[-1].best is None or _gap(trace[-1]) > 1e-9):
        return ""
    known = [point for point in trace if point.seconds <= moment and point.best is not None]
    return max(0.0, 1 - (known[-1].bound or 0.0) / (known[-1].best or 1.0)) if known else ""


def apart(make: Callable[[], dict[str, object]], patience: float) -> dict[str, object] | None:
    """What `make` returns in a forked process; None if that did not answer."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        signal.alarm(int(patience))
        try:
            with os.fdopen(writing, "w") as stream:
                json.dump(make(), stream)
        except EinloomError as error:
            sys.stderr.write(f"{error}\n")
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as stream:
        text = stream.read()
    os.waitpid(child, 0)
    found: dict[str, object] | None = json.loads(text) if text else None
    return found


def pairs(networks: bool) -> Iterator[tuple[str, str]]:
    """The pairs of whole networks, or all others."""
    for one in zoo.workloads():
        if networks == (len(load_workload(one.name).einsums) > NETWORKS):
            for machine in zoo.machines():
                yield one.name, machine.name


def unproven() -> Iterator[tuple[str, str]]:
    """The pairs of the usual CSV that have no proof and are none of the hardest, of each machine in turn."""
    with CSV.open(newline="") as stream:
        rows = [one for one in csv.DictReader(stream) if one["ended"] not in ("proof", "infeasible")]
    by_machine: dict[str, list[str]] = {}
    for one in rows:
        if (one["workload"], one["machine"]) not in HARDEST:
            by_machine.setdefault(one["machine"], []).append(one["workload"])
    for turn in zip_longest(*by_machine.values()):
        yield from ((name, machine) for name, machine in zip(turn, by_machine, strict=True) if name is not None)


def table(rows: list[dict[str, str]], moments: Sequence[float] = MOMENTS) -> str:
    """One line for each machine: how soon first mappings are known, and how near they and the later ones are."""
    names = tuple(f"gap after {moment:g} s: median, most" for moment in moments)
    heads = (
        "machine",
        "pairs",
        "mapped",
        "first mapping, CPU s: median, most",
        "first bound, most, CPU s",
        "proven",
        *names,
        "answer after the stop, most, CPU s",
        "peak, MB",
    )
    lines = ["| " + " | ".join(heads) + " |", "|---" * len(heads) + "|"]
    for machine in dict.fromkeys(one["machine"] for one in rows):
        mine = [one for one in rows if one["machine"] == machine]
        soon = sorted(float(one["first_s"]) for one in mine if one["first_s"])
        cells = (
            machine,
            len(mine),
            len(soon),
            f"{_middle(soon):.2g}, {soon[-1]:.2g}" if soon else "-",
            f"{max(float(one['bound_s']) for one in mine):.2g}",
            sum(one["ended"] in ("proof", "infeasible") for one in mine),
            *(_spread([one[f"gap_{moment:g}s"] for one in mine]) for moment in moments),
            f"{max(float(one['late_s']) for one in mine):.2g}",
            max(int(one["peak_mb"]) for one in mine),
        )
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    every = "; ".join(f"after {moment:g} s {_within(rows, moment)}" for moment in moments)
    return "\n".join([*lines, "", f"All pairs, proofs included: {every}."]) + "\n"


def _middle(values: Sequence[float]) -> float:
    return sorted(values)[len(values) // 2]


def _spread(gaps: Sequence[str]) -> str:
    """The median and the most of the gaps that were known at a moment; of a proof it is 0."""
    known = [float(gap) for gap in gaps if gap]
    return f"{_middle(known):.1%}, {max(known):.1%}" if known else "-"


def _within(rows: Sequence[dict[str, str]], moment: float) -> str:
    """How many pairs have a gap of at most so much at a moment."""
    known = [float(gap) for one in rows if (gap := one[f"gap_{moment:g}s"])]
    if not known:
        return "nothing is known"
    counts = ", ".join(f"at most {most:.0%} for {sum(gap <= most for gap in known)}" for most in (0.1, 0.5, 0.9))
    proven = sum(gap == 0 for gap in known)
    return f"{len(known)} have a mapping, with a median gap of {_middle(known):.1%}: none for {proven}, {counts}"


def open_table(rows: list[dict[str, str]]) -> str:
    """One line for each machine with pairs that had no proof after ten seconds."""
    return table(rows, LONG)


def hard_table(rows: list[dict[str, str]]) -> str:
    """One line for each of the hardest pairs."""
    names = ("first mapping, CPU s", *(f"gap after {moment:g} s" for moment in LONG), "answer after the stop, s", "MB")
    lines = ["| " + " | ".join(("pair", *names)) + " |", "|---" * (len(names) + 1) + "|"]
    for one in rows:
        gaps = (f"{float(gap):.1%}" if (gap := one[f"gap_{moment:g}s"]) else "-" for moment in LONG)
        cells = (f"{one['workload']} on {one['machine']}", one["first_s"], *gaps, one["late_s"], one["peak_mb"])
        lines.append("| " + " | ".join(cells) + " |")
    for moment in LONG:
        known = sorted(float(one[f"gap_{moment:g}s"]) for one in rows if one[f"gap_{moment:g}s"])
        if known and len(known) == len(rows):  # of some, those that end early, it would say nothing
            lines.append(f"\nAfter {moment:g} s: median {known[len(known) // 2]:.1%}, most {known[-1]:.1%}.")
    return "\n".join(lines) + "\n"


def main(words: Sequence[str] | None = None) -> int:
    """Measure what is not in the CSV yet; exits with 1 if a pair has neither a mapping nor a proof of none."""
    parser = argparse.ArgumentParser(prog="python -m bench.first", description=__doc__.split("\n")[0])
    parser.add_argument("--seconds", type=float, default=3.0, help="CPU seconds of each search (default 3)")
    parser.add_argument("--networks", action="store_true", help="whole networks alone")
    parser.add_argument("--only", nargs="*", default=(), metavar="NAME", help="these workloads or machines alone")
    parser.add_argument("--hardest", action="store_true", help="the twenty hardest pairs alone")
    parser.add_argument("--open", action="store_true", help="the pairs without a proof alone")
    parser.add_argument("--csv", type=Path)
    options = parser.parse_args(words)
    usual = HARDEST_CSV if options.hardest else OPEN_CSV if options.open else NETWORKS_CSV if options.networks else CSV
    path, moments = options.csv or usual, LONG if options.hardest or options.open else MOMENTS
    known = had(path, "workload", "machine")
    ends: Counter[str] = Counter()
    for workload, machine in HARDEST if options.hardest else unproven() if options.open else pairs(options.networks):
        if (workload, machine) in known or (options.only and not {workload, machine} & set(options.only)):
            continue
        made = partial(row, workload, machine, options.seconds, moments)
        found = apart(made, LOST * max(options.seconds, 1.0))
        if found is None:
            ends["without an answer"] += 1
            print(f"{workload} on {machine}: no answer", flush=True)
            continue
        append(path, {**found, **stamp()})
        ends[str(found["ended"])] += 1
        said = (
            f"first {found['first_s'] or '-'} s, gap {found['gap'] or '-'}, {found['ended']} after {found['end_s']} s"
        )
        print(f"{workload} on {machine}: {said}", flush=True)
    print(", ".join(f"{number} {end}" for end, number in sorted(ends.items())))
    return int(bool(ends["without an answer"] + ends["unfinished"]))


if __name__ == "__main__":
    sys.exit(main())
