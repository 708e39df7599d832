"""How long a search works between two looks at its budget and at Ctrl-C: ``python -m bench.looks --seconds 8``.

Each problem is searched in a process of its own for so many CPU seconds, and the CPU seconds between two looks are
taken, all of them: a stop at any moment waits for the next look, and then for the answer. A row says how many looks
there were, the longest step between two and where it was, how long a stop at a random moment waits for a look on
average, the share of all moments after which that is more than 0.3 s, and the seconds from the look that ended the
search to the answer. A problem that is in the CSV already is skipped.
"""

from __future__ import annotations

import argparse
import resource
import signal
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import FrameType

from einloom.mapspace.space import Mapspace
from einloom.problem import Budget
from einloom.questions import problem
from einloom.result import Result
from einloom.search.answer import answer
from einloom.search.method import Recorder
from einloom.search.several import Labelled

from .first import apart
from .rows import ROOT, append, had, stamp

CSV = ROOT / "bench" / "results" / "looks.csv"
SOON = 0.3  # seconds within which a stop is to be answered
SAMPLE = 0.1  # CPU seconds without a look after which the stack is taken
NAMES = ("workload", "machine", "objective", "space")
PATIENCE = 60  # seconds of the wall for each CPU second, before a process is given up

SPACES = {
    "ffm": Mapspace(),
    "ragged": Mapspace(name="ragged"),
    "pipelines": Mapspace(concurrent="any"),
    "free order": Mapspace(order="free"),
    "shared stores": Mapspace(stores="shared"),
}
PROBLEMS = (  # workload, machine, objective, space
    ("matmul", "tileflow-cloud", "edp", "ffm"),
    ("conv-chain", "tileflow-cloud", "edp", "ffm"),
    ("tileflow-cc1", "tileflow-edge", "edp", "ffm"),
    ("llama2", "two-level", "energy", "ffm"),
    ("gpt2", "two-level", "energy", "ffm"),
    ("resnet18", "tileflow-cloud", "edp", "ffm"),
    ("resnet18", "two-level", "energy", "ffm"),
    ("tileflow-cc2", "tileflow-cloud", "edp", "ffm"),
    ("tileflow-cc5", "tileflow-cloud-code", "edp", "ffm"),
    ("tileflow-t5", "tileflow-edge", "edp", "ffm"),
    ("vgg16", "tileflow-fused", "edp", "ffm"),
    ("gpt3-6.7b:batch=64,tokens=4096", "tpu-v4i", "edp", "ffm"),
    ("gpt3-6.7b:batch=4,tokens=256", "simple", "energy", "ffm"),
    ("gpt3-6.7b", "tpu-v4i", "pareto", "ffm"),
    ("llama3-8b-net", "tpu-v4i-vector", "energy", "ffm"),
    ("swin-t", "nvdla", "edp", "ffm"),
    ("vit-b16", "nvdla", "edp", "ragged"),
    ("gpt2-attention", "tpu-v4i", "edp", "ragged"),
    ("gpt3-6.7b", "tpu-v4i", "latency", "pipelines"),
    ("gpt3-6.7b", "ffm-edge", "edp", "free order"),
    ("gpt3-6.7b", "tpu-v4i", "energy", "shared stores"),
)


@dataclass
class Looks:
    """The steps between looks so far, and the stack in the middle of the longest."""

    seconds: float
    begun: float = field(default_factory=time.process_time)
    last: float = field(default_factory=time.process_time)
    steps: list[float] = field(default_factory=list)
    sampled: str = ""
    where: str = ""
    ended: float = 0.0

    def look(self) -> bool:
        """Asked by the search: true once the seconds are over."""
        now = time.process_time()
        if not self.ended:
            self._step(now)
        if now - self.begun > self.seconds and not self.ended:
            self.ended = now
        signal.setitimer(signal.ITIMER_PROF, 0.0 if self.ended else SAMPLE)
        return bool(self.ended)

    def _step(self, now: float) -> None:
        took = now - self.last
        if took > max(self.steps, default=0.0):
            self.where = self.sampled
        self.steps.append(took)
        self.last, self.sampled = now, ""

    def sample(self, number: int, frame: FrameType | None) -> None:
        """Take the stack, and soon again: the latest sample of a step is kept, with the first one's start."""
        names = []
        while frame is not None and len(names) < 5:
            if "/einloom/" in frame.f_code.co_filename:
                names.append(f"{Path(frame.f_code.co_filename).stem}.{frame.f_code.co_name}:{frame.f_lineno}")
            frame = frame.f_back
        self.sampled = self.sampled or " < ".join(names)


def row(workload: str, machine: str, goal: str, space: str, seconds: float) -> dict[str, object]:
    """The measured columns of one problem."""
    asked = problem(workload, machine, goal, mapspace=SPACES[space])
    looks = Looks(seconds)
    signal.signal(signal.SIGPROF, looks.sample)
    found = answer([Labelled("", asked)], "exact", Budget(seconds=1e6), Recorder(stop=looks.look))
    signal.setitimer(signal.ITIMER_PROF, 0.0)
    end = time.process_time()
    spent = sum(looks.steps)
    return {
        "workload": workload,
        "machine": machine,
        "objective": goal,
        "space": space,
        "cpu_s": f"{end - looks.begun:.3f}",
        "looks": len(looks.steps),
        "longest_s": f"{max(looks.steps):.3f}",
        "mean_wait_s": f"{sum(step * step for step in looks.steps) / (2 * spent):.4f}",
        "share_late": f"{sum(max(0.0, step - SOON) for step in looks.steps) / spent:.4f}",
        "answer_s": f"{end - (looks.ended or looks.last):.3f}",
        "ended": "stopped" if looks.ended else "proof",
        "mapped": isinstance(found, Result),
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1000,
        "where": looks.where,
    }


def main(words: Sequence[str] | None = None) -> int:
    """Measure what is not in the CSV yet; exits with 1 if a problem had no answer."""
    parser = argparse.ArgumentParser(prog="python -m bench.looks", description=__doc__.split("\n")[0])
    parser.add_argument("--seconds", type=float, default=8.0, help="CPU seconds of each search (default 8)")
    parser.add_argument("--only", nargs="*", default=(), metavar="NAME", help="these workloads, machines or spaces")
    parser.add_argument("--csv", type=Path, default=CSV)
    options = parser.parse_args(words)
    known, unanswered = had(options.csv, "workload", "machine", "objective", "space"), 0
    for one in PROBLEMS:
        if one in known or (options.only and not set(one) & set(options.only)):
            continue
        found = apart(partial(row, *one, options.seconds), PATIENCE * options.seconds)
        if found is None:
            unanswered += 1
            print(f"{', '.join(one)}: no answer", flush=True)
            continue
        append(options.csv, {**found, **stamp()})
        said = f"longest step {found['longest_s']} s, answer {found['answer_s']} s after a look, {found['where']}"
        print(f"{', '.join(one)}: {said}", flush=True)
    return int(bool(unanswered))


if __name__ == "__main__":
    sys.exit(main())
