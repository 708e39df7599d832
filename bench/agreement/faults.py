"""Faults planted in the importer, one for each of its rules: the comparison of numbers must find every one.

A fault replaces one function of the importer while a network is read. Each is a mistake that a hand could make: padding
forgotten, the digits of a view in the wrong order, the axis beside the one that is reduced.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from einloom.interop.onnx import emit, lower, ranks, simplify
from einloom.interop.onnx.operators import products, reductions, views
from einloom.interop.onnx.program import Epilogue
from einloom.interop.onnx.ranks import Affine, View

Replacement = Callable[..., Any]


@dataclass(frozen=True)
class Fault:
    """A mistake. owner, name: the function that it replaces, by what `wrong` makes of the right one."""

    rule: str
    words: str
    owner: Any
    name: str
    wrong: Callable[[Any], Any]


@contextmanager
def planted(fault: Fault) -> Iterator[None]:
    """The importer with the fault in it."""
    right = getattr(fault.owner, fault.name)
    setattr(fault.owner, fault.name, fault.wrong(right))
    try:
        yield
    finally:
        setattr(fault.owner, fault.name, right)


def _window(**changed: Any) -> Callable[[Any], Replacement]:
    """Windows with another stride, dilation or padding."""

    def wrong(right: Any) -> Replacement:
        def window(p: Any, view: View, dim: int, kernel: int, stride: int, dilation: int, pad: int, out: int) -> View:
            given = {"stride": stride, "dilation": dilation, "pad": pad} | changed
            found: View = right(p, view, dim, kernel, given["stride"], given["dilation"], given["pad"], out)
            return found

        return window

    return wrong


def _kernel_turned(right: Any) -> Replacement:
    """The weight of a square kernel with rows and columns exchanged, by another order of its taps."""

    def einsum(p: Any, operands: Any, output: Any, *rest: Any, **named: Any) -> View:
        if p.node.operator == "Conv" and len(operands) == 2:
            weight, labels = operands[1]
            if len(labels) == 5 and weight.shape[3] == weight.shape[4]:
                operands = [operands[0], (weight, [*labels[:3], labels[4], labels[3]])]
        found: View = right(p, operands, output, *rest, **named)
        return found

    return einsum


def _groups_strided(right: Any) -> Replacement:
    """Every g-th channel makes a group, not neighbouring ones."""

    def reshaped(p: Any, view: View, shape: Sequence[int]) -> View:
        grouped = p.node.operator == "Conv" and len(shape) == len(view.dims) + 1 and len(view.dims) > 2
        if not grouped or view.tensor.constant or 1 in shape[1:3]:
            return right(p, view, shape)  # type: ignore[no-any-return]
        found = right(p, view, [shape[0], shape[2], shape[1], *shape[3:]])
        return View(found.tensor, (found.dims[0], found.dims[2], found.dims[1], *found.dims[3:]), found.places)

    return reshaped


def _digits_turned(right: Any) -> Replacement:
    """Neighbouring axes of a dimension, the less significant first."""

    def reshaped(p: Any, view: View, shape: Sequence[int]) -> View:
        found: View = right(p, view, shape)
        return View(found.tensor, tuple(dim[::-1] for dim in found.dims), found.places)

    return reshaped


def _weights_turned(right: Any) -> Replacement:
    """The number that digits write, the least significant first."""
    return lambda digits: right(list(digits)[::-1])


def _unchanged_if_square(right: Any) -> Replacement:
    """A transposition that is forgotten where no shape tells."""

    def permuted(view: View, order: Sequence[int]) -> View:
        found: View = right(view, order)
        return view if found.shape == view.shape else found

    return permuted


def _right_turned(right: Any) -> Replacement:
    """A square second operand, transposed."""

    def matmul(p: Any, one: View, two: View, value: str | None) -> View:
        if len(two.dims) > 1 and two.shape[-1] == two.shape[-2]:
            two = View(two.tensor, (*two.dims[:-2], two.dims[-1], two.dims[-2]), two.places)
        found: View = right(p, one, two, value)
        return found

    return matmul


def _from_the_left(right: Any) -> Replacement:
    """Operands of fewer dimensions are broadcast from the first dimension on, where the sizes allow it."""

    def pointwise(p: Any, operands: Sequence[View], *rest: Any, **named: Any) -> View:
        most = max(operands, key=lambda view: len(view.dims))
        found = []
        for view in operands:
            missing = len(most.dims) - len(view.dims)
            fits = all(a in (1, b) for a, b in zip(view.shape, most.shape, strict=False))
            moved = View(view.tensor, (*view.dims, *[()] * missing), view.places)
            found.append(moved if missing and fits else view)
        made: View = right(p, found, *rest, **named)
        return made

    return pointwise


def _axis_beside(right: Any) -> Replacement:
    """Another dimension of the same size is reduced."""

    def reduce(p: Any, operands: Sequence[View], dims: Sequence[int], *rest: Any, **named: Any) -> View:
        shape = operands[0].shape
        if len(dims) == 1 and shape[dims[0]] > 1:
            others = [d for d, size in enumerate(shape) if d != dims[0] and size == shape[dims[0]]]
            dims = others[-1:] or dims
        found: View = right(p, operands, dims, *rest, **named)
        return found

    return reduce


def _maxima_added(right: Any) -> Replacement:
    def reduce(p: Any, operands: Any, dims: Any, reduction: str = "sum", *rest: Any, **named: Any) -> View:
        found: View = right(p, operands, dims, "sum", *rest, **named)
        return found

    return reduce


def _mean_of_one_less(right: Any) -> Any:
    mean = right["ReduceMean"]._replace(after=lambda x, n: x / max(n - 1, 1))
    return {**right, "ReduceMean": mean}


def _not_centred(right: Any) -> Replacement:
    def normalised(p: Any, node: Any, x: Any, dims: Any, rest: Any, centred: bool = True) -> Any:
        return right(p, node, x, dims, rest, False)

    return normalised


def _first_part(right: Any) -> Replacement:
    """Every part of a dimension is the first one."""
    return lambda p, view, dim, start, step, length: right(p, view, dim, 0, step, length)


def _no_step(right: Any) -> Replacement:
    """Neighbours from the second element on, not every second or third."""

    def sliced(p: Any, view: View, dim: int, start: int, step: int, length: int) -> View:
        found: View = right(p, view, dim, start + (step > 1), 1, length)
        return found

    return sliced


def _parts_exchanged(right: Any) -> Replacement:
    """Parts of one size stand in each other's place."""

    def parts(p: Any, value: str, given: Sequence[Any], *rest: Any, **named: Any) -> View:
        views, starts = zip(*given, strict=True)
        if len({view.shape for view in views}) == 1:
            given = list(zip(views, starts[::-1], strict=True))
        found: View = right(p, value, given, *rest, **named)
        return found

    return parts


