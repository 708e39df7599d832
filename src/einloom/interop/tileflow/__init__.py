"""TileFlow's files: `read` makes einloom's objects of its YAML, `compare` sets TileFlow's counts beside einloom's.

What the two tools mean differently is a list of named rules (`rules`); no other part of einloom knows of them.
"""

from .read import Imported, read
from .rules import RULES, Rule
from .statistics import Comparison, compare, read_statistics, table_text

__all__ = ["RULES", "Comparison", "Imported", "Rule", "compare", "read", "read_statistics", "table_text"]
