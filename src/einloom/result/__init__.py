"""What was found: `Result` and its parts; JSON both ways lives in `file`."""

from .record import Provenance, Result, TracePoint

__all__ = ["Provenance", "Result", "TracePoint"]
