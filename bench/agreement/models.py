"""Networks with random weights as ONNX files, by torch's exporter: architectures of torchvision and transformers.

Whole architectures at small images and few tokens; those of transformers with narrow layers, two of each stack.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Made = tuple[Any, tuple[Any, ...], dict[str, Any]]
"""A module, and the arguments that it is exported with."""
WIDTH, WIDE, HEADS, ROWS = 32, 64, 4, 100
TOKENS, PAST = 6, 5


@dataclass(frozen=True)
class Network:
    """A network to compare: what is built, at which size, and by whom."""

    title: str
    size: str
    package: str
    make: Callable[[], Made]


def _vision(name: str, pixels: int = 64, **options: Any) -> Callable[[], Made]:
    def make() -> Made:
        import torch
        import torchvision

        return getattr(torchvision.models, name)(weights=None, **options), (torch.randn(1, 3, pixels, pixels),), {}

    return make


def _resnext() -> Made:
    """One bottleneck a stage, four groups, and dilation in place of the last two strides."""
    import torch
    from torchvision.models.resnet import Bottleneck, ResNet

    dilated = [False, True, True]
    model = ResNet(Bottleneck, [1, 1, 2, 2], groups=4, width_per_group=8, replace_stride_with_dilation=dilated)
    return model, (torch.randn(1, 3, 64, 64),), {}


def _vit() -> Made:
    import torch
    from torchvision.models import VisionTransformer

    return VisionTransformer(32, 8, 2, HEADS, WIDTH, WIDE, num_classes=10), (torch.randn(1, 3, 32, 32),), {}


def _transformers(name: str, config: str, sizes: Mapping[str, Any], inputs: Callable[[Any], Any]) -> Callable[[], Made]:
    """A model by its configuration. inputs: the arguments by name, of torch."""

    def make() -> Made:
        import torch
        import transformers

        chosen = getattr(transformers, config)(**sizes)
        model = getattr(transformers, name)._from_config(chosen, attn_implementation="eager")
        return model, (), dict(inputs(torch))

    return make


def _ids(torch: Any, tokens: int = TOKENS) -> Any:
    return torch.randint(0, 2, (1, tokens))


_LLAMA = {
    "hidden_size": WIDTH,
    "intermediate_size": WIDE,
    "num_hidden_layers": 2,
    "num_attention_heads": HEADS,
    "num_key_value_heads": 2,
    "vocab_size": ROWS,
    "max_position_embeddings": 32,
    "use_cache": False,
}


def _decode() -> Made:
    """One token of Llama against the keys and values of five others, which are inputs."""
    import torch
    from transformers import DynamicCache, LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(**{**_LLAMA, "use_cache": True})
    model = LlamaForCausalLM._from_config(config, attn_implementation="eager")
    size = WIDTH // HEADS

    class Decoding(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, ids: Any, keys: Any, values: Any) -> Any:
            cache = DynamicCache(config=config)
            for layer in range(2):
                cache.update(keys[layer], values[layer], layer)
            out = self.model(input_ids=ids, past_key_values=cache, use_cache=True)
            return out.logits

    keys, values = (torch.randn(2, 1, 2, PAST, size) for _ in range(2))
    return Decoding(), (_ids(torch, 1), keys, values), {}


_BERT = {
    "hidden_size": WIDTH,
    "num_hidden_layers": 2,
    "num_attention_heads": HEADS,
    "intermediate_size": WIDE,
    "vocab_size": ROWS,
    "max_position_embeddings": 32,
}
_GPT2 = {"n_layer": 2, "n_embd": WIDTH, "n_head": HEADS, "vocab_size": ROWS, "n_positions": 32, "use_cache": False}
_T5 = {"d_model": WIDTH, "d_kv": 8, "d_ff": WIDE, "num_layers": 2, "num_heads": HEADS, "vocab_size": ROWS}
_WHISPER = {
    "d_model": WIDTH,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": HEADS,
    "decoder_attention_heads": HEADS,
    "encoder_ffn_dim": WIDE,
    "decoder_ffn_dim": WIDE,
    "num_mel_bins": 16,
    "max_source_positions": 20,
    "max_target_positions": 16,
    "vocab_size": ROWS,
    "use_cache": False,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "decoder_start_token_id": 1,
}
_SEGFORMER = {
    "depths": [1, 1, 1, 1],
    "hidden_sizes": [8, 16, 24, 32],
    "num_attention_heads": [1, 2, 3, 4],
    "decoder_hidden_size": 32,
    "num_labels": 5,
}
_MIXTRAL = {**_LLAMA, "num_local_experts": 4, "num_experts_per_tok": 2, "num_hidden_layers": 1}
_MAMBA = {"hidden_size": 16, "state_size": 4, "num_hidden_layers": 2, "vocab_size": ROWS, "use_cache": False}
_MAMBA2 = {
    **_MAMBA,
    "head_dim": 8,
    "num_heads": 4,
    "n_groups": 1,
    "chunk_size": 4,
    "num_hidden_layers": 1,
}


def _ids_alone(torch: Any) -> Any:
    return {"input_ids": _ids(torch)}


def _both(torch: Any) -> Any:
    return {"input_ids": _ids(torch), "decoder_input_ids": _ids(torch, 4)}


def _heard(torch: Any) -> Any:
    return {"input_features": torch.randn(1, 16, 40), "decoder_input_ids": _ids(torch, 4)}


def _mixtral() -> Made:
    """Each token's two experts as gathered weights."""
    made = _transformers("MixtralForCausalLM", "MixtralConfig", _MIXTRAL, _ids_alone)()
    made[0].config._experts_implementation = "batched_mm"
    return made