def _one_too_early(right: Any) -> Replacement:
    """What is padded stands one position before its own."""

    def parts(p: Any, value: str, given: Sequence[Any], fill: float | None = None, *rest: Any, **named: Any) -> View:
        if fill is not None:
            given = [(view, [max(start - 1, 0) for start in starts]) for view, starts in given]
        found: View = right(p, value, given, fill, *rest, **named)
        return found

    return parts


def _other_filling(right: Any) -> Replacement:
    def parts(p: Any, value: str, given: Any, fill: float | None = None, *rest: Any, **named: Any) -> View:
        found: View = right(p, value, given, None if fill is None else fill + 1, *rest, **named)
        return found

    return parts


def _operands_exchanged(right: Any) -> Replacement:
    """The operands of a map that moves into another one, in the wrong order."""
    return lambda inner, of_inner, outer, of_outer: right(inner, list(of_inner)[::-1], outer, of_outer)


def _epilogue_dropped(right: Any) -> Replacement:
    return lambda label, meaning, constants=(): Epilogue(label, lambda arrays: arrays[0], constants)


def _map_dropped(right: Any) -> Replacement:
    return lambda writer, meaning, constants: right(writer, lambda arrays: arrays[0], constants)


def _digit_beside(right: Any) -> Replacement:
    """Who reads one digit of a tensor gets the next."""

    def written_apart(program: Any, step: Any, rank: int, size: int, accesses: Sequence[Any]) -> None:
        for operand in accesses:
            places = list(operand.places)
            places[rank] = (places[rank][0], Affine((), (places[rank][1].constant + 1) % size))
            operand.places = tuple(places)
        right(program, step, rank, size, accesses)

    return written_apart


