"""Drawings as HTML: a plot that stretches with the page, a canvas as an SVG."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..text.names import shortened
from .drawing import (
    LETTER,
    Bar,
    Box,
    Canvas,
    Drawing,
    Line,
    Mark,
    Plot,
    Plots,
    Ruler,
    Shape,
    Stroke,
    Words,
    bent,
    cut,
)
from .markup import Html, el, number
from .palette import COLOURS, INKS, look
from .plot import Scale, marked

PAGE, FITS = 1200.0, 1420.0
"""Points across the page; a canvas up to so many more shrinks to them, a wider one scrolls."""
NAMES, MOST = 24, 40
"""Letters of a name beside an axis; names in a legend."""


def html_of(drawing: Drawing) -> Html:
    """The drawing as a piece of HTML."""
    if isinstance(drawing, Plots):
        return el("div", *map(_plot, drawing.plots), class_="stack")
    return _plot(drawing) if isinstance(drawing, Plot) else _canvas(drawing)


def _plot(drawing: Plot) -> Html:
    """Bars and lines in an SVG that stretches, labels and marks as HTML at percentages of it."""
    across, up = (Scale(r.low, r.high, log=r.log) for r in (drawing.across, drawing.up))
    x_ticks, y_ticks = marked(drawing.across, 5), marked(drawing.up, 4)
    grid = [el("path", d=f"M0 {number(1000 - 1000 * up.at(v))}H1000", class_="grid") for v, _ in y_ticks]
    grid += [el("path", d=f"M{number(1000 * across.at(v))} 0V1000", class_="grid") for v, _ in x_ticks]
    lines = [
        el("polyline", points=_points(across, up, line), class_=f"curve {_classes(line.role, line.number)}")
        for line in drawing.lines
        if line.points
    ]
    frame = {"viewBox": "0 0 1000 1000", "preserveAspectRatio": "none", "width": "100%", "height": "100%"}
    bars = [part for bar in drawing.bars for part in _bar(across, up, bar, drawing.height)]
    inside = (el("svg", *grid, **frame), *bars, el("svg", *lines, **frame))
    svg = el("svg", *inside, class_="area", role="img", aria_label=drawing.label, width="100%", height=drawing.height)
    room = min(NAMES, int(PAGE / LETTER / 11.5 / max(1, len(x_ticks))))
    pairs = zip(y_ticks, _names(drawing.up, y_ticks, NAMES), strict=True)
    left = [_tick("ytick", f"bottom:{number(100 * up.at(v))}%", text, shown) for (v, text), shown in pairs]
    pairs = zip(x_ticks, _names(drawing.across, x_ticks, room), strict=True)
    low = [_tick("xtick", f"left:{number(100 * across.at(v))}%", text, shown) for (v, text), shown in pairs]
    marks = [_mark(across, up, mark) for mark in drawing.marks]
    widest = max([len(text) for _, text in y_ticks], default=0)
    classes = "plot named" if drawing.across.ticks and drawing.bars else "plot"
    style = f"height:{number(drawing.height)}px" + f";margin-left:{6 * min(widest, NAMES) + 12}px" * (widest > 12)
    body = el("div", *left, *low, svg, *marks, class_=classes, style=style)
    head, _, rest = drawing.title.partition(": ")
    title = el("h3", head, el("small", rest)) if head else None
    names = el("p", drawing.up.name, class_="yname"), body, el("p", drawing.across.name, class_="xname")
    return el("div", title, *names, _legend(drawing), class_="plotted")


def _names(ruler: Ruler, ticks: Sequence[tuple[float, str]], room: int) -> list[str]:
    """Names along an axis, cut to the room that there is; numbers as they are."""
    texts = [text for _, text in ticks]
    return texts if ruler.ticks is None else shortened(texts, room)


def _tick(side: str, place: str, text: str, shown: str) -> Html:
    return el("span", shown, class_=side, style=place, title=text if shown != text else None)


def _points(across: Scale, up: Scale, line: Line) -> str:
    return " ".join(f"{number(1000 * across.at(x))},{number(1000 - 1000 * up.at(y))}" for x, y in line.points)


def _bar(across: Scale, up: Scale, bar: Bar, high: float) -> Iterator[Html]:
    x, y = 100 * across.at(bar.left), 100 - 100 * up.at(bar.high)
    width, height = 100 * across.at(bar.right) - x, 100 - 100 * up.at(bar.low) - y
    place = {"x": f"{number(x)}%", "y": f"{number(y)}%", "width": f"{width:.3f}%", "height": f"{height:.3f}%"}
    style = {"class_": look(bar.fill)} if isinstance(bar.fill, int) else {"fill": INKS[bar.fill]}
    touches = " ".join(map(str, bar.touches)) or None
    yield el("rect", data_tip=bar.tip or None, data_t=touches, **place, **style)
    if bar.text and height * high > 1300 and width >= 6:
        where = {"x": f"{number(x + width / 2)}%", "y": f"{number(y + height / 2)}%", "text_anchor": "middle"}
        shown = cut(bar.text, width * PAGE / 130, 11.5)
        yield el("text", shown, class_="on", dominant_baseline="central", data_t=touches, **where)


def _mark(across: Scale, up: Scale, mark: Mark) -> Html:
    """A point, with a label beside it if it has a text."""
    x, y = (100 * min(1.0, max(0.0, scale.at(v))) for scale, v in zip((across, up), mark.at, strict=True))
    flip = "flip" if x > 62 and mark.role != "words" else None
    words = el("span", mark.text, class_=flip) if mark.text else None
    place = f"left:{number(x)}%;bottom:{number(y)}%"
    return el("div", words, class_=f"mark {_classes(mark.role, mark.number)}", style=place, data_tip=mark.tip or None)


def _legend(drawing: Plot) -> Html | None:
    """What the bars, lines and marks with a label are, each label once."""
    signs: dict[str, Html] = {}
    for bar in drawing.bars:
        if bar.label and bar.label not in signs:
            style = {"class_": f"swatch {look(bar.fill)}"} if isinstance(bar.fill, int) else {"class_": "swatch bare"}
            touches = " ".join(map(str, bar.touches)) or None
            signs[bar.label] = el("span", el("i", **style), bar.label, data_t=touches)
    for line in drawing.lines:
        if line.label:
            classes = f"dash {_classes(line.role, line.number)}"
            signs.setdefault(line.label, el("span", el("i", class_=classes), line.label))
    for mark in drawing.marks:
        if mark.label:
            classes = f"mark {_classes(mark.role, mark.number)}"
            signs.setdefault(mark.label, el("span", el("i", class_=classes), mark.label))
    more = el("span", f"and {len(signs) - MOST} more") if len(signs) > MOST else None
    return el("p", *list(signs.values())[:MOST], more, class_="legend") if signs else None


def _classes(role: str, which: int | None) -> str:
    """The CSS classes of a line or a mark: what is numbered has the colour of its number."""
    first, *more = role.split()
    if which is None:
        return role
    colour = f"k{which % len(COLOURS)}"
    return " ".join((first, colour, *more) if first == "trade" else (colour, "run", role))


def _canvas(drawing: Canvas) -> Html:
    box = {"viewBox": f"0 0 {number(drawing.width)} {number(drawing.height)}"}
    box |= {"width": number(drawing.width), "height": number(drawing.height)}
    classes = "canvas fit" if PAGE < drawing.width <= FITS else "canvas"
    return el("svg", *map(_shape, drawing.shapes), class_=classes, role="img", aria_label=drawing.label, **box)


def _shape(shape: Shape) -> Html:
    more: dict[str, object] = {"data_t": " ".join(map(str, shape.touches)) or None}
    if isinstance(shape, Words):
        more |= {"x": number(shape.x), "y": number(shape.y + 0.35 * shape.size), "text_anchor": shape.side}
        weight = "bold" if shape.bold else None
        return el("text", shape.text, font_size=number(shape.size), font_weight=weight, fill=INKS[shape.ink], **more)
    more["data_tip"] = shape.tip or None
    if isinstance(shape, Box):
        place = {"x": number(shape.x), "y": number(shape.y), "width": number(shape.width)}
        style = {"class_": look(shape.fill)} if isinstance(shape.fill, int) else {"fill": INKS[shape.fill]}
        style |= {"stroke": INKS[shape.edge]} if shape.edge else {}
        style |= {"stroke_dasharray": "4 2.5"} if shape.dashed else {}
        style |= {"rx": number(shape.round)} if shape.round else {}
        return el("rect", height=number(shape.height), **place, **style, **more)
    ink = COLOURS[shape.ink % len(COLOURS)] if isinstance(shape.ink, int) else INKS[shape.ink]
    head = "url(#arrow)" if shape.arrow else None
    style = {"d": _trail(shape), "fill": "none", "stroke": ink, "stroke_width": number(shape.width)}
    return el("path", **style, stroke_linecap="round", stroke_linejoin="round", marker_end=head, **more)


def _trail(shape: Stroke) -> str:
    first, *rest = (f"{number(x)} {number(y)}" for x, y in shape.points)
    if shape.curved:
        rest = [" ".join(f"{number(x)} {number(y)}" for x, y in piece) for piece in bent(shape.points)]
    return "".join((f"M{first}", *(f"{'C' if shape.curved else 'L'}{spot}" for spot in rest)))
