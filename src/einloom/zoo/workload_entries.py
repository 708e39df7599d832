"""The workloads that ship with einloom, by name, each with its parameters and the source of every size."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from types import MappingProxyType

from ..dataclass import dataclass
from ..errors import SpecError
from ..reading.facts import Fact
from ..reading.units import parse
from ..workload.build import build_workload
from ..workload.einsum import Workload
from ..workload.notation import parse_einsum
from .attentions import SHAPES, attention
from .catalogue import Entry, Parameter, check_keys
from .convnets import alexnet, resnet18, vgg16
from .encoders import NETWORKS
from .index import check_entry
from .networks import convnext_t, efficientnet_b0, mobilenet_v2, mobilenet_v3, resnet50
from .origins import CHOSEN, INPUTS, Values, bits_fact, chosen_facts, rank_facts
from .state_spaces import mamba_130m
from .table2 import MODELS, attention_pair, layer
from .transformers import gpt3, llama3_8b
from .windowed import swin_t

MAX_EINSUMS = 4096


@dataclass(frozen=True, slots=True)
class Recipe:
    """How an entry is built; absent parameters without a default are left out of the values."""

    entry: Entry
    build: Callable[[Values], Workload]


def zoo_workload(name: str, parameters: Mapping[str, str | int | bool] | None = None) -> Workload:
    """The workload called `name`, with `parameters` in place of its defaults.

    >>> zoo_workload("matmul", {"m": 8}).tensor("A").shape
    (8, 64)

    Raises SpecError for an unknown name, an unknown parameter, or a value that is no whole number (or true, false).
    """
    check_entry(name, "workload", RECIPES)
    entry = RECIPES[name].entry
    given = {key: str(value) for key, value in (parameters or {}).items()}
    check_keys(given, entry)
    values = {p.name: _value(name, p, given.get(p.name, p.default)) for p in entry.parameters}
    return _build(name, tuple((key, value) for key, value in values.items() if value is not None))


@lru_cache(maxsize=64)
def _build(name: str, values: tuple[tuple[str, int], ...]) -> Workload:
    return RECIPES[name].build(dict(values))


def _value(entry: str, parameter: Parameter, text: str) -> int | None:
    if not text:
        return None
    key = parameter.name
    if parameter.default in ("true", "false"):
        if text.lower() not in ("true", "false"):
            raise SpecError(f"{entry}: {key}={text} must be true or false")
        return int(text.lower() == "true")
    try:
        number = parse(text, "size" if key == "bits" else "count")
    except SpecError as error:
        raise SpecError(f"{entry}: {key}: {error.message}", suggestion=error.suggestion) from None
    if not 1 <= number <= 2**40:
        raise SpecError(f"{entry}: {key}={text} must be a whole number from 1 to 2**40")
    return int(number)


def entries() -> Mapping[str, Entry]:
    """Every workload with its description and parameters, by name."""
    return MappingProxyType({name: recipe.entry for name, recipe in RECIPES.items()})


def _matmul(v: Values) -> Workload:
    ranks = {rank: v[rank] for rank in "mnk"}
    return build_workload("matmul", ["Z[m,n] = A[m,k] * B[k,n]"], ranks, bits=v["bits"], facts=chosen_facts(ranks))


def _chain(name: str, m: int, widths: list[int], bits: int, facts: tuple[Fact, ...]) -> Workload:
    """Matmuls in a row; widths are the sizes of n0, n1, and so on."""
    einsums = [
        parse_einsum(f"T{i + 1}[m,n{i + 1}] = T{i}[m,n{i}] * W{i}[n{i},n{i + 1}]", f"E{i}")
        for i in range(len(widths) - 1)
    ]
    ranks = {"m": m, **{f"n{i}": width for i, width in enumerate(widths)}}
    return build_workload(name, einsums, ranks, bits=bits, facts=facts)


def _count(v: Values) -> int:
    if not 1 <= v["n"] <= MAX_EINSUMS:
        raise SpecError(f"n={v['n']}: a chain has 1 to {MAX_EINSUMS} matmuls")
    return v["n"]


def _matmuls(v: Values) -> Workload:
    n = _count(v)
    ranks = {"m": v["m"], **{f"n{i}": v["kn"] for i in range(n + 1)}}
    return _chain("matmuls", v["m"], [v["kn"]] * (n + 1), v["bits"], chosen_facts(ranks))


def _matmuls_ffm75(v: Values) -> Workload:
    widths = [(16384, 16384, 4096, 4096)[i % 4] for i in range(_count(v) + 1)]
    ranks = ["m", *(f"n{i}" for i in range(len(widths)))]
    facts = rank_facts("FFM paper, section 7.5", "printed", ranks)
    return _chain("matmuls-ffm75", 8192, widths, v["bits"], (*facts, bits_fact(v, 8)))


def _mobilenet_block(v: Values) -> Workload:
    """Two inverted residuals without the residual; 59520 values of inputs, outputs and weights."""
    einsums = []
    for block, (x, y, narrow, wide, out) in enumerate((("X", "Y1", "a", "b", "c"), ("Y1", "Y", "c", "d", "e")), 1):
        einsums += [
            f"E{block}[{wide},p,q] = {x}[{narrow},p,q] * WE{block}[{narrow},{wide}]",
            f"D{block}[{wide},p,q] = E{block}[{wide},p+r-1,q+s-1] * WD{block}[{wide},r,s]",
            f"{y}[{out},p,q] = D{block}[{wide},p,q] * WP{block}[{wide},{out}]",
        ]
    ranks = {"a": 24, "b": 192, "c": 24, "d": 192, "e": 24, "p": 28, "q": 28, "r": 3, "s": 3}
    facts = (*rank_facts(INPUTS, "code", ranks), bits_fact(v, 8))
    return build_workload("mobilenet-block", einsums, ranks, bits=v["bits"], facts=facts)


def _conv_chain(name: str, row: Mapping[str, int] | None = None) -> Callable[[Values], Workload]:
    """Two convolutions of stride one without padding; `row` holds the sizes that a table prints."""

    def build(v: Values) -> Workload:
        sizes = {**v, **(row or {})}
        ranks = {"c": sizes["c"], "l": sizes["l"], "k": sizes["k"], "h": sizes["h"], "w": sizes["w"]}
        ranks.update(dict.fromkeys(("r", "s"), v["first"]), **dict.fromkeys(("u", "v"), v["second"]))
        ranks.update(y=sizes["h"] + v["second"] - 1, x=sizes["w"] + v["second"] - 1)
        einsums = ("Act[y,x,l] = Im[y+r,x+s,c] * W1[l,r,s,c]", "Out[h,w,k] = Act[h+u,w+v,l] * W2[k,u,v,l]")
        if row is None:
            return build_workload(name, einsums, ranks, bits=v["bits"], facts=chosen_facts(ranks))
        table = "TileFlow paper, Table 3"
        facts = (
            *rank_facts(table, "printed", "clkhw"),
            *_kernel_facts("rs", v["first"]),
            *_kernel_facts("uv", v["second"]),
            *rank_facts(f"{table}: height and width are those of the last output; no padding", "derived", "yx"),
            bits_fact(v, 16, "TileFlow's code: word_bits 16"),
        )
        return build_workload(name, einsums, ranks, bits=v["bits"], facts=facts)

    return build


def _kernel_facts(ranks: str, size: int) -> tuple[Fact, ...]:
    if size != 3:
        return rank_facts(CHOSEN, "assumed", ranks)
    return rank_facts("TileFlow paper, Figure 12", "printed", ranks)


def _residual_diamond(v: Values) -> Workload:
    einsums = (
        "H[m,d] = X[m,k] * W0[k,d]",
        "A[m,n] = H[m,d] * W1[d,n]",
        "B[m,d] = A[m,n] * W2[n,d]",
        "Y[m,d] = add(B[m,d], H[m,d])",
    )
    ranks = {rank: v[rank] for rank in ("m", "k", "d", "n")}
    return build_workload("residual-diamond", einsums, ranks, bits=v["bits"], facts=chosen_facts(ranks))


def _recipe(name: str, description: str, parameters: str, build: Callable[[Values], Workload]) -> tuple[str, Recipe]:
    """`parameters` reads ``m=64 n=64``; an empty default means that the value depends on the others."""
    pairs = (part.partition("=") for part in parameters.split())
    return name, Recipe(Entry(name, description, tuple(Parameter(key, default) for key, _, default in pairs)), build)


_LAYER = "batch=1 tokens= cached= decode=false layers=1 bits=16"
_TILEFLOW = (
    ("cc1", "Yolo", {"c": 64, "h": 112, "w": 112, "l": 192, "k": 128}),
    ("cc2", "Inception-V3", {"c": 32, "h": 147, "w": 147, "l": 64, "k": 80}),
    ("cc3", "Darknet-19", {"c": 64, "h": 56, "w": 56, "l": 128, "k": 64}),
    ("cc4", "Darknet-19", {"c": 128, "h": 28, "w": 28, "l": 256, "k": 128}),
    ("cc5", "Squeezenet-V1.1", {"c": 16, "h": 227, "w": 227, "l": 64, "k": 16}),
)

RECIPES: Mapping[str, Recipe] = MappingProxyType(
    dict(
        (
            _recipe("matmul", "one matrix multiplication", "m=64 n=64 k=64 bits=8", _matmul),
            _recipe("matmuls", "a chain of n equal matrix multiplications", "n=2 m=64 kn=64 bits=8", _matmuls),
            _recipe("matmuls-ffm75", "the chain of the FFM paper's section 7.5", "n=16 bits=8", _matmuls_ffm75),
            _recipe("gpt3-6.7b", "layers of GPT-3 6.7B, one by default", _LAYER, gpt3("gpt3-6.7b", 32, 128, 4096)),
            _recipe("gpt3-175b", "layers of GPT-3 175B, one by default", _LAYER, gpt3("gpt3-175b", 96, 128, 12288)),
            _recipe(
                "llama3-8b",
                "layers of Llama 3 8B, prefill, one by default; norms are left out",
                "batch=1 tokens=2048 layers=1 bits=16",
                llama3_8b,
            ),
            _recipe("alexnet", "AlexNet, whole, its images 227 x 227", "batch=1 bits=8", alexnet),
            _recipe(
                "resnet18",
                "ResNet-18: residual stages of two blocks; with all four, pooling and the classifier too",
                "batch=1 image=224 width=64 stages=4 bits=8",
                resnet18,
            ),
            _recipe(
                "vgg16",
                "VGG-16: stages of convolutions, each with a pooling; with all five, the classifier too",
                "batch=1 image=224 width=64 stages=5 bits=8",
                vgg16,
            ),
            _recipe("resnet50", "ResNet-50, whole", "batch=1 image=224 bits=8", resnet50),
            _recipe("mobilenet-v2", "MobileNet v2, whole", "batch=1 image=224 bits=8", mobilenet_v2),
            _recipe("mobilenet-v3", "MobileNet v3 large, whole", "batch=1 image=224 bits=8", mobilenet_v3),
            _recipe("efficientnet-b0", "EfficientNet-B0, whole", "batch=1 image=224 bits=8", efficientnet_b0),
            _recipe("convnext-t", "ConvNeXt-T, whole", "batch=1 image=224 bits=8", convnext_t),
            _recipe("swin-t", "Swin-T, whole; norms and softmax in parts", "batch=1 image=224 bits=8", swin_t),
            *(
                _recipe(each.name, f"{each.title}; norms and softmax in parts", each.parameters, each.build)
                for each in NETWORKS
            ),
            _recipe(
                "mamba-130m",
                "Mamba 130M with head: one token after those that its states hold",
                "batch=1 layers=24 bits=8",
                mamba_130m,
            ),
            _recipe("mobilenet-block", "two MobileNet blocks at 28 x 28", "bits=8", _mobilenet_block),
            _recipe(
                "conv-chain",
                "two convolutions in a row, no padding: c channels to l to k, output h x w",
                "c=4 h=8 w=8 l=8 k=4 first=3 second=3 bits=16",
                _conv_chain("conv-chain"),
            ),
            *(
                _recipe(
                    f"tileflow-{short}",
                    f"{model}'s two convolutions, {short.upper()} of TileFlow's Table 3",
                    "first=3 second=3 bits=16",
                    _conv_chain(f"tileflow-{short}", row),
                )
                for short, model, row in _TILEFLOW
            ),
            *(
                _recipe(
                    f"tileflow-{short}",
                    f"{model}'s self-attention of TileFlow's Table 2, softmax in five Einsums",
                    "batch=1 bits=16",
                    attention(f"tileflow-{short}", heads, sequence, hidden),
                )
                for short, model, heads, sequence, hidden in SHAPES
            ),
            *(
                _recipe(
                    name,
                    f"a layer of {title}, a model of the FuseCU paper's Table II",
                    "batch=16 tokens= bits=8",
                    layer(name),
                )
                for name, (title, *_) in MODELS.items()
            ),
            *(
                _recipe(
                    f"{name}-attention",
                    f"QK and AV of {title} without the softmax, as the FuseCU paper fuses them",
                    "batch=16 tokens= bits=8",
                    attention_pair(name),
                )
                for name, (title, *_) in MODELS.items()
            ),
            _recipe(
                "residual-diamond",
                "two matrix multiplications and the addition that goes around them",
                "m=8 k=4 d=4 n=8 bits=8",
                _residual_diamond,
            ),
        )
    )
)
