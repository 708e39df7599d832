"""ONNX: a network as a cascade of Einsums (`from_onnx`), with a report of what was absorbed, cut and refused.

`load` reads and folds the graph, in which `expand` writes out what ONNX defines by other operators and `quantised`
finds the bits, `walk` lowers it with `operators`, `simplify` absorbs elementwise maps, `emit` writes the workload,
`check` compares the cascade's numbers with the graph's own.
"""

from .read import ImportedModel, from_onnx

__all__ = ["ImportedModel", "from_onnx"]
