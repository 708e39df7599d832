"""Lets tests import the shared generators that stand beside them (`import trees`); no test fails because a machine is
slow."""

import os
import sys
from pathlib import Path

from hypothesis import HealthCheck, settings

sys.path.insert(0, str(Path(__file__).parent))
os.environ.setdefault("EINLOOM_COMPILE", "never")  # no process is left behind by a search of the tests
settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")
