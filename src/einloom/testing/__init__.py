"""Test kits for what other packages bring: `method_faults`, `space_faults`; and the tiny problems that they ask."""

from .methods import Kit, method_faults
from .problems import TINY, tiny_problem

__all__ = ["TINY", "Kit", "method_faults", "tiny_problem"]
