"""Damaged answers against every verb that reads one: ``python -m bench.answers --files 3000``.

Results, reasons for having none, and explanations are damaged in their values and in their bytes: names change places,
numbers become strange, parts vanish or stand twice, and most files get a digest that fits again. Each is given to
some verbs of the command line, which must end by themselves, with an exit code and without a traceback. Exits with 1
if one does not, after naming all of them.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import random
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any

from bench.mutate import mutated
from einloom import api as verbs
from einloom import questions
from einloom.cli import main as command
from einloom.diagnose import explain_problem, explain_result
from einloom.mapspace.space import Mapspace
from einloom.problem import Budget
from einloom.result.document import digest, text
from einloom.search.answer import answer
from einloom.search.method import Recorder
from einloom.search.several import Labelled

SECONDS = 10.0
CHAIN = "matmuls:n=2,m=4,kn=8"
STRANGE: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 0.5, -0.0, 1e308, -1e308, 5e-324, 2**62, 10**30, 1e-30, "", " ", "all", "0", "-1",
    "1e400", "\ud800", "\x00", "<script>alert(1)</script>", "A" * 300, [], {}, [[]], {"": ""}, "E0", "DRAM", "MAC",
    "@ unit", "store DRAM: A", "optimal", "stopped", "unmapped/1", "result/1", "explanation/1", "result/2",
)  # fmt: skip


@cache
def originals() -> dict[str, str]:
    """Intact answers by name: every kind of file that a verb reads."""
    asked = questions.problem(CHAIN, "simple:glb_bits=512,dram_energy=10", "edp")
    tight = questions.problem(CHAIN, "two-level:glb_bits=8", mapspace=Mapspace(max_fused_loops=0))
    limited = questions.problem("conv-chain:c=2,h=2,w=2,l=2,k=2", "two-level", dataflow="layerwise-convolution")
    pipelined = questions.problem("matmuls:n=2,m=4,kn=4", "tpu-v4i", "latency", mapspace=Mapspace(concurrent="any"))
    several = questions.problems("conv-chain:c=2,h=4,w=4,l=2,k=2", "two-level", dataflow="isos")
    found = verbs.solve(asked)
    return {
        "result": found.to_json(),
        "front": verbs.map("matmul:m=4,n=4,k=4", "simple:glb_bits=128,dram_energy=10", "pareto").to_json(),
        "limited": verbs.solve(limited).to_json(),
        "pipelined": verbs.solve(pipelined).to_json(),
        "several": verbs.solve(several).to_json(),
        "evaluated": verbs.evaluate(asked.workload, asked.machine, found.mapping_text).to_json(),
        "stopped": answer((Labelled("", asked),), "exact", Budget(steps=1), Recorder()).to_json(),
        "infeasible": answer((Labelled("", tight),), "exact", Budget(), Recorder()).to_json(),
        "explained": explain_result(found).to_json(),
        "blamed": explain_problem(tight).to_json(),
    }


def damaged(original: str, seed: str) -> bytes:
    """The answer with one to three values changed, or else bytes; the same for the same seed."""
    chance = random.Random(seed)
    if chance.random() < 0.15:
        return mutated(original.encode(), seed)
    data = json.loads(original)
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        _change(data, chance)
    if "digest" in data and chance.random() < 0.8:
        data["digest"] = digest(data)
    return text(data).encode()


def _change(data: dict[str, Any], chance: random.Random) -> None:
    """One place of the document gets another value, vanishes, or stands twice."""
    places = list(_places(data))
    numbers = [(holder, key) for holder, key in places if type(holder[key]) in (int, float)]
    holder, key = chance.choice(numbers if numbers and chance.random() < 0.4 else places)
    kind = chance.randrange(10) if type(holder[key]) not in (int, float) else chance.choice((2, 4, 5, 5, 5, 5, 9))
    old = holder[key]
    if kind < 3:  # what stands somewhere else, of the same type if there is any
        values = [one[at] for one, at in places]
        alike = [value for value in values if type(value) is type(old) and value != old]
        holder[key] = json.loads(json.dumps(chance.choice(alike or values)))
    elif kind < 5:
        holder[key] = chance.choice(STRANGE)
    elif kind == 5 and isinstance(old, int | float) and not isinstance(old, bool):
        strange = [value for value in STRANGE if type(value) in (int, float)]
        holder[key] = chance.choice((-old, old * 2, old / 3, old + 1, 0, *chance.sample(strange, 2)))
    elif kind == 6 and isinstance(old, str) and old:
        lines = old.split("\n")
        at = chance.randrange(len(lines))
        lines[at] = chance.choice(("", lines[at][:-1], lines[at] * 2, lines[at].swapcase(), lines[at - 1]))
        holder[key] = "\n".join(lines)
    elif kind == 7 and isinstance(holder, list):
        holder.insert(chance.randrange(len(holder) + 1), json.loads(json.dumps(old)))
    elif kind == 8 and isinstance(holder, list):
        holder[:] = chance.sample(holder, len(holder))
    else:
        del holder[key]


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every (table or list, key) below a value."""
    keys = value.keys() if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for key in list(keys):
        yield value, key
        yield from _places(value[key])


