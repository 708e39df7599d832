"""Timeloop's YAML, version 0.4: `read` makes einloom's objects of it, `export` writes it, `counts` as it."""

from .counts import counts, table_text
from .read import read, read_texts
from .write import export

__all__ = ["counts", "export", "read", "read_texts", "table_text"]
