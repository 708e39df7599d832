"""One pass over a graph: every node becomes a view, some Einsums, or a cut; again if a rank has to stay whole."""

from __future__ import annotations

from collections.abc import Hashable
from math import prod

from ...errors import SpecError, combined
from .graph import Graph, OnnxNode
from .lower import Boundary, Cut, Lowering, Refused
from .operators import CARRIES_CONTROL, TABLE_LOOKUPS, known, lower
from .program import Fate, FateKind, GraphProgram
from .ranks import Locked, Uneven, View, expanded

PASSES = 200
CONTROL = frozenset("biu")


def program(graph: Graph, opaque: frozenset[str] = frozenset()) -> GraphProgram:
    """The program of a graph. opaque: names of nodes to cut at. Raises SpecError for every node that is refused."""
    locked: frozenset[Hashable] = frozenset()
    control = _control(graph)
    for _ in range(PASSES):
        try:
            return _Walk(graph, locked, control, opaque).run()
        except Locked as found:
            if found.keys <= locked:
                break
            locked |= found.keys
    raise SpecError("its ranks cannot be told apart: too many windows and reshapes meet", file=graph.file)


class _Walk:
    def __init__(
        self, graph: Graph, locked: frozenset[Hashable], control: frozenset[str], opaque: frozenset[str]
    ) -> None:
        self.graph, self.control, self.opaque = graph, control, opaque
        self.lowering = Lowering(graph, locked, control)
        self.program = self.lowering.program
        self.views = self.lowering.views
        self.written = {*graph.inputs, *graph.constants, *(name for node in graph.nodes for name in node.outputs)}

    def run(self) -> GraphProgram:
        """The program. Raises SpecError for the nodes that are refused, Locked to start again."""
        wrong: list[SpecError] = []
        for name in self.graph.inputs:
            if name not in self.control:
                self.lowering.read(name)
        for node in self.graph.nodes:
            self.lowering.node = node
            if all(name in self.control for name in node.outputs if name):
                self._count("control")
                continue
            before = len(self.program.steps)
            try:
                if node.name in self.opaque:
                    raise Cut("a boundary that was asked for")
                known(node)
                self._readable(node)
                lower(self.lowering, node)
            except (Cut, Uneven) as reason:
                del self.program.steps[before:]
                self._cut(node, str(reason), isinstance(reason, Boundary))
                continue
            except Refused as reason:
                cut = self.graph.wording.boundary(node.name, self.graph.file)
                words = f"{node} {reason}; import one side of it, or cut there with {cut}"
                wrong.append(SpecError(words, file=self.graph.file))
                if any(name and name not in self.graph.shapes for name in node.outputs):
                    break
                del self.program.steps[before:]
                self._cut(node, str(reason))
                continue
            self._count("view" if len(self.program.steps) == before else "arithmetic")
        if wrong:
            raise combined(wrong)
        self._outputs()
        _settle(self.program)
        return self.program

    def _count(self, fate: str) -> None:
        self.program.nodes[fate] = self.program.nodes.get(fate, 0) + 1

    def _readable(self, node: OnnxNode) -> None:
        """Refuse a node with an empty tensor, or with one that is no tensor."""
        for name in node.inputs:
            if name and name not in self.written:
                raise Refused(f"reads {name!r:.80}, which nothing writes")
        for name in (*node.inputs, *node.outputs):
            if name and 0 in self.graph.shapes.get(name, ()):
                raise Refused(f"has the empty tensor {name!r:.80}")
            if name and name not in self.graph.shapes and name not in self.graph.constants:
                why = f" ({self.graph.unshaped})" if self.graph.unshaped else ""
                raise Refused(f"has {name!r:.80}, whose shape is not known{why}")

    def _cut(self, node: OnnxNode, reason: str, boundary: bool = False) -> None:
        """Hand over through the outermost memory: what the node reads is an output, what it yields an input."""
        values = 0
        for name in dict.fromkeys(node.inputs):
            if name in self.views and not self.views[name].tensor.constant:
                self.program.outputs.append(self.views[name].tensor.base)
                values += prod(self.graph.shapes[name])
        for name in node.outputs:
            if name:
                if name not in self.graph.shapes:
                    raise SpecError(f"{node}: the shape of {name!r:.80} is not known", file=self.graph.file)
                self.lowering.read(name)
                values += prod(self.graph.shapes[name])
        kind: FateKind = "boundary" if boundary else "cut"
        self.program.fates.append(Fate(kind, node.name, node.operator, reason, values))
        self._count(kind)

    def _outputs(self) -> None:
        for name in self.graph.outputs:
            if name in self.views:
                self.program.outputs.append(self.views[name].tensor.base)
                self.program.results[name] = self.views[name]
                self._named(name, self.views[name].normal())

    def _named(self, output: str, view: View) -> None:
        """Call a tensor as the graph's output that it is, where an Identity stands between."""
        tensor = view.tensor
        written = any(step.output is tensor for step in self.program.steps)
        named = {*self.graph.outputs, None}
        if not written or tensor.value in named or tensor.name in named:
            return
        axes = [axis for dim in view.dims for axis in dim]
        if [affine.bare for _, affine in view.places] == axes and view.shape == self.graph.shapes.get(
            tensor.value or ""
        ):
            tensor.name = output


def _settle(program: GraphProgram) -> None:
    """Put leaves in the place of everything that was split."""
    program.alive()
    for step in program.steps:
        step.variables = tuple(leaf for var in step.variables for leaf in var.leaves())
        step.places = tuple(expanded(step.places))
        for operand in (*step.operands, *step.constants):
            operand.places = tuple(expanded(operand.places))
    program.results = {name: view.normal() for name, view in program.results.items()}
    tensors = {operand.tensor for step in program.steps for operand in (*step.operands, *step.constants)}
    tensors |= {view.tensor for view in program.results.values()}
    tensors |= {tensor.base for tensor in tensors}
    for tensor in tensors | {step.output for step in program.steps}:
        tensor.ranks = tuple(leaf for rank in tensor.ranks for leaf in rank.leaves())


def _control(graph: Graph) -> frozenset[str]:
    """Values that follow from integer and Boolean inputs alone (positions, masks), if anything else is computed."""
    found = {name for name in graph.inputs if name in graph.types and graph.types[name].kind in CONTROL}
    for node in graph.nodes:
        given = [name for name in node.inputs if name and name not in graph.constants]
        table = node.operator in TABLE_LOOKUPS and _floats(graph, node.inputs[0])
        if given and node.operator in CARRIES_CONTROL and not table and all(name in found for name in given):
            found |= set(node.outputs)
    computed = [name for name in graph.outputs if name not in graph.constants]
    return frozenset() if any(name in found for name in computed) else frozenset(found)


def _floats(graph: Graph, name: str) -> bool:
    return name in graph.types and graph.types[name].kind not in CONTROL
