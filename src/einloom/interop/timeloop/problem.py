"""Timeloop's ``problem`` as a workload of one Einsum: the product of the data spaces that are only read.

A projection is a list of ranks, a rank a sum of terms, a term ``[DIMENSION]`` or ``[DIMENSION, COEFFICIENT]``.
Dimensions keep their letters, in lower case where no two differ in case only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...errors import SpecError
from ...reading.located import Located
from ...workload.build import MAX_SIZE, build_workload
from ...workload.einsum import Access, Einsum, Index, Workload
from ...workload.notation import MAX_COEFFICIENT, check_einsum, check_name
from ..tileflow.operators import rank_variables
from .sections import check_version, words

NAME = "timeloop"
FIRST = "Inputs"
"""The data space that is the first operand, whichever comes first in the file."""


def workload_from(view: Located, bits: int) -> Workload:
    """The Einsum that the section says, with `bits` per value. SpecError with the place of every mistake."""
    check_version(view)
    shape, instance = view.require("shape"), view.require("instance")
    view.finish()
    name = shape.get("name")
    dimensions = words(shape.require("dimensions"))
    variables = rank_variables(dimensions)
    sizes = {dimension: _size(instance.require(dimension)) for dimension in dimensions}
    factors = _coefficients(shape.listed("coefficients"), instance)
    if (densities := instance.get("densities")) is not None:
        raise densities.error("densities: sparse data spaces have no counterpart in einloom")
    accesses: dict[str, Access] = {}
    written: list[str] = []
    spaces = shape.require("data_spaces")
    for space in spaces.items():
        tensor = space.require("name").name()
        with space.require("name").placed():
            check_name(tensor, "a tensor")
        if tensor in accesses:
            raise space.error(f"two data spaces are called {tensor}")
        ranks = space.require("projection").items()
        accesses[tensor] = Access(tensor, tuple(_index(rank, variables, factors) for rank in ranks))
        if (flag := space.get("read_write")) is not None and flag.boolean():
            written.append(tensor)
        space.finish()
    shape.finish()
    if len(written) != 1:
        raise spaces.error(f"one data space is written (read_write: True), not {len(written)}")
    operands = sorted((tensor for tensor in accesses if tensor not in written), key=lambda tensor: tensor != FIRST)
    title = NAME if name is None else name.name()
    with shape.placed():
        einsum = Einsum(title, accesses[written[0]], tuple(accesses[tensor] for tensor in operands))
        check_einsum(einsum)
    met = {variable for access in accesses.values() for variable in access.variables}
    for dimension, size in sizes.items():
        if variables[dimension] not in met and size > 1:
            raise instance.require(dimension).error(f"{dimension} has size {size}, and no data space has it")
    ranks_ = {variables[dimension]: size for dimension, size in sizes.items() if variables[dimension] in met}
    try:
        return build_workload(title, [einsum], ranks_, bits=bits)
    except SpecError as error:
        raise shape.error(error.message, error.suggestion) from None


def _size(view: Located) -> int:
    size = view.integer(minimum=1)
    if size > MAX_SIZE:
        raise view.error(f"{size} is too large; sizes are at most 2**40")
    return size


def _coefficients(items: Sequence[Located], instance: Located) -> dict[str, int]:
    """Each coefficient's value: the instance's, else the shape's default."""
    found: dict[str, int] = {}
    for item in items:
        name = item.require("name").name()
        default = item.get("default")
        item.finish()
        place = instance.get(name) or default
        if place is None:
            raise item.error(f"coefficient {name} has neither a default nor a value in the instance")
        found[name] = place.integer(minimum=1)
        if found[name] > MAX_COEFFICIENT:
            raise place.error(f"{found[name]} is too large for a coefficient")
    return found


def _index(rank: Located, variables: Mapping[str, str], factors: Mapping[str, int]) -> Index:
    terms: dict[str, int] = {}
    for term in rank.items():
        parts = [part.name() for part in term.items()]
        letters = [part for part in parts if part in variables]
        for part in parts:
            if part not in variables and part not in factors:
                raise term.unknown("dimension or coefficient", part, (*variables, *factors))
        if len(letters) != 1 or len(parts) > 2:
            raise term.error("a term of a projection is [DIMENSION] or [DIMENSION, COEFFICIENT]")
        factor = next((factors[part] for part in parts if part in factors), 1)
        terms[variables[letters[0]]] = terms.get(variables[letters[0]], 0) + factor
    return Index(tuple(terms.items()))
