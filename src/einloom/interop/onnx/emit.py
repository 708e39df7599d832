"""The program as a `Workload`: names for tensors and rank variables, shapes, bits, facts."""

from __future__ import annotations

import re
from collections.abc import Mapping

from ...errors import SpecError
from ...reading.facts import Fact
from ...workload.build import build_workload
from ...workload.einsum import Access, Einsum, Index, NetworkNode, TensorView, Workload
from ...workload.notation import FUNCTIONS, RESERVED, check_einsum
from .graph import Graph
from .program import GraphProgram, Step, StepOperand
from .ranks import Affine, Rank, Stored, Var

MAX_EINSUMS = 20_000
MAX_BITS = 4096
MAX_NODE_NAME = 200


class Names:
    """Names that the notation accepts, each once. kept: what an original name became."""

    def __init__(self, reserved: frozenset[str] = frozenset()) -> None:
        self.used: set[str] = set(reserved)

    def of(self, text: str, default: str) -> str:
        """The name nearest to `text`."""
        plain = re.sub(r"[^A-Za-z0-9_]+", "_", text).strip("_")[-80:].strip("_") or default
        plain = plain if not plain[0].isdigit() else f"{default}{plain}"
        name, n = plain, 1
        while name in self.used:
            n += 1
            name = f"{plain}_{n}"
        self.used.add(name)
        return name


