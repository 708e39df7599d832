"""ONNX behind the importer door: ``einloom map model.onnx:batch=8,bits=8 tpu-v4i``."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from ...errors import SpecError
from ..bundle import Bundle
from .emit import MAX_BITS
from .graph import CALL, VERB, Wording
from .load import axis_sizes
from .read import WIDTHS, ImportedModel, read_onnx


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
        model = self.model(files, parameters, CALL)
        return Bundle(model.workload, notes=tuple(line.strip() for line in model.report().splitlines()))

    def model(
        self, files: Sequence[str | Path], parameters: Mapping[str, str], wording: Wording = VERB
    ) -> ImportedModel:
        """As `read`, with all that is known of the import. wording: of errors that say what to give."""
        if len(files) != 1:
            raise SpecError(f"an ONNX model is one file, not {len(files)}")
        file = str(files[0])
        sizes = dict(parameters)
        bits = widths(self.bits or _bits_of(sizes), file)
        return read_onnx(file, axis_sizes(sizes, file), bits, self.operands, self.boundary, wording)


def _bits_of(parameters: dict[str, str]) -> str:
    """Taken out of the parameters: ``bits``, and what stood behind a comma in ``bits=weights=4,default=16``."""
    bits = parameters.pop("bits", "")
    behind = [key for key in WIDTHS if key in parameters] if "=" in bits else []
    return ",".join([bits, *(f"{key}={parameters.pop(key)}" for key in behind)])


def widths(text: str, file: str) -> dict[str, int] | None:
    """Bits of values: a number, or ``weights=4,default=16``; None for an empty text. Raises SpecError."""
    if not text:
        return None
    found: dict[str, int] = {}
    wrong = SpecError(f"bits {text!r:.60}: write a number, or weights=4,default=16", file=file)
    for part in text.split(","):
        match = re.fullmatch(rf"\s*(?:({'|'.join(WIDTHS)})\s*=\s*)?([0-9]{{1,4}})\s*", part)
        if match is None or not 1 <= int(match[2]) <= MAX_BITS or (match[1] is None and "," in text):
            raise wrong
        key = match[1] or "default"
        if key in found:
            raise SpecError(f"bits {text!r:.60}: {key} stands here twice", file=file)
        found[key] = int(match[2])
    return found
