"""An ONNX model as a cascade of Einsums, with an account of what was absorbed, cut and left out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field, replace
from functools import cached_property
from math import prod
from pathlib import Path
from typing import TypeGuard

import numpy as np

from ...dataclass import dataclass
from ...errors import SpecError, nearest, unknown
from ...problem.budgets import read_seed
from ...workload.einsum import Workload
from .check import NumbersChecked, compare, interpret, limit
from .emit import MAX_BITS, Emission
from .graph import FUNCTION, Array, Graph, Wording
from .load import MAX_VALUES, load
from .multiplications import counted
from .program import GraphProgram
from .simplify import simplify
from .walk import program

WARNED = 0.05
SHOWN = 3
"""So many nodes are named to who names none."""
WIDTHS = ("weights", "default")
ValuesOf = Callable[[Mapping[str, Array] | None, int], dict[str, Array]]


@dataclass(frozen=True)
class ImportedModel:
    """A network: its workload, and how it follows from the file.

    absorbed: operators that became part of an Einsum, with how many of each. values_of: runs the model itself on inputs
    (random ones without any) and a seed; runner: who does that.
    """

    workload: Workload
    graph: Graph
    program: GraphProgram
    absorbed: Mapping[str, int]
    copies: tuple[str, ...]
    values_of: ValuesOf = field(repr=False)
    runner: Callable[[], str] = field(default=str, repr=False)

    @property
    def file(self) -> str:
        """The file, or the class of the module."""
        return self.graph.file

    @property
    def groups(self) -> dict[str, str]:
        """The module path of each Einsum that has one."""
        return {einsum.name: einsum.group for einsum in self.workload.einsums if einsum.group}

    @property
    def cuts(self) -> tuple[str, ...]:
        """What was cut, and why, in sentences."""
        return tuple(
            f"{fate.kind} {fate.node} ({fate.operator}): {fate.reason}; {fate.values:,} values handed over"
            for fate in self.program.fates
        )

    @cached_property
    def multiplications(self) -> tuple[int, int]:
        """Those of the graph's products, counted from its shapes alone, and those of the cascade's."""
        return counted(self.graph)[0], sum(step.multiplications for step in self.program.steps)

    @property
    def uncounted(self) -> tuple[str, ...]:
        """The graph's operators whose multiplications cannot be counted."""
        return counted(self.graph)[1]

    def report(self) -> str:
        """What the import did, for people."""
        nodes = ", ".join(f"{count:,} {fate}" for fate, count in self.program.nodes.items() if count)
        whole, mapped = self.multiplications
        share = f": {mapped / whole:.4g} of the graph's" if whole else ""
        if uncounted := self.uncounted:
            share = f"; those of {', '.join(uncounted)} in the graph cannot be counted"
        different = len({self.workload.form(name) for name in self.workload.names})
        lines = [
            f"{Path(self.file).name}: {sum(self.program.nodes.values()):,} nodes: {nodes}",
            f"  {len(self.workload.einsums)} Einsums ({different} different), {mapped:,} multiplications{share}",
        ]
        lines += [f"  {cut}" for cut in self.cuts]
        if self.absorbed:
            lines.append("  absorbed  " + ", ".join(f"{n} x {label}" for label, n in self.absorbed.items()))
        if self.copies:
            lines.append(f"  copied, to be read in two ways at once: {', '.join(self.copies)}")
        if (share_cut := self._share_cut()) > WARNED:
            lines.append(f"  warning: {share_cut:.0%} of the values that pass between nodes are handed over at cuts")
        return "\n".join(lines) + "\n"

    def account(self) -> str:
        """The report, and which nodes each Einsum has in it."""
        lines = [
            f"  {einsum.name}: {', '.join(str(node) for node in einsum.nodes)}"
            for einsum in self.workload.einsums
            if einsum.nodes
        ]
        head = "Einsums and the nodes in them, each as its name (if it has one) > the first tensor that it yields"
        return "\n".join([self.report(), head, *lines]) + "\n"

    def _share_cut(self) -> float:
        moved = sum(prod(tensor.sizes) for tensor in dict.fromkeys(step.output for step in self.program.steps))
        cut = sum(fate.values for fate in self.program.fates if fate.kind == "cut")
        return cut / (moved + cut) if moved + cut else 0.0

    def check(self, inputs: Mapping[str, Array] | None = None, seed: int = 0) -> NumbersChecked:
        """Every tensor of the cascade against the model: by torch, onnxruntime, or the package onnx without it.

        inputs: of the graph, by name; random ones by default. Raises SpecError if the file keeps no weights or is too
        large to be interpreted.
        """
        values = self.values_of(inputs, read_seed(seed))
        try:
            with np.errstate(all="ignore"):
                ties: dict[str, int] = {}
                found = compare(self.program, interpret(self.program, values, ties), values)
        except MemoryError as error:
            raise SpecError(f"too large to be checked: {error}", file=self.file) from None
        computed = [name for node in self.graph.nodes for name in node.outputs if name in self.graph.types]
        rounded = [node.outputs[0] for node in self.graph.nodes if node.operator == "QuantizeLinear"]
        steps = [2.0 ** (1 - self.graph.bits[name]) for name in rounded if name in self.graph.bits]
        most = limit((self.graph.types[name] for name in computed), steps)
        return replace(found, limit=most, ties=tuple(ties.items()), reference=self.runner())


