"""Convolutional networks of the zoo, layer by layer: AlexNet, ResNet-18 and VGG-16, with stride, padding and pooling.

Every layer has rank variables of its own (its channels, rows, columns and kernel), numbered in program order; layers
are tied through the tensors that they share. Normalisation, biases and activations are left out: they do not change
what is moved between layers. An average is a sum, because its division moves nothing either.
"""

from __future__ import annotations

from dataclasses import field, replace

from ..dataclass import dataclass
from ..errors import SpecError
from ..reading.facts import Fact
from ..workload.build import build_workload
from ..workload.einsum import Einsum, TensorView, Workload
from ..workload.notation import parse_einsum
from .origins import CHOSEN, Values, rank_facts

ALEXNET_SECTION = "Krizhevsky et al. 2012 (AlexNet), section 3.5"
RESNET_TABLE = "He et al. 2016 (Deep Residual Learning), Table 1"
VGG_TABLE = "Simonyan and Zisserman 2015 (VGG), Table 1, configuration D"
CLASSES = 1000


@dataclass(frozen=True, slots=True)
class Plane:
    """A tensor of feature maps: its name, and the rank variables of its channels, rows and columns.

    channels: a rank variable, or that of groups and that of the channels of each, as in "g1,c1".
    """

    tensor: str
    channels: str
    rows: str
    columns: str

    def __str__(self) -> str:
        return f"{self.tensor}[b,{self.channels},{self.rows},{self.columns}]"


