"""A torch module as a cascade of Einsums."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

from ..onnx.read import ImportedModel, imported_model
from .aten import write
from .calls import AtenGraph
from .trace import exported, library
from .values import runner, values_of


def from_torch(
    module: Any,
    args: Any = (),
    kwargs: Mapping[str, Any] | None = None,
    bits: int | Mapping[str, int] | None = None,
    operands: int | None = None,
    boundary: str | Iterable[str] = (),
) -> ImportedModel:
    """The network of an `nn.Module` in evaluation mode, called with example inputs; of these only shapes count.

    Parameters need no data: build the module under ``torch.device("meta")``. args: one tensor, or a tuple. bits: of all
    values, or ``{"weights": 4, "default": 16}``; those of the tensors' types by default. operands: at most so many of
    one Einsum. boundary: names of nodes to cut at. module may be a `torch.export.ExportedProgram`, too.

    Raises MissingExtra without torch, SpecError where torch.export fails, and for every call that has no Einsum.
    """
    name = type(module).__name__
    torch = library()
    program = exported(module, args, kwargs, name)
    graph = AtenGraph(torch, program, name)
    made = graph.run(write)
    return imported_model(made, partial(values_of, graph), runner, bits, operands, boundary)
