"""Do the numbers agree? Every tensor of the cascade, interpreted in NumPy, against a run of the ONNX graph itself."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from ...dataclass import dataclass
from ...errors import SpecError
from .program import Array, GraphProgram, Step, StepOperand
from .ranks import Affine, Stored, Var, View
from .ties import both_ways

LARGEST = 2**27
"""Values of one array of the interpretation."""
SINGLE = 1e-5
"""A difference that is rounding in single precision, over some hundred layers."""
NEAR = 16
"""Numbers of at least the largest of a type divided by this may be infinities or NaN in another order of sums."""
UNITS = 10
"""So many units in the last place are rounding in types that are coarser."""
COARSEST = 0.1
"""Larger differences are never rounding: most mistakes show as such."""


@dataclass(frozen=True)
class NumbersChecked:
    """What was compared. worst: the largest difference relative to the largest value of its tensor, `where`.

    unbounded: how many tensors have infinities or NaN at the same places on both sides, which are no difference.
    ties: by tensor, how many values half-way between two quantised numbers the model rounds the other way. They are no
    difference, and what follows is computed from the model's. reference: who ran the model.
    """

    tensors: int
    worst: float
    where: str = ""
    unbounded: int = 0
    limit: float = SINGLE
    """What `worst` may be by the types of the model's values."""
    ties: tuple[tuple[str, int], ...] = ()
    reference: str = ""

    @property
    def agrees(self) -> bool:
        """True if no difference is above the limit."""
        return self.worst <= self.limit


def limit(types: Iterable[np.dtype[Any]], steps: Sequence[float] = ()) -> float:
    """The largest difference that rounding explains: some units in the last place of the coarsest type.

    steps: of quantised tensors, relative to the largest number of their types.

    >>> limit([np.dtype(np.float64), np.dtype(np.float32)]), limit([np.dtype(np.float16)])
    (1e-05, 0.009765625)
    """
    last = [*steps, *(precision(kind) for kind in set(types) if kind.kind in "fV")]
    return min(max((SINGLE, *(UNITS * step for step in last if step < 1))), COARSEST)


def precision(kind: np.dtype[Any]) -> float:
    """The distance from 1 to the next number of a type; 1 for integers that NumPy has no kind for."""
    found = 1.0
    while float(np.array(1 + found / 2).astype(kind)) > 1:
        found /= 2
    return found


def interpret(
    program: GraphProgram, values: Mapping[str, Array], ties: dict[str, int] | None = None
) -> dict[Stored, Array]:
    """Every tensor that an Einsum writes, with ranks as its axes. values: of the cascade's inputs, by ONNX name.

    ties: is given, by tensor, how many values half-way between two numbers the model rounds the other way; these are
    taken from the model. Without it nothing is.
    """
    found: dict[Stored, Array] = {}
    for step in program.steps:
        array = _run(step, found, values) if ties is None else _tied(step, found, values, ties)
        array = _overflowed(array, values.get(step.output.value or ""))
        if step.places:
            whole = found.setdefault(step.output, np.full(step.output.sizes, step.output.fill or 0.0))
            whole[tuple(_index(affine, step.variables) for _, affine in step.places)] = array
        else:
            found[step.output] = array
    return found


def _tied(step: Step, found: Mapping[Stored, Array], values: Mapping[str, Array], ties: dict[str, int]) -> Array:
    """What a step yields, with the model's value wherever only the way of a rounding is between the two."""
    array, low, high = both_ways(lambda: _run(step, found, values))
    name = step.output.value
    if name is None or name not in values or not (low < high).any():
        return array
    reference = np.asarray(_stored(step.output, values[name]), float)
    if step.places:
        reference = reference[tuple(_index(affine, step.variables) for _, affine in step.places)]
    slack = SINGLE * float(np.abs(np.where(np.isfinite(reference), reference, 0)).max(initial=0))
    other = (low < high) & (reference >= low - slack) & (reference <= high + slack)
    if count := int((other & (np.abs(array - reference) > slack)).sum()):
        ties[name] = ties.get(name, 0) + count
    return np.where(other, reference, array)


def _overflowed(array: Array, reference: Array | None) -> Array:
    """The array with infinities where the model's own type has no larger numbers."""
    kind = np.asarray(reference).dtype
    if reference is None or kind.kind != "f" or array.dtype.kind != "f":
        return array
    return np.where(np.abs(array) > np.finfo(kind).max, np.copysign(np.inf, array), array)


def compare(program: GraphProgram, found: Mapping[Stored, Array], values: Mapping[str, Array]) -> NumbersChecked:
    """The interpretation against the graph's own values, by ONNX name."""
    pairs = {
        tensor.value: (array, _stored(tensor, values[tensor.value]))
        for tensor, array in found.items()
        if tensor.value is not None and tensor.value in values
    }
    for name, view in program.results.items():
        if name in values and name not in pairs:
            pairs[name] = (_viewed(view, found, values), np.asarray(values[name]))
    differences = {name: _difference(*pair) for name, pair in pairs.items()}
    where = max(differences, key=lambda name: (np.isnan(differences[name]), differences[name]), default="")
    unbounded = sum(not np.isfinite(np.asarray(reference, float)).all() for _, reference in pairs.values())
    return NumbersChecked(len(differences), differences.get(where, 0.0), where, unbounded)


