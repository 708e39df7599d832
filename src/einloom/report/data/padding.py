"""Windows that lie in padding alone: allowed, and most likely a slip in a declared shape."""

from __future__ import annotations

from ...result import Result
from ...workload.padding import only_padding

NAMES = 3  # so many are named


def nothing_read(result: Result) -> str:
    """Tensors of which an Einsum reads nothing but padding at some positions, in a sentence; empty if none are."""
    workload = result.workload
    told = [
        f"{tensor} at {positions:,} of {workload.extents[v]:,} positions of {v} ({einsum})"
        for einsum in workload.names
        for (tensor, v), positions in only_padding(workload, einsum).items()
    ]
    rest = f" and {len(told) - NAMES} more" if len(told) > NAMES else ""
    some = "; ".join(told[:NAMES])
    return f"nothing is read but padding of {some}{rest}: is the declared shape meant?" if told else ""
