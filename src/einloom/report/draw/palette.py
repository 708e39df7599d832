"""Colours that colour-blind people can tell apart (Okabe and Ito, 2008), and textures for more than eight things.

Thing number n has the classes ``kN`` (colour) and ``xM`` (texture); equal looks come back after forty things.
"""

from __future__ import annotations

from .markup import Html, el

COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#8C8C8C")
INKS = {
    "ink": "#1b1f24",
    "soft": "#59636e",
    "line": "#d5dae0",
    "paper": "#ffffff",
    "dark": "#2c3640",
    "warm": "#ffe9a8",
    "slate": "#3b444d",
    "violet": "#ece8f5",
    "pale": "#e3e8ed",
    "grey": "#666666",
    "m0": "#e6e8eb",
    "m1": "#d9ecfa",
    "m2": "#d8f1e6",
    "m3": "#fbe8c9",
    "m4": "#f6dcea",
    "rim1": "#5b8fb9",
    "rim2": "#4fa886",
    "rim3": "#b87f00",
}
TEXTURES = ("", "45", "135", "0", "dots")


def look(number: int) -> str:
    """The classes of thing `number`."""
    return f"k{number % len(COLOURS)} x{number // len(COLOURS) % len(TEXTURES)}"


def style() -> str:
    """The CSS of all looks, for SVG (fill) and HTML (background)."""
    rules = [f".k{i}{{--c:{colour}}}" for i, colour in enumerate(COLOURS)]
    rules.append(".seg,.swatch{background-color:var(--c)}rect[class^=k]{fill:var(--c)}")
    white = "rgba(255,255,255,.75)"
    for i, texture in enumerate(TEXTURES[1:], start=1):
        if texture == "dots":
            image = f"radial-gradient({white} 1.3px,transparent 1.6px)"
            rules.append(f".seg.x{i},.swatch.x{i}{{background-image:{image};background-size:5px 5px}}")
        else:
            image = f"repeating-linear-gradient({texture}deg,{white} 0 2px,transparent 2px 6px)"
            rules.append(f".seg.x{i},.swatch.x{i}{{background-image:{image}}}")
        rules += [f"rect.k{k}.x{i}{{fill:url(#p{k}-{i})}}" for k in range(len(COLOURS))]
    return "".join(rules)


def patterns() -> Html:
    """An SVG without size that defines the textured fills."""
    found = [_pattern(k, i) for k in range(len(COLOURS)) for i in range(1, len(TEXTURES))]
    return el("svg", el("defs", *found), class_="defs", aria_hidden="true", width=0, height=0)


def _pattern(colour: int, texture: int) -> Html:
    ground = el("rect", width=6, height=6, style=f"fill:{COLOURS[colour]}")
    if TEXTURES[texture] == "dots":
        ink, turn = el("circle", cx=3, cy=3, r=1.3, fill="#fff", opacity=0.75), None
    else:
        ink, turn = el("rect", width=2, height=6, fill="#fff", opacity=0.75), f"rotate({TEXTURES[texture]})"
    where = {"patternUnits": "userSpaceOnUse", "patternTransform": turn}
    return el("pattern", ground, ink, id=f"p{colour}-{texture}", width=6, height=6, **where)