def _no_constant(right: Any) -> Replacement:
    """Index expressions are written without what is added to them."""
    return lambda affine, table: replace(right(affine, table), constant=0)


def _one_way(right: Any) -> Replacement:
    """What an Einsum reads in two ways is read in one."""

    def same(one: Any, other: Any) -> bool:
        return one.tensor is other.tensor

    return same


def _groups_turned(right: Any) -> Replacement:
    """The axis that repeats a head stands before the heads, not behind them."""

    def broadcast(p: Any, view: View, shape: Sequence[int]) -> View:
        found: View = right(p, view, shape)
        grown = [i for i, size in enumerate(view.shape) if size == 1 and found.shape[i] > 1]
        if len(view.dims) != len(shape) or not grown or grown[0] == 0:
            return found
        dims = list(found.dims)
        at = grown[0]
        if found.shape[at] != found.shape[at - 1]:
            return found
        dims[at - 1 : at + 1] = [dims[at], dims[at - 1]]
        return View(found.tensor, tuple(dims), found.places)

    return broadcast


LOWERING = lower.Lowering
FAULTS: tuple[Fault, ...] = (
    Fault("padding", "windows begin inside the tensor", LOWERING, "window", _window(pad=0)),
    Fault("stride", "windows move by one", LOWERING, "window", _window(stride=1)),
    Fault("dilation", "taps are neighbours", LOWERING, "window", _window(dilation=1)),
    Fault("groups", "every g-th channel makes a group", LOWERING, "reshaped", _groups_strided),
    Fault("kernel", "rows and columns of a kernel exchanged", LOWERING, "einsum", _kernel_turned),
    Fault("product", "a square second operand transposed", products, "matmul", _right_turned),
    Fault("transposed weight", "Gemm's transposition forgotten", products, "permuted", _unchanged_if_square),
    Fault("transposition", "forgotten where no shape tells", views, "permuted", _unchanged_if_square),
    Fault("digits of a view", "axes of a dimension in the wrong order", LOWERING, "reshaped", _digits_turned),
    Fault("digits of a whole rank", "the least significant first", ranks, "weighted", _weights_turned),
    Fault("digits of a part", "the least significant first", lower, "weighted", _weights_turned),
    Fault("repeated axis", "an axis that is repeated stands before its neighbour", views, "broadcast", _groups_turned),
    Fault("broadcast", "from the first dimension on", LOWERING, "pointwise", _from_the_left),
    Fault("axis of a reduction", "the one beside it, of the same size", LOWERING, "reduce", _axis_beside),
    Fault("reduction", "maxima are sums", LOWERING, "reduce", _maxima_added),
    Fault("mean", "divided by one less", reductions, "REDUCTIONS", _mean_of_one_less),
    Fault("norm", "squares of values, not of differences", reductions, "normalised", _not_centred),
    Fault("slice", "every part is the first", LOWERING, "sliced", _first_part),
    Fault("step of a slice", "is one", LOWERING, "sliced", _no_step),
    Fault("Concat", "parts of one size exchanged", LOWERING, "parts", _parts_exchanged),
    Fault("Pad", "one position too early", LOWERING, "parts", _one_too_early),
    Fault("value of Pad", "one more", LOWERING, "parts", _other_filling),
    Fault("A: a map in its reader", "operands in reverse", simplify, "_composed", _operands_exchanged),
    Fault("B: an epilogue", "dropped", simplify, "Epilogue", _epilogue_dropped),
    Fault("B: a map in a map", "dropped", simplify, "_after", _map_dropped),
    Fault("C: digits apart", "the digit beside", simplify, "_written_apart", _digit_beside),
    Fault("written index", "without its constant", emit, "_index", _no_constant),
    Fault("two accesses", "what is read in two ways is read in one", emit.StepOperand, "same", _one_way),
)
