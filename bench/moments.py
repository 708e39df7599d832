"""Kills and interrupts at random moments of five verbs: ``python -m bench.moments --moments 100``.

`map`, `sweep`, `compare`, `report` and `verify` get SIGINT, SIGTERM or SIGKILL at a moment drawn by a seed: CPU seconds
of the process itself, from its first import to its usual end, so that a busy machine changes nothing. Afterwards:

* every file is whole: what was there before, or an answer that is read and verified;
* nothing lies beside the files (after SIGKILL, which nobody hears, one that is named as not finished);
* no traceback, and the exit code is that of the verb or of the signal;
* once a search has told of a mapping, its answer is one that is as good, unless the signal was SIGKILL.

Exits with 1 if a run breaks one of these, after naming all of them with the moment that shows it again (`--at`).
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import einloom as el
from einloom import api as verbs
from einloom import questions
from einloom.errors import EinloomError
from einloom.result import Result
from einloom.result.unmapped import read_answer

SOURCE = Path(el.__file__).resolve().parents[1]
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)
PROBLEM = ("residual-diamond", "simple:dram_energy=10,glb_bits=512", "--objective", "edp")
LAYER = ("gpt3-6.7b:batch=1,tokens=512", "ffm-edge", "--objective", "edp")  # a mapping is known half way
VERBS: dict[str, list[str]] = {
    "map": ["map", *LAYER, "--json", "out.json", "-o", "out.txt"],
    "sweep": ["sweep", *PROBLEM, "--memory", "GLB", "--capacities", "128 bit, 256 bit, 512 bit", "-o", "swept"],
    "compare": ["compare", "before.json", "front.json", "--json", "out.json", "--csv", "out.csv", "-o", "out.html"],
    "report": ["report", "before.json", "-o", "out.html"],
    "verify": ["verify", "before.json", "--json", "out.json"],
}
AT_A_MOMENT = """
import atexit, os, signal, sys
moment, number = float(sys.argv[1]), int(sys.argv[2])
from einloom import __main__  # listens from here on, and imports the rest when it runs
def begin():
    signal.signal(signal.SIGPROF, lambda *_: os.kill(os.getpid(), number))
    signal.setitimer(signal.ITIMER_PROF, moment)
    atexit.register(signal.setitimer, signal.ITIMER_PROF, 0)  # nobody would hear the alarm any more
if moment:
    listen = __main__.stops.leave_at_once
    def leave_at_once():
        listen()
        begin()
    __main__.stops.leave_at_once = leave_at_once
    import einloom.search.method as protocol
    heard = protocol.Recorder.incumbent
    def incumbent(self, value, mapping=None):
        heard(self, value, mapping)
        if mapping is not None:
            with open("heard", "w") as stream:
                stream.write(repr(value))
    protocol.Recorder.incumbent = incumbent
