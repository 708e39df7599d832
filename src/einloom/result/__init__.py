"""What was found: `Result` and its parts (JSON both ways in `file`), or in `unmapped` why nothing was."""

from .record import FrontPoint, Provenance, Result, TracePoint

__all__ = ["FrontPoint", "Provenance", "Result", "TracePoint"]
