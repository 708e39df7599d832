"""Is there a C compiler? Without one `einloom run` says so, and what runs programs is not tested."""

from __future__ import annotations

import shutil

import pytest

from einloom.codegen.run import COMPILERS

COMPILER = any(map(shutil.which, COMPILERS))
needs_compiler = pytest.mark.skipif(not COMPILER, reason="no C compiler is installed")
