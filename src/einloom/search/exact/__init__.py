"""The exact search (FFM's problem, table by table)."""

from .answer import Exact
from .feasible import first_feasible, least_value
from .options import ExactOptions
from .pmappings.prune import Rules

__all__ = ["Exact", "ExactOptions", "Rules", "first_feasible", "least_value"]
