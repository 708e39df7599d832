"""Is a graph well-formed? Each value has one writer, which stands before its readers; no node lacks an input."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from ...errors import SpecError, combined
from .graph import OnnxNode


def check_order(nodes: Sequence[OnnxNode], given: Collection[str], file: str) -> None:
    """Refuse a value with two writers, and one that is read before it is written. given: inputs and constants."""
    writers: dict[str, OnnxNode | None] = dict.fromkeys(given)
    wrong = []
    for node in nodes:
        for name in filter(None, node.outputs):
            if name in writers:
                first = "is an input or a constant" if writers[name] is None else f"{writers[name]} writes, too"
                wrong.append(SpecError(f"{node} writes {name!r:.80}, which {first}", file=file))
            writers.setdefault(name, node)
    before = set(given)
    for node in nodes:
        for name in dict.fromkeys(node.inputs):
            if name in writers and name not in before:
                later = "it writes itself" if name in node.outputs else f"is written later, by {writers[name]}"
                wrong.append(SpecError(f"{node} reads {name!r:.80}, which {later}", file=file))
        before.update(node.outputs)
    if wrong:
        raise combined(wrong)


def check_inputs(onnx: Any, nodes: Sequence[OnnxNode], file: str) -> None:
    """Refuse nodes without an input that their operators need."""
    wrong = []
    for node in nodes:
        if node.domain or not onnx.defs.has(node.operator):
            continue
        try:
            schema = onnx.defs.get_schema(node.operator, node.version, "")
        except onnx.defs.SchemaError:
            continue
        single = onnx.defs.OpSchema.FormalParameterOption.Single
        for i, formal in enumerate(schema.inputs):
            if formal.option == single and not "".join(node.inputs[i : i + 1]):
                wrong.append(SpecError(f"{node} has no input {formal.name!r:.40}", file=file))
    if wrong:
        raise combined(wrong)
