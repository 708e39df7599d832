"""TileFlow's ``problem`` as a workload: operators with data spaces, one global name space of dimensions.

TileFlow does not say what an operator computes: every point costs one multiplication. An operator without ``type`` is
read as a product summed over what its output lacks; with the ``type`` of a function that einloom knows, as that
function. Dimensions keep their letters, in lower case where no two differ in case only.
"""

from __future__ import annotations

from collections.abc import Mapping

from ...dataclass import dataclass
from ...errors import SpecError, nearest
from ...reading.arithmetic import Number
from ...reading.located import Located
from ...workload.build import build_workload
from ...workload.einsum import Access, Einsum, Index, Workload
from ...workload.notation import FUNCTIONS
from .sections import known, truth, whole, words

WORKLOAD_NAME = "tileflow"


@dataclass(frozen=True)
class OperatorProblem:
    """A workload; variables: dimension -> rank variable; sizes: dimension -> extent.

    accumulated: tensors that are read before they are written (``read-write: True``). order: tensors as the data spaces
    list them.
    """

    workload: Workload
    variables: Mapping[str, str]
    sizes: Mapping[str, int]
    accumulated: frozenset[str]
    order: tuple[str, ...]


def problem_from(view: Located, names: Mapping[str, Number], bits: int) -> OperatorProblem:
    """The cascade that the section says, with `bits` per value. SpecError with the place of every mistake."""
    io = view.require("io")
    ins, outs = words(io.require("ins")), words(io.require("outs"))
    io.finish()
    dimensions = words(view.require("dimensions"))
    variables = rank_variables(dimensions)
    sizes = _sizes(view.require("instance"), dimensions, names)
    einsums: list[Einsum] = []
    accumulated: dict[str, bool] = {}
    places: dict[str, Located] = {}
    listed = view.require("ops")
    for item in listed.items():
        einsum = _operator(item, variables, sizes, names, accumulated)
        if einsum.name in places:
            raise item.error(f"two operators are called {einsum.name}")
        places[einsum.name] = item
        einsums.append(einsum)
    view.finish()
    used = {v for einsum in einsums for v in einsum.variables}
    ranks = {variables[d]: size for d, size in sizes.items() if variables[d] in used}
    try:
        workload = build_workload(WORKLOAD_NAME, einsums, ranks, bits=bits, outputs=outs)
    except SpecError as error:
        name = (error.path or "").removeprefix("einsums.")
        raise places.get(name, listed).error(error.message, error.suggestion) from None
    inputs = set(workload.inputs)
    for tensor in ins:
        if tensor not in inputs:
            raise io.error(f"io.ins names {tensor}, which is no input of the operators", nearest(tensor, inputs))
    if missing := inputs - set(ins):
        raise io.error(f"no operator writes {', '.join(sorted(missing))}, and io.ins does not name it")
    read_first = frozenset(tensor for tensor, flag in accumulated.items() if flag)
    return OperatorProblem(workload, variables, sizes, read_first, tuple(accumulated))


def rank_variables(dimensions: tuple[str, ...]) -> dict[str, str]:
    """The rank variable of every dimension: its name in lower case, as far as that keeps them apart."""
    lower = [name.lower() for name in dimensions]
    return {name: low if lower.count(low) == 1 else name for name, low in zip(dimensions, lower, strict=True)}


def _sizes(view: Located, dimensions: tuple[str, ...], names: Mapping[str, Number]) -> dict[str, int]:
    sizes = {dimension: whole(view.require(dimension), names) for dimension in dimensions}
    view.finish()
    return sizes


def _operator(
    item: Located,
    variables: Mapping[str, str],
    sizes: Mapping[str, int],
    names: Mapping[str, Number],
    accumulated: dict[str, bool],
) -> Einsum:
    name = item.require("name").name()
    dimensions = item.require("dimensions")
    listed = known(dimensions, words(dimensions), variables, "dimension")
    accesses: dict[str, Access] = {}
    for space in item.require("data-spaces").items():
        tensor = space.require("name").name()
        if tensor in accesses:
            raise space.error(f"{name} has two data spaces {tensor}")
        projection = space.require("projection")
        indices = tuple(_index(rank, variables, sizes, names) for rank in projection.items())
        accesses[tensor] = Access(tensor, indices)
        flag = space.get("read-write")
        accumulated[tensor] = accumulated.get(tensor, False) or (flag is not None and truth(flag))
        space.finish()
    inputs = tuple(_access(item, accesses, tensor) for tensor in words(item.require("ins")))
    output = _access(item, accesses, item.require("out").name())
    kind = item.get("type")
    item.get("inplace")
    item.finish()
    function = None if kind is None else kind.name().lower()
    met = {v for access in (*inputs, output) for v in access.variables}
    for dimension in listed:
        if variables[dimension] not in met:
            raise dimensions.error(f"{name} runs over {dimension}, which no tensor of it has")
    if function is not None and function in FUNCTIONS and FUNCTIONS[function] in (None, len(inputs)):
        return Einsum(name, output, inputs, "map", function)
    return Einsum(name, output, inputs)


def _access(item: Located, accesses: Mapping[str, Access], tensor: str) -> Access:
    if tensor not in accesses:
        raise item.error(f"{tensor!r:.60} is no data space of this operator", nearest(tensor, accesses))
    return accesses[tensor]


def _index(rank: Located, variables: Mapping[str, str], sizes: Mapping[str, int], names: Mapping[str, Number]) -> Index:
    """One rank of a projection: a sum of terms ``[D]`` or ``[D, factor]``."""
    terms: dict[str, int] = {}
    for term in rank.items():
        parts = term.items()
        if not 1 <= len(parts) <= 2:
            raise term.error("a term of a projection is [DIMENSION] or [DIMENSION, factor]")
        (dimension,) = known(parts[0], (parts[0].name(),), variables, "dimension")
        variable = variables[dimension]
        factor = whole(parts[1], {**names, **sizes}) if len(parts) == 2 else 1
        terms[variable] = terms.get(variable, 0) + factor
    return Index(tuple(terms.items()))
