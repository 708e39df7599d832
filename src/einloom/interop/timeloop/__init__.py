"""Timeloop's YAML, version 0.4: `read` makes einloom's objects of it, `counts` are a mapping's counts as Timeloop's."""

from .counts import counts, table_text
from .read import read, read_texts

__all__ = ["counts", "read", "read_texts", "table_text"]
