"""A result as one HTML file that needs no network: `page` makes the text, `write_page` the file."""

from __future__ import annotations

from pathlib import Path

from ...errors import SpecError
from ...result import Result
from .page import page

__all__ = ["page", "write_page"]


def write_page(result: Result, path: str | Path) -> None:
    """Write the report of a result. Raises SpecError if the file cannot be written."""
    try:
        Path(path).write_text(page(result), encoding="utf-8")
    except OSError as error:
        raise SpecError(f"cannot write the file: {error.strerror}", file=str(path)) from None
