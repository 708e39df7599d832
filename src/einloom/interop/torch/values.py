"""Every value of an exported program on random inputs, by torch; parameters without data are drawn at random, too."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...errors import SpecError
from ...reading.plugins import MISTAKES
from ..onnx.graph import Array
from ..onnx.reference import random_inputs
from .calls import AtenGraph, array_of, on_cpu


def values_of(whole: AtenGraph, inputs: Mapping[str, Array] | None, seed: int) -> dict[str, Array]:
    """Inputs, parameters and all values between, by name. Raises SpecError if the program cannot be run."""
    torch: Any = whole.torch
    graph = whole.graph
    found = {name: value for name, value in graph.constants.items() if value is not None}
    given = dict(inputs or {}) or random_inputs(graph, seed)

    interpreter: Any = torch.fx.Interpreter

    class ProgramRun(interpreter):  # type: ignore[misc]
        """Runs one call after the other and keeps what each yields."""

        def run_node(self, n: Any) -> Any:
            result = super().run_node(n)
            _note(found, whole.values.get(n), result)
            return result

        def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
            return super().call_function(target, args, on_cpu(kwargs))

    try:
        with torch.no_grad(), torch._subclasses.fake_tensor.unset_fake_temporarily():
            ProgramRun(whole.program.graph_module).run(*_placeholders(whole, given, seed))
    except MISTAKES as error:
        raise SpecError(f"the module cannot be run: {error!s:.200}", file=graph.file) from None
    return {**found, **given}


def runner() -> str:
    """Who runs modules here, with its version."""
    import torch

    return f"torch {torch.__version__}"


def _note(found: dict[str, Array], names: Any, result: Any) -> None:
    """Keep a tensor, or several, under the names of values."""
    if isinstance(names, str) and hasattr(result, "numpy"):
        found[names] = array_of(result)
    elif isinstance(names, tuple):
        for name, each in zip(names, result, strict=False):
            _note(found, name or None, each)


def _placeholders(whole: AtenGraph, given: Mapping[str, Array], seed: int) -> list[Any]:
    """What the program is called with: inputs, and parameters with their data or random ones."""
    torch = whole.torch
    rng = np.random.default_rng(seed + 1)
    found = []
    for node in whole.program.graph.nodes:
        if node.op != "placeholder":
            continue
        name = whole.values.get(node)
        if name is None:
            found.append(node.meta.get("val"))
        elif name in given:
            found.append(torch.as_tensor(np.array(given[name])).to(node.meta["val"].dtype))
        else:
            found.append(_parameter(whole, node, rng))
    return found


def _parameter(whole: AtenGraph, node: Any, rng: np.random.Generator) -> Any:
    kept = whole.tensor_of(whole.parameters[node])
    if kept is not None:
        return kept.cpu()
    like = node.meta["val"]
    drawn = rng.uniform(0.1, 1, tuple(like.shape)) / max(like.shape[-1] if like.ndim else 1, 1) ** 0.5
    return whole.torch.as_tensor(drawn).to(like.dtype)
