"""The ways to see one mapping's latency, each with what it is: a bound, a convention, or what happens."""

from __future__ import annotations

from ...cost.breakdown import Latencies
from ...reading.units import format as with_unit

WORDS = (
    ("roofline", "bound"),
    ("floor", "bound: nothing runs faster"),
    ("tile", "steady pipelines"),
    ("einsum", "convention: Einsums in turn"),
    ("event", "what happens without contention"),
)


def latency_rows(views: Latencies | None) -> list[tuple[str, str]]:
    """(label, text) pairs: all views in one line if they are one number, else a line each; none if nothing is known."""
    if views is None:
        return []
    known = [(name, what, getattr(views, name)) for name, what in WORDS if getattr(views, name) is not None]
    shown = [(name, what, with_unit(float(value), "time", 6)) for name, what, value in known]
    if len({value for _, _, value in shown}) == 1:
        return [("views", f"{shown[0][2]} as {', '.join(name for name, _, _ in shown)}")]
    return [("" if i else "views", f"{name:<8}  {value}  ({what})") for i, (name, what, value) in enumerate(shown)]
