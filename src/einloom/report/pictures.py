"""Pictures by name: those that ship as drawings, and those that installed packages bring.

A package names its pictures as entry points of the group ``einloom.pictures``; each refers to a class without
arguments. `einloom figure NAME` writes them as files, `einloom report` gives each a part of the page, and a result in a
notebook shows them folded. How to write one: docs/how-to/my-picture.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from typing import Any, Protocol

from ..errors import SpecError, unknown
from ..reading.plugins import FAILURES, OURS, built, each, known, left_out, loaded, names_of, offer, reason_of
from ..result import Result
from .compare import labels_of
from .draw.bars import BusyTime, Stacked, Traffic
from .draw.cascade import Cascade
from .draw.drawing import Canvas, Drawing, Plot, Plots, faults_of
from .draw.looptree import LoopTree
from .draw.markup import Html
from .draw.occupancy import OccupancyPlot
from .draw.pareto import Pareto
from .draw.progress import Progress
from .draw.roofline import Roofline
from .draw.svg import html_of

GROUP = "einloom.pictures"


class Picture(Protocol):
    """A picture of saved results, drawn once for the page, for figures and for notebooks.

    name: as `einloom figure` calls it. title: the heading above it. several: can it show more than one result?
    """

    name: str
    title: str
    several: bool

    def data(self, results: Sequence[Result], labels: Sequence[str]) -> Any:
        """What the picture shows, as plain data that pickles; a label for each result.

        Raises SpecError where these results have nothing to show. It searches nothing.
        """
        ...

    def draw(self, data: Any) -> Drawing:
        """The data as a plot or a canvas; the same for the same data."""
        ...


SHIPPED: dict[str, Callable[..., Picture]] = {
    "energy": Stacked,
    "traffic": Traffic,
    "latency": BusyTime,
    "roofline": Roofline,
    "looptree": LoopTree,
    "occupancy": OccupancyPlot,
    "cascade": Cascade,
    "search": Progress,
    "pareto": Pareto,
}


def pictures() -> tuple[str, ...]:
    """The names of all pictures, those that ship first."""
    return names_of(GROUP, SHIPPED)


def use(picture: Picture) -> None:
    """From now on this session knows the picture by its name, as if a package had brought it."""
    offer(GROUP, picture.name, lambda: picture)


def picture(name: str, **options: object) -> Picture:
    """The picture called `name`; options: fields of its class that differ from what they are by default.

    Raises SpecError with a suggestion for an unknown picture or option.
    """
    for option in options:
        if option not in options_of(name):
            raise unknown(f"option of a figure of kind {name}", option, options_of(name))
    made: Picture = _class(name)(**options) if name in SHIPPED else built("picture", name, _class(name), options)
    return made


def options_of(name: str) -> tuple[str, ...]:
    """The options of the picture called `name`: the fields of its class. Raises SpecError for an unknown picture."""
    made = _class(name)
    return tuple(field.name for field in fields(made)) if is_dataclass(made) else ()


def _class(name: str) -> Callable[..., Picture]:
    known(GROUP, "picture", name, SHIPPED)
    return SHIPPED[name] if name in SHIPPED else loaded(GROUP, name)


def drawn(asked: Picture, results: Sequence[Result], labels: Sequence[str] | None = None) -> Drawing:
    """The drawing of these results. Raises SpecError where there is nothing to draw, or the picture is broken."""
    if len(results) > 1 and not asked.several:
        raise SpecError(f"a figure of kind {asked.name} draws one result, not {len(results)}")
    names = labels_of(results, labels)
    with blamed(asked.name):
        found = asked.draw(asked.data(results, names))
        if not isinstance(found, Plot | Plots | Canvas):
            raise BrokenPicture(asked.name, f"it draws {type(found).__name__}, no Plot and no Canvas")
        for fault in faults_of(found):
            raise BrokenPicture(asked.name, fault)
    return found


class BrokenPicture(SpecError):
    """A picture draws what nobody can show, or ends with an exception."""

    def __init__(self, name: str, why: str) -> None:
        super().__init__(f"picture {name} is broken: {why}")


@contextmanager
def blamed(name: str) -> Iterator[None]:
    """A ``with`` block in which what goes wrong is a mistake of the picture of that name: SpecError."""
    try:
        yield
    except FAILURES as error:
        if isinstance(error, OURS):
            raise
        raise BrokenPicture(name, reason_of(error)) from error


def shown(name: str, *results: Result, labels: Sequence[str] | None = None, **options: object) -> Html:
    """The picture of that name as HTML, for pages and notebooks."""
    drawing = drawn(picture(name, **options), results, labels)
    with blamed(name):
        return html_of(drawing)


def added(result: Result) -> Iterator[tuple[str, str, Html]]:
    """(name, title, HTML) of every picture that packages bring and that has something to show of the result."""
    for name, found in each(GROUP, "picture", SHIPPED, picture):
        try:
            with blamed(name):
                part = name, str(found.title), html_of(drawn(found, [result]))
        except BrokenPicture as error:
            left_out(error)
        except SpecError:
            continue  # it has nothing to show of this result
        else:
            yield part
