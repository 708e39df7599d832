"""The exact search (FFM's problem, table by table)."""

from .answer import Exact
from .attempt import ExactOptions
from .feasible import first_feasible
from .pmappings.prune import Rules

__all__ = ["Exact", "ExactOptions", "Rules", "first_feasible"]
