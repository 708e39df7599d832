"""``python -m einloom`` is the command line."""

from .cli import main

main()
