"""A `Workload` from Einsums and sizes: program order, tensor shapes, outputs, every rule checked.

Einsums (parsed or as text) and rank sizes come in from `files`, `zoo` or Python; frozen data goes out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ..errors import SpecError, nearest
from .einsum import Access, Einsum, Fact, Index, Tensor, Workload
from .notation import check_einsum, check_name, parse_einsum

MAX_SIZE = 2**40


def build_workload(
    name: str,
    einsums: Iterable[Einsum | str],
    ranks: Mapping[str, int],
    *,
    bits: int | Mapping[str, int],
    shapes: Mapping[str, Sequence[int]] | None = None,
    outputs: Sequence[str] | None = None,
    persistent: Sequence[str] = (),
    repeat: int = 1,
    facts: Sequence[Fact] = (),
) -> Workload:
    """The cascade of `einsums`, in a program order that respects who produces what.

    >>> w = build_workload("conv", ["O[p] = I[p+r] * W[r]"], {"p": 8, "r": 3}, bits=8)
    >>> w.tensor("I").shape, w.outputs
    ((10,), ('O',))

    ranks: extent of each rank variable. bits: bits per value, one number or per tensor with ``default``. shapes: the
    declared shapes; elements outside are padding. Raises SpecError for everything that does not fit together.
    """
    parsed = [parse_einsum(einsum) if isinstance(einsum, str) else einsum for einsum in einsums]
    for einsum in parsed:
        check_einsum(einsum)
    ordered = program_order(parsed)
    sizes = _rank_sizes(ordered, ranks)
    names = tuple(dict.fromkeys(a.tensor for e in ordered for a in (*e.inputs, e.output)))
    for table, what in ((shapes or {}, "shapes"), (bits if isinstance(bits, Mapping) else {}, "bits")):
        for tensor in table:
            if not (what == "bits" and tensor == "default"):
                _known(tensor, names, what)
    for tensor in persistent:
        _known(tensor, names, "persistent")
    tensors = tuple(
        Tensor(tensor, tensor_shape(tensor, ordered, sizes, shapes or {}), _bits(tensor, bits), tensor in persistent)
        for tensor in names
    )
    if repeat < 1:
        raise SpecError(f"repeat must be at least 1, not {repeat}", path="repeat")
    chosen = _outputs(ordered, names, outputs)
    return Workload(name, ordered, tensors, tuple(sizes.items()), chosen, repeat, tuple(facts))


def program_order(einsums: Sequence[Einsum]) -> tuple[Einsum, ...]:
    """The Einsums with every producer before its consumers, otherwise in the given order.

    Raises SpecError for no Einsums, a name or an output that occurs twice, and a cycle.
    """
    if not einsums:
        raise SpecError("a workload needs at least one Einsum", path="einsums")
    writers: dict[str, str] = {}
    names: set[str] = set()
    for einsum in einsums:
        if einsum.name in names:
            raise SpecError(f"two Einsums are called {einsum.name}", path=f"einsums.{einsum.name}")
        names.add(einsum.name)
        tensor = einsum.output.tensor
        if tensor in writers:
            raise SpecError(
                f"tensor {tensor} is written by Einsum {writers[tensor]} and by Einsum {einsum.name}",
                path=f"einsums.{einsum.name}",
            )
        writers[tensor] = einsum.name
    waiting = list(einsums)
    pending = set(writers)
    ordered: list[Einsum] = []
    while waiting:
        ready = next((e for e in waiting if not any(a.tensor in pending for a in e.inputs)), None)
        if ready is None:
            listed = ", ".join(e.name for e in waiting)
            raise SpecError(f"Einsums {listed} form a cycle or read from one", path=f"einsums.{waiting[0].name}")
        waiting.remove(ready)
        pending.discard(ready.output.tensor)
        ordered.append(ready)
    return tuple(ordered)


def _rank_sizes(einsums: Sequence[Einsum], ranks: Mapping[str, int]) -> dict[str, int]:
    users: dict[str, str] = {}
    for einsum in einsums:
        for variable in einsum.variables:
            users.setdefault(variable, einsum.name)
    for variable in ranks:
        check_name(variable, "a rank variable")
        if variable not in users:
            raise SpecError(
                f"rank variable {variable} is used by no Einsum",
                path=f"ranks.{variable}",
                suggestion=nearest(variable, users),
            )
    for variable, einsum_name in users.items():
        if variable not in ranks:
            close = nearest(variable, [rank for rank in ranks if rank not in users])
            raise SpecError(
                f"rank variable {variable} of Einsum {einsum_name} has no size"
                + (f"; is {close} it?" if close else ""),
                path=f"einsums.{einsum_name}",
            )
        if not 1 <= ranks[variable] <= MAX_SIZE:
            raise SpecError(
                f"rank variable {variable} has size {ranks[variable]}; sizes are 1 to 2**40", path=f"ranks.{variable}"
            )
    return {variable: ranks[variable] for variable in users}


def _known(tensor: str, names: Sequence[str], what: str) -> None:
    if tensor not in names:
        raise SpecError(
            f"{what} names tensor {tensor}, which no Einsum accesses", path=what, suggestion=nearest(tensor, names)
        )


def _bits(tensor: str, bits: int | Mapping[str, int]) -> int:
    if isinstance(bits, Mapping):
        if tensor not in bits and "default" not in bits:
            raise SpecError(f"bits says nothing about tensor {tensor} and has no default", path="bits")
        bits = bits[tensor] if tensor in bits else bits["default"]
    if not 1 <= bits <= 4096:
        raise SpecError(f"tensor {tensor} has {bits} bits per value; 1 to 4096 are possible", path=f"bits.{tensor}")
    return bits


def tensor_shape(
    tensor: str, einsums: Sequence[Einsum], sizes: Mapping[str, int], shapes: Mapping[str, Sequence[int]]
) -> tuple[int, ...]:
    """The size of each rank: declared, else written by the producer, else what all accesses agree on."""
    accesses = [(e.name, a) for e in einsums for a in e.accesses if a.tensor == tensor]
    first_name, first = accesses[0]
    for einsum, access in accesses:
        if len(access.indices) != len(first.indices):
            raise SpecError(
                f"tensor {tensor} has {len(first.indices)} rank(s) in Einsum {first_name} ({first}) and "
                f"{len(access.indices)} in Einsum {einsum} ({access})",
                path=f"einsums.{einsum}",
            )
    declared = shapes.get(tensor)
    if declared is not None and len(declared) != len(first.indices):
        raise SpecError(
            f"the shape of {tensor} has {len(declared)} rank(s), but Einsum {first_name} accesses {first}",
            path=f"shapes.{tensor}",
        )
    writer = next((e.name for e in einsums if e.output.tensor == tensor), None)
    return tuple(
        _rank_size(
            tensor,
            [(einsum, access, access.indices[rank]) for einsum, access in accesses],
            sizes,
            None if declared is None else declared[rank],
            writer,
        )
        for rank in range(len(first.indices))
    )


def _rank_size(
    tensor: str,
    uses: Sequence[tuple[str, Access, Index]],
    sizes: Mapping[str, int],
    declared: int | None,
    writer: str | None,
) -> int:
    if declared is not None and not 1 <= declared <= MAX_SIZE:
        raise SpecError(f"the shape of {tensor} holds {declared}; sizes are 1 to 2**40", path=f"shapes.{tensor}")
    fixing = [use for use in uses if use[0] == writer] or [use for use in uses if use[2].constant == 0]
    if declared is not None:
        size, origin = declared, f"size {declared} by its declared shape"
    elif fixing:
        einsum, access, index = fixing[0]
        size = index.extent(sizes)
        origin = f"size {size} in Einsum {einsum} ({access})"
    else:
        einsum, access, index = uses[0]
        raise SpecError(
            f"the size of tensor {tensor} cannot be told from Einsum {einsum} ({access}), because {index} has a "
            f"constant; declare its shape",
            path=f"einsums.{einsum}",
        )
    for einsum, access, index in uses:
        reach = index.extent(sizes)
        padded = declared is not None and einsum != writer and not index.simple
        if padded or index.constant != 0:
            fits = index.constant < size and index.constant + reach > 0
        elif declared is not None and einsum != writer:
            fits = reach <= size
        else:
            fits = reach == size
        if not fits:
            raise SpecError(
                f"rank of unequal size: tensor {tensor} has {origin}, but Einsum {einsum} ({access}) reaches {reach} "
                f"with {index}",
                path=f"einsums.{einsum}",
            )
    return size


def _outputs(einsums: Sequence[Einsum], names: Sequence[str], stated: Sequence[str] | None) -> tuple[str, ...]:
    written = [einsum.output.tensor for einsum in einsums]
    read = {access.tensor for einsum in einsums for access in einsum.inputs}
    unread = [tensor for tensor in written if tensor not in read]
    if stated is None:
        return tuple(unread)
    for tensor in stated:
        _known(tensor, names, "outputs")
        if tensor not in written:
            raise SpecError(
                f"outputs names tensor {tensor}, which no Einsum writes",
                path="outputs",
                suggestion=nearest(tensor, written),
            )
    for tensor in unread:
        if tensor not in stated:
            raise SpecError(
                f"tensor {tensor} is written, but no Einsum reads it and outputs does not list it", path="outputs"
            )
    return tuple(tensor for tensor in written if tensor in stated)
