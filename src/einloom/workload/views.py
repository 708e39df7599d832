"""Views: names under which Einsums read a tensor with other ranks, as a reshape does.

A view has as many elements as its tensor, in the same row-major order, and no storage of its own. An access through a
view is one of the tensor with the view's ranks (`Access.view`), so stores, mappings and counts know the tensor alone
(docs/model/views.md).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from math import prod

from ..errors import SpecError, combined, nearest
from .einsum import Access, Einsum, TensorView, Workload
from .notation import check_name


def resolved(einsums: Sequence[Einsum], views: Sequence[TensorView], declared: Collection[str] = ()) -> list[Einsum]:
    """The Einsums, with every read of a view as one of its tensor. Raises SpecError for what is wrong with names.

    declared: the tensors of declared shape, which no Einsum need access under their own ranks.
    """
    table = {view.name: view for view in views}
    wrong = [*_misnamed(einsums, views, declared), *(error for einsum in einsums for error in _misused(einsum, table))]
    if wrong:
        raise combined(wrong)
    return [_resolved(einsum, table) for einsum in einsums] if views else list(einsums)


def view_problems(view: TensorView, shape: Sequence[int]) -> Iterator[SpecError]:
    """A view of another number of elements than its tensor, of this shape, has."""
    if prod(view.shape) != prod(shape):
        yield SpecError(
            f"view {view.name} {list(view.shape)} has {prod(view.shape)} elements, but {view.tensor} {list(shape)} has "
            f"{prod(shape)}",
            path=f"views.{view.name}",
        )


def called(workload: Workload, tensor: str) -> str:
    """The tensor with the views under which it is read, as in T (U)."""
    views = ", ".join(view.name for view in workload.views if view.tensor == tensor)
    return f"{tensor} ({views})" if views else tensor


def _misnamed(einsums: Sequence[Einsum], views: Sequence[TensorView], declared: Collection[str]) -> Iterator[SpecError]:
    """Names of views and of their tensors that cannot be such."""
    accessed = [access for einsum in einsums for access in einsum.accesses]
    names = dict.fromkeys(access.view or access.tensor for access in accessed)
    tensors = dict.fromkeys(access.tensor for access in accessed)
    known = {view.name for view in views}
    for name, times in Counter(view.name for view in views).items():
        if times > 1:
            yield SpecError(f"two views are called {name}", path=f"views.{name}")
    for view in views:
        place = f"views.{view.name}"
        try:
            check_name(view.name, "a tensor")
            check_name(view.tensor, "a tensor")
        except SpecError as error:
            yield SpecError(error.message, path=place)
            continue
        if view.tensor in known:
            of = next(other.tensor for other in views if other.name == view.tensor)
            yield SpecError(f"view {view.name} is of {view.tensor}, a view itself", path=place, suggestion=of)
        elif view.tensor not in tensors and view.tensor not in declared:
            yield SpecError(
                f"view {view.name} is of {view.tensor}, which no Einsum accesses; an input that is read through views "
                "alone needs a declared shape",
                path=place,
                suggestion=nearest(view.tensor, [name for name in tensors if name not in known]),
            )
        if view.name not in names:
            close = nearest(view.name, [name for name in tensors if name not in known])
            yield SpecError(f"no Einsum reads view {view.name}", path=place, suggestion=close)


def _misused(einsum: Einsum, views: Mapping[str, TensorView]) -> Iterator[SpecError]:
    """Writes to a view, reads through one that there is not, and reads of one tensor under several ranks."""
    place = f"einsums.{einsum.name}"
    if (view := views.get(einsum.output.tensor)) is not None:
        message = f"Einsum {einsum.name} writes {view.name}, a view of {view.tensor}; only the tensor itself is written"
        yield SpecError(message, path=place, suggestion=view.tensor)
        return
    ways: dict[str, Access] = {}
    for access in einsum.inputs:
        if access.view and access.view not in views:
            yield SpecError(f"Einsum {einsum.name} reads {access} through no view that is listed", path=place)
            continue
        named = access.view or access.tensor
        tensor = views[named].tensor if named in views else named
        if tensor == einsum.output.tensor:
            yield SpecError(f"Einsum {einsum.name} reads {access}, a view of {tensor}, which it writes", path=place)
        first = ways.setdefault(tensor, access)
        if (first.view or first.tensor) != named:
            yield SpecError(
                f"Einsum {einsum.name} reads {tensor} as {first} and as {access}; an Einsum reads a tensor under one "
                "set of ranks: let one of the two be read from a copy",
                path=place,
            )


def _resolved(einsum: Einsum, views: Mapping[str, TensorView]) -> Einsum:
    inputs = tuple(
        Access(views[access.tensor].tensor, access.indices, access.tensor)
        if not access.view and access.tensor in views
        else access
        for access in einsum.inputs
    )
    return einsum if inputs == einsum.inputs else replace(einsum, inputs=inputs)
