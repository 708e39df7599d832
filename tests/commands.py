"""The command line, called from tests."""

from __future__ import annotations

from click.testing import CliRunner

from einloom.cli import main


def run(*words: object) -> tuple[int, str]:
    """(exit code, everything printed) of a command; a traceback fails the test."""
    done = CliRunner().invoke(main, [str(word) for word in words], catch_exceptions=False)
    assert "Traceback" not in done.output
    return done.exit_code, done.output