def from_onnx(
    path: str | Path,
    sizes: Mapping[str, int] | None = None,
    bits: int | Mapping[str, int] | None = None,
    operands: int | None = None,
    boundary: str | Iterable[str] = (),
) -> ImportedModel:
    """The network of a file. sizes: of open axes. bits: of all values, or ``{"weights": 4, "default": 16}``.

    operands: at most so many of one Einsum. boundary: names of nodes to cut at. Raises SpecError for what is no ONNX
    file, and for every node that has no Einsum.
    """
    return read_onnx(path, sizes, bits, operands, boundary, FUNCTION)


def read_onnx(
    path: str | Path,
    sizes: Mapping[str, int] | None,
    bits: int | Mapping[str, int] | None,
    operands: int | None,
    boundary: str | Iterable[str],
    wording: Wording,
) -> ImportedModel:
    """As `from_onnx`. wording: of errors that say what to give."""
    for axis, size in (sizes or {}).items():
        if not whole_number(size, MAX_VALUES):
            raise SpecError(f"axis {axis!r:.80}: {size!r:.40} is not a whole number from 1 to 2**40", file=str(path))
    opaque = frozenset((boundary,) if isinstance(boundary, str) else boundary)
    graph = load(path, sizes, wording=wording, opaque=opaque)

    def values(inputs: Mapping[str, Array] | None, seed: int) -> dict[str, Array]:
        from .reference import values_of

        return values_of(str(path), graph, inputs, seed)

    def ran() -> str:
        from .reference import runner

        return runner()

    return imported_model(graph, values, ran, bits, operands, opaque)


def imported_model(
    graph: Graph,
    values_of: ValuesOf,
    runner: Callable[[], str],
    bits: int | Mapping[str, int] | None = None,
    operands: int | None = None,
    boundary: str | Iterable[str] = (),
) -> ImportedModel:
    """As `from_onnx`, of a graph that is loaded; values_of runs it, and runner says who does."""
    widths = _widths(bits, graph.file)
    if operands is not None and not whole_number(operands, MAX_VALUES):
        raise SpecError(f"operands: {operands!r:.40} is not a whole number from 1 on", file=graph.file)
    opaque = _nodes(boundary, graph)
    graph.drop_unused()
    found = program(graph, opaque)
    found.nodes = {"constant": graph.folded, **found.nodes, "unused": graph.unused}
    assert sum(found.nodes.values()) == len(graph.nodes) + graph.folded + graph.unused
    simplify(found, operands)
    found.alive()
    absorbed = Counter(
        label for step in found.steps for label in (step.labels[1:] if step.meaning is None else step.labels[:-1])
    )
    emission = Emission(found)
    workload = emission.workload(graph, widths, absorbed)
    return ImportedModel(workload, graph, found, dict(absorbed), tuple(emission.copies), values_of, runner)


def whole_number(value: object, most: int) -> TypeGuard[int]:
    """True for an integer from 1 to `most`, NumPy's included."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool) and 1 <= int(value) <= most


def _widths(bits: object, file: str) -> Mapping[str, int]:
    """Bits of ``weights`` and ``default``, as far as they are given. Raises SpecError for what is no number of bits."""
    if bits is None:
        return {}
    table = bits if isinstance(bits, Mapping) else {"default": bits}
    found: dict[str, int] = {}
    for key, value in table.items():
        if key not in WIDTHS:
            raise unknown("kind of values for bits", str(key), WIDTHS).at(file)
        if not whole_number(value, MAX_BITS):
            raise SpecError(f"bits: {value!r:.40} is not a whole number from 1 to {MAX_BITS}", file=file)
        found[key] = int(value)
    return found


def _nodes(boundary: str | Iterable[str], graph: Graph) -> frozenset[str]:
    """Names of nodes, one or several. Raises SpecError for one that the graph does not have."""
    names = {node.name: node.name for node in graph.nodes}
    yields = {output: node.name for node in graph.nodes for output in node.outputs if output}
    asked = frozenset((boundary,) if isinstance(boundary, str) else boundary)
    for name in asked:
        if name not in names:
            close = yields.get(name) or nearest(str(name), names)
            first = ", ".join(f"{node!r:.80}" for node in list(names)[:SHOWN])
            more = f" and {len(names) - SHOWN:,} more" if len(names) > SHOWN else ""
            known = "" if close else f"; nodes are {first}{more}; import.txt names those of each Einsum"
            raise SpecError(f"no node is called {name!r:.120}{known}", file=graph.file, suggestion=close)
    return asked
