"""From a picture to its numbers: the row of a number on the page, and the assumption behind a count."""

from __future__ import annotations

from .markup import Html, link
from .subject import Subject


def anchor(path: str) -> str:
    """The place on the page of a number's row."""
    return "fact-" + "".join(c if c.isalnum() or c in "._-" else "_" for c in path)


def why(page: str, words: str = "how is this counted?") -> Html:
    """A link to an assumption."""
    return link(f"model-{page}", words, class_="why")


def energy_sources(subject: Subject) -> dict[tuple[str, str], str]:
    """(component, action) -> path of the number that prices it, where the machine gives one."""
    names = {"read": "read_energy", "write": "write_energy", "compute": "energy", "leak": "leakage"}
    names |= {"down": "energy", "up": "energy"}
    paths = {one.path for one in subject.given}
    pairs = {(a.component, str(a.action)) for a in subject.result.cost.actions}
    return {(c, a): f"{c}.{names[a]}" for c, a in pairs if f"{c}.{names[a]}" in paths}
