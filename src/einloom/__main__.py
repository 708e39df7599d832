"""``einloom`` and ``python -m einloom``: the command line, with ears for stops before anything else is imported."""

import gc
import os

from . import stops

YOUNG = 50_000  # new objects between two looks for garbage in circles; with Python's 700 imports alone look 90 times


def main() -> None:
    """Run the command line; it ends the process with an exit code."""
    stops.leave_at_once()
    gc.set_threshold(YOUNG, *gc.get_threshold()[1:])
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # NumPy starts them all when it is imported; none is needed here
    try:
        from .cli import main as command

        command()
    finally:
        stops.ignore()
        gc.freeze()  # the interpreter would look through all that a search has left, for 0.3 s, before it ends


if __name__ == "__main__":
    main()
