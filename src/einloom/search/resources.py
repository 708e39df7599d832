"""How much memory the process holds, for budgets."""

from __future__ import annotations

import os
import sys


def resident_bytes() -> int:
    """Bytes of the process in memory now; where the system does not tell, the most that it ever held."""
    try:
        with open("/proc/self/statm", "rb") as stream:
            return int(stream.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        import resource

        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else peak * 1024
