"""The exact search (FFM's problem, table by table)."""

from .attempt import ExactOptions
from .branch_and_bound import Exact, first_feasible
from .pmappings.prune import Rules

__all__ = ["Exact", "ExactOptions", "Rules", "first_feasible"]
