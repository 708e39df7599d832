"""Which of the FuseCU paper's principles holds for a problem, what it picks, and what that costs beside the optimum.

Comes in: a problem that method `principles` answers. Goes out: `Told`, lines of text and plain data, as
`einloom explain --principles` prints them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...dataclass import dataclass
from ...errors import Infeasible, SpecError
from ...problem import Problem
from .matmul import Accounting, Cutting, Matmul, OperandSchedule, best_schedule
from .method import buffer_values, checked
from .pairs import compared
from .roles import Roles, pair_of
from .rules import Judged, buffer_class, chosen_class, judged

SAYS = {
    1: "principle 1: the smallest operand is stationary, its tile a square",
    2: "principle 2: the smallest dimension stays whole",
    3: "principle 3: the smallest operand stays whole",
}


@dataclass(frozen=True)
class Told:
    """What there is to say. data: the same as plain data."""

    lines: tuple[str, ...]
    data: dict[str, Any]

    def __str__(self) -> str:
        return "\n".join(self.lines) + "\n"


def told(problem: Problem) -> Told:
    """The principles on this problem; one common tile per operand, as the paper has it.

    Raises SpecError where method `principles` does and for a space that limits or adds fused loops or orders,
    Infeasible where not even tiles of one fit.
    """
    parts = checked(problem)
    _refuse_unknown(problem)
    buffer, workload = buffer_values(problem), problem.workload
    rule = problem.machine.partial_sums
    cutting: Cutting = "integer" if problem.mapspace.name == "ragged" else "divisors"
    words = "tiles of any size" if cutting == "integer" else "perfect tiles"
    lines = [f"principles of the FuseCU paper, a buffer of {buffer} values, partial sums {rule}, {words}"]
    data: dict[str, Any] = {"buffer": buffer, "partial_sums": rule, "tiles": cutting, "multiplications": []}
    for part in parts:
        matmul = part.matmul(workload)
        found, best = judged(matmul, buffer, rule, cutting), best_schedule(matmul, buffer, rule, cutting)
        if found is None or best is None:
            raise Infeasible(f"{problem.machine.memories[1].name} is smaller than one value of each operand")
        picked = found.pick.schedule
        misfit = "" if found.pick.feasible else " (its tiles do not fit the buffer)"
        lines += [
            f"{part.einsum}: {matmul.m} x {matmul.k} x {matmul.l}",
            f"  class        {chosen_class(matmul, buffer)} ({buffer_class(matmul, buffer)} by the thresholds)",
            f"  holds        {SAYS[found.pick.principle]}",
            f"  picks        {_shown(part, picked)}: {found.moved} values moved{misfit}",
            *_equal(part, matmul, found, rule),
            f"  optimum      {_shown(part, best)}: {best.traffic} values moved",
            f"  costs here   {found.regret:.1%} more than the optimum",
        ]
        entry = {
            "einsum": part.einsum,
            "principle": found.pick.principle,
            "moved": found.moved,
            "equal_picks": len(found.equal),
        }
        data["multiplications"].append({**entry, "optimum": best.traffic, "regret": found.regret})
    if len(parts) == 2:
        pair = compared(pair_of(workload, parts), buffer, rule, cutting)
        assert pair is not None
        fuse, fused = pair.principle(), pair.fused
        moved = "no block fits" if fused is None else f"{fused.traffic} values moved"
        lines += [
            "principle 4: fuse what has as many operands that move once",
            f"  says         {'fuse' if fuse else 'do not fuse'}",
            f"  fused        {moved}",
            f"  apart        {pair.apart} values moved",
            f"  costs here   {pair.regret():.1%} more than the better of the two",
        ]
        data["pair"] = {"fuse": fuse, "fused": None if fused is None else fused.traffic, "apart": pair.apart}
        data["pair"]["regret"] = pair.regret()
    batches = parts[0].batches(workload)
    if batches > 1:
        lines.append(f"all numbers are of one of {batches} batches")
    return Told(tuple(lines), data)


def _refuse_unknown(problem: Problem) -> None:
    """Raise SpecError for settings of the space of which the principles know nothing."""
    space = problem.mapspace
    given = {
        "max_fused_loops": space.max_fused_loops,
        "max_fused_loops_per_rank_variable": space.max_fused_loops_per_rank_variable,
        "order": space.order,
    }
    plain = {"max_fused_loops": None, "max_fused_loops_per_rank_variable": 1, "order": "program"}
    for name, value in given.items():
        if value != plain[name]:
            raise SpecError(f"the principles of the FuseCU paper know nothing of {name}: {value}; leave it out")


def _equal(part: Roles, matmul: Matmul, found: Judged, rule: Accounting) -> Iterator[str]:
    """A line for each other pick of a tie."""
    for one in found.equal:
        if one != found.pick:
            moved = one.moved(matmul, rule)
            yield f"  or           {_shown(part, one.schedule)}: {moved} values moved; the principle leaves that open"


def _shown(part: Roles, one: OperandSchedule) -> str:
    names = " x ".join(f"{v} {t}" for v, t in zip(part.variables, one.tiles, strict=True))
    return f"{part.tensor(one.stationary)} stays, tiles {names}"
