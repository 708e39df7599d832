"""ZigZag's and Stream's YAML: `read` makes einloom's objects of accelerators and layers (docs/how-to/files.md)."""

from .read import read, read_texts

__all__ = ["read", "read_texts"]
