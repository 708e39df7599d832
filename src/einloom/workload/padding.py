"""Windows that reach outside the declared shape of what they read, as those of a padded convolution do."""

from __future__ import annotations

from .einsum import Workload


def padded_variables(workload: Workload, einsum: str) -> frozenset[str]:
    """Rank variables of the ranks whose windows reach outside the declared shape."""
    found: set[str] = set()
    for access in workload.einsum(einsum).accesses:
        for index, size in zip(access.indices, workload.shape(access), strict=True):
            if index.constant < 0 or index.constant + index.extent(workload.extents) > size:
                found.update(index.variables)
    return frozenset(found)


def has_windows(workload: Workload) -> bool:
    """True if some rank is indexed by more than one variable."""
    return any(len(index.terms) > 1 for e in workload.einsums for access in e.accesses for index in access.indices)
