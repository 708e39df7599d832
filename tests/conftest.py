"""Lets tests import the shared generators that stand beside them (`import trees`)."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
