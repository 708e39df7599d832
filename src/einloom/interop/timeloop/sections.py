"""The sections of Timeloop's files by name, and the small values that stand in them.

Node tags such as ``!Component`` become a field; nothing else is tagged. Templates are never executed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from ...errors import SpecError
from ...reading.located import Located
from ..accelforge.tagged import parse_tagged

READ = ("architecture", "problem", "mapping", "ERT", "variables")
LEFT_OUT = ("mapper", "components", "ART", "globals", "dumped_by_timeloop_front_end")
_TEMPLATE = re.compile(r"\{\{|\{%|\{#")
_VERSIONS = ("0.4", "0.5")


def sections(texts: Mapping[str, str], notes: list[str]) -> dict[str, Located]:
    """The sections of all files; each may stand in one file only. Settings of other tools become a note."""
    found: dict[str, Located] = {}
    for name, text in texts.items():
        template = _TEMPLATE.search(text)
        if template is not None:
            line = text.count("\n", 0, template.start()) + 1
            message = "a template (jinja) is not executed; write what it stands for, or what it includes, in its place"
            raise SpecError(message, file=name, line=line)
        for key, place, value in parse_tagged(text, name).entries():
            if key in LEFT_OUT:
                notes.append(f"section {key} is left out")
            elif key not in READ:
                raise place.unknown("section", key, (*READ, *LEFT_OUT))
            elif key in found:
                raise place.error(f"section {key!r} stands in {found[key].file} already")
            else:
                found[key] = value
    return found


def check_version(view: Located) -> None:
    """SpecError unless the section is of a version that is read; none at all counts as such."""
    version = view.get("version")
    if version is None:
        return
    said = version.text() if version.is_text else str(version.number("energy"))
    if said not in _VERSIONS:
        raise version.error(f"version {said:.20}; {_VERSIONS[0]} is read (for 0.2, see TileFlow's importer)")


def words(view: Located) -> tuple[str, ...]:
    """Names in a list, or in one text with commas or blanks between them; each once."""
    found = view.names() if view.is_list else tuple(view.name().replace(",", " ").split())
    for name in found:
        if found.count(name) > 1:
            raise view.error(f"{name!r:.60} stands here twice")
    return found


def known(view: Located, names: Sequence[str], table: Sequence[str], what: str) -> tuple[str, ...]:
    """The names, each one of the table."""
    for name in names:
        if name not in table:
            raise view.unknown(what, name, table)
    return tuple(names)
