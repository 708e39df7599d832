"""Whole convolutional networks of the zoo: ResNet-50, MobileNet v2 and v3, EfficientNet-B0, ConvNeXt-T.

As in `convnets`, batch normalisation, biases and activations are left out, and an average is a sum. Squeeze and excite
is a reduction, two products and an elementwise product; the scale of a ConvNeXt layer is part of the product before it.
"""

from __future__ import annotations

from ..errors import SpecError
from ..workload.einsum import Workload
from .convnets import RESNET_TABLE, Network, Plane
from .origins import CHOSEN, Values

MOBILENET_TABLE = "Sandler et al. 2018 (MobileNetV2), Table 2"
MOBILENET3_TABLE = "Howard et al. 2019 (MobileNetV3), Table 1; squeezes to a quarter in multiples of 8"
EFFICIENTNET_TABLE = "Tan and Le 2019 (EfficientNet), Table 1, with MBConv's expansion and squeeze ratio of MnasNet"
CONVNEXT_TABLE = "Liu et al. 2022 (A ConvNet for the 2020s), section 2 and Table 9"
CONVNEXT = ((96, 3), (192, 3), (384, 9), (768, 3))
RESNET50 = ((64, 3), (128, 4), (256, 6), (512, 3))
MOBILENET = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))
MOBILENET3 = (  # kernel, expanded channels, channels, squeeze and excite, stride
    (3, 16, 16, False, 1),
    (3, 64, 24, False, 2),
    (3, 72, 24, False, 1),
    (5, 72, 40, True, 2),
    (5, 120, 40, True, 1),
    (5, 120, 40, True, 1),
    (3, 240, 80, False, 2),
    (3, 200, 80, False, 1),
    (3, 184, 80, False, 1),
    (3, 184, 80, False, 1),
    (3, 480, 112, True, 1),
    (3, 672, 112, True, 1),
    (5, 672, 160, True, 2),
    (5, 960, 160, True, 1),
    (5, 960, 160, True, 1),
)
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


def resnet50(v: Values) -> Workload:
    """ResNet-50: bottlenecks of 1x1, 3x3 and 1x1; a stage's stride is in its first 3x3, as frameworks have it."""
    net = _empty("resnet50", RESNET_TABLE, v)
    plane = net.pool(net.convolution(net.image(3, v["image"]), 64, kernel=7, stride=2), 3, 1)
    for stage, (width, blocks) in enumerate(RESNET50):
        for block in range(blocks):
            net.module = f"stages.{stage}.blocks.{block}"
            stride = 2 if stage and not block else 1
            inner = net.convolution(net.convolution(plane, width, kernel=1), width, stride=stride)
            inner = net.convolution(inner, 4 * width, kernel=1)
            around = plane if block else net.convolution(plane, 4 * width, kernel=1, stride=stride)
            plane = net.residual(inner, around)
    return net.classified(str(plane), plane.channels, v["bits"])


def mobilenet_v2(v: Values) -> Workload:
    """MobileNet v2: inverted residuals of 1x1, depthwise 3x3 and 1x1."""
    net = _empty("mobilenet-v2", MOBILENET_TABLE, v)
    plane = net.convolution(net.image(3, v["image"]), 32, stride=2)
    for stage, (expansion, channels, blocks, first) in enumerate(MOBILENET):
        for block in range(blocks):
            net.module = f"stages.{stage}.blocks.{block}"
            wide = expansion * net.ranks[plane.channels]
            plane = _inverted(net, plane, wide, channels, first if not block else 1, 3, 0)
    return _headed(net, plane, 1280, v["bits"])


def mobilenet_v3(v: Values) -> Workload:
    """MobileNet v3 large: inverted residuals, eight of them with squeeze and excite."""
    net = _empty("mobilenet-v3", MOBILENET3_TABLE, v)
    plane = net.convolution(net.image(3, v["image"]), 16, stride=2)
    for block, (kernel, wide, channels, excite, stride) in enumerate(MOBILENET3):
        net.module = f"blocks.{block}"
        plane = _inverted(net, plane, wide, channels, stride, kernel, _eighths(wide / 4) if excite else 0)
    return _headed(net, plane, 960, v["bits"], hidden=1280)


def _eighths(channels: float) -> int:
    """The nearest multiple of 8 that is no less than nine tenths of them."""
    near = max(8, int(channels + 4) // 8 * 8)
    return near + 8 if near < 0.9 * channels else near


def efficientnet_b0(v: Values) -> Workload:
    """EfficientNet-B0: inverted residuals, each with squeeze and excite to a quarter of its input's channels."""
    net = _empty("efficientnet-b0", EFFICIENTNET_TABLE, v)
    plane = net.convolution(net.image(3, v["image"]), 32, stride=2)
    for stage, (expansion, channels, blocks, first, kernel) in enumerate(EFFICIENTNET):
        for block in range(blocks):
            net.module = f"stages.{stage}.blocks.{block}"
            narrow = net.ranks[plane.channels]
            stride = first if not block else 1
            plane = _inverted(net, plane, expansion * narrow, channels, stride, kernel, narrow // 4)
    return _headed(net, plane, 1280, v["bits"])


def convnext_t(v: Values) -> Workload:
    """ConvNeXt-T: depthwise 7x7, a layer norm, 1x1 to four times the channels and back; 2x2 between stages."""
    net = _empty("convnext-t", CONVNEXT_TABLE, v)
    plane = net.normed(net.convolution(net.image(3, v["image"]), CONVNEXT[0][0], kernel=4, stride=4))
    for stage, (width, blocks) in enumerate(CONVNEXT):
        if stage:
            net.module = f"downsampling.{stage}"
            plane = net.convolution(net.normed(plane), width, kernel=2, stride=2)
        for block in range(blocks):
            net.module = f"stages.{stage}.blocks.{block}"
            inner = net.convolution(net.normed(net.depthwise(plane, 7, 1)), 4 * width, kernel=1)
            plane = net.residual(net.convolution(inner, width, kernel=1), plane)
    return net.classified(str(plane), plane.channels, v["bits"], normed=True)


def _headed(net: Network, plane: Plane, channels: int, bits: int, hidden: int = 0) -> Workload:
    """The network with a convolution in front of the pooling and the classifier."""
    net.module = "head"
    last = net.convolution(plane, channels, kernel=1)
    return net.classified(str(last), last.channels, bits, hidden)


def _inverted(net: Network, plane: Plane, wide: int, channels: int, stride: int, kernel: int, squeeze: int) -> Plane:
    """One inverted residual. wide: channels inside; squeeze: channels of the squeeze, 0 for none."""
    narrow = net.ranks[plane.channels]
    inner = plane if wide == narrow else net.convolution(plane, wide, kernel=1)
    inner = net.depthwise(inner, kernel, stride)
    if squeeze:
        inner = net.excited(inner, squeeze)
    made = net.convolution(inner, channels, kernel=1)
    return net.residual(made, plane) if stride == 1 and channels == narrow else made
