"""The exact search (FFM's problem, table by table)."""

from .engine import Exact, glance
from .passes import ExactOptions
from .tables import Rules

__all__ = ["Exact", "ExactOptions", "Rules", "glance"]
