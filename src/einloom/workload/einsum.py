"""WHAT is computed: index expressions, accesses, Einsums, tensors and cascades, as frozen data.

First step of the flow: nothing comes in; every other folder reads these. `notation`, `files` and `zoo` make them.
What follows from the fields is found once: a cascade of a thousand Einsums asks for it millions of times.
"""

from __future__ import annotations

from collections.abc import KeysView, Mapping
from dataclasses import field, fields
from math import prod
from types import MappingProxyType
from typing import Literal

from ..dataclass import dataclass
from ..once import cached_property
from ..reading.facts import Fact
from ..reporting import Drawn

Kind = Literal["multiply", "map", "copy"]
Reduction = Literal["sum", "max", "online_softmax"]
Role = Literal["input", "weight", "output"]


@dataclass(frozen=True)
class Index:
    """An affine index expression: the sum of `coefficient * variable` over `terms`, plus `constant`.

    ``Index((("p", 2), ("r", 1)), -1)`` is ``2*p+r-1``. Coefficients are positive integers.
    """

    terms: tuple[tuple[str, int], ...]
    constant: int = 0

    @cached_property
    def variables(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.terms)

    @cached_property
    def simple(self) -> bool:
        """True for a bare rank variable such as ``m``: no sum, no stride, no constant."""
        return len(self.terms) == 1 and self.terms[0][1] == 1 and self.constant == 0

    def extent(self, extents: Mapping[str, int]) -> int:
        """Number of positions from the first to the last that the expression reaches (gaps included)."""
        return 1 + sum(coefficient * (extents[name] - 1) for name, coefficient in self.terms)

    def __str__(self) -> str:
        text = "+".join(name if c == 1 else f"{c}*{name}" for name, c in self.terms)
        if self.constant:
            text += f"{self.constant:+d}" if text else str(self.constant)
        return text or "0"


@dataclass(frozen=True)
class Access:
    """A tensor with one index expression per rank, as an Einsum reads or writes it.

    view: the name under which it is read; then the ranks are the view's. Empty for the tensor's own.
    """

    tensor: str
    indices: tuple[Index, ...]
    view: str = ""

    @cached_property
    def variables(self) -> tuple[str, ...]:
        """The rank variables of the access, each once, in order of appearance."""
        return tuple(dict.fromkeys(v for index in self.indices for v in index.variables))

    def rank_of(self, variable: str) -> int | None:
        """The position of the rank that `variable` indexes, or None (a variable indexes at most one rank)."""
        return self._ranks.get(variable)

    @cached_property
    def _ranks(self) -> Mapping[str, int]:
        ranks: dict[str, int] = {}
        for i, index in enumerate(self.indices):
            for variable in index.variables:
                ranks.setdefault(variable, i)
        return ranks

    def __str__(self) -> str:
        return f"{self.view or self.tensor}[{','.join(str(index) for index in self.indices)}]"


@dataclass(frozen=True)
class NetworkNode:
    """A node of a network. name: as the file has it, empty if the node has none. output: the first tensor it yields."""

    output: str
    name: str = ""

    def __str__(self) -> str:
        return f"{self.name} > {self.output}" if self.name else f"> {self.output}"


