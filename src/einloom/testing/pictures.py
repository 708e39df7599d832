"""The test kit of a picture: what is wrong with it, in sentences."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import cache
from xml.etree import ElementTree

from ..errors import MissingExtra, SpecError
from ..problem import Budget
from ..reading.plugins import FAILURES, entry_faults, reason_of
from ..report.compare import labels_of
from ..report.draw.drawing import Drawing
from ..report.draw.svg import html_of
from ..report.figures.drawings import figure_of
from ..report.pictures import GROUP, SHIPPED, Picture, drawn
from ..result import Result
from ..search.door import searched
from ..search.method import Recorder
from ..search.registry import method
from .tiny import tiny_problem


@cache
def tiny_results() -> tuple[tuple[str, Result], ...]:
    """(name, result) pairs: searched for and not, fused, spread, repeated, and a Pareto front."""
    names = ("one", "spread", "chain", "repeated")
    asked = [(name, tiny_problem(name)) for name in names] + [("front", tiny_problem("tight", "pareto"))]
    found = [(name, searched(method("exhaustive"), problem, Budget(), Recorder())) for name, problem in asked]
    given = Result.of(tiny_problem("chain"), dict(found)["chain"].mapping)
    return (*found, ("given", given))


def picture_faults(make: Callable[[], Picture]) -> tuple[str, ...]:
    """What is wrong with a picture; empty if nothing is. A fault is told once, of the first result that shows it."""
    try:
        asked = make()
        lacks = [fact for fact in ("name", "title", "several", "data", "draw") if not hasattr(asked, fact)]
    except FAILURES as error:
        return (f"it cannot be made: {reason_of(error)}",)
    if lacks:
        return (f"it lacks {', '.join(lacks)}",)
    faults = list(entry_faults(GROUP, asked, asked.name, SHIPPED))
    faults += [] if asked.name.replace("-", "").isalnum() else [f"its name {asked.name!r} is not letters and dashes"]
    faults += [] if asked.title.strip() else ["it has no title"]
    trials = [(name, [result]) for name, result in tiny_results()]
    if asked.several:
        trials.append(("two results", [result for _, result in tiny_results()[:2]]))
    told: dict[str, str] = {}
    silent = 0
    for name, results in trials:
        try:
            drawing = drawn(make(), results)
        except SpecError as error:
            silent += "is broken" not in str(error)
            found = [str(error)] if "is broken" in str(error) else []
        else:
            found = [*_again(make(), results, drawing), *_rendered(drawing)]
        for fault in found:
            told.setdefault(fault, f"{name}: {fault}")
    if silent == len(trials):
        faults.append("it has nothing to draw of any result of the kit")
    return (*faults, *told.values())


def _again(asked: Picture, results: Sequence[Result], first: Drawing) -> Iterator[str]:
    """The same drawing, of data that went through a file."""
    data = asked.data(results, labels_of(results))
    try:
        kept = pickle.loads(pickle.dumps(data))
    except (pickle.PicklingError, TypeError, AttributeError) as error:
        yield f"its data cannot be pickled: {error}"
        return
    if html_of(asked.draw(kept)) != html_of(first):
        yield "two drawings of one result differ"


def _rendered(drawing: Drawing) -> Iterator[str]:
    """The drawing as HTML, and as a figure if matplotlib is there."""
    try:
        ElementTree.fromstring(html_of(drawing))
    except ElementTree.ParseError as error:
        yield f"its HTML is not well-formed: {error}"
    with suppress(MissingExtra):
        figure_of(drawing)
