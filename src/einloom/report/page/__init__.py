"""A result as one HTML file that needs no network: `page` makes the text, `write_page` the file."""

from __future__ import annotations

from pathlib import Path

from ...diagnose import Explanation
from ...reading import writing
from ...result import Result
from ...result.unmapped import Unmapped
from . import explained
from .nothing import nothing_page
from .page import page

__all__ = ["any_page", "nothing_page", "page", "write_page"]


def any_page(found: Result | Unmapped, why: Explanation | None = None) -> str:
    """The report of a result, or of why there is none, with an explanation if there is one.

    Raises SpecError if the explanation is of something else.
    """
    if why is not None:
        explained.fits(why, found.problem, found.recorded_digest)
    return nothing_page(found, why) if isinstance(found, Unmapped) else page(found, why)


def write_page(found: Result | Unmapped, path: str | Path, why: Explanation | None = None) -> None:
    """Write `any_page`, whole or not at all. Raises SpecError as it does, and if the file cannot be written."""
    writing.write(any_page(found, why), path)
