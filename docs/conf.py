"""Sphinx's settings: `make docs` builds docs/_build/html, and every warning is an error."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
VERSION = re.search(r'VERSION = "(.+)"', (ROOT / "src/einloom/version.py").read_text(encoding="utf-8"))
assert VERSION is not None

project = "einloom"
release = version = VERSION[1]
extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build"]  # what is built; every other page is in the site
html_theme = "furo"
html_title = f"einloom {release}"
html_copy_source = False
myst_heading_anchors = 3
nitpicky = True
language = "en"
