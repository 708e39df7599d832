"""The reproduction of the FuseCU paper as tables: printed, ours, and why; as text, Markdown and one offline page."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from statistics import mean

from ..dataclass import dataclass
from ..errors import EinloomError
from ..fabric.describe import fabric
from ..report.draw.drawing import Line, Mark, Plot, Ruler
from ..report.draw.markup import Html, el, table_of
from ..report.draw.svg import html_of
from ..report.page.shell import navigation, section, shell, skip
from ..report.text.table import columns
from ..zoo.table2 import MODELS
from . import fusecu

MEBI = 2**20
PLANARIA = "Planaria's interconnect"
CMEM = 128 * MEBI
"""Bytes of TPUv4i's on-chip memory: the largest buffer of the DRAM columns."""


@dataclass(frozen=True)
class FusecuTable:
    """One table with a short name for links, and sentences below it."""

    name: str
    title: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()

    def text(self) -> str:
        return "\n".join((columns(self.title, self.heads, self.rows, left=(0,)), *(f"  {n}" for n in self.notes)))

    def html(self) -> Html:
        body = (el("tr", *(el("td", cell) for cell in row)) for row in self.rows)
        return el("div", table_of(self.heads, body), *(el("p", n) for n in self.notes))


def tables(area: bool = True) -> Iterator[FusecuTable]:
    """Every table, one by one. area: synthesise the areas too, which takes most of the time."""
    makers: list[Callable[[], FusecuTable]] = [savings, ablation, levels, speedups, models, sequence, regrets, fusion]
    for make in makers:
        yield make()
    if area:
        yield areas()


def savings() -> FusecuTable:
    """Figure 10, the bars' averages."""
    rows = []
    for name, printed in fusecu.SAVED.items():
        for base, number in zip(fusecu.BASELINES, printed, strict=True):
            ours = fusecu.saved(fabric(name), fabric(base))
            rows.append((f"{name} against {base}", f"{number:.1f}", f"{ours:.1f}", f"{ours - number:+.1f}"))
    return FusecuTable(
        "savings",
        "Figure 10: traffic between buffer and arrays that is saved, %, mean of seven models",
        ("", "printed", "ours", "difference"),
        tuple(rows),
        (
            "Every number of ours is an optimum within the fabric's description. The paper names neither level nor",
            "operators; with this reading UnfCU is 1 to 2 points off and FuseCU 2 to 4, which a column tile of",
            "512 x 64 would close: the published arrays, 128 wide, do not have it.",
        ),
    )


def ablation() -> FusecuTable:
    """What each freedom brings."""
    tpu = fabric("tpu-v4i-like")
    rows = tuple((label, f"{fusecu.saved(one, tpu):.1f}") for label, one in fusecu.ablation())
    return FusecuTable("ablation", "Saved against tpu-v4i-like, %, by freedom", ("fabric", "saved"), rows)


