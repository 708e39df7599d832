"""An importer in a package of its own: a table of fully connected layers, one ``inputs,outputs`` a line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path

from einloom.errors import SpecError
from einloom.interop.bundle import Bundle
from einloom.reading.located import file_text
from einloom.workload.build import build_workload


class LayerTable:
    """Reads ``name.layers``: the layers in a row, on a batch of inputs. bits: of every value."""

    name = "layer-table"
    suffixes = (".layers",)

    def __init__(self, bits: int = 8) -> None:
        self.bits = bits

    def read(self, files: Sequence[str | Path], parameters: Mapping[str, str]) -> Bundle:
        """One workload. parameters: ``batch``, 1 if it is not set."""
        if len(files) != 1:
            raise SpecError(f"a table of layers is one file, not {len(files)}")
        file, batch = str(files[0]), parameters.get("batch", "1")
        if unknown := [key for key in parameters if key != "batch"]:
            raise SpecError(f"a table of layers has no parameter {unknown[0]!r}", file=file, suggestion="batch")
        rows = [self._row(file, n, text) for n, text in enumerate(file_text(file).splitlines(), 1) if text.strip()]
        if not rows or not batch.isdecimal():
            raise SpecError("a table of layers needs a layer, and batch a whole number", file=file)
        ranks = {"m": int(batch), "n0": rows[0][0], **{f"n{i}": row[1] for i, row in enumerate(rows, 1)}}
        for i, (row, after) in enumerate(pairwise(rows), 1):
            if row[1] != after[0]:
                raise SpecError(f"layer {i} has {row[1]} outputs, the next {after[0]} inputs", file=file, line=i + 1)
        einsums = [f"T{i}[m,n{i}] = T{i - 1}[m,n{i - 1}] * W{i}[n{i - 1},n{i}]" for i in range(1, len(rows) + 1)]
        workload = build_workload(Path(file).stem, einsums, ranks, bits=self.bits)
        return Bundle(workload, notes=("biases and activations are left out",))

    def _row(self, file: str, line: int, text: str) -> tuple[int, int]:
        """Inputs and outputs of one layer."""
        fields = [field.strip() for field in text.split(",")]
        if len(fields) != 2 or not all(field.isdecimal() for field in fields):
            raise SpecError(f"{text.strip()!r:.80} is not INPUTS,OUTPUTS", file=file, line=line)
        return int(fields[0]), int(fields[1])
