"""Machine code of the kernels: compiled once for all processes, and anew when any of their sources has changed.

Numba keeps machine code as long as the file of the function is the same; but a kernel has in it those that it calls
from other files, too. So what it compares is the digest of all kernels' sources.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar, cast

import numba

KERNELS = ("kernel.py", "row_kernel.py", "uneven_kernel.py")


def digest(folder: Path) -> str:
    """Of the sources of all kernels in the folder."""
    return sha256(b"".join((folder / name).read_bytes() for name in KERNELS)).hexdigest()


Function = TypeVar("Function", bound=Callable[..., Any])
_STAMP = digest(Path(__file__).parent)


def machine_code(function: Function) -> Function:
    """The function as machine code, kept with the digest of all kernels."""
    made: Any = numba.njit(cache=True)(function)
    kept = getattr(getattr(made, "_cache", None), "_cache_file", None)  # Numba has no public name for it
    if kept is not None:
        kept._source_stamp = _STAMP
    return cast(Function, made)


def compiled(function: Any) -> bool:
    """True if it is in the cache: then machine code takes a part of a second to load, else twenty to make."""
    index = getattr(getattr(getattr(function, "_cache", None), "_cache_file", None), "_load_index", None)
    return index is not None and bool(index())
