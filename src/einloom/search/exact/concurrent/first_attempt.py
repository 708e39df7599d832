"""Whether a search looks at groups of Einsums at all; the code for them is loaded only then.

Comes in: a problem. Goes out: the attempt that its search begins with.
"""

from __future__ import annotations

from collections.abc import Callable

from ....problem import Problem
from ...method import Watcher
from ..attempt import Attempt
from ..einsums.users import Users
from ..options import ExactOptions
from ..prices.columns import columns


def attempt_for(
    problem: Problem, options: ExactOptions, watcher: Watcher, counts: dict[str, int], checkpoint: Callable[[], None]
) -> Attempt:
    """The first attempt of a search: with groups only where the mapspace has some and they can be better."""
    machine, places = problem.machine, problem.mapspace.places
    matters = any(column.kind == "time" for column in columns(machine, problem.objective))
    matters = matters or (
        bool(places) and Users(problem.workload, machine, problem.mapspace.order == "free").any_contested
    )
    emptier = any(axis.use == "full" for axis in machine.axes.values())
    if not places or not (matters or ("axis" in places and emptier)):
        return Attempt(problem, options, watcher, counts, checkpoint)
    from .passes import ConcurrentAttempt

    return ConcurrentAttempt(problem, options, watcher, counts, checkpoint)
