"""Drawings as HTML: a plot that stretches with the page, a canvas as an SVG."""

from __future__ import annotations

from .drawing import Box, Canvas, Drawing, Plot, Ruler, Stroke, Words
from .markup import Html, el, number
from .palette import COLOURS, INKS, look
from .plot import Curve, Scale, mark, plot


def html_of(drawing: Drawing) -> Html:
    """The drawing as a piece of HTML."""
    return _plot(drawing) if isinstance(drawing, Plot) else _canvas(drawing)


def _plot(drawing: Plot) -> Html:
    across, up = (Scale(r.low, r.high, log=r.log) for r in (drawing.across, drawing.up))
    curves = [Curve(line.points, _classes(line.role, line.number)) for line in drawing.lines if line.points]
    marks = [mark(across, up, m.at, _classes(m.role, m.number), m.tip, m.text) for m in drawing.marks]
    sides = _side(across, drawing.across, 5), _side(up, drawing.up, 4)
    return plot(curves, marks, *sides, drawing.label, drawing.height)


def _classes(role: str, which: int | None) -> str:
    """The CSS classes of a line or a mark: what is numbered has the colour of its number."""
    first, *more = role.split()
    if which is None:
        return role
    colour = f"k{which % len(COLOURS)}"
    return " ".join((first, colour, *more) if first == "trade" else (colour, "run", role))


def _side(scale: Scale, ruler: Ruler, ticks: int) -> tuple[Scale, list[tuple[float, str]], str]:
    return scale, [(value, ruler.shown(value, 4)) for value in scale.ticks(ticks)], ruler.name


def _canvas(drawing: Canvas) -> Html:
    box = {"viewBox": f"0 0 {number(drawing.width)} {number(drawing.height)}"}
    box |= {"width": number(drawing.width), "height": number(drawing.height)}
    return el("svg", *map(_shape, drawing.shapes), class_="canvas", role="img", aria_label=drawing.label, **box)


def _shape(shape: Box | Words | Stroke) -> Html:
    if isinstance(shape, Box):
        place = {"x": number(shape.x), "y": number(shape.y), "width": number(shape.width)}
        style = {"class_": look(shape.fill)} if isinstance(shape.fill, int) else {"fill": INKS[shape.fill]}
        return el("rect", height=number(shape.height), data_tip=shape.tip or None, **place, **style)
    if isinstance(shape, Words):
        place = {"x": number(shape.x), "y": number(shape.y + 0.35 * shape.size), "text_anchor": shape.side}
        weight = "bold" if shape.bold else None
        return el("text", shape.text, font_size=number(shape.size), font_weight=weight, fill=INKS[shape.ink], **place)
    ink = COLOURS[shape.ink % len(COLOURS)] if isinstance(shape.ink, int) else INKS[shape.ink]
    trail = "L".join(f"{number(x)} {number(y)}" for x, y in shape.points)
    head = "url(#arrow)" if shape.arrow else None
    return el("path", d=f"M{trail}", fill="none", stroke=ink, stroke_width=number(shape.width), marker_end=head)
