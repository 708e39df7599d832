"""``einloom`` and ``python -m einloom``: the command line, with ears for stops before anything else is imported."""

from . import stops


def main() -> None:
    """Run the command line; it ends the process with an exit code."""
    stops.leave_at_once()
    try:
        from .cli import main as command

        command()
    finally:
        stops.ignore()


if __name__ == "__main__":
    main()
