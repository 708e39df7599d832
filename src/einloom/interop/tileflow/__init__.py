"""TileFlow's files: `read` makes einloom's objects of its YAML.

What the two tools mean differently is a list of named rules (`rules`); no other part of einloom knows of them.
"""

from .read import Imported, read

__all__ = ["Imported", "read"]
