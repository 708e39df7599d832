"""PyTorch: a module as a cascade of Einsums (`from_torch`), with the report that an ONNX model has.

`trace` exports the module on fake tensors, `calls` writes its ATen calls as an ONNX graph by the table of `aten`.
Views, operators, simplification and workload are those of `..onnx`. `values` runs the exported program for a check.
"""

from .read import from_torch

__all__ = ["from_torch"]
