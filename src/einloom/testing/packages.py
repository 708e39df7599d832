"""Packages that bring something to einloom, tried without an installer: their modules, metadata and entry points."""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import invalidate_caches
from pathlib import Path

from ..reading import plugins, writing


@contextmanager
def installed(package: str | Path, target: str | Path) -> Iterator[None]:
    """A ``with`` block in which the package of a folder counts as installed; `target` is an empty or new folder.

    The package is one with a ``pyproject.toml`` and modules beside it, as those in the repository's ``examples``.
    """
    project = tomllib.loads((Path(package) / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    info = Path(target) / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    writing.folder(info)
    head = f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    writing.write(head, info / "METADATA")
    lines = []
    for group, points in project["entry-points"].items():
        lines += [f"[{group}]", *(f"{name} = {value}" for name, value in points.items())]
    writing.write("\n".join(lines) + "\n", info / "entry_points.txt")
    modules = list(Path(package).glob("*.py"))
    for module in modules:
        writing.write(module.read_text(encoding="utf-8"), Path(target) / module.name)
    sys.path.insert(0, str(target))
    invalidate_caches()
    plugins.forget()
    try:
        yield
    finally:
        sys.path.remove(str(target))
        for module in modules:
            sys.modules.pop(module.stem, None)
        plugins.forget()
