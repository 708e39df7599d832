"""The answers of the smaller verbs as plain text: `verify`, `simulate` and `run`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...certify.verdict import Verdict
from ...problem import Problem
from .results import bits
from .table import columns, labelled

if TYPE_CHECKING:
    from ...codegen.run import MappingRun
    from ...oracle.simulate import Simulation

_MARKS = {True: "ok  ", False: "FAIL", None: "note"}


def verdict(found: Verdict) -> str:
    """What `verify` found, one line per check."""
    lines = []
    for check in found.checks:
        lines += labelled(f"  {_MARKS[check.passed]}  {check.name:<12}  ", check.detail)
    return "\n".join([*lines, _sentence(found), ""])


def _sentence(found: Verdict) -> str:
    """The verdict in a line."""
    if found.reasons:
        return "rejected"
    if found.stopped:
        return "not verified: stopped before every claim was checked"
    return "verified: every claim that can be checked holds"


def simulation(problem: Problem, done: Simulation, differences: Sequence[str]) -> str:
    """What an execution counted, and whether it agrees with the price."""
    rows = [(*key, f"{count:,}") for key, count in sorted(done.counts.items())]
    lines = [columns("executed moves", ("Einsum", "memory", "tensor", "action", "count"), rows, left=(0, 1, 2, 3)), ""]
    lines += [f"  occupancy of {memory}: {bits(peak)}" for memory, peak in done.occupancy.items()]
    lines += [f"  {reason}" for reason in done.reasons]
    lines += [f"  {difference}" for difference in differences]
    agreed = "differ" if differences else "agree"
    lines.append(
        f"outputs of {problem.workload.name}: {'equal to NumPy' if done.correct else 'WRONG'}; counts {agreed}"
    )
    return "\n".join([*lines, ""])


def program(problem: Problem, done: MappingRun, differences: Sequence[str]) -> str:
    """What a mapping's program computed and moved, and whether that is what NumPy and the price say."""
    sums: dict[tuple[str, str], dict[str, int]] = {}
    for (_, memory, tensor, action), count in done.counts.items():
        mine = sums.setdefault((memory, tensor), {})
        mine[action] = mine.get(action, 0) + count
    place = problem.machine.position
    keys = sorted(sums, key=lambda key: (place[key[0]], key[1]))
    ways = [way for way in ("read", "write", "down", "up") if any(way in one for one in sums.values())]
    rows = [(*key, *(f"{sums[key].get(way, 0):,}" for way in ways)) for key in keys]
    text = [columns("moves that the program made", ("memory", "tensor", *ways), rows, left=(0, 1)), ""]
    operations = sum(done.operations.values())
    text.append(
        f"  {done.lines:,} lines of C by {done.compiler}: {operations:,} operations and {done.moves:,} moves "
        f"in {done.seconds:.2f} s"
    )
    text += [f"  {name} has no meaning value by value; x / (1 + |x|) stands for it" for name in done.stand_ins]
    text += [
        f"  {count:,} values of {name} are no finite numbers, in NumPy as here" for name, count in done.infinite.items()
    ]
    text += ["  online softmax: compared with attention over all keys at once"] * done.online
    text += [f"  {reason}" for reason in done.reasons]
    text += [f"  {difference}" for difference in differences]
    worst = max(done.errors.values(), default=0.0)
    equal = f"equal to NumPy (largest difference {worst:.0e})" if done.correct else f"WRONG (difference {worst:.1e})"
    counted = f"{len(differences)} counts differ" if differences else f"all {len(done.counts)} counts as priced"
    text.append(f"outputs of {problem.workload.name}: {equal}; {counted}")
    return "\n".join([*text, ""])
