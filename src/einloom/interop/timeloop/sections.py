"""The sections of Timeloop's files by name, and the small values that stand in them.

Node tags such as ``!Component`` become a field; nothing else is tagged. Templates are never executed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from ...errors import SpecError
from ...reading.located import Located
from ..accelforge.tagged import TEMPLATE, parse_tagged
from ..tileflow.sections import known, named_sections

READ = ("architecture", "problem", "mapping", "ERT", "variables")
LEFT_OUT = ("mapper", "components", "ART", "globals", "dumped_by_timeloop_front_end")
_VERSIONS = ("0.4", "0.5")


def sections(texts: Mapping[str, str], notes: list[str]) -> dict[str, Located]:
    """The sections of all files; each may stand in one file only. Settings of other tools become a note."""
    views = (_plain(text, name) for name, text in texts.items())
    return named_sections(views, READ, LEFT_OUT, "section {} is left out", notes)


def _plain(text: str, name: str) -> Located:
    """The view of a text. SpecError for a template."""
    template = TEMPLATE.search(text)
    if template is not None:
        line = text.count("\n", 0, template.start()) + 1
        message = "a template (jinja) is not executed; write what it stands for, or what it includes, in its place"
        raise SpecError(message, file=name, line=line)
    return parse_tagged(text, name)


def check_version(view: Located) -> None:
    """SpecError unless the section is of a version that is read; none at all counts as such."""
    version = view.get("version")
    if version is None:
        return
    said = version.text() if version.is_text else str(version.number("energy"))
    if said not in _VERSIONS:
        raise version.error(f"version {said:.20}; {_VERSIONS[0]} is read (for 0.2, see TileFlow's importer)")


def permutation(view: Located, dimensions: Collection[str]) -> tuple[str, ...]:
    """Dimensions in their order; in one text, letters need nothing between them."""
    names = words(view)
    if len(names) == 1 and names[0] not in dimensions:
        names = tuple(names[0])
    return known(view, names, dimensions, "dimension")


def words(view: Located) -> tuple[str, ...]:
    """Names in a list, or in one text with commas or blanks between them; each once."""
    found = view.names() if view.is_list else tuple(view.name().replace(",", " ").split())
    for name in found:
        if found.count(name) > 1:
            raise view.error(f"{name!r:.60} stands here twice")
    return found
