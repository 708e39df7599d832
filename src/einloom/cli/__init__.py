"""The command line `einloom`: `group` knows the verbs, `commands` has the main ones, the other modules one each."""

from .group import main

__all__ = ["main"]