def levels() -> FusecuTable:
    """The same operators at the DRAM, where the array has no say."""
    rows = []
    for buffer in (MEBI // 2, 4 * MEBI, 32 * MEBI, CMEM):
        apart = {m: fusecu.dram(m, buffer, False) for m in MODELS}
        fused = {m: fusecu.dram(m, buffer, True) for m in MODELS}
        gain = 100 * (1 - mean(fused[m] / apart[m] for m in MODELS))
        whole = sum(apart.values())
        rows.append(
            (
                f"{buffer / MEBI:g} MiB",
                f"{whole / 1e9:.1f} GB",
                f"{sum(fused.values()) / 1e9:.1f} GB",
                f"{gain:.1f}",
                "0.0",
            )
        )
    return FusecuTable(
        "levels",
        "The same operators at the DRAM: all fabrics alike",
        ("buffer", "DRAM, apart", "DRAM, QK and AV fused", "saved by fusing in the buffer, %", "by the fabric, %"),
        tuple(rows),
        ("A saving between buffer and arrays is none at the DRAM: fusing there needs a buffer and no new array.",),
    )


def speedups() -> FusecuTable:
    """Figure 10, the lines' averages."""
    rows = []
    fused, unfused = fabric("fusecu"), fabric("unfcu")
    for base, printed in zip(fusecu.BASELINES, fusecu.SPEEDUPS, strict=True):
        on = fabric(base)
        ours = [fusecu.speedup(one, on, exact) for one in (fused, unfused) for exact in (False, True)]
        rows.append((base, f"{printed:.2f}", *(f"{n:.2f}" for n in ours)))
    return FusecuTable(
        "speedups",
        "Figure 10: speed-up over each baseline, mean of seven models, at 1.05 GHz and 1 TB/s",
        ("over", "printed", "FuseCU, roofline", "FuseCU, cycles", "UnfCU, roofline", "UnfCU, cycles"),
        tuple(rows),
        (
            "Roofline: multiplications and traffic, whichever takes longer. Cycles: the model that the RTL meets, with",
            "loads, fills, drains and turns. FuseCU has no shadow register; the TPUv4i- and Planaria-like fabrics do.",
            "They hide loads that FuseCU waits for, and most of the speed-up over TPUv4i goes.",
        ),
    )


def models() -> FusecuTable:
    """Figure 10, model by model: traffic against TPUv4i and utilisation."""
    rows = []
    names = (*fusecu.BASELINES, "unfcu", "fusecu")
    for model, (title, *_) in MODELS.items():
        moved = [fusecu.run(model, fabric(n)).moved for n in names]
        used = [fusecu.run(model, fabric(n), "seconds").utilisation for n in ("tpu-v4i-like", "unfcu", "fusecu")]
        rows.append((title, *(f"{m / moved[0]:.3f}" for m in moved[1:]), *(f"{u:.0%}" for u in used)))
    heads = ("model", "Gemmini", "Planaria", "UnfCU", "FuseCU", "use, TPUv4i", "use, UnfCU", "use, FuseCU")
    return FusecuTable(
        "models",
        "Figure 10: traffic over that of TPUv4i, and utilisation by the cycle model",
        heads,
        tuple(rows),
        ("The figure's bars are printed without numbers, so there is nothing to set beside these.",),
    )


def sequence() -> FusecuTable:
    """Figure 11: LLaMA2 over sequence lengths."""
    rows = []
    timed = dict(fusecu.llama("seconds"))
    for tokens, ran in fusecu.llama():
        base = ran[0].moved
        used = [r.utilisation for r in timed[tokens]]
        rows.append((str(tokens), *(f"{r.moved / base:.3f}" for r in ran[1:]), f"{used[0]:.0%}", f"{used[-1]:.0%}"))
    heads = ("tokens", "Gemmini", "Planaria", "UnfCU", "FuseCU", "use, TPUv4i", "use, FuseCU")
    return FusecuTable(
        "sequence", "Figure 11: LLaMA2, traffic over that of TPUv4i, by sequence length", heads, tuple(rows)
    )


def regrets() -> FusecuTable:
    """Figure 9: the principles' picks beside the optimum."""
    rows = [
        (
            f"{r.buffer // 1024} KB",
            "/".join(map(str, r.classes)),
            f"{r.optimal:.0%}",
            f"{100 * r.mean:.1f}",
            f"{100 * r.most:.1f}",
            f"{100 * r.mean_read_back:.1f}",
            f"{100 * r.most_read_back:.1f}",
        )
        for r in fusecu.operator_regrets()
    ]
    return FusecuTable(
        "regrets",
        "Figure 9: principles 1 to 3 on 35 operators, against the exact optimum",
        ("buffer", "Single/Two/Three", "optimal", "mean %", "most %", "read back, mean %", "read back, most %"),
        tuple(rows),
        (
            "Figure 9 compares with DAT and prints no numbers. In percent: what the principles pick moves too much.",
            "Read back: where partial sums that left the buffer are read again before they are added to.",
        ),
    )


def fusion() -> FusecuTable:
    """Principle 4 on the pairs of all models."""
    rows = []
    for which in ("qk_av", "qproj_qk", "ffn1_ffn2"):
        for rule in fusecu.RULES:
            found = fusecu.compare_pairs(which, rule)
            wrong = sum(c.principle() != c.profitable for c in found)
            most = max(c.regret() for c in found)
            rows.append(
                (which, rule, str(len(found)), str(sum(c.profitable for c in found)), str(wrong), f"{100 * most:.1f}")
            )
    return FusecuTable(
        "fusion",
        "Principle 4 on 231 pairs: fuse where both have as many operands that move once",
        ("pair", "partial sums", "cases", "fusing pays", "principle is wrong", "most regret %"),
        tuple(rows),
    )


def areas() -> FusecuTable:
    """Figure 12: XS elements and what surrounds them. Without yosys or cells a table that says so."""
    from ..fabric.area import VARIANTS, element_leaf, fabric_leaves

    try:
        area = {name: element_leaf(name, element).area for name, element in VARIANTS.items()}
        parts = {name: fabric_leaves(fabric(name)) for name in ("fusecu", "planaria-like")}
    except EinloomError as error:
        return FusecuTable("area", "Figure 12: area", ("",), ((str(error),),))
    ratio = {key: 100 * (area[key] / area[base] - 1) for key, base in (("XS", "WS"), ("XS, shadow", "WS, shadow"))}
    rest = {n: 100 * sum(p.total for p in found[1:]) / found[0].total for n, found in parts.items()}
    quantisers = 100 * sum(p.total for p in parts["fusecu"] if "quantiser" in p.name) / parts["fusecu"][0].total
    printed = fusecu.AREA
    rows = (
        ("XS element over weight-stationary, %", f"{printed['over TPUv4i']:.1f}", f"{ratio['XS']:.1f}"),
        ("the same, both with shadow register", "", f"{ratio['XS, shadow']:.1f}"),
        ("XS over output-stationary", "", f"{100 * (area['XS'] / area['OS'] - 1):.1f}"),
        ("XS with shadow over weight-stationary without", "", f"{100 * (area['XS, shadow'] / area['WS'] - 1):.1f}"),
        ("edge and control of FuseCU, of the arrays", "< 0.1", f"{rest['fusecu']:.2f}"),
        ("the same without quantisers", "", f"{rest['fusecu'] - quantisers:.2f}"),
        ("edge and control of Planaria-like", f"{printed[PLANARIA]:.1f}", f"{rest['planaria-like']:.2f}"),
    )
    return FusecuTable(
        "area",
        "Figure 12: area in percent, OSU 0.18 um cells",
        ("", "printed (28 nm)", "ours"),
        rows,
        (
            "The published element also clears its registers; ours needs no clearing, so XS adds less. One quantiser",
            "per row is what correct column fusion needs: the published RTL shares one. Wires are in none of our",
            "numbers, and Planaria's overhead is mostly wires.",
        ),
    )


def page(found: Sequence[FusecuTable]) -> str:
    """All tables and the figure of regrets as one HTML file that refers to nothing outside itself."""
    title = "FuseCU (DAC 2025), reproduced"
    parts = [section(t.name, t.title, regret_plot() if t.name == "regrets" else None, t.html()) for t in found]
    intro = el("p", "Printed number, ours, and why they differ. einloom reproduce fusecu writes this page.")
    head = el("header", el("h1", title), intro)
    names = [(t.name, t.title.partition(":")[0]) for t in found]
    return shell(title, [skip(found[0].name), head, navigation(names), el("main", *parts)], {})


def regret_plot() -> Html:
    """Mean and most regret of principles 1 to 3 over the size of the buffer."""
    every = fusecu.operator_regrets()
    series = (
        ("mean", "best", [(r.buffer / 1024, 100 * r.mean) for r in every]),
        ("most", "bound", [(r.buffer / 1024, 100 * r.most) for r in every]),
        ("mean, sums read back", "best", [(r.buffer / 1024, 100 * r.mean_read_back) for r in every]),
        ("most, sums read back", "bound", [(r.buffer / 1024, 100 * r.most_read_back) for r in every]),
    )
    marks = [
        Mark(at, role, tip=f"{name}: {at[0]:g} KB, {at[1]:.1f} %", text=name if i == 0 else None)
        for name, role, points in series
        for i, at in enumerate(points)
    ]
    lines = tuple(Line(tuple(points), role) for _, role, points in series)
    ticks = tuple((2.0**i, f"{2**i} KB") for i in range(5, 16, 2))
    ends = every[0].buffer / 1024, every[-1].buffer / 1024
    across = Ruler("buffer", *ends, lambda value, _: f"{value:g} KB", True, ticks)
    most = max(value for *_, points in series for _, value in points)
    up = Ruler("too much traffic", 0.0, 1.1 * most, lambda value, _: f"{value:g} %")
    return html_of(Plot("Regret by buffer", across, up, lines, tuple(marks)))
