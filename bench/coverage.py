"""Whole networks at full size, read from PyTorch without weights: ``python -m bench.coverage``. One CSV row a network.

What is counted: nodes, Einsums, multiplications of the exported graph from its shapes alone, and those of the cascade,
beside those that were counted in ONNX files of the same networks with a reader of their own. Exits with 1 if a
multiplication is missing or a count is another one.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import einloom as el

from .agreement.models import Made
from .mutants.table import read
from .rows import ROOT, append, stamp

RESULTS = ROOT / "bench" / "results" / "coverage.csv"
SAME = 1e-3
"""The known counts have four digits."""


@dataclass(frozen=True)
class FullNetwork:
    """A network, the size of its input, and its multiplications in 10**9."""

    title: str
    size: str
    giga: float
    make: Callable[[], Made]


def _vision(name: str, pixels: int = 224, folder: str = "models", **options: Any) -> Callable[[], Made]:
    def make() -> Made:
        import torch
        import torchvision

        place = torchvision.models if folder == "models" else getattr(torchvision.models, folder)
        model = getattr(place, name)(weights=None, **options)  # some read numbers while they are built
        return model.to("meta"), (torch.empty(1, 3, pixels, pixels, device="meta"),), {}

    return make


def _language(name: str, config: str, sizes: dict[str, Any], **inputs: tuple[int, ...]) -> Callable[[], Made]:
    """A model of transformers by its configuration. inputs: shapes by name, of integers where the name ends in ids."""

    def make() -> Made:
        import torch
        import transformers

        chosen = getattr(transformers, config)(**sizes)
        with torch.device("meta"):
            model = getattr(transformers, name)._from_config(chosen, attn_implementation="eager")
            kinds = {key: torch.long if key.endswith("ids") else torch.float for key in inputs}
            given = {key: torch.zeros(shape, dtype=kinds[key]) for key, shape in inputs.items()}
        return model.eval(), (), given

    return make


_LLAMA3 = {
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "vocab_size": 128256,
    "max_position_embeddings": 8192,
    "use_cache": False,
}
_MISTRAL = {**_LLAMA3, "num_hidden_layers": 2, "vocab_size": 32000, "sliding_window": None}
_T5 = {"d_model": 512, "d_kv": 64, "d_ff": 2048, "num_layers": 6, "num_heads": 8, "use_cache": False}
_WHISPER = {
    "d_model": 384,
    "encoder_layers": 4,
    "decoder_layers": 4,
    "encoder_attention_heads": 6,
    "decoder_attention_heads": 6,
    "encoder_ffn_dim": 1536,
    "decoder_ffn_dim": 1536,
    "use_cache": False,
}
_CLIP = {"hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 12, "num_attention_heads": 12}
NETWORKS = {
    "resnet18": FullNetwork("ResNet-18", "224 px", 1.814, _vision("resnet18")),
    "resnet50": FullNetwork("ResNet-50", "224 px", 4.089, _vision("resnet50")),
    "resnext50": FullNetwork("ResNeXt-50", "224 px", 4.230, _vision("resnext50_32x4d")),
    "vgg16": FullNetwork("VGG-16", "224 px", 15.47, _vision("vgg16")),
    "mobilenet-v2": FullNetwork("MobileNet v2", "224 px", 0.3008, _vision("mobilenet_v2")),
    "mobilenet-v3": FullNetwork("MobileNet v3 large", "224 px", 0.2166, _vision("mobilenet_v3_large")),
    "efficientnet-b0": FullNetwork("EfficientNet-B0", "224 px", 0.3858, _vision("efficientnet_b0")),
    "regnet": FullNetwork("RegNet-Y 400MF", "224 px", 0.4018, _vision("regnet_y_400mf")),
    "convnext-t": FullNetwork("ConvNeXt-T", "224 px", 4.456, _vision("convnext_tiny")),
    "densenet121": FullNetwork("DenseNet-121", "224 px", 2.834, _vision("densenet121")),
    "inception": FullNetwork(
        "Inception v3", "299 px", 5.713, _vision("inception_v3", 299, aux_logits=False, init_weights=False)
    ),
    "squeezenet": FullNetwork("SqueezeNet 1.1", "224 px", 0.3492, _vision("squeezenet1_1")),
    "shufflenet": FullNetwork("ShuffleNet v2", "224 px", 0.1449, _vision("shufflenet_v2_x1_0")),
    "deeplab": FullNetwork(
        "DeepLab v3, MobileNet",
        "224 px",
        1.882,
        _vision("deeplabv3_mobilenet_v3_large", folder="segmentation", weights_backbone=None),
    ),
    "vit-b16": FullNetwork("ViT-B/16", "224 px", 17.56, _vision("vit_b_16")),
    "swin-t": FullNetwork("Swin-T", "224 px", 4.491, _vision("swin_t")),
    "segformer": FullNetwork(
        "SegFormer-B0",
        "224 px",
        1.326,
        _language("SegformerForSemanticSegmentation", "SegformerConfig", {}, pixel_values=(1, 3, 224, 224)),
    ),
    "clip": FullNetwork(
        "CLIP vision B/32",
        "224 px",
        4.408,
        _language("CLIPVisionModelWithProjection", "CLIPVisionConfig", _CLIP, pixel_values=(1, 3, 224, 224)),
    ),
    "bert-base": FullNetwork(
        "BERT-base", "128 tokens", 11.17, _language("BertModel", "BertConfig", {}, input_ids=(1, 128))
    ),
    "gpt2": FullNetwork(
        "GPT-2 with head",
        "128 tokens",
        16.11,
        _language("GPT2LMHeadModel", "GPT2Config", {"use_cache": False}, input_ids=(1, 128)),
    ),
    "t5-small": FullNetwork(
        "T5-small",
        "64 and 64 tokens",
        2.894,
        _language("T5Model", "T5Config", _T5, input_ids=(1, 64), decoder_input_ids=(1, 64)),
    ),
    "whisper-tiny": FullNetwork(
        "Whisper-tiny",
        "3,000 frames, 16 tokens",
        20.44,
        _language("WhisperModel", "WhisperConfig", _WHISPER, input_features=(1, 80, 3000), decoder_input_ids=(1, 16)),
    ),
    "mistral": FullNetwork(
        "Mistral, 2 layers of 7B",
        "2,048 tokens",
        1231,
        _language("MistralForCausalLM", "MistralConfig", _MISTRAL, input_ids=(1, 2048)),
    ),
    "llama3": FullNetwork(
        "Llama 3 8B with head",
        "2,048 tokens",
        16470,
        _language("LlamaForCausalLM", "LlamaConfig", _LLAMA3, input_ids=(1, 2048)),
    ),
}


def row(about: FullNetwork) -> tuple[dict[str, object], bool]:
    """One network, and whether every multiplication is there and their number is the known one."""
    started = time.process_time()
    model, args, kwargs = about.make()
    found = el.from_torch(model, args, kwargs, bits=8)
    seconds = time.process_time() - started
    counted, mapped = found.multiplications
    cuts = Counter(fate.operator for fate in found.program.fates)
    right = counted == mapped and abs(counted / 1e9 / about.giga - 1) <= SAME
    return {
        "network": about.title,
        "size": about.size,
        "nodes": sum(found.program.nodes.values()),
        "einsums": len(found.workload.einsums),
        "multiplications": counted,
        "mapped": mapped,
        "onnx_giga": about.giga,
        "cut": " ".join(f"{count} {operator}" for operator, count in cuts.items()),
        "cpu_s": f"{seconds:.1f}",
        **stamp(),
    }, right


def main(words: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m bench.coverage", description=__doc__.split("\n")[0])
    parser.add_argument("--only", default="", choices=["", *NETWORKS], metavar="NETWORK", help=", ".join(NETWORKS))
    parser.add_argument("--output", type=Path, default=RESULTS)
    asked = parser.parse_args(words)
    done = {one["network"] for one in read(asked.output)}
    bad = 0
    for name, about in NETWORKS.items():
        if about.title not in done and asked.only in ("", name):
            made, right = row(about)
            append(asked.output, made)
            print(", ".join(str(value) for value in made.values()), flush=True)
            bad += not right
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
