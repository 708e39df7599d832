"""What operators build with: views of values, Einsums from labelled dimensions, windows, slices.

`operators` says what each operator is, `walk` goes over the graph.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from math import prod

import numpy as np

from .graph import Graph, OnnxNode
from .program import GraphProgram, Meaning, Reduction, Step, StepOperand
from .ranks import (
    Affine,
    Place,
    Rank,
    Splitter,
    Stored,
    Uneven,
    Var,
    View,
    keep_whole,
    refinement,
    unite,
    weighted,
    whole,
)

Labels = Sequence[Sequence[str]]
"""Per dimension the labels of its parts, most significant first; labels of one name are one rank variable."""

MOVED = 4  # constants of more than a quarter of the values that they are applied to are moved


class Cut(Exception):
    """A node that the notation has no Einsum for: its values are handed over through the outermost memory."""


class Boundary(Cut):
    """A node whose result is chosen by data and read as rows: an input of the cascade."""


class Refused(Exception):
    """A node that no Einsum can stand for, with the reason."""


class Lowering:
    """One pass over a graph. locked: keys of ranks that stay whole; control: values that become inputs."""

    def __init__(self, graph: Graph, locked: frozenset[Hashable] = frozenset(), control: frozenset[str] = frozenset()):
        self.graph = graph
        self.splitter = Splitter(locked)
        self.program = GraphProgram()
        self.views: dict[str, View] = {}
        self.control = control
        self.node: OnnxNode = graph.nodes[0] if graph.nodes else OnnxNode("", "", "", (), (), {}, 1)
        self.labels = 0

    def shape(self, name: str) -> tuple[int, ...]:
        return self.graph.shapes[name]

    def constant(self, name: str) -> np.ndarray | None:
        """The values of a constant. Raises Cut if it is none; None if its values are not kept."""
        if name not in self.graph.constants:
            raise Cut(f"{name!r:.80} is not constant")
        return self.graph.constants[name]

    def read(self, name: str, constant: bool = False) -> None:
        """Make a value an input of the cascade."""
        self.views[name] = self.stored(name, self.shape(name), self.graph.bits.get(name, 32), constant)

    def stored(self, name: str, shape: Sequence[int], bits: int, constant: bool = False, data: object = None) -> View:
        """A tensor that no Einsum writes, and the view of all of it."""
        dims = [(Var(self.splitter.rank(size, (name, i))),) if size > 1 else () for i, size in enumerate(shape)]
        return whole(Stored(name, tuple(axis.rank for dim in dims for axis in dim), bits, constant, name, data), dims)

    def view(self, name: str) -> View:
        """The view of a value; a constant or control value becomes an input of the cascade when it is first read."""
        if name not in self.views:
            if name not in self.graph.constants and name not in self.control:
                raise Refused(f"reads {name!r:.80}, which nothing writes")
            if name not in self.graph.shapes:
                raise Refused(f"reads {name!r:.80}, whose shape is not known")
            self.read(name, constant=True)
        return self.views[name].normal()

    def made(self, value: np.ndarray, hint: str) -> View:
        """A constant that the importer makes, such as the divisors of an average."""
        self.labels += 1
        return self.stored(f"{self.node.outputs[0]}_{hint}", value.shape, 32, True, value)

    def put(self, name: str, view: View) -> None:
        """What a node yields. Raises Cut if it does not have the shape that the graph says."""
        if name:
            if view.shape != self.shape(name):
                raise Cut(f"{name!r:.80} would have shape {view.shape}, and the graph says {self.shape(name)}")
            self.views[name] = view

    def regrouped(
        self, view: View, dims: Sequence[int], sizes: Sequence[int]
    ) -> tuple[View, tuple[tuple[Var, ...], ...]]:
        """As of `Splitter`: neighbouring dimensions as runs of axes of these sizes; one alone as another rank, if need
        be."""
        try:
            return self.splitter.grouped(view, dims, sizes)
        except Uneven:
            if len(dims) > 1:
                raise
            return self.splitter.grouped(self.seen(view, view.shape), dims, sizes)

    def seen(self, view: View, shape: Sequence[int]) -> View:
        """The value under ranks of its own, one for each dimension of `shape`: a view of its tensor, or of a copy where
        the tensor has its elements in another order. Raises Uneven for constants in another order."""
        view = view.normal()
        axes = [axis for dim in view.dims for axis in dim]
        reached = [
            affine.bare if affine.bare and affine.bare.size == rank.size else None for rank, affine in view.places
        ]
        if reached != axes:
            if view.tensor.constant:
                raise Uneven("a constant in another order")
            view = self.pointwise([view], "copy", lambda arrays: arrays[0])
        self.labels += 1
        base = view.tensor.base
        name = f"{self.node.outputs[0] or self.node.name}_view{self.labels}"
        found = self.stored(name, shape, base.bits, base.constant)
        found.tensor.value, found.tensor.of = None, base
        return found

    def reshaped(self, view: View, shape: Sequence[int]) -> View:
        """The view with other dimensions; where they do not nest with the axes, under other ranks."""
        if prod(shape) != prod(view.shape):
            raise Cut(f"{view.shape} cannot become {tuple(shape)}")
        try:
            view, runs = self.splitter.grouped(view, range(len(view.dims)), shape)
        except Uneven:
            return self.seen(view, shape)
        return View(view.tensor, runs, view.places)

    def sliced(self, view: View, dim: int, start: int, step: int, length: int) -> View:
        """`length` positions of a dimension: multiples of whole parts fix digits, others read it with an offset."""
        view = view.normal()
        size = view.shape[dim]
        if (start, step, length) == (0, 1, size):
            return view
        if not (0 <= start < size and 0 <= start + step * (length - 1) < size) or step < 1:
            raise Cut(f"a slice of step {step}" if step < 1 else "a slice beyond the end")
        if step == 1 and size % length == 0 and start % length == 0:
            try:
                view, (head, tail) = self.splitter.grouped(view, [dim], [size // length, length])
                if all(not axis.rank.root().locked for axis in head):
                    rest, table = start // length, {}
                    for axis in reversed(head):
                        rest, digit = divmod(rest, axis.size)
                        table[axis] = Affine((), digit)
                    return view.put(table, [*view.dims[:dim], tail, *view.dims[dim + 1 :]])
            except Uneven:
                pass
            view = view.normal()
        if len(view.dims[dim]) != 1:
            keep_whole(view.dims[dim])
            view = self.seen(view, view.shape)
        axis = view.dims[dim][0]
        rank = self.splitter.rank(length, (self.node.outputs[0], dim, start))
        new = Var(rank) if length > 1 else None
        terms = () if new is None else ((new, step),)
        return view.put(
            {axis: Affine(terms, start)}, [*view.dims[:dim], () if new is None else (new,), *view.dims[dim + 1 :]]
        )

    def window(self, view: View, dim: int, kernel: int, stride: int, dilation: int, pad: int, out: int) -> View:
        """The dimension as two: positions and taps of a window. Beyond the ends it reads padding."""
        view = view.normal()
        size = view.shape[dim]
        dims = view.dims
        if kernel == stride and not pad and dilation == 1 and out * kernel == size:
            view, runs = self.regrouped(view, [dim], [out, kernel])
            return View(view.tensor, (*view.dims[:dim], *runs, *view.dims[dim + 1 :]), view.places)
        if kernel == 1 and stride == 1 and not pad and out == size:
            return View(view.tensor, (*dims[: dim + 1], (), *dims[dim + 1 :]), view.places)
        if not dims[dim]:
            raise Cut("a window over a size of 1")
        if len(dims[dim]) > 1:
            keep_whole(dims[dim])
            view = self.seen(view, view.shape)
            dims = view.dims
        key = self.node.outputs[0] or self.node.name
        position = self.splitter.rank(out, (key, dim, "position"), "pqo"[(dim - 2) % 3])
        tap = self.splitter.rank(kernel, (key, dim, "tap"), "rst"[(dim - 2) % 3])
        axes = [(Var(rank), c) for rank, c in ((position, stride), (tap, dilation)) if rank.size > 1]
        both = [tuple(v for v, _ in axes if v.rank is rank) for rank in (position, tap)]
        table = {dims[dim][0]: Affine(tuple(axes), -pad)}
        if not axes and not 0 <= -pad < size:
            raise Cut("a window of nothing but padding")
        return view.put(table, (*dims[:dim], *both, *dims[dim + 1 :]))

    def einsum(
        self,
        operands: Sequence[tuple[View, Labels]],
        output: Labels,
        function: str = "",
        meaning: Meaning | None = None,
        reduction: Reduction = "sum",
        value: str | None = None,
    ) -> View:
        """One Einsum: operands with labelled dimensions, the output's labels; what the output lacks is reduced.

        meaning: of a map; a product without it. value: the ONNX value that the result is. A dimension of size 1 is
        broadcast. Raises Uneven if two factorisations of one label have no common refinement.
        """
        read, variables = self._read(operands)
        dims = [[var for label in labels for var in variables.get(label, ())] for labels in output]
        kept = tuple(var for dim in dims for var in dim)
        name = value or f"{self.node.outputs[0] or self.node.name}_{len(self.program.steps)}"
        bits = self.graph.bits.get(value or self.node.outputs[0], 32)
        if bits == 1 and value is None:
            bits = max(operand.tensor.bits for operand in read)
        tensor = Stored(name, tuple(var.rank for var in kept), bits, value=value)
        constants: list[StepOperand] = []
        if meaning is not None:
            points = prod(var.size for vs in variables.values() for var in vs)
            constants = [o for o in read if o.tensor.constant and prod(o.tensor.sizes) * MOVED <= points]
            if len(constants) == len(read):
                del constants[0]
            moved = [o for o in read if o not in constants]
            order = [*moved, *constants]
            meaning, read = _reordered(meaning, [order.index(o) for o in read]), moved
        step = Step(tensor, kept, tuple(read), tuple(constants), function, meaning, reduction)
        step.labels, step.group, step.nodes = (self.node.operator,), self.node.group, self.node.origin
        self.program.steps.append(step)
        return whole(tensor, [[Var(var.rank) for var in dim] for dim in dims])

    def _read(self, operands: Sequence[tuple[View, Labels]]) -> tuple[list[StepOperand], dict[str, tuple[Var, ...]]]:
        """What an Einsum reads, and its rank variables by label."""
        views, runs = self._matched(operands)
        variables: dict[str, tuple[Var, ...]] = {}
        tables: list[dict[Var, Affine]] = []
        for run in runs:
            table: dict[Var, Affine] = {}
            for label, axes in run.items():
                if axes and label not in variables:
                    variables[label] = tuple(Var(axis.rank) for axis in axes)
                    for axis in axes:
                        axis.rank.root().hint = axis.rank.root().hint or label.rstrip("0123456789")
                for axis, var in zip(axes, variables.get(label, ()), strict=False):
                    unite(axis.rank, var.rank, self.splitter.locked)
                    table[axis] = Affine(((var, 1),))
            tables.append(table)
        read = [StepOperand(v.tensor, v.places).put(table) for v, table in zip(views, tables, strict=True)]
        return read, variables

    def _matched(self, operands: Sequence[tuple[View, Labels]]) -> tuple[list[View], list[dict[str, tuple[Var, ...]]]]:
        """The operands with axes split alike wherever they share a label."""
        extents: dict[str, int] = {}
        for view, labels in operands:
            for dim, (names, size) in enumerate(zip(labels, view.shape, strict=True)):
                if len(names) == 1 and size > 1 and extents.setdefault(names[0], size) != size:
                    raise Refused(f"has dimension {dim} of size {size} against {extents[names[0]]}")
        views = [view for view, _ in operands]
        while True:
            found: list[dict[str, tuple[Var, ...]]] = []
            for n, (_, labels) in enumerate(operands):
                run: dict[str, tuple[Var, ...]] = {}
                for dim, names in enumerate(labels):
                    single = views[n].shape[dim] == 1
                    wanted = [1 if single else extents.get(name, 1) for name in names]
                    views[n], parts = self.regrouped(views[n], [dim], wanted)
                    run.update(zip(names, parts, strict=True))
                found.append(run)
            views = [view.normal() for view in views]
            if not self._align(views, found, [labels for _, labels in operands], extents):
                return views, found

    def _align(
        self,
        views: list[View],
        runs: list[dict[str, tuple[Var, ...]]],
        labels: list[Labels],
        extents: Mapping[str, int],
    ) -> bool:
        """Split what is not split alike; True if anything was."""
        changed = False
        for label in dict.fromkeys(label for run in runs for label in run):
            factors = [[v.size for v in run[label]] for run in runs if run.get(label)]
            if not factors or all(sizes == factors[0] for sizes in factors):
                continue
            changed = True
            try:
                target = refinement(factors)
            except Uneven:
                self._renew(views, runs, label)
                break
            for n, names in enumerate(labels):
                for dim, parts in enumerate(names):
                    if label in parts and runs[n].get(label):
                        at = list(parts).index(label)
                        wanted = [extents.get(name, 1) for name in parts]
                        views[n], _ = self.regrouped(views[n], [dim], [*wanted[:at], *target, *wanted[at + 1 :]])
        return changed

    def _renew(self, views: list[View], runs: list[dict[str, tuple[Var, ...]]], label: str) -> None:
        """Put the operands under ranks of their own that have the axes of a label in other sizes than the first."""
        split = [n for n, run in enumerate(runs) if run.get(label)]
        first = [axis.size for axis in runs[split[0]][label]]
        for n in split[1:]:
            if [axis.size for axis in runs[n][label]] != first:
                views[n] = self.seen(views[n], views[n].shape)

    def parts(
        self,
        value: str,
        given: Sequence[tuple[View, Sequence[int]]],
        fill: float | None = None,
        joined: Collection[int] = (),
    ) -> View:
        """A value that is put together: each view from these positions on. fill: what the elements between them hold.

        Dimensions that every view has whole stay as they are; the others, and those that are `joined`, are ranks that
        nothing splits.
        """
        shape = self.shape(value)
        cut = [d for d, size in enumerate(shape) if d in joined or any(view.shape[d] != size for view, _ in given)]
        listed = [
            (view, [[f"i{d}_{n}" if d in cut else f"i{d}"] for d in range(len(shape))])
            for n, (view, _) in enumerate(given)
        ]
        views, runs = self._matched(listed)
        ranks: dict[int, tuple[Rank, ...]] = {}
        for d, size in enumerate(shape):
            if d in cut:
                ranks[d] = (self.splitter.rank(size, (value, d, "parts")),)
                ranks[d][0].lock()
            else:
                ranks[d] = tuple(axis.rank for axis in runs[0][f"i{d}"])
        every = tuple(rank for d in ranks for rank in ranks[d])
        tensor = Stored(value, every, self.graph.bits.get(value, 32), value=value, fill=fill)
        before = len(self.program.steps)
        for n, (_, starts) in enumerate(given):
            axes = [runs[n][names[0]] for names in listed[n][1]]
            self._part(tensor, views[n], axes, ranks, {d: starts[d] for d in cut})
        self.program.steps[before].labels = (self.node.operator,)  # one operator, however many parts
        return whole(tensor, [[Var(rank) for rank in ranks[d]] for d in range(len(shape))])

    def _part(
        self,
        tensor: Stored,
        view: View,
        axes: Sequence[tuple[Var, ...]],
        ranks: Mapping[int, tuple[Rank, ...]],
        starts: Mapping[int, int],
    ) -> None:
        """The Einsum that puts a view into a tensor. axes: of each dimension, as ranks of the tensor; starts: the first
        position along those of which it has a part."""
        table: dict[Var, Affine] = {}
        places: list[Place] = []
        kept: list[Var] = []
        for d, mine in enumerate(axes):
            variables = tuple(Var(axis.rank) for axis in mine)
            kept += variables
            table.update({axis: Affine(((var, 1),)) for axis, var in zip(mine, variables, strict=True)})
            if d in starts:
                places.append((ranks[d][0], Affine(weighted(variables).terms, starts[d])))
                continue
            for rank, var in zip(ranks[d], variables, strict=True):
                unite(rank, var.rank, self.splitter.locked)
                places.append((rank, Affine(((var, 1),))))
        operand = StepOperand(view.tensor, view.places).put(table)
        step = Step(tensor, tuple(kept), (operand,), (), "copy", lambda arrays: arrays[0], places=tuple(places))
        step.group, step.nodes = self.node.group, self.node.origin
        self.program.steps.append(step)

    def pointwise(self, operands: Sequence[View], function: str, meaning: Meaning, value: str | None = None) -> View:
        """An elementwise map of operands that are broadcast as NumPy does."""
        return self.reduce(operands, (), "sum", function, meaning, value)

    def reduce(
        self,
        operands: Sequence[View],
        dims: Sequence[int],
        reduction: Reduction = "sum",
        function: str = "",
        meaning: Meaning | None = None,
        value: str | None = None,
        keep: bool = True,
    ) -> View:
        """A reduction of these dimensions of operands that are broadcast as NumPy does."""
        rank = max(len(view.dims) for view in operands)
        labels = [[f"i{i}"] for i in range(rank)]
        listed = [(view, labels[rank - len(view.dims) :]) for view in operands]
        output = [([] if i in dims else labels[i]) for i in range(rank) if keep or i not in dims]
        return self.einsum(listed, output, function, meaning, reduction, value)


def _reordered(meaning: Meaning, order: Sequence[int]) -> Meaning:
    """`meaning` of arguments that come in another order."""
    if list(order) == list(range(len(order))):
        return meaning
    return lambda arrays: meaning([arrays[i] for i in order])