NETWORKS: Mapping[str, Network] = {
    "resnet18": Network("ResNet-18", "64 px", "torchvision", _vision("resnet18")),
    "resnext": Network("ResNeXt, dilated", "64 px", "torchvision", _resnext),
    "mobilenet-v3": Network("MobileNet v3 small", "64 px", "torchvision", _vision("mobilenet_v3_small")),
    "efficientnet-b0": Network("EfficientNet-B0", "64 px", "torchvision", _vision("efficientnet_b0")),
    "densenet121": Network("DenseNet-121", "64 px", "torchvision", _vision("densenet121")),
    "squeezenet": Network("SqueezeNet 1.1", "64 px", "torchvision", _vision("squeezenet1_1")),
    "shufflenet": Network("ShuffleNet v2 x0.5", "64 px", "torchvision", _vision("shufflenet_v2_x0_5")),
    "convnext-t": Network("ConvNeXt-T", "64 px", "torchvision", _vision("convnext_tiny")),
    "swin-t": Network("Swin-T", "64 px", "torchvision", _vision("swin_t")),
    "vit": Network("ViT, 2 layers", "32 px", "torchvision", _vit),
    "segformer": Network(
        "SegFormer, 4 stages of 1",
        "64 px",
        "transformers",
        _transformers(
            "SegformerForSemanticSegmentation",
            "SegformerConfig",
            _SEGFORMER,
            lambda torch: {"pixel_values": torch.randn(1, 3, 64, 64)},
        ),
    ),
    "bert": Network(
        "BERT, 2 layers", "6 tokens", "transformers", _transformers("BertModel", "BertConfig", _BERT, _ids_alone)
    ),
    "gpt2": Network(
        "GPT-2, 2 layers", "6 tokens", "transformers", _transformers("GPT2LMHeadModel", "GPT2Config", _GPT2, _ids_alone)
    ),
    "t5": Network(
        "T5, 2 + 2 layers",
        "6 and 4 tokens",
        "transformers",
        _transformers("T5ForConditionalGeneration", "T5Config", {**_T5, "use_cache": False}, _both),
    ),
    "whisper": Network(
        "Whisper, 2 + 2 layers",
        "40 frames, 4 tokens",
        "transformers",
        _transformers("WhisperModel", "WhisperConfig", _WHISPER, _heard),
    ),
    "llama": Network(
        "Llama, 2 layers",
        "6 tokens",
        "transformers",
        _transformers("LlamaForCausalLM", "LlamaConfig", _LLAMA, _ids_alone),
    ),
    "llama-decode": Network("Llama, 2 layers, with a cache", "1 token after 5", "transformers", _decode),
    "mixtral": Network("Mixtral, 1 layer", "6 tokens", "transformers", _mixtral),
    "mamba": Network(
        "Mamba, 2 layers",
        "6 tokens",
        "transformers",
        _transformers("MambaForCausalLM", "MambaConfig", _MAMBA, _ids_alone),
    ),
    "mamba2": Network(
        "Mamba-2, 1 layer",
        "6 tokens",
        "transformers",
        _transformers("Mamba2ForCausalLM", "Mamba2Config", _MAMBA2, _ids_alone),
    ),
}


def export(name: str, path: Path, seed: int = 0) -> None:
    """Write a network as an ONNX file. Raises ImportError where its package or torch's exporter is missing."""
    import torch

    torch.manual_seed(seed)
    model, args, kwargs = NETWORKS[name].make()
    with torch.no_grad():
        for parameter in model.parameters():  # ones and zeros would hide what norms and biases do
            if parameter.ndim < 2:
                parameter.add_(0.1 * torch.randn_like(parameter))
        for kept, buffer in model.named_buffers():
            if kept.endswith(("running_mean", "running_var")):
                buffer.add_(0.2 * torch.rand_like(buffer))
    path.parent.mkdir(parents=True, exist_ok=True)
    torch.onnx.export(
        _tensors_alone(torch, model), args, path, kwargs=kwargs, dynamo=True, optimize=False,
        external_data=False, verbose=False,
    )  # fmt: skip


def _tensors_alone(torch: Any, model: Any) -> Any:
    """The model with its first tensor as the result, where it returns a record."""

    class First(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, *args: Any, **kwargs: Any) -> Any:
            out = self.model(*args, **kwargs)
            return out if isinstance(out, torch.Tensor) else out[0]

    return First().eval()
