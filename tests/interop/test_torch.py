"""PyTorch in: every tensor has torch's own value, Einsums carry module names, what cannot be said is named."""

from __future__ import annotations

import builtins
from typing import Any

import pytest

import einloom as el
from einloom.errors import MissingExtra, SpecError
from einloom.interop.onnx.ranks import Affine
from einloom.workload.files import parse_workload, workload_text

torch = pytest.importorskip("torch")
nn, F = torch.nn, torch.nn.functional


class Perceptron(nn.Module):
    """A residual MLP: Linear, GELU, SiLU, LayerNorm."""

    def __init__(self) -> None:
        super().__init__()
        self.up, self.down, self.norm = nn.Linear(16, 32), nn.Linear(32, 16), nn.LayerNorm(16)

    def forward(self, x: Any) -> Any:
        return self.norm(x + F.silu(self.down(F.gelu(self.up(x)))))


class Decoder(nn.Module):
    """Grouped queries and a causal mask, RMSNorm, a residual."""

    def __init__(self, width: int = 32, heads: int = 4, groups: int = 2) -> None:
        super().__init__()
        self.heads, self.groups, self.size = heads, groups, width // heads
        self.norm, self.q_proj = nn.RMSNorm(width), nn.Linear(width, width)
        self.k_proj, self.v_proj = (nn.Linear(width, groups * self.size) for _ in range(2))
        self.o_proj = nn.Linear(width, width, bias=False)

    def forward(self, x: Any) -> Any:
        batch, tokens, width = x.shape
        h = self.norm(x)
        q = self.q_proj(h).view(batch, tokens, self.heads, self.size).transpose(1, 2)
        k, v = (p(h).view(batch, tokens, self.groups, self.size).transpose(1, 2) for p in (self.k_proj, self.v_proj))
        out = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        return x + self.o_proj(out.transpose(1, 2).reshape(batch, tokens, width))


class ByHand(nn.Module):
    """Q, K and V of one projection, a mask by `masked_fill`, a mean, a log-softmax."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv, self.head = nn.Linear(32, 96), nn.Linear(32, 10)

    def forward(self, x: Any) -> Any:
        q, k, v = self.qkv(x).chunk(3, -1)
        hidden = torch.ones(9, 9, dtype=torch.bool, device=x.device).triu(1)
        weights = torch.softmax(q @ k.transpose(-1, -2) / 8**0.5, -1).masked_fill(hidden, 0.0)
        return F.log_softmax(self.head((weights @ v).mean(1)), -1)


class MultiHead(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attn = nn.MultiheadAttention(32, 4, batch_first=True)

    def forward(self, x: Any) -> Any:
        return self.attn(x, x, x)


class Convolutions(nn.Module):
    """Conv, BatchNorm, ReLU in place, pools, a depthwise layer, a residual, GroupNorm, a classifier."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, 8, 3, 2, 1, bias=False), nn.BatchNorm2d(8), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)
        )
        self.deep, self.wide = nn.Conv2d(8, 8, 3, padding=1, groups=8), nn.Conv2d(8, 16, 1)
        self.act, self.norm, self.head = nn.Hardswish(), nn.GroupNorm(4, 16), nn.Linear(16, 10)

    def forward(self, x: Any) -> Any:
        x = self.stem(x)
        x = self.norm(self.act(self.wide(x + self.deep(x))))
        x = F.relu6(F.avg_pool2d(x, 2))
        return self.head(torch.flatten(F.adaptive_avg_pool2d(x, 1), 1))


class Encoder(nn.Module):
    """Embedding rows, positions, a TransformerEncoderLayer, the class token."""

    def __init__(self) -> None:
        super().__init__()
        self.rows, self.places = nn.Embedding(50, 16), nn.Parameter(torch.randn(1, 7, 16))
        self.layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True, activation="gelu", norm_first=True)

    def forward(self, ids: Any) -> Any:
        return self.layer(self.rows(ids) + self.places)[:, 0]


