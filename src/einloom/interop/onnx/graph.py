"""An ONNX graph as plain data: nodes, shapes, types, constants. `load` makes it; nothing after it sees protobuf."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import Any

import numpy as np

from ...dataclass import dataclass
from ...workload.einsum import NetworkNode
from ...workload.notation import module_path_of

Array = np.ndarray[Any, Any]
Shape = tuple[int, ...]


@dataclass(frozen=True)
class OnnxNode:
    """One operator application. scope: the module path that the exporter wrote beside it, if it did.

    named: False if the file gives it no name. before: nodes that are one with it, ahead of it.
    """

    name: str
    operator: str
    domain: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, Any]
    version: int
    scope: str = ""
    named: bool = True
    before: tuple[NetworkNode, ...] = ()

    @property
    def origin(self) -> tuple[NetworkNode, ...]:
        """Its names, and those of nodes that are one with it."""
        output = next(filter(None, self.outputs), "")
        return (*self.before, NetworkNode(output, self.name if self.named else ""))

    @property
    def group(self) -> str:
        """The module path that the exporter wrote beside the node, else into its name."""
        return module_path_of(self.scope or self.name.rpartition("/")[0])

    def __str__(self) -> str:
        return f"node {self.name!r:.120} ({self.operator})"

    def get(self, name: str, default: Any = None) -> Any:
        """An attribute."""
        return self.attributes.get(name, default)


@dataclass(frozen=True)
class Wording:
    """How the user gives what an import needs: a cut at a node, the size of an axis. elsewhere: who takes the rest."""

    cut: str
    size: str
    elsewhere: str = ""

    def boundary(self, node: str, file: str) -> str:
        return self.cut.format(node=node, file=file)

    def axis(self, name: str, file: str) -> str:
        return self.size.format(name=name, file=Path(file).name)


FUNCTION = Wording("boundary={{{node!r}}}", "sizes={{{name!r}: 1}}")
VERB = Wording("--boundary {node!r}", "--set {name}=1")
CALL = Wording(
    "`einloom import onnx {file} --boundary {node!r} -o DIR`, and map DIR/workload.yaml",
    "{file}:{name}=1",
    "an option of `einloom import onnx {file} -o DIR`; then map DIR/workload.yaml",
)
"""Of a function's arguments, of the verb `import onnx`, and of a file that another verb names."""
OPTIONS = ("boundary", "operands", "check")
"""Of the verb `import onnx`, which a file that another verb names does not take."""


@dataclass
class Graph:
    """The main graph, functions inlined. constants: name -> values, None where only shape and type are kept."""

    name: str
    nodes: list[OnnxNode]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    shapes: dict[str, Shape] = field(default_factory=dict)
    types: dict[str, np.dtype[Any]] = field(default_factory=dict)
    bits: dict[str, int] = field(default_factory=dict)
    constants: dict[str, Array | None] = field(default_factory=dict)
    file: str = ""
    source: str = ""
    """Where its facts come from: the file and its digest."""
    wording: Wording = field(default_factory=lambda: FUNCTION)
    folded: int = 0
    """Nodes that constants replaced."""
    unshaped: str = ""
    """Why the first unknown shape is not known, if that can be said."""
    unused: int = 0
    """Nodes that no output needs."""

    def drop_unused(self) -> None:
        """Keep the nodes that some output needs."""
        writers = {name: node for node in self.nodes for name in node.outputs if name}
        wanted, needed = list(self.outputs), set()
        while wanted:
            node = writers.get(wanted.pop())
            if node is not None and id(node) not in needed:
                needed.add(id(node))
                wanted += node.inputs
        kept = [node for node in self.nodes if id(node) in needed]
        self.unused += len(self.nodes) - len(kept)
        self.nodes = kept
