"""Searches of the zoo cut off by small budgets: ``python -m bench.budgets --runs 250 --seed 1``.

Each run draws a workload, a machine, an objective, a space with its options, a dataflow for chains of convolutions, and
a budget: half a second to two, so many steps, or little memory. What comes back is an answer that `evaluate` and the
rules of the space agree with, or an error in words. Anything else that leaves the engine is named with the seed and the
number of the run, and makes the command exit with 1. Runs that took much longer than their budget are named, too.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
import traceback
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from einloom import api as verbs
from einloom import questions
from einloom.errors import Defect, EinloomError
from einloom.mapspace.ffm.rules import outside
from einloom.result import Result
from einloom.zoo.machine_entries import NAMES
from einloom.zoo.workload_entries import RECIPES

BEYOND = 0.6
"""Seconds after the end of a budget from which a run is named."""
GOALS = ("energy", "latency", "edp", "pareto")
CHAINS = "tileflow-cc"


@dataclass(frozen=True)
class Asked:
    """One search: names of the zoo, an objective, and the options of `map`."""

    workload: str
    machine: str
    objective: str
    space: dict[str, object]
    budget: dict[str, float | int]

    def __str__(self) -> str:
        said = [f"{name}={value}" for name, value in (*self.space.items(), *self.budget.items())]
        return " ".join((self.workload, self.machine, self.objective, *said))


def drawn(seed: int, number: int) -> Asked:
    """Run `number` of a seed."""
    rng = random.Random(f"{seed}-{number}")
    workload = rng.choice(sorted(RECIPES))
    space: dict[str, object] = {"space": rng.choice(("ffm", "ragged", "ragged")), "full_use": rng.random() < 0.25}
    if rng.random() < 0.3:
        space["order"] = "free"
    if rng.random() < 0.3:
        space["stores"] = "shared"
    if workload.startswith(CHAINS) and rng.random() < 0.5:
        space["dataflow"] = "spread-convolution"
    budget: dict[str, float | int] = {"seconds": rng.choice((0.5, 1.0, 2.0))}
    if rng.random() < 0.2:
        budget["memory"] = 600 << 20
    if rng.random() < 0.2:
        budget["steps"] = rng.choice((0, 1_000, 50_000))
    return Asked(workload, rng.choice(sorted(NAMES)), rng.choice(GOALS), space, budget)


def wrong(asked: Asked, found: Result) -> str | None:
    """What is wrong with an answer: its price, or a tree outside the space."""
    problem = questions.problem(asked.workload, asked.machine, asked.objective, **asked.space)  # type: ignore[arg-type]
    cost = verbs.evaluate(problem.workload, problem.machine, found.mapping)
    if (cost.energy, cost.latency) != (found.energy, found.latency):
        return f"evaluate says {cost.energy!r} J and {cost.latency!r} s"
    reasons = outside(problem.workload, problem.machine, problem.mapspace, found.mapping)
    return reasons[0] if reasons else None


def run(asked: Asked) -> tuple[str, bool]:
    """How a search ended, and whether that is wrong."""
    try:
        found = verbs.map(asked.workload, asked.machine, asked.objective, **asked.space, **asked.budget)  # type: ignore[arg-type]
    except Defect as error:
        return f"defect: {error}", True
    except EinloomError as error:
        return type(error).__name__, False
    except Exception as error:  # noqa: BLE001 (what leaves the engine is what is looked for)
        traceback.print_exc()
        return f"left the engine: {error!r}", True
    assert found.certificate is not None
    reason = wrong(asked, found)
    return (found.certificate.guarantee.value, False) if reason is None else (f"wrong: {reason}", True)


def main(words: Sequence[str] | None = None) -> int:
    """Run them all, name what is wrong and what was late; 1 if anything was wrong."""
    parser = argparse.ArgumentParser(prog="python -m bench.budgets", description=__doc__.split("\n")[0])
    parser.add_argument("--runs", type=int, default=250)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, metavar="NUMBER", help="of the runs of the seed")
    options = parser.parse_args(words)
    ends, mistakes, late = Counter[str](), 0, 0
    for number in range(options.first, options.first + options.runs):
        asked, begun = drawn(options.seed, number), time.monotonic()
        end, mistaken = run(asked)
        took = time.monotonic() - begun
        beyond = took - float(asked.budget["seconds"])
        ends[end if not mistaken else "wrong"] += 1
        mistakes, late = mistakes + mistaken, late + (beyond > BEYOND)
        if mistaken or beyond > BEYOND:
            print(f"{number}: {asked}: {end}, {took:.2f} s", flush=True)
    said = ", ".join(f"{n} {end}" for end, n in ends.most_common())
    print(f"{options.runs} runs of seed {options.seed}: {said}; {late} took more than {BEYOND} s longer than they may")
    return 1 if mistakes else 0


if __name__ == "__main__":
    sys.exit(main())