def _viewed(view: View, found: Mapping[Stored, Array], values: Mapping[str, Array]) -> Array:
    """The value that a view shows, with its dimensions as axes."""
    axes = [axis for dim in view.dims for axis in dim]
    array = _array(StepOperand(view.tensor, view.places), axes, found, values, 0.0)
    return np.broadcast_to(array, [axis.size for axis in axes]).reshape(view.shape)


def _difference(array: Array, reference: Array) -> float:
    if array.shape != reference.shape:
        return np.inf
    a, b = np.asarray(array, float), np.asarray(reference, float)
    kind = reference.dtype
    edge = np.finfo(kind).max / NEAR if kind.kind == "f" else np.inf
    beyond = ~(np.abs(a) < edge) & ~(np.abs(b) < edge) & ~(np.isfinite(a) & np.isfinite(b))
    equal = (a == b) | beyond
    finite = np.where(equal | ~np.isfinite(b), 0, b)
    with np.errstate(all="ignore"):
        gap = np.where(equal, 0, np.abs(a - b))
    largest = max(float(np.abs(finite).max(initial=0)), 1e-30)
    return float(gap.max(initial=0)) / largest


def _stored(tensor: Stored, value: Array) -> Array:
    """The value of a tensor with ranks as its axes."""
    whole = tensor.sizes
    for place, _, size in reversed(tensor.select):
        whole.insert(place, size)
    array = np.asarray(value).reshape(whole)
    for place, digit, _ in tensor.select:
        array = np.take(array, digit, axis=place)
    return array


def _run(step: Step, found: Mapping[Stored, Array], values: Mapping[str, Array]) -> Array:
    points = step.points
    if step.meaning is None and step.reduction == "sum":
        result = _product(step, found, values)
    else:
        if prod(var.size for var in points) > LARGEST:
            raise MemoryError(f"{step.output.name} has too many points to be interpreted")
        neutral = 0.0 if step.reduction == "sum" else -np.inf
        arrays = [_array(o, points, found, values, neutral) for o in (*step.operands, *step.constants)]
        result = arrays[0] if step.meaning is None else step.meaning(arrays)
        result = np.broadcast_to(result, [var.size for var in points])
        if axes := tuple(i for i, var in enumerate(points) if var not in step.variables):
            result = result.sum(axes) if step.reduction == "sum" else result.max(axes)
    for epilogue in step.epilogues:
        constants = [_array(o, step.variables, found, values, 0.0) for o in epilogue.constants]
        result = np.broadcast_to(epilogue.meaning([result, *constants]), result.shape)
    return result


def _product(step: Step, found: Mapping[Stored, Array], values: Mapping[str, Array]) -> Array:
    """A product and its sum, by NumPy's einsum; repeated along variables that no operand has."""
    numbers = {var: i for i, var in enumerate(step.points)}
    read = {var for operand in step.operands for var in operand.variables}
    arguments: list[Any] = []
    for operand in step.operands:
        own = operand.variables
        arguments += [_array(operand, own, found, values, 0.0), [numbers[var] for var in own]]
    product = np.einsum(*arguments, [numbers[var] for var in step.variables if var in read], optimize=True)
    repeated = [i for i, var in enumerate(step.variables) if var not in read]
    return np.broadcast_to(np.expand_dims(product, repeated), [var.size for var in step.variables])


def _array(
    operand: StepOperand,
    points: Sequence[Var],
    found: Mapping[Stored, Array],
    values: Mapping[str, Array],
    neutral: float,
) -> Array:
    """What an operand reads at every point, with one axis per variable; outside the tensor stands `neutral`."""
    source = _source(operand.tensor, found, values)
    own = set(operand.variables)
    shape = tuple(var.size if var in own else 1 for var in points)
    inside = np.ones([1] * len(points), bool)
    chosen = []
    for axis, (_, affine) in enumerate(operand.places):
        index = _index(affine, points)
        size = source.shape[axis]
        if affine.constant or affine.bare is None:
            inside = inside & (index >= 0) & (index < size)
            index = np.clip(index, 0, size - 1)
        chosen.append(index)
    array = source[tuple(chosen)] if chosen else source.reshape([1] * len(points))
    array = np.broadcast_to(array, shape)
    return array if inside.all() else np.where(inside, array, neutral)


def _source(tensor: Stored, found: Mapping[Stored, Array], values: Mapping[str, Array]) -> Array:
    """A tensor with its ranks as axes."""
    if tensor.of is not None:
        return _source(tensor.of, found, values).reshape(tensor.sizes)
    if tensor in found:
        return found[tensor]
    if tensor.data is not None:
        return _stored(tensor, tensor.data)
    name = tensor.value or tensor.name
    if name not in values:
        raise SpecError(f"{name!r:.80} has no values that are kept: there are no numbers to check")
    source = _stored(tensor, values[name])
    return source.astype(float) if source.dtype.kind in "fV" else source


def _index(affine: Affine, points: Sequence[Var]) -> Any:
    index = np.full([1] * len(points), affine.constant)
    for var, coefficient in affine.terms:
        at = points.index(var)
        shape = [1] * len(points)
        shape[at] = var.size
        index = index + coefficient * np.arange(var.size).reshape(shape)
    return index
