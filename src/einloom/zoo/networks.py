"""Whole convolutional networks of the zoo: ResNet-50, MobileNet v2, EfficientNet-B0, by their published dimensions.

As in `convnets`, batch normalisation, biases and activations are left out, and an average is a sum. Squeeze and excite
is a reduction, two products and an elementwise product.
"""

from __future__ import annotations

from ..errors import SpecError
from ..workload.einsum import Workload
from .convnets import CLASSES, RESNET_TABLE, Network, Plane
from .origins import CHOSEN, Values

MOBILENET_TABLE = "Sandler et al. 2018 (MobileNetV2), Table 2"
EFFICIENTNET_TABLE = "Tan and Le 2019 (EfficientNet), Table 1, with MBConv's expansion and squeeze ratio of MnasNet"
RESNET50 = ((64, 3), (128, 4), (256, 6), (512, 3))
MOBILENET = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))
EFFICIENTNET = (
    (1, 16, 1, 1, 3),
    (6, 24, 2, 2, 3),
    (6, 40, 2, 2, 5),
    (6, 80, 3, 2, 3),
    (6, 112, 3, 1, 5),
    (6, 192, 4, 2, 5),
    (6, 320, 1, 1, 3),
)


def _empty(name: str, source: str, v: Values) -> Network:
    """A network without Einsums; SpecError for an image that five halvings make empty."""
    if v["image"] % 32:
        raise SpecError(f"{name}: image={v['image']}: five halvings need a multiple of 32")
    return Network(name, source if v["image"] == 224 else CHOSEN, v["image"] != 224, {"b": v["batch"]})


def _classified(net: Network, plane: Plane, bits: int) -> Workload:
    """The network with global pooling and a classifier behind `plane`."""
    net.add(f"POOL[b,{plane.channels}] = {plane}")
    net.add(f"FC[b,{net.size('n', CLASSES)}] = POOL[b,{plane.channels}] * WFC[{plane.channels},n]")
    return net.build(bits)


def resnet50(v: Values) -> Workload:
    """ResNet-50: bottlenecks of 1x1, 3x3 and 1x1; a stage's stride is in its first 3x3, as frameworks have it."""
    net = _empty("resnet50", RESNET_TABLE, v)
    plane = net.pool(net.convolution(net.image(3, v["image"]), 64, kernel=7, stride=2), 3, 1)
    for stage, (width, blocks) in enumerate(RESNET50):
        for block in range(blocks):
            stride = 2 if stage and not block else 1
            inner = net.convolution(net.convolution(plane, width, kernel=1), width, stride=stride)
            inner = net.convolution(inner, 4 * width, kernel=1)
            around = plane if block else net.convolution(plane, 4 * width, kernel=1, stride=stride)
            plane = net.residual(inner, around)
    return _classified(net, plane, v["bits"])


def mobilenet_v2(v: Values) -> Workload:
    """MobileNet v2: inverted residuals of 1x1, depthwise 3x3 and 1x1."""
    net = _empty("mobilenet-v2", MOBILENET_TABLE, v)
    plane = net.convolution(net.image(3, v["image"]), 32, stride=2)
    for expansion, channels, blocks, first in MOBILENET:
        for block in range(blocks):
            plane = _inverted(net, plane, expansion, channels, first if not block else 1, 3, 0)
    return _classified(net, net.convolution(plane, 1280, kernel=1), v["bits"])


def efficientnet_b0(v: Values) -> Workload:
    """EfficientNet-B0: inverted residuals, each with squeeze and excite to a quarter of its input's channels."""
    net = _empty("efficientnet-b0", EFFICIENTNET_TABLE, v)
    plane = net.convolution(net.image(3, v["image"]), 32, stride=2)
    for expansion, channels, blocks, first, kernel in EFFICIENTNET:
        for block in range(blocks):
            plane = _inverted(net, plane, expansion, channels, first if not block else 1, kernel, 4)
    return _classified(net, net.convolution(plane, 1280, kernel=1), v["bits"])


def _inverted(
    net: Network, plane: Plane, expansion: int, channels: int, stride: int, kernel: int, squeeze: int
) -> Plane:
    """One inverted residual. squeeze: the input's channels over those of the squeeze; 0 for none."""
    narrow = net.ranks[plane.channels]
    inner = plane if expansion == 1 else net.convolution(plane, expansion * narrow, kernel=1)
    inner = net.depthwise(inner, kernel, stride)
    if squeeze:
        inner = net.excited(inner, narrow // squeeze)
    made = net.convolution(inner, channels, kernel=1)
    return net.residual(made, plane) if stride == 1 and channels == narrow else made
