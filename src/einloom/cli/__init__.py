"""The command line `einloom`: `commands` has the main verbs, the other modules add theirs to them."""

from .commands import main

__all__ = ["main"]