@dataclass(frozen=True)
class Einsum:
    """One extended Einsum: `output` from `inputs`, over all its rank variables.

    kind: ``multiply`` multiplies the inputs elementwise (one operation per point of the iteration space), ``map``
    applies the named `function`, ``copy`` moves its single input and performs no operations.
    reduction: how points that share an output element combine. group: the module of a network that it is part of, as a
    dotted path, for people and reports; empty if nothing is known. nodes: of the network that are in it, or
    that it is a part of, for people.
    """

    name: str
    output: Access
    inputs: tuple[Access, ...]
    kind: Kind = "multiply"
    function: str | None = None
    reduction: Reduction = "sum"
    group: str = field(default="", compare=False)
    nodes: tuple[NetworkNode, ...] = field(default=(), compare=False)

    @cached_property
    def accesses(self) -> tuple[Access, ...]:
        """The output, then the inputs; a tensor that is read twice appears once."""
        unique = {access.tensor: access for access in (self.output, *self.inputs)}
        return tuple(unique.values())

    @cached_property
    def variables(self) -> tuple[str, ...]:
        """All rank variables, output's first, in order of appearance."""
        return tuple(dict.fromkeys(v for access in (self.output, *self.inputs) for v in access.variables))

    @cached_property
    def windowless(self) -> bool:
        """True if every rank of every input is indexed by one bare variable."""
        return all(index.simple for access in self.inputs for index in access.indices)

    @cached_property
    def windowed(self) -> frozenset[str]:
        """The rank variables that index a rank of an input by more than one bare variable."""
        indices = (index for access in self.inputs for index in access.indices if not index.simple)
        return frozenset(v for index in indices for v in index.variables)

    @cached_property
    def reduced(self) -> tuple[str, ...]:
        """The rank variables that the output lacks."""
        kept = set(self.output.variables)
        return tuple(v for v in self.variables if v not in kept)

    @cached_property
    def tensors(self) -> tuple[str, ...]:
        return tuple(access.tensor for access in self.accesses)

    def access(self, tensor: str) -> Access:
        """The access of `tensor` in this Einsum; KeyError if it has none."""
        return self._access_table[tensor]

    @cached_property
    def _access_table(self) -> Mapping[str, Access]:
        return {access.tensor: access for access in reversed((self.output, *self.inputs))}


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor: its shape (one size per rank), the bits of one value, and whether it persists over repeats.

    initial: the elements that no Einsum writes are there from the start, in the outermost memory.
    """

    name: str
    shape: tuple[int, ...]
    bits: int
    persistent: bool = False
    initial: bool = False

    @property
    def size(self) -> int:
        """Number of elements."""
        return prod(self.shape)


@dataclass(frozen=True, slots=True)
class TensorView:
    """A tensor under other ranks: the same elements in row-major order, under a name of its own (`views`)."""

    name: str
    tensor: str
    shape: tuple[int, ...]


def _same_rank(one: tuple[int, ...], other: tuple[int, ...], rank: int) -> bool:
    """True if the rank says the same of an element under both shapes: equal size, equal stride in row-major order."""
    strides = prod(one[rank + 1 :]), prod(other[rank + 1 :])
    return rank < min(len(one), len(other)) and one[rank] == other[rank] and strides[0] == strides[1]


@dataclass(frozen=True)
class Workload(Drawn):
    """A cascade of Einsums in program order, with the size of every rank variable and the tensors they access.

    sizes: extent of each rank variable; Einsums that use the same name have the same extent for it, but are tied only
    through the tensors they share. outputs: the cascade's outputs. repeat: how often the cascade runs in a row;
    additive costs are multiplied by it. absorbed: operators of a network that became part of an Einsum, in words.
    views: tensors that some Einsum reads under other ranks.
    """

    name: str
    einsums: tuple[Einsum, ...]
    tensors: tuple[Tensor, ...]
    sizes: tuple[tuple[str, int], ...]
    outputs: tuple[str, ...]
    repeat: int = 1
    facts: tuple[Fact, ...] = field(default=(), compare=False)
    absorbed: tuple[str, ...] = field(default=(), compare=False)
    views: tuple[TensorView, ...] = ()

    @cached_property
    def extents(self) -> Mapping[str, int]:
        """Extent of every rank variable."""
        return MappingProxyType(dict(self.sizes))

    @cached_property
    def _einsum_table(self) -> Mapping[str, Einsum]:
        return MappingProxyType({einsum.name: einsum for einsum in self.einsums})

    @property
    def names(self) -> KeysView[str]:
        """Names of the Einsums, in program order."""
        return self._einsum_table.keys()

    @cached_property
    def position(self) -> Mapping[str, int]:
        """Name of an Einsum -> its place in program order."""
        return MappingProxyType({name: i for i, name in enumerate(self.names)})

    @cached_property
    def _tensor_table(self) -> Mapping[str, Tensor]:
        return MappingProxyType({tensor.name: tensor for tensor in self.tensors})

    def einsum(self, name: str) -> Einsum:
        return self._einsum_table[name]

    def tensor(self, name: str) -> Tensor:
        return self._tensor_table[name]

    @cached_property
    def producers(self) -> Mapping[str, str]:
        """Tensor name -> name of the first Einsum that writes it (absent for the cascade's inputs)."""
        return MappingProxyType({tensor: names[0] for tensor, names in self.writers.items()})

    @cached_property
    def writers(self) -> Mapping[str, tuple[str, ...]]:
        """Tensor name -> names of the Einsums that write it, in program order: several if it is written in parts."""
        table: dict[str, tuple[str, ...]] = {}
        for einsum in self.einsums:
            table[einsum.output.tensor] = (*table.get(einsum.output.tensor, ()), einsum.name)
        return MappingProxyType(table)

    @cached_property
    def parted(self) -> Mapping[str, frozenset[int]]:
        """Tensor name -> its ranks that are not whole, for every tensor that has views or is written in `parts`.

        A rank is whole if all writers index it by one bare rank variable of its full size, and if it is the same rank
        of each view: of the same number, size and stride.
        """
        table: dict[str, frozenset[int]] = {}
        for view in self.views:
            shape = self.tensor(view.tensor).shape
            unlike = (r for r in range(max(len(view.shape), len(shape))) if not _same_rank(shape, view.shape, r))
            table[view.tensor] = table.get(view.tensor, frozenset()).union(unlike)
        for tensor, names in self.writers.items():
            outputs = [self.einsum(name).output for name in names]
            shape = self.tensor(tensor).shape
            if len(names) == 1 and not self.tensor(tensor).initial and all(i.simple for i in outputs[0].indices):
                continue
            table[tensor] = table.get(tensor, frozenset()).union(
                rank
                for rank, size in enumerate(shape)
                if not all(o.indices[rank].simple and o.indices[rank].extent(self.extents) == size for o in outputs)
            )
        return MappingProxyType(table)

    def tied(self, tensor: str, rank: int) -> bool:
        """True if loops that Einsums share may iterate the rank of a written tensor: it is whole."""
        return rank not in self.parted.get(tensor, ())

    @cached_property
    def viewed(self) -> frozenset[str]:
        """The tensors that have views."""
        return frozenset(view.tensor for view in self.views)

    def shape(self, access: Access) -> tuple[int, ...]:
        """The size of each rank that an access indexes: its view's, or its tensor's."""
        if access.view:
            return next(view.shape for view in self.views if view.name == access.view)
        return self.tensor(access.tensor).shape

    @cached_property
    def ends(self) -> tuple[str, ...]:
        """The tensors that start or end in the outermost memory: inputs, outputs, and those that are initial."""
        begun = (tensor.name for tensor in self.tensors if tensor.initial)
        return tuple(dict.fromkeys((*self.inputs, *self.outputs, *begun)))

    @cached_property
    def consumers(self) -> Mapping[str, tuple[str, ...]]:
        """Tensor name -> names of the Einsums that read it, in program order."""
        table: dict[str, list[str]] = {tensor.name: [] for tensor in self.tensors}
        for einsum in self.einsums:
            for tensor in dict.fromkeys(access.tensor for access in einsum.inputs):
                table[tensor].append(einsum.name)
        return MappingProxyType({name: tuple(users) for name, users in table.items()})

    @cached_property
    def inputs(self) -> tuple[str, ...]:
        """The cascade's inputs: tensors that no Einsum writes."""
        return tuple(tensor.name for tensor in self.tensors if tensor.name not in self.producers)

    @cached_property
    def intermediates(self) -> tuple[str, ...]:
        """Tensors that some Einsum writes and another reads."""
        return tuple(t.name for t in self.tensors if t.name in self.producers and self.consumers[t.name])

    @cached_property
    def selected(self) -> dict[tuple[str, str, frozenset[str]], frozenset[str]]:
        """What `selectors.select` found, by expression, Einsum and the tensors that memories further out hold."""
        return {}

    def role(self, einsum: str, tensor: str) -> Role:
        """The part that `tensor` plays in `einsum`.

        output: what it writes; input: its first operand that is an intermediate, else its first operand; weight: any
        other operand.
        """
        e = self.einsum(einsum)
        if e.output.tensor == tensor:
            return "output"
        operands = [access.tensor for access in e.inputs]
        chosen = next((t for t in operands if t in self.producers), operands[0])
        return "input" if tensor == chosen else "weight"

    def operations(self, einsum: str) -> int:
        """Operations of one run of `einsum`: the points of its iteration space (0 for a copy)."""
        e = self.einsum(einsum)
        return 0 if e.kind == "copy" else prod(self.extents[v] for v in e.variables)

    def form(self, einsum: str) -> tuple[object, ...]:
        """What Einsums have in common that differ in names alone: accesses, sizes, bits, and what they do."""
        e = self.einsum(einsum)
        numbers = {variable: i for i, variable in enumerate(e.variables)}
        accesses = tuple(
            (
                self.tensor(a.tensor).bits,
                *(((tuple((numbers[v], c) for v, c in i.terms)), i.constant) for i in a.indices),
            )
            for a in e.accesses
        )
        return accesses, tuple(self.extents[v] for v in e.variables), e.kind, e.function, e.reduction

    def __reduce__(self) -> tuple[object, ...]:
        return (Workload, tuple(getattr(self, one.name) for one in fields(self)))
