"""A torch module as an exported program of ATen calls: shapes and module paths of everything, no weights needed.

The export runs the module once on fake tensors, in evaluation mode. Calls that `aten` has no words for are decomposed
into simpler ones where PyTorch knows how.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Any

from ...errors import MissingExtra, SpecError
from ...reading.plugins import MISTAKES
from .aten import translated

ROUNDS = 4


def library() -> Any:
    """The package torch. Raises MissingExtra."""
    try:
        import torch
        import torch.export
    except ImportError:
        raise MissingExtra("torch", "torch") from None
    return torch


def exported(module: Any, args: Any, kwargs: Mapping[str, Any] | None, name: str) -> Any:
    """The exported program of a module on example inputs, with calls that `aten` knows wherever possible.

    module: an `nn.Module`, or a program that is exported already. Raises SpecError with the exporter's own words.
    """
    torch = library()
    if isinstance(module, torch.export.ExportedProgram):
        return _decomposed(torch, module, name)
    if not isinstance(module, torch.nn.Module):
        raise SpecError(f"{type(module).__name__} is no torch.nn.Module and no exported program", file=name)
    given = tuple(args) if isinstance(args, (tuple, list)) else (args,)
    with _quiet(torch, module):
        try:
            program = torch.export.export(module, *_placed(torch, module, given, dict(kwargs or {})))
        except MISTAKES as error:
            raise _failure(error, module, name) from None
        return _decomposed(torch, program, name)


@contextmanager
def _quiet(torch: Any, module: Any) -> Iterator[None]:
    """In evaluation mode, without gradients, warnings and the fused kernel of transformer layers."""
    training = [part for part in module.modules() if part.training]
    fast = torch.backends.mha.get_fastpath_enabled()
    try:
        module.eval()
        torch.backends.mha.set_fastpath_enabled(False)
        with torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        torch.backends.mha.set_fastpath_enabled(fast)
        for part in training:
            part.training = True


def _placed(torch: Any, module: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """The inputs, without their data if the module's parameters have none."""
    tensors = [*module.parameters(), *module.buffers()]
    if not any(tensor.device.type == "meta" for tensor in tensors):
        return tuple(args), dict(kwargs)

    def move(value: Any) -> Any:
        return value.to("meta") if isinstance(value, torch.Tensor) else value

    return torch.utils._pytree.tree_map(move, (tuple(args), dict(kwargs)))


def _decomposed(torch: Any, program: Any, name: str) -> Any:
    """The program without calls in place, and with simpler ones instead of those that are not known."""
    known = torch.export.default_decompositions()
    table: dict[Any, Any] = {}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for _ in range(ROUNDS):
                program = program.run_decompositions(table)
                missing = {node.target for node in program.graph.nodes if node.op == "call_function"}
                table = {call: known[call] for call in missing if not translated(call) and call in known}
                if not table:
                    break
    except MISTAKES as error:
        raise SpecError(f"torch cannot decompose it: {_line(error)}", file=name) from None
    return program


def _failure(error: BaseException, module: Any, name: str) -> SpecError:
    """What the exporter says, with the path of the module that it was in."""
    paths = {id(part): path for path, part in module.named_modules()}
    inner = ""
    trace: TracebackType | None = error.__traceback__
    while trace is not None:
        inner = paths.get(id(trace.tb_frame.f_locals.get("self")), inner)
        trace = trace.tb_next
    where = f" in module {inner!r:.120}" if inner else ""
    return SpecError(f"torch.export fails{where}: {_line(error)}", file=name)


def _line(error: BaseException) -> str:
    """The first line of what an error says."""
    said = str(error).strip().splitlines()
    return f"{type(error).__name__}: {said[0] if said else 'no reason'}"[:300]
