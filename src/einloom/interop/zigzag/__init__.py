"""ZigZag's and Stream's YAML: `read` makes einloom's objects of it, `export` writes it (docs/how-to/files.md)."""

from .read import read, read_texts
from .write import export

__all__ = ["export", "read", "read_texts"]