def commands(file: str, intact: dict[str, str], chance: random.Random) -> Iterator[list[str]]:
    """The command lines that read the file."""
    view = chance.choice(("--tree", "--loops", "--breakdown", "--occupancy"))
    yield ["show", file]
    yield ["show", file, view]
    yield ["report", file, "-o", "page.html"]
    yield ["report", intact["result"], "--explanation", file, "-o", "page.html"]
    yield ["verify", "--quick", file]
    yield ["compare", file, intact["result"], chance.choice(("--json", "--csv", "-o")), "-"]
    yield ["compare", intact["front"], file]
    yield ["explain", "--quick", file]
    yield ["evaluate", file]
    yield ["simulate", file]
    yield ["map", CHAIN, "simple:glb_bits=512,dram_energy=10", "--start", file, "--budget-steps", "1"]


@dataclass(slots=True)
class Outcome:
    """How many runs ended with which exit code, by verb; the slowest; and what broke a rule."""

    codes: Counter[tuple[str, int]] = field(default_factory=Counter)
    slowest: tuple[float, str] = (0.0, "")
    broken: list[str] = field(default_factory=list)


class TooSlowError(BaseException):
    """Raised inside a verb by the alarm."""


@contextmanager
def _limited() -> Iterator[None]:
    def late(number: int, frame: FrameType | None) -> None:
        raise TooSlowError

    before = signal.signal(signal.SIGPROF, late)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def ask(words: list[str], label: str, outcome: Outcome) -> None:
    """Run one command line in this process."""
    started, said = time.process_time(), io.StringIO()
    try:
        with _limited(), redirect_stdout(io.StringIO()), redirect_stderr(said):
            command(words)
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 0
        outcome.codes[words[0], code] += 1
        if code and not said.getvalue().strip() and words[0] != "verify":
            outcome.broken.append(f"{label}: {' '.join(words)}: exit code {code} without a word")
    except TooSlowError:
        outcome.broken.append(f"{label}: {' '.join(words)}: more than {SECONDS} CPU seconds")
    except BaseException:  # noqa: BLE001 (to find whatever leaves a verb is what this is for)
        outcome.broken.append(f"{label}: {' '.join(words)}: {traceback.format_exc(limit=-4)}")
    outcome.slowest = max(outcome.slowest, (time.process_time() - started, f"{label} {words[0]}"))


def run(files: int, seed: int, folder: Path, verbs_each: int = 4) -> Outcome:
    """Damage so many answers in turns and ask some verbs for each; the working folder must be `folder`."""
    outcome, intact, known = Outcome(), {}, originals()
    for name, content in known.items():
        intact[name] = str(folder / f"{name}.json")
        Path(intact[name]).write_text(content, encoding="utf-8")
    file = folder / "damaged.json"
    for i in range(files):
        name = list(known)[i % len(known)]
        label = f"{seed}/{name}/{i}"
        file.write_bytes(damaged(known[name], label))
        chance = random.Random(label)
        for words in chance.sample([*commands(str(file), intact, chance)], verbs_each):
            ask(words, label, outcome)
    return outcome


def main(words: Sequence[str] | None = None) -> int:
    """Run, print what became of the files, and exit with 1 if a rule was broken."""
    parser = argparse.ArgumentParser(prog="python -m bench.answers", description=__doc__.split("\n")[0])
    parser.add_argument("--files", type=int, default=3000, help="how many (default 3,000)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--show", metavar="LABEL", help="print the damaged file with this label")
    options = parser.parse_args(words)
    if options.show:
        sys.stdout.buffer.write(damaged(originals()[options.show.split("/")[1]], options.show))
        return 0
    with tempfile.TemporaryDirectory() as folder:
        before = Path.cwd()
        os.chdir(folder)
        try:
            outcome = run(options.files, options.seed, Path(folder))
        finally:
            os.chdir(before)
    for (verb, code), count in sorted(outcome.codes.items()):
        print(f"{verb:10} exit code {code}: {count:6}")
    print(f"slowest {outcome.slowest[0]:.2f} CPU s ({outcome.slowest[1]})")
    for what in outcome.broken:
        print(f"broken: {what}")
    return 1 if outcome.broken else 0


if __name__ == "__main__":
    raise SystemExit(main())