sys.argv[1:] = sys.argv[3:]
__main__.main()
"""


@dataclass(slots=True)
class Outcome:
    """How the runs ended, by verb and signal, and the rules that were broken."""

    ends: Counter[tuple[str, str, int]] = field(default_factory=Counter)
    kept: int = 0
    broken: list[str] = field(default_factory=list)


def run(words: Sequence[str], folder: Path, moment: float = 0.0, number: int = 0) -> subprocess.CompletedProcess[str]:
    """One command line in a process of its own that gets the signal after so many CPU seconds; 0: never."""
    command = [sys.executable, "-c", AT_A_MOMENT, str(moment), str(number), *words]
    settings = {**os.environ, "PYTHONPATH": str(SOURCE)}
    return subprocess.run(command, cwd=folder, env=settings, capture_output=True, text=True, timeout=600, check=False)


def usual(words: Sequence[str], folder: Path) -> float:
    """CPU seconds of an undisturbed run, which must go well."""
    before = os.times()
    done = run(words, folder)
    after = os.times()
    if done.returncode:
        raise SystemExit(f"{' '.join(words)}: {done.stderr}")
    return after.children_user + after.children_system - before.children_user - before.children_system


def prepared(folder: Path) -> None:
    """What the verbs read, and old files in the places that they write to."""
    asked = questions.problem(PROBLEM[0], PROBLEM[1], "edp")
    verbs.solve(asked).write(folder / "before.json")
    verbs.map("matmul:m=4,n=4,k=4", "simple", "pareto").write(folder / "front.json")


def moments(number: int, seed: int) -> Iterator[tuple[str, int, float]]:
    """(verb, signal, share of its usual time), verbs and signals in turns."""
    chance = random.Random(seed)
    for i in range(number):
        yield list(VERBS)[i % len(VERBS)], chance.choice(SIGNALS), chance.random() * 1.02


def disturbed(number: int, seed: int, folder: Path) -> Outcome:
    """So many runs, each disturbed at one moment."""
    outcome, seconds = Outcome(), {}
    (folder / "whole").mkdir()
    prepared(folder / "whole")
    for verb, words in VERBS.items():
        seconds[verb] = usual(words, folder / "whole")
    for i, (verb, signum, share) in enumerate(moments(number, seed)):
        place = folder / str(i)
        place.mkdir()
        for name in ("before.json", "front.json"):
            (place / name).write_bytes((folder / "whole" / name).read_bytes())
        at = max(share * seconds[verb], 1e-4)
        once(verb, signum, at, place, outcome)
    return outcome


def once(verb: str, signum: int, at: float, place: Path, outcome: Outcome) -> None:
    """One disturbed run, held against the rules; the working folder of it is `place`."""
    for word in VERBS[verb]:
        if word.startswith("out."):
            (place / word).write_text("old", encoding="utf-8")
    done = run(VERBS[verb], place, at, signum)
    name = signal.Signals(signum).name
    outcome.ends[verb, name, done.returncode] += 1
    wrong = [*_said(done, signum), *_files(place, signum, done.returncode)]
    heard = place / "heard"
    if verb == "map" and heard.exists() and signum != signal.SIGKILL and done.returncode not in (0, -signum):
        outcome.kept += 1
        wrong += _kept(place / "out.json", float(heard.read_text(encoding="utf-8")))
    outcome.broken += [f"--at {verb} {name} {at:.6f}: {what}" for what in wrong]


def _said(done: subprocess.CompletedProcess[str], signum: int) -> Iterator[str]:
    """Tracebacks, other exit codes, and silence."""
    if "Traceback" in done.stderr or "Error" in done.stderr:
        yield f"said {done.stderr[-800:]!r}"
    allowed = {0, -signum} if signum == signal.SIGKILL else {0, 128 + signum}
    if done.returncode not in allowed:
        yield f"exit code {done.returncode}: {done.stderr[-300:]!r}"
    if done.returncode > 0 and not done.stderr.startswith("einloom: ") and "\neinloom: " not in done.stderr:
        yield f"exit code {done.returncode} without a word: {done.stderr!r}"


def _files(place: Path, signum: int, code: int) -> Iterator[str]:
    """Files that are not whole, and what lies about."""
    for path in sorted(place.rglob("*")):
        if path.is_dir() or path.name == "heard":
            continue
        if path.name.startswith(".") and path.name.endswith(".tmp") and signum == signal.SIGKILL and code:
            continue
        try:
            _whole(path)
        except (EinloomError, AssertionError, ValueError) as error:
            yield f"{path.relative_to(place)}: {error!s:.300}"


def _whole(path: Path) -> None:
    """Raise if the file is neither the old one nor a whole new one."""
    content = path.read_text(encoding="utf-8")
    if content == "old":
        return
    if path.suffix == ".html":
        assert content.rstrip().endswith("</html>"), "cut short"
    elif path.suffix in (".txt", ".csv"):
        assert content.endswith("\n"), "cut short"
    elif '"checks"' in content or '"results"' in content or '"sweep/1"' in content:
        assert content.endswith("}\n"), "cut short"
    else:
        found = read_answer(path)
        assert found.recorded_digest == found.found_digest, "its digest does not fit"
        if isinstance(found, Result):
            verdict = verbs.verify(found, quick=True)
            assert verdict.ok, verdict.reasons


def _kept(path: Path, value: float) -> Iterator[str]:
    """Whether the answer of a stopped search is as good as what it had told."""
    found = read_answer(path) if path.read_text(encoding="utf-8") != "old" else None
    if not isinstance(found, Result):
        yield f"the search had told of {value!r}, and the file holds {found!r}"
    elif found.value > value * (1 + 1e-9):
        yield f"the search had told of {value!r}, and the file holds {found.value!r}"


def main(words: Sequence[str] | None = None) -> int:
    """Run, print how the runs ended, and exit with 1 if a rule was broken."""
    parser = argparse.ArgumentParser(prog="python -m bench.moments", description=__doc__.split("\n")[0])
    parser.add_argument("--moments", type=int, default=100, help="how many (default 100)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--at", nargs=3, metavar=("VERB", "SIGNAL", "SECONDS"), help="one moment again")
    options = parser.parse_args(words)
    with tempfile.TemporaryDirectory() as folder:
        if options.at:
            prepared(Path(folder))
            outcome, (verb, name, at) = Outcome(), options.at
            once(verb, signal.Signals[name], float(at), Path(folder), outcome)
        else:
            outcome = disturbed(options.moments, options.seed, Path(folder))
    for (verb, name, code), count in sorted(outcome.ends.items()):
        print(f"{verb:8} {name:8} exit code {code:4}: {count:4}")
    print(f"stopped after a mapping was known: {outcome.kept}")
    for what in outcome.broken:
        print(f"broken: {what}")
    return 1 if outcome.broken else 0


if __name__ == "__main__":
    raise SystemExit(main())
