"""The answers of the smaller verbs as plain text: `verify`, `simulate` and `zoo`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...certify.verdict import Verdict
from ...problem import Problem
from .results import bits
from .table import columns, labelled

if TYPE_CHECKING:
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
