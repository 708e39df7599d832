"""A result as one HTML file that needs no network: `page` makes the text, `write_page` the file."""

from __future__ import annotations

from pathlib import Path

from ...errors import SpecError
from ...result import Result
from ...result.unmapped import Unmapped
from .nothing import nothing_page
from .page import page

__all__ = ["nothing_page", "page", "write_page"]


def write_page(found: Result | Unmapped, path: str | Path) -> None:
    """Write the report of a result, or of why there is none. Raises SpecError if the file cannot be written."""
    try:
        Path(path).write_text(nothing_page(found) if isinstance(found, Unmapped) else page(found), encoding="utf-8")
    except OSError as error:
        raise SpecError(f"cannot write the file: {error.strerror}", file=str(path)) from None
