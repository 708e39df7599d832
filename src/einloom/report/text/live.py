"""Live progress of a search on a terminal: best, bound, gap, counts and stage, on one line that renews itself."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ...problem import Objective
from .results import objective_value

if TYPE_CHECKING:
    from ...search.method import Recorder

REFRESH_SECONDS = 0.1


def line(recorder: Recorder, objective: Objective) -> str:
    """What is known now, in one line."""
    parts = [f"{recorder.seconds:6.1f} s"]
    if recorder.stage_name:
        total = f"/{recorder.total}" if recorder.total is not None else ""
        parts.append(recorder.stage_name + (f" {recorder.done}{total}" if recorder.done or total else ""))
    if recorder.best is not None:
        parts.append(f"best {objective_value(objective, recorder.best, 6)}")
    if recorder.lower is not None:
        parts.append(f"bound {objective_value(objective, recorder.lower, 6)}")
    if recorder.gap is not None:
        parts.append(f"gap {recorder.gap:.2%}")
    illegal = obstacle(recorder.counts)
    if illegal is not None:
        parts.append(f"illegal mostly by {illegal} {recorder.counts[illegal]:,}")
    busiest = sorted(recorder.counts.items(), key=lambda item: -item[1])
    parts += [f"{name} {number:,}" for name, number in busiest if name != illegal][:3]
    return "  ".join(parts)


def obstacle(counts: Mapping[str, int]) -> str | None:
    """The rule by which most points turned out illegal, or None if none did.

    Searches count these under names that hold ``capacity`` or ``illegal``; all other rules drop what is legal but poor.

    >>> obstacle({"evaluated": 900, "capacity": 5, "joint capacity": 7})
    'joint capacity'
    """
    found = {name: number for name, number in counts.items() if number and ("capacity" in name or "illegal" in name)}
    return max(found, key=lambda name: found[name], default=None)


@contextmanager
def display(objective: Objective) -> Iterator[Callable[[Recorder], None] | None]:
    """What a recorder calls after every report, to draw at most ten times a second; None without a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    drawn = 0.0

    def draw(recorder: Recorder) -> None:
        nonlocal drawn
        now = time.monotonic()
        if now - drawn >= REFRESH_SECONDS:
            drawn = now
            live.update(Text(line(recorder, objective), overflow="ellipsis", no_wrap=True), refresh=True)

    with Live(console=Console(stderr=True), auto_refresh=False, transient=True) as live:
        yield draw
