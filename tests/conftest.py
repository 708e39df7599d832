"""Lets tests import the shared generators that stand beside them (`import trees`); no test fails because a machine is
slow."""

import os
import signal
import sys
from pathlib import Path

from hypothesis import HealthCheck, settings

sys.path.insert(0, str(Path(__file__).parent))
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as in the background of a shell, and below it
    signal.signal(signal.SIGINT, signal.default_int_handler)
os.environ.setdefault("EINLOOM_COMPILE", "never")  # no process is left behind by a search of the tests
settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")
