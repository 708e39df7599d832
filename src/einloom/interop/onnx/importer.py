"""ONNX behind the importer door: ``einloom map model.onnx:batch=8,bits=8 tpu-v4i``."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from ...errors import SpecError
from ..bundle import Bundle
from .load import axis_sizes
from .read import ImportedModel, from_onnx


class OnnxImporter:
    """Reads a network. operands: of one Einsum at most. boundary: a node to cut at, or several with ``;`` between.

    bits: of all values, or ``weights=4,default=16``; by default those of the file's types.
    """

    name = "onnx"
    suffixes = (".onnx",)

    def __init__(self, bits: str = "", operands: int = 0, boundary: str = "") -> None:
        if operands < 0:
            raise ValueError("operands: at least 1, or 0 for any number")
        self.bits = bits
        self.operands = operands or None
        self.boundary = frozenset(filter(None, boundary.split(";")))

    def read(self, files: Sequence[str | Path], parameters: Mapping[str, str]) -> Bundle:
        """The workload of one file. parameters: sizes of open axes by name, and ``bits``."""
        model = self.model(files, parameters)
        return Bundle(model.workload, notes=tuple(line.strip() for line in model.report().splitlines()))

    def model(self, files: Sequence[str | Path], parameters: Mapping[str, str]) -> ImportedModel:
        """As `read`, with all that is known of the import."""
        if len(files) != 1:
            raise SpecError(f"an ONNX model is one file, not {len(files)}")
        file = str(files[0])
        sizes = dict(parameters)
        bits = widths(self.bits or sizes.pop("bits", ""), file)
        return from_onnx(file, axis_sizes(sizes, file), bits, self.operands, self.boundary)


def widths(text: str, file: str) -> int | dict[str, int] | None:
    """Bits of values: a number, or ``weights=4,default=16``; None for an empty text. Raises SpecError."""
    if not text:
        return None
    found: dict[str, int] = {}
    for part in text.split(","):
        match = re.fullmatch(r"\s*(?:(weights|default)\s*=\s*)?([0-9]{1,4})\s*", part)
        if match is None or not 1 <= int(match[2]) <= 4096:
            raise SpecError(f"bits {text!r:.60}: write a number, or weights=4,default=16", file=file)
        found[match[1] or "all"] = int(match[2])
    if "all" in found and len(found) > 1:
        raise SpecError(f"bits {text!r:.60}: write a number, or weights=4,default=16", file=file)
    return found.get("all", found)
