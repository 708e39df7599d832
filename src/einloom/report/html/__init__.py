"""A result as one HTML file that needs no network: `page` makes the text, `write_page` the file."""

from __future__ import annotations

from pathlib import Path

from ...certify.explain import Explanation
from ...errors import SpecError
from ...result import Result
from ...result.unmapped import Unmapped
from . import explained
from .nothing import nothing_page
from .page import page

__all__ = ["nothing_page", "page", "write_page"]


def write_page(found: Result | Unmapped, path: str | Path, why: Explanation | None = None) -> None:
    """Write the report of a result, or of why there is none, with an explanation if there is one.

    Raises SpecError if the file cannot be written, or if the explanation is of something else.
    """
    if why is not None:
        explained.fits(why, found.problem, found.recorded_digest)
    text = nothing_page(found, why) if isinstance(found, Unmapped) else page(found, why)
    try:
        Path(path).write_text(text, encoding="utf-8")
    except OSError as error:
        raise SpecError(f"cannot write the file: {error.strerror}", file=str(path)) from None