class Emission:
    """Names given on the way: `tensors` maps what is stored to its name in the workload."""

    def __init__(self, program: GraphProgram) -> None:
        self.program = program
        self.tensors: dict[Stored, str] = {}
        self.variables: dict[Rank, str] = {}
        self.extents: dict[str, int] = {}
        self.copies: dict[str, Stored] = {}
        self._names = Names(RESERVED)
        self._ranks = Names()

    def workload(self, graph: Graph, bits: Mapping[str, int], absorbed: Mapping[str, int]) -> Workload:
        """The cascade. bits: of ``weights`` and ``default``, where they are not those of the file's types."""
        source, file = graph.source, graph.file
        if not self.program.steps:
            cuts = "".join(f"; cut: {fate.node} ({fate.operator}): {fate.reason}" for fate in self.program.fates[:5])
            raise SpecError(f"nothing in it is arithmetic on inputs: there is nothing to map{cuts}", file=file)
        if len(self.program.steps) > MAX_EINSUMS:
            raise SpecError(f"it has more than {MAX_EINSUMS:,} Einsums", file=file)
        einsums = [einsum for step in self.program.steps for einsum in self._einsums(step)]
        views = [self._view(tensor, label) for tensor, label in list(self.tensors.items()) if tensor.of is not None]
        used = {access.tensor for einsum in einsums for access in einsum.accesses} | {view.tensor for view in views}
        written = {einsum.output.tensor for einsum in einsums}
        outputs = [self.tensors[t] for t in dict.fromkeys(self.program.outputs) if t in self.tensors]
        stored = {label: tensor for tensor, label in self.tensors.items() if label in used and tensor.of is None}
        widths = {label: self._bits(tensor, bits) for label, tensor in stored.items()}
        shapes = {label: tensor.sizes for label, tensor in stored.items()}
        for copy, original in self.copies.items():
            widths[copy], shapes[copy] = self._bits(original, bits), original.sizes
        facts = [Fact(f"ranks.{variable}", source, "derived") for variable in self.extents]
        chosen = Fact("bits.default", "chosen at the import", "assumed")
        facts.append(Fact("bits.default", source, "derived") if not bits else chosen)
        return build_workload(
            Names().of(graph.name, "model"),
            einsums,
            self.extents,
            bits={"default": max(sorted(set(widths.values())), key=list(widths.values()).count), **widths},
            shapes=shapes,
            outputs=[label for label in outputs if label in written],
            initial=[label for label, tensor in stored.items() if tensor.fill is not None and label in written],
            facts=facts,
            views=views,
            absorbed=[f"{count} x {label}" for label, count in absorbed.items()],
        )

    def _bits(self, tensor: Stored, bits: Mapping[str, int]) -> int:
        return bits["weights"] if tensor.constant and "weights" in bits else bits.get("default", tensor.bits)

    def tensor(self, tensor: Stored) -> str:
        if tensor not in self.tensors:
            self.tensors[tensor] = self._names.of(tensor.name, "T")
        return self.tensors[tensor]

    def _view(self, tensor: Stored, label: str) -> TensorView:
        """With ranks of size 1 in front, so that the last ones have the numbers that they have in the tensor."""
        return TensorView(label, self.tensor(tensor.base), (*[1] * _missing(tensor), *tensor.sizes))

    def _einsums(self, step: Step) -> list[Einsum]:
        """The Einsum of a step, after copies of what it reads in two ways."""
        table = self.named(step)
        found: list[Einsum] = []
        seen: dict[Stored, StepOperand] = {}
        inputs: list[Access] = []
        for operand in step.operands:
            label = self.tensor(operand.tensor)
            base = operand.tensor.base
            if base in seen and not seen[base].same(operand):
                found.append(self._copy(operand.tensor, label, step.group))
                label = found[-1].name
            seen.setdefault(base, operand)
            front = (Index((), 0),) * _missing(operand.tensor) if label == self.tensor(operand.tensor) else ()
            inputs.append(Access(label, (*front, *(_index(affine, table) for _, affine in operand.places))))
        output = self.tensor(step.output)
        access = Access(output, tuple(Index(((table[var], 1),)) for var in step.variables))
        name = output
        if step.places:
            access = Access(output, tuple(_index(affine, table) for _, affine in step.places))
            name = self._names.of(f"{output}_part", "T")
        if step.function == "copy" and len(inputs) == 1 and _copies(inputs[0], access):
            return [*found, Einsum(name, access, tuple(inputs), "copy", group=step.group, nodes=_nodes(step))]
        function = None if step.meaning is None else step.function or "elementwise"
        if function is not None and (function == "copy" or FUNCTIONS.get(function, 0) not in (None, len(inputs))):
            function = "elementwise"
        reduction = step.reduction if any(v not in access.variables for i in inputs for v in i.variables) else "sum"
        kind = "multiply" if function is None else "map"
        said = {"group": step.group, "nodes": _nodes(step)}
        einsum = Einsum(name, access, tuple(inputs), kind, function, reduction, **said)  # type: ignore[arg-type]
        check_einsum(einsum)
        return [*found, einsum]

    def _copy(self, tensor: Stored, label: str, group: str) -> Einsum:
        name = self._names.of(f"{label}_copy", "T")
        table = self._names_of(tuple(Var(rank) for rank in tensor.ranks))
        index = tuple(Index(((variable, 1),)) for variable in table.values())
        read = (*(Index((), 0),) * _missing(tensor), *index)
        self.copies[name] = tensor
        kind, function = ("copy", None) if read == index else ("map", "elementwise")
        return Einsum(name, Access(name, index), (Access(label, read),), kind, function, group=group)  # type: ignore[arg-type]

    def named(self, step: Step) -> dict[Var, str]:
        """The name of every variable: that of its class, a number behind it where one Einsum has two of a class."""
        inner = (var for operand in step.operands for var in operand.variables)
        return self._names_of(tuple(dict.fromkeys((*step.variables, *inner))))

    def _names_of(self, variables: tuple[Var, ...]) -> dict[Var, str]:
        table: dict[Var, str] = {}
        for var in variables:
            root = var.rank.root()
            if root not in self.variables:
                self.variables[root] = self._ranks.of(f"{root.hint or 'i'}{len(self.variables)}", "i")
            name, n = self.variables[root], 1
            while name in table.values():
                n += 1
                name = f"{self.variables[root]}_{n}"
            self._ranks.used.add(name)
            table[var] = name
            self.extents[name] = root.size
        return table


def _nodes(step: Step) -> tuple[NetworkNode, ...]:
    """The nodes in a step, with names that files can hold."""
    return tuple(NetworkNode(_plain(node.output) or "?", _plain(node.name)) for node in step.nodes)


def _plain(text: str) -> str:
    return "".join(c if c.isprintable() else "?" for c in text.strip())[:MAX_NODE_NAME].strip()


def _missing(tensor: Stored) -> int:
    """How many ranks fewer than its tensor a view has."""
    return max(0, len(tensor.base.ranks) - len(tensor.ranks))


def _copies(source: Access, target: Access) -> bool:
    """True if the notation has a copy for it: the source has a bare rank variable for each of the target's."""
    return all(index.simple for index in source.indices) and set(source.variables) == set(target.variables)


def _index(affine: Affine, table: Mapping[Var, str]) -> Index:
    return Index(tuple((table[var], coefficient) for var, coefficient in affine.terms), affine.constant)
