"""Warnings on the command line: each once, on standard error, where Python would print its own way of them."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..errors import EinloomWarning
from . import output


@contextmanager
def warned() -> Iterator[None]:
    """A ``with`` block in which an EinloomWarning is a line on standard error; other warnings are as ever."""
    told: set[str] = set()
    with warnings.catch_warnings():
        others = warnings.showwarning

        def show(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
            if not issubclass(category, EinloomWarning):
                others(message, category, *place, **more)
            elif str(message) not in told:
                told.add(str(message))
                output.tell(f"einloom: warning: {message}")

        warnings.simplefilter("always", EinloomWarning)
        warnings.showwarning = show
        yield