@dataclass(slots=True)
class Network:
    """A network under construction: Einsums, sizes of rank variables, shapes that accesses alone do not give.

    source: the table that prints kernels, strides and channels; every size is a fact of it unless a parameter of the
    entry changed it (`scaled`). module: of the Einsums that are added next.
    """

    name: str
    source: str
    scaled: bool
    ranks: dict[str, int]
    einsums: list[Einsum] = field(default_factory=list)
    shapes: dict[str, tuple[int, ...]] = field(default_factory=dict)
    facts: list[Fact] = field(default_factory=list)
    module: str = "stem"
    views: list[TensorView] = field(default_factory=list)

    def size(self, rank: str, extent: int, derived: bool = False) -> str:
        """Give the rank variable its extent, and return it. derived: the table does not print it."""
        self.ranks[rank] = extent
        kind, source = ("derived" if derived else "printed"), self.source
        if self.scaled:
            kind, source = "assumed", CHOSEN
        self.facts.append(Fact(f"ranks.{rank}", source, kind))  # type: ignore[arg-type]
        return rank

    def image(self, channels: int, side: int) -> Plane:
        """The network's input."""
        plane = Plane("X", self.size("c0", channels, derived=True), "p0", "q0")
        self.shapes["X"] = (self.ranks["b"], channels, side, side)
        return plane

    def side(self, plane: Plane) -> int:
        """Rows (and columns) of the feature maps."""
        return self.shapes["X"][2] if plane.tensor == "X" else self.ranks[plane.rows]

    def window(self, source: Plane, kernel: int, stride: int, padding: int) -> tuple[Plane, str, str]:
        """The plane that a window slides to (with the channels of `source`), its input access, its kernel ranks."""
        n = len(self.einsums) + 1
        side = (self.side(source) + 2 * padding - kernel) // stride + 1
        rows, columns = self.size(f"p{n}", side, derived=True), self.size(f"q{n}", side, derived=True)
        kernels = [self.size(f"{rank}{n}", kernel) for rank in "rs"] if kernel > 1 else []
        steps = [rank if stride == 1 else f"{stride}*{rank}" for rank in (rows, columns)]
        ends = [f"+{rank}" for rank in kernels] or ["", ""]
        shift = f"-{padding}" if padding else ""
        indices = [step + end + shift for step, end in zip(steps, ends, strict=True)]
        reach = stride * (side - 1) + kernel - padding
        if not padding and reach < self.side(source):
            self.shapes[source.tensor] = (self.ranks["b"], self.ranks[source.channels], *[self.side(source)] * 2)
        access = f"{source.tensor}[b,{source.channels},{','.join(indices)}]"
        return Plane(f"T{n}", source.channels, rows, columns), access, ",".join(["", *kernels])

    def convolution(self, source: Plane, channels: int, kernel: int = 3, stride: int = 1) -> Plane:
        """A convolution whose padding keeps the size but for the stride; of patches, if the kernel is even."""
        plane, access, kernels = self.window(source, kernel, stride, kernel // 2 if kernel % 2 else 0)
        n = len(self.einsums) + 1
        made = Plane(plane.tensor, self.size(f"c{n}", channels), plane.rows, plane.columns)
        self.add(f"{made} = {access} * W{n}[{made.channels},{source.channels}{kernels}]")
        return made

    def halves(self, source: Plane, channels: int, kernel: int, stride: int = 1, own: bool = False) -> Plane:
        """A convolution to two groups of channels, without padding if it has a stride.

        channels: of both groups together. own: each group sees its half of the source alone, not all of it.
        """
        plane, access, kernels = self.window(source, kernel, stride, kernel // 2 if stride == 1 else 0)
        n = len(self.einsums) + 1
        group, seen = source.channels.split(",") if own else (self.size(f"g{n}", 2), source.channels)
        each = self.size(f"c{n}", channels // 2, derived=True)
        made = Plane(plane.tensor, f"{group},{each}", plane.rows, plane.columns)
        self.add(f"{made} = {access} * W{n}[{made.channels},{seen}{kernels}]")
        return made

    def depthwise(self, source: Plane, kernel: int, stride: int) -> Plane:
        """A convolution of each channel with a kernel of its own, whose padding keeps the size but for the stride."""
        plane, access, kernels = self.window(source, kernel, stride, kernel // 2)
        self.add(f"{plane} = {access} * W{len(self.einsums) + 1}[{plane.channels}{kernels}]")
        return plane

    def excited(self, source: Plane, channels: int) -> Plane:
        """The plane times one factor a channel, which two products make of the channels' sums."""
        n, c = len(self.einsums) + 1, source.channels
        narrow = self.size(f"c{n}", channels, derived=True)
        self.add(f"T{n}[b,{c}] = {source}")
        self.add(f"T{n + 1}[b,{narrow}] = T{n}[b,{c}] * W{n + 1}[{narrow},{c}]")
        self.add(f"T{n + 2}[b,{c}] = T{n + 1}[b,{narrow}] * W{n + 2}[{c},{narrow}]")
        made = Plane(f"T{n + 3}", c, source.rows, source.columns)
        self.add(f"{made} = mul({source}, T{n + 2}[b,{c}])")
        return made

    def pool(self, source: Plane, kernel: int, padding: int = 0) -> Plane:
        """The maximum of windows at stride two."""
        plane, access, kernels = self.window(source, kernel, 2, padding)
        self.add(f"{plane} = max[{kernels[1:]}] {access}")
        return plane

    def normed(self, source: Plane) -> Plane:
        """The layer norm of each place over its channels: a sum, a sum of squares and an elementwise map."""
        n, at = len(self.einsums) + 1, f"[b,{source.rows},{source.columns}]"
        made = Plane(f"T{n + 2}", source.channels, source.rows, source.columns)
        self.add(f"T{n}{at} = {source}")
        self.add(f"T{n + 1}{at} = elementwise({source}, T{n}{at})")
        self.add(f"{made} = elementwise({source}, T{n}{at}, T{n + 1}{at})")
        return made

    def residual(self, first: Plane, second: Plane) -> Plane:
        """The sum of two planes of one shape."""
        n = len(self.einsums) + 1
        around = Plane(second.tensor, first.channels, first.rows, first.columns)
        made = Plane(f"T{n}", first.channels, first.rows, first.columns)
        self.add(f"{made} = add({first}, {around})")
        return made

    def add(self, text: str, name: str | None = None) -> None:
        """Add an Einsum to the module; one of several that write a tensor has a name of its own."""
        self.einsums.append(replace(parse_einsum(text, name), group=self.module))

    def view(self, name: str, of: str, *ranks: str) -> str:
        """The tensor under these ranks, under a name of its own."""
        self.views.append(TensorView(name, of, tuple(self.ranks[rank] for rank in ranks)))
        return f"{name}[{','.join(ranks)}]"

    def classified(self, last: str, channels: str, bits: int, hidden: int = 0, normed: bool = False) -> Workload:
        """The workload with global pooling and a classifier behind the access `last`.

        hidden: the width of a layer between them; normed: a layer norm.
        """
        self.module = "head"
        self.add(f"POOL[b,{channels}] = {last}")
        pooled = "POOL"
        if normed:
            self.add(f"MEAN[b] = POOL[b,{channels}]")
            self.add(f"DEVIATION[b] = elementwise(POOL[b,{channels}], MEAN[b])")
            self.add(f"NORM[b,{channels}] = elementwise(POOL[b,{channels}], MEAN[b], DEVIATION[b])")
            pooled = "NORM"
        if hidden:
            self.add(f"HID[b,{self.size('h', hidden)}] = POOL[b,{channels}] * WHID[{channels},h]")
            pooled, channels = "HID", "h"
        self.add(f"FC[b,{self.size('n', CLASSES)}] = {pooled}[b,{channels}] * WFC[{channels},n]")
        return self.build(bits)

    def connected(self, source: Plane, wide: int, bits: int) -> Workload:
        """The workload with three fully connected layers behind the plane, two of them `wide`."""
        self.module = "head"
        places = f"{source.channels},{source.rows},{source.columns}"
        self.add(f"FC1[b,{self.size('n1', wide)}] = {source} * WFC1[n1,{places}]")
        self.add(f"FC2[b,{self.size('n2', wide)}] = FC1[b,n1] * WFC2[n2,n1]")
        self.add(f"FC3[b,{self.size('n3', CLASSES)}] = FC2[b,n2] * WFC3[n3,n2]")
        return self.build(bits)

    def build(self, bits: int) -> Workload:
        """The workload as it is."""
        facts = (*rank_facts(CHOSEN, "assumed", "b"), *self.facts, Fact("bits.default", CHOSEN, "assumed"))
        made = (self.name, self.einsums, self.ranks)
        return build_workload(*made, bits=bits, shapes=self.shapes, facts=facts, views=self.views)


def _network(name: str, source: str, v: Values, stages: int, halvings: int) -> Network:
    """An empty network; SpecError for stages that it does not have and images that `halvings` make empty."""
    if not v["stages"] <= stages:
        raise SpecError(f"{name}: stages={v['stages']}: it has 1 to {stages}")
    if v["image"] % 2**halvings:
        raise SpecError(f"{name}: image={v['image']}: {halvings} halvings need a multiple of {2**halvings}")
    return Network(name, source, (v["image"], v["width"]) != (224, 64), {"b": v["batch"]})


def alexnet(v: Values) -> Workload:
    """AlexNet: five convolutions, the second, fourth and fifth in two groups, three poolings, three connected layers.

    The paper prints images of 224 x 224, which its first layer does not fit; 227 is what everybody runs.
    """
    net = Network("alexnet", ALEXNET_SECTION, False, {"b": v["batch"]})
    net.module = "features"
    plane = net.pool(net.halves(net.image(3, 227), 96, 11, stride=4), 3)
    plane = net.pool(net.halves(plane, 256, 5, own=True), 3)
    plane = net.halves(net.halves(plane, 384, 3), 384, 3, own=True)
    plane = net.pool(net.halves(plane, 256, 3, own=True), 3)
    return net.connected(plane, 4096, v["bits"])


def resnet18(v: Values) -> Workload:
    """ResNet-18: a 7x7 convolution, a pooling, stages of two residual blocks (projections where the size changes)."""
    net = _network("resnet18", RESNET_TABLE, v, 4, 1 + v["stages"])
    plane = net.pool(net.convolution(net.image(3, v["image"]), v["width"], kernel=7, stride=2), 3, 1)
    for stage in range(v["stages"]):
        for block in range(2):
            stride = 2 if stage and not block else 1
            width = v["width"] * 2**stage
            net.module = f"stages.{stage}.blocks.{block}"
            inner = net.convolution(net.convolution(plane, width, stride=stride), width)
            around = net.convolution(plane, width, kernel=1, stride=2) if stride == 2 else plane
            plane = net.residual(inner, around)
    return net.classified(str(plane), plane.channels, v["bits"]) if v["stages"] == 4 else net.build(v["bits"])


def vgg16(v: Values) -> Workload:
    """VGG-16: stages of two or three 3x3 convolutions, a pooling after each, three fully connected layers."""
    net = _network("vgg16", VGG_TABLE, v, 5, v["stages"])
    plane = net.image(3, v["image"])
    for stage in range(v["stages"]):
        net.module = f"stages.{stage}"
        for _ in range(2 if stage < 2 else 3):
            plane = net.convolution(plane, v["width"] * min(8, 2**stage))
        plane = net.pool(plane, 2)
    return net.connected(plane, 64 * v["width"], v["bits"]) if v["stages"] == 5 else net.build(v["bits"])
