"""A network of windowed attention in the zoo: Swin-T.

Planes are rows of places; where windows, moved windows or merged places need their two dimensions, they are read under
other ranks, which moves nothing. Attention is within windows of 7 x 7 places: a copy puts the places of a window
together, and another one puts them back. In every other block the plane is moved by three places around the edge, and
back behind the attention: four maps each time, which write the parts of a tensor. At the edge a window holds places of
several sides, which a mask keeps apart; masks and the bias of relative positions are left out, as are other biases and
activations.
"""

from __future__ import annotations

from itertools import product

from ..errors import SpecError
from ..workload.einsum import TensorView, Workload
from .convnets import Network
from .origins import CHOSEN, Values

SWIN_TABLE = "Liu et al. 2021 (Swin Transformer), section 3.3 and Table 7"
STAGES = ((96, 2), (192, 2), (384, 6), (768, 2))
"""Channels and blocks."""
WINDOW, SHIFT, HEAD, MLP, PATCH = 7, 3, 32, 4, 4


def swin_t(v: Values) -> Workload:
    """Swin-T. Raises SpecError for an image that windows do not fill in every stage."""
    if v["image"] % (PATCH * WINDOW * 8):
        raise SpecError(f"swin-t: image={v['image']}: windows fill every stage at multiples of {PATCH * WINDOW * 8}")
    net = Network("swin-t", SWIN_TABLE if v["image"] == 224 else CHOSEN, v["image"] != 224, {"b": v["batch"]})
    for rank, size in (("i", WINDOW), ("j", WINDOW), ("e", HEAD), ("f", HEAD)):
        net.size(rank, size)
    for rank in "mk":
        net.size(rank, WINDOW**2, derived=True)
    patches = net.convolution(net.image(3, v["image"]), STAGES[0][0], kernel=PATCH, stride=PATCH)
    x, side = patches.tensor, v["image"] // PATCH
    for n, (channels, blocks) in enumerate(STAGES):
        if n:
            x, side = _merged(net, n, x, side // 2), side // 2
        _ranks(net, n, channels, side)
        net.view(f"X_{n}", x, *_plane(n))
        x = _norm(net, n, "", f"X_{n}") if not n else f"X_{n}"
        for block in range(blocks):
            net.module = f"stages.{n}.blocks.{block}"
            x = _block(net, n, f"_{n}_{block}", x, moved=block % 2 == 1 and side > WINDOW)
    net.module = "head"
    return net.classified(f"{_norm(net, n, '_head', x)}[{','.join(_plane(n))}]", f"c_{n}", v["bits"])


def _ranks(net: Network, n: int, channels: int, side: int) -> None:
    """The rank variables of a stage: channels, those inside, heads, places, rows, columns, windows, moved places."""
    net.size(f"c_{n}", channels)
    net.size(f"o_{n}", MLP * channels)
    net.size(f"h_{n}", channels // HEAD, derived=True)
    windows = side // WINDOW
    for rank, size in (("z", side**2), ("a", windows), ("w", windows), ("g", windows**2)):
        net.size(f"{rank}_{n}", size, derived=True)
    if side > WINDOW:
        for rank, size in (("y", side - SHIFT), ("x", side - SHIFT), ("u", SHIFT), ("v", SHIFT)):
            net.size(f"{rank}_{n}", size, derived=True)


def _plane(n: int) -> tuple[str, ...]:
    return "b", f"c_{n}", f"z_{n}"


def _norm(net: Network, n: int, of: str, x: str) -> str:
    """The layer norm of x[b,c,z] over its channels."""
    at, plane = f"b,z_{n}", f"{x}[{','.join(_plane(n))}]"
    net.add(f"MU{of}[{at}] = {plane}")
    net.add(f"SD{of}[{at}] = elementwise({plane}, MU{of}[{at}])")
    net.add(f"N{of}[{','.join(_plane(n))}] = elementwise({plane}, MU{of}[{at}], SD{of}[{at}])")
    return f"N{of}"


def _block(net: Network, n: int, t: str, x: str, moved: bool) -> str:
    """A block on x[b,c,z], and the name of what it makes."""
    c, plane = f"c_{n}", ",".join(_plane(n))
    y = _norm(net, n, f"{t}a", x)
    if moved:
        y = _rolled(net, n, y, f"S{t}", back=False)
    z = _attention(net, n, t, y)
    if moved:
        z = _rolled(net, n, z, f"B{t}", back=True)
    net.add(f"R{t}[{plane}] = add({x}[{plane}], {net.view(f'Z{t}', z, *_plane(n))})")
    y = _norm(net, n, f"{t}b", f"R{t}")
    net.add(f"UP{t}[b,o_{n},z_{n}] = {y}[{plane}] * WUP{t}[{c},o_{n}]")
    net.add(f"F{t}[{plane}] = UP{t}[b,o_{n},z_{n}] * WDOWN{t}[o_{n},{c}]")
    net.add(f"O{t}[{plane}] = add(R{t}[{plane}], F{t}[{plane}])")
    return f"O{t}"


def _rolled(net: Network, n: int, source: str, target: str, back: bool) -> str:
    """The target: the source moved around the edge, in four parts. back: as it was before."""
    c, beside = f"c_{n}", net.ranks[f"y_{n}"]
    rows = ((f"y_{n}", f"y_{n}+{SHIFT}"), (f"u_{n}+{beside}", f"u_{n}"))
    columns = ((f"x_{n}", f"x_{n}+{SHIFT}"), (f"v_{n}+{beside}", f"v_{n}"))
    shape = (net.ranks["b"], net.ranks[c], beside + SHIFT, beside + SHIFT)
    net.views.append(TensorView(f"{target}_from", source, shape))
    for k, (row, column) in enumerate(product(rows, columns)):
        here, there = (f"{row[i]},{column[i]}" for i in ((1, 0) if back else (0, 1)))
        net.add(f"{target}[b,{c},{here}] = elementwise({target}_from[b,{c},{there}])", f"{target}_{k}")
    net.shapes[target] = shape
    return target


def _attention(net: Network, n: int, t: str, y: str) -> str:
    """What the places m of each window g of y take from the places k of the same one, as a plane; its name."""
    window, c = f"b,g_{n},h_{n}", f"c_{n}"
    split, places = ("b", c, f"a_{n}", "i", f"w_{n}", "j"), ("b", f"a_{n}", f"w_{n}", "i", "j", c)
    score = f"{window},m,k"
    net.add(f"P{t}[{','.join(places)}] = copy {net.view(f'U{t}', y, *split)}")
    mine = net.view(f"T{t}", f"P{t}", "b", f"g_{n}", "m", c)
    other = mine.replace(",m,", ",k,")
    net.add(f"V{t}[{window},k,f] = {other} * WV{t}[h_{n},f,{c}]")
    net.add(f"K{t}[{window},k,e] = {other} * WK{t}[h_{n},e,{c}]")
    net.add(f"Q{t}[{window},m,e] = {mine} * WQ{t}[h_{n},e,{c}]")
    net.add(f"QK{t}[{score}] = Q{t}[{window},m,e] * K{t}[{window},k,e]")
    net.add(f"QM{t}[{window},m] = max[k] QK{t}[{score}]")
    net.add(f"QE{t}[{score}] = elementwise(QK{t}[{score}], QM{t}[{window},m])")
    net.add(f"QS{t}[{window},m] = QE{t}[{score}]")
    net.add(f"A{t}[{score}] = div(QE{t}[{score}], QS{t}[{window},m])")
    net.add(f"AV{t}[{window},m,f] = A{t}[{score}] * V{t}[{window},k,f]")
    net.add(f"ZW{t}[b,g_{n},m,{c}] = AV{t}[{window},m,f] * WZ{t}[h_{n},f,{c}]")
    net.add(f"ZP{t}[{','.join(split)}] = copy {net.view(f'ZU{t}', f'ZW{t}', *places)}")
    return f"ZP{t}"


def _merged(net: Network, n: int, x: str, side: int) -> str:
    """Four places become one of twice the channels: a layer norm of all four, and a product."""
    net.module = f"merging.{n}"
    c, d = f"c_{n - 1}", f"d_{n}"
    rows, columns = net.size(f"p_{n}", side, derived=True), net.size(f"q_{n}", side, derived=True)
    r, s = net.size(f"r_{n}", 2), net.size(f"s_{n}", 2)
    net.size(d, 2 * net.ranks[c])
    at, four = f"b,{rows},{columns}", net.view(f"FOUR_{n}", x, "b", c, rows, r, columns, s)
    net.add(f"MU_{n}[{at}] = {four}")
    net.add(f"SD_{n}[{at}] = elementwise({four}, MU_{n}[{at}])")
    net.add(f"N_{n}[{at},{c},{r},{s}] = elementwise({four}, MU_{n}[{at}], SD_{n}[{at}])")
    net.add(f"M_{n}[b,{d},{rows},{columns}] = N_{n}[{at},{c},{r},{s}] * WM_{n}[{c},{r},{s},{d}]")
    return f"M_{n}"
