"""The exact search (FFM's problem, table by table)."""

from .branch_and_bound import Exact, glance
from .attempt import ExactOptions
from .pmappings.sweep import Rules

__all__ = ["Exact", "ExactOptions", "Rules", "glance"]
