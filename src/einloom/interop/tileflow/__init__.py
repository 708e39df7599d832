"""TileFlow's files: `read` makes einloom's objects of its YAML, `export` writes it, `compare` sets counts side by side.

What the two tools mean differently is a list of named rules (`rules`); no other part of einloom knows of them.
"""

from ..bundle import ExportedFiles as TileFlowFiles
from .read import Imported, read, read_texts
from .rules import RULES, TileFlowRule
from .statistics import TileFlowComparison, compare, read_statistics, table_text
from .write import export

__all__ = [
    "RULES",
    "Imported",
    "TileFlowComparison",
    "TileFlowFiles",
    "TileFlowRule",
    "compare",
    "export",
    "read",
    "read_statistics",
    "read_texts",
    "table_text",
]