class Rotary(nn.Module):
    """A table of angles that follows from constants alone."""

    def forward(self, x: Any) -> Any:
        places = torch.arange(x.shape[1], device=x.device)[:, None]
        angles = places * 10000.0 ** (-torch.arange(0, 4, device=x.device) / 4)
        a, b = x.split(4, -1)
        return a * angles.cos() - b * angles.sin(), a * angles.sin() + b * angles.cos()


class Parts(nn.Module):
    """Views and parts: cat, pad and stack write parts of one tensor."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(8, 12, bias=False), nn.Linear(6, 4)

    def forward(self, x: Any) -> Any:
        u, w = self.a(x).unbind(0)[0].tensor_split(2, -1)
        y = self.b(u * torch.sigmoid(w))
        z = torch.cat([y, torch.clamp(y, min=0)], -1)
        found = [z.pow(2).sum(-1).rsqrt(), y.std(-1), torch.einsum("ij,kj->ik", z, z), F.pad(y, (1, 1)), y.amax(0)]
        return *found, torch.stack([y, y]), y.repeat_interleave(2, 0) * 2


CASES: dict[str, tuple[type[Any], Any, int]] = {
    "perceptron": (Perceptron, (2, 5, 16), 3),
    "decoder": (Decoder, (2, 6, 32), 6),
    "by hand": (ByHand, (2, 9, 32), 7),
    "multi-head": (MultiHead, (2, 6, 32), 8),
    "convolutions": (Convolutions, (2, 3, 32, 32), 6),
    "encoder": (Encoder, None, 9),
    "rotary": (Rotary, (2, 6, 8), 4),
    "parts": (Parts, (3, 5, 8), 11),
}


def read(made: type[Any], shape: Any, **options: Any) -> Any:
    torch.manual_seed(0)
    return el.from_torch(
        made(), torch.zeros(3, 7, dtype=torch.long) if shape is None else torch.zeros(shape), **options
    )


@pytest.mark.parametrize("case", CASES)
def test_every_tensor_has_torchs_own_value(case: str) -> None:
    made, shape, tensors = CASES[case]
    model = read(made, shape)
    agreed = model.check()
    assert agreed.tensors == tensors and agreed.worst < 1e-5
    assert model.multiplications[0] == model.multiplications[1]
    assert len(model.cuts) == {"encoder": 1}.get(case, 0)
    assert parse_workload(workload_text(model.workload)) == model.workload


@pytest.mark.parametrize(
    ("mode", "scale", "cuts"),
    [("nearest", 2, 0), ("nearest", 3, 0), ("nearest", 2.4, 1), ("nearest-exact", 2, 0), ("bilinear", 2, 1)],
)
def test_other_resolutions(mode: str, scale: float, cuts: int) -> None:
    """The nearest value at an integer scale is written in parts; in 2 x 2 pixels 2.4 makes 4, which are no doubles."""

    class Wider(nn.Module):
        def forward(self, x: Any) -> Any:
            return F.interpolate(torch.relu(x), scale_factor=scale, mode=mode).sum(1)

    model = read(Wider, (1, 3, 2, 2))
    assert len(model.cuts) == cuts and model.check().worst < 1e-5


@pytest.mark.parametrize(("shifts", "dims"), [(3, 1), ((-2, 5), (1, 2)), ((6, 1), (1, 3)), (0, 2)])
def test_what_goes_around_the_edge_is_written_in_parts(shifts: Any, dims: Any) -> None:
    """As the windows of Swin: no cut."""

    class Rolled(nn.Module):
        def forward(self, x: Any) -> Any:
            return torch.roll(torch.relu(x), shifts, dims) @ torch.ones(4, 3)

    model = read(Rolled, (2, 6, 7, 4))
    assert not model.cuts and model.check().worst < 1e-5


def test_a_planted_fault_is_found() -> None:
    model = read(ByHand, (2, 9, 32))
    next(step for step in model.program.steps if step.epilogues).epilogues = ()
    assert not model.check().worst < 1e-3
    model = read(Convolutions, (2, 3, 32, 32))
    operand = model.program.steps[0].operands[0]
    operand.places = tuple((r, Affine(a.terms, a.constant + 1 if a.constant else 0)) for r, a in operand.places)
    assert not model.check().worst < 1e-3


def test_einsums_carry_module_names_and_need_no_weights() -> None:
    with torch.device("meta"):
        layers = nn.Sequential(*(Decoder(4096, 32, 8) for _ in range(2)))
    model = el.from_torch(layers, torch.empty(1, 512, 4096, dtype=torch.bfloat16), bits=8)
    assert {"0_q_proj", "1_k_proj"} <= {name.lstrip("T") for name in model.workload.names}
    groups = set(model.groups.values())
    assert {"0.norm", "0.q_proj", "0", "1.o_proj"} <= groups
    projections, scores = 2 * 4096 * 4096 + 2 * 4096 * 1024, 2 * 512 * 4096
    assert model.multiplications[1] == 2 * 512 * (projections + scores)
    assert "q_proj.weight" not in str(model.graph.nodes[0])


def test_a_call_without_an_einsum_is_refused_by_its_module() -> None:
    class Chooses(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.body = nn.Linear(8, 8), Strange()

        def forward(self, x: Any) -> Any:
            return self.body(self.first(x))

    class Strange(nn.Module):
        def forward(self, x: Any) -> Any:
            return torch.topk(x, 2)[0] + 1, torch.fft.rfft(x).real

    with pytest.raises(SpecError) as refused:
        el.from_torch(Chooses(), torch.zeros(4, 8))
    said = str(refused.value)
    assert "node 'body/topk' (TopK) chooses by data" in said and "cut there with boundary={'body/topk'}" in said
    assert "'body/_fft_r2c' (_fft_r2c) is of domain 'aten'" in said
    named = {part.split("'")[1] for part in said.split("node ")[1:]}
    model = el.from_torch(Chooses(), torch.zeros(4, 8), boundary=named)
    assert any("cut body/topk" in cut for cut in model.cuts) and model.check().worst < 1e-5
    with pytest.raises(SpecError, match="no node is called"):
        el.from_torch(Chooses(), torch.zeros(4, 8), boundary=["body/topl"])


def test_the_exporters_own_error_names_the_module() -> None:
    class Branches(nn.Module):
        def forward(self, x: Any) -> Any:
            return x * 2 if x.sum() > 0 else x

    with pytest.raises(SpecError, match=r"Sequential: torch\.export fails in module '1'.*"):
        el.from_torch(nn.Sequential(nn.Linear(4, 4), Branches()), torch.zeros(2, 4))
    with pytest.raises(SpecError, match=r"torch\.export fails"):
        el.from_torch(nn.Linear(4, 4), torch.zeros(2, 5))
    with pytest.raises(SpecError, match=r"no torch\.nn\.Module"):
        el.from_torch(torch.relu, torch.zeros(2, 5))
    with pytest.raises(SpecError, match="nothing in it is arithmetic"):
        el.from_torch(nn.Identity(), torch.zeros(2, 5))


def test_the_module_is_left_as_it_was_and_may_be_exported_already() -> None:
    module = Perceptron()
    module.up.eval()
    model = el.from_torch(module, torch.zeros(2, 5, 16))
    assert module.training and not module.up.training and module.down.training
    program = torch.export.export(module.eval(), (torch.zeros(2, 5, 16),))
    assert [e.inputs for e in el.from_torch(program).workload.einsums] == [e.inputs for e in model.workload.einsums]


def test_a_missing_torch_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def missing(name: str, *arguments: Any, **options: Any) -> Any:
        if name.startswith("torch"):
            raise ImportError(name)
        return real(name, *arguments, **options)

    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(MissingExtra, match=r"pip install 'einloom\[torch\]'"):
        el.from_torch(None)
