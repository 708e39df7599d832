"""A `Workload` from Einsums and sizes: program order, tensor shapes, outputs, every rule checked.

Einsums (parsed or as text) and rank sizes come in from `files`, `zoo` or Python; frozen data goes out.
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from ..errors import SpecError, combined, nearest
from ..reading.facts import Fact
from ..reading.located import MAX_TEXT
from .einsum import Access, Einsum, Index, Tensor, TensorView, Workload
from .notation import check_einsum, check_name, parse_einsum
from .parts import part_problems, written_size
from .views import resolved, view_problems

MAX_SIZE = 2**40
MAX_BITS = 4096
BUILT = "built"
"""Under this name a workload remembers that its parts fit together, or what they were read as (`checked`)."""
MAX_ERRORS = 100


def build_workload(
    name: str,
    einsums: Iterable[Einsum | str],
    ranks: Mapping[str, int],
    *,
    bits: int | Mapping[str, int],
    shapes: Mapping[str, Sequence[int]] | None = None,
    outputs: Sequence[str] | None = None,
    persistent: Sequence[str] = (),
    initial: Sequence[str] = (),
    repeat: int = 1,
    facts: Sequence[Fact] = (),
    absorbed: Sequence[str] = (),
    views: Sequence[TensorView] = (),
) -> Workload:
    """The cascade of `einsums`, in a program order that respects who produces what.

    >>> w = build_workload("conv", ["O[p] = I[p+r] * W[r]"], {"p": 8, "r": 3}, bits=8)
    >>> w.tensor("I").shape, w.outputs
    ((10,), ('O',))

    ranks: extent of each rank variable. bits: bits per value, one number or per tensor with ``default``. shapes: the
    declared shapes; elements outside are padding. initial: tensors of which the elements that no Einsum writes are
    there from the start. views: names under which Einsums read a tensor with other ranks. Sizes and bits are whole
    numbers, of Python or of NumPy. Raises SpecError for everything that does not fit together.
    """
    parsed = [parse_einsum(einsum) if isinstance(einsum, str) else einsum for einsum in einsums]
    for einsum in parsed:
        check_einsum(einsum)
    ordered = program_order(resolved(parsed, views, shapes or {}))
    names = tuple(dict.fromkeys(a.tensor for e in ordered for a in (*e.inputs, e.output)))
    wrong = [
        *_wrong_ranks(ordered, ranks),
        *_wrong_names(ordered, names, shapes or {}, bits, outputs, persistent, initial, views),
        *_wrong_shapes(shapes or {}, views),
        *_wrong_whole(name, repeat),
    ]
    if wrong:
        raise combined(wrong)
    sizes = {variable: operator.index(ranks[variable]) for variable in _users(ordered)}
    shapes = {tensor: _plain(shape) for tensor, shape in (shapes or {}).items()}
    views = [replace(view, shape=_plain(view.shape)) for view in views]
    users = _accessing(ordered)
    tensors: list[Tensor] = []
    for tensor in names:
        try:
            shape = tensor_shape(tensor, users[tensor], sizes, shapes, tensor in initial)
            tensors.append(Tensor(tensor, shape, _bits(tensor, bits), tensor in persistent, tensor in initial))
            for view in (view for view in views if view.tensor == tensor):
                wrong.extend(view_problems(view, shape))
                _check_reads(view, users[tensor], sizes)
        except SpecError as error:
            wrong.append(error)
    if wrong:
        raise combined(wrong)
    rest = (_outputs(ordered, outputs), operator.index(repeat), tuple(facts), tuple(absorbed), tuple(views))
    made = Workload(name, ordered, tuple(tensors), tuple(sizes.items()), *rest)
    vars(made)[BUILT] = True
    return made


def program_order(einsums: Sequence[Einsum]) -> tuple[Einsum, ...]:
    """The Einsums with every producer before its consumers, otherwise in the given order.

    Raises SpecError for no Einsums, a name that occurs twice, and a cycle.
    """
    if not einsums:
        raise SpecError("a workload needs at least one Einsum", path="einsums")
    names: set[str] = set()
    for einsum in einsums:
        if einsum.name in names:
            parts = einsum.name == einsum.output.tensor
            hint = "; Einsums that write parts of one tensor need names of their own" if parts else ""
            raise SpecError(f"two Einsums are called {einsum.name}{hint}", path=f"einsums.{einsum.name}")
        names.add(einsum.name)
    waiting = list(einsums)
    pending = Counter(einsum.output.tensor for einsum in einsums)
    ordered: list[Einsum] = []
    while waiting:
        ready = next((e for e in waiting if not any(pending[a.tensor] for a in e.inputs)), None)
        if ready is None:
            listed = ", ".join(e.name for e in waiting)
            raise SpecError(
                f"Einsums {listed} form a cycle or read from one{_waited(einsums, waiting)}",
                path=f"einsums.{waiting[0].name}",
            )
        waiting.remove(ready)
        pending[ready.output.tensor] -= 1
        ordered.append(ready)
    return tuple(ordered)


def _waited(einsums: Sequence[Einsum], waiting: Sequence[Einsum]) -> str:
    """That all parts of a tensor are written before it is read, if that may be what the last Einsums wait for."""
    parts = Counter(einsum.output.tensor for einsum in einsums)
    tensor = next((e.output.tensor for e in waiting if parts[e.output.tensor] > 1), None)
    return "" if tensor is None else f" ({tensor} is read when all its parts are written)"


def _users(einsums: Sequence[Einsum]) -> dict[str, str]:
    """Each rank variable with the first Einsum that uses it."""
    users: dict[str, str] = {}
    for einsum in einsums:
        for variable in einsum.variables:
            users.setdefault(variable, einsum.name)
    return users


def _accessing(einsums: Sequence[Einsum]) -> dict[str, list[Einsum]]:
    """Each tensor with the Einsums that access it."""
    users: dict[str, list[Einsum]] = {}
    for einsum in einsums:
        for tensor in einsum.tensors:
            users.setdefault(tensor, []).append(einsum)
    return users


def _wrong_ranks(einsums: Sequence[Einsum], ranks: Mapping[str, int]) -> list[SpecError]:
    """What is wrong with the sizes of rank variables: unused ones, missing ones, sizes out of bounds."""
    users = _users(einsums)
    wrong: list[SpecError] = []
    unsized = [variable for variable in users if variable not in ranks]
    unused = [variable for variable in ranks if variable not in users]
    for variable, size in ranks.items():
        place = f"ranks.{variable}"
        try:
            check_name(variable, "a rank variable")
        except SpecError as error:
            wrong.append(SpecError(error.message, path=place))
            continue
        if variable not in users:
            if len(wrong) >= MAX_ERRORS:
                break
            close = nearest(variable, unsized) or nearest(variable, users)
            message = f"rank variable {variable} is used by no Einsum"
            wrong.append(SpecError(message, path=place, suggestion=close))
        elif not _is_size(size):
            message = f"rank variable {variable} has size {size!r:.80}; sizes are whole numbers from 1 to 2**40"
            wrong.append(SpecError(message, path=place))
    for variable in unsized[:MAX_ERRORS]:
        close = nearest(variable, unused)
        message = f"rank variable {variable} of Einsum {users[variable]} has no size"
        place = f"einsums.{users[variable]}"
        wrong.append(SpecError(message + (f"; is {close} it?" if close else ""), path=place))
    return wrong


def whole(value: object) -> int | None:
    """The plain integer that a value of Python or NumPy is; None for what is none, True and False among it."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        return None
    try:
        return operator.index(value)
    except TypeError:  # an array of several
        return None


def _is_size(value: object, most: int = MAX_SIZE) -> bool:
    number = whole(value)
    return number is not None and 1 <= number <= most


def _plain(shape: Iterable[int]) -> tuple[int, ...]:
    return tuple(operator.index(size) for size in shape)


def _wrong_shapes(shapes: Mapping[str, object], views: Sequence[TensorView]) -> Iterator[SpecError]:
    """Declared shapes, of tensors and views, with sizes that cannot be such."""
    declared = [(f"shapes.{tensor}", tensor, shape) for tensor, shape in shapes.items()]
    declared += [(f"views.{view.name}", view.name, view.shape) for view in views]
    for place, name, shape in declared:
        if isinstance(shape, str) or not isinstance(shape, Iterable):
            yield SpecError(f"the shape of {name} is a list of sizes, not {shape!r:.80}", path=place)
            continue
        for bad in [size for size in shape if not _is_size(size)][:1]:
            message = f"the shape of {name} holds {bad!r:.80}; sizes are whole numbers from 1 to 2**40"
            yield SpecError(message, path=place)


def _wrong_whole(name: object, repeat: object) -> Iterator[SpecError]:
    """What is wrong with that which is said of the whole workload."""
    if not isinstance(name, str) or not name.strip() or len(name) > MAX_TEXT:
        said = f"a workload's name is a text of at most {MAX_TEXT} characters, not {name!r:.80}"
        yield SpecError(said, path="name")
    times = whole(repeat)
    if times is None or times < 1:
        yield SpecError(f"repeat is a whole number of at least 1, not {repeat!r:.80}", path="repeat")


def _wrong_names(
    einsums: Sequence[Einsum],
    names: Sequence[str],
    shapes: Mapping[str, Sequence[int]],
    bits: int | Mapping[str, int],
    outputs: Sequence[str] | None,
    persistent: Sequence[str],
    initial: Sequence[str],
    views: Sequence[TensorView],
) -> Iterator[SpecError]:
    """Tensors that are named but not accessed, and outputs that cannot be such."""
    widths = [tensor for tensor in bits if tensor != "default"] if isinstance(bits, Mapping) else []
    once = {"persistent": persistent, "initial": initial, "outputs": outputs or ()}
    listed = (("shapes", shapes), ("bits", widths), *once.items())
    of = {view.name: view.tensor for view in views}
    for what, tensors in listed:
        for tensor in tensors:
            if tensor not in names:
                other = f"tensor {tensor}, which no Einsum accesses"
                named = f"{tensor}, a view of {of[tensor]}" if tensor in of else other
                place = what if what in once else f"{what}.{tensor}"
                close = of.get(tensor) or nearest(tensor, names)
                yield SpecError(f"{what} names {named}", path=place, suggestion=close)
    written = [einsum.output.tensor for einsum in einsums]
    for what, more in (("initial", ": all of it is an input of the cascade"), ("outputs", "")):
        for tensor in once[what]:
            if tensor in names and tensor not in written:
                message = f"{what} names tensor {tensor}, which no Einsum writes{more}"
                yield SpecError(message, path=what, suggestion=nearest(tensor, written))
    for tensor in _unread(einsums) if outputs is not None else ():
        if tensor not in once["outputs"]:
            message = f"tensor {tensor} is written, but no Einsum reads it and outputs does not list it"
            yield SpecError(message, path="outputs")


def _bits(tensor: str, bits: int | Mapping[str, int]) -> int:
    if isinstance(bits, Mapping):
        if tensor not in bits and "default" not in bits:
            raise SpecError(f"bits says nothing about tensor {tensor} and has no default", path="bits")
        bits = bits[tensor] if tensor in bits else bits["default"]
    if not _is_size(bits, MAX_BITS):
        message = f"tensor {tensor} has {bits!r:.80} bits per value; it is a whole number from 1 to {MAX_BITS}"
        raise SpecError(message, path=f"bits.{tensor}")
    return operator.index(bits)


def tensor_shape(
    tensor: str,
    einsums: Sequence[Einsum],
    sizes: Mapping[str, int],
    shapes: Mapping[str, Sequence[int]],
    initial: bool = False,
) -> tuple[int, ...]:
    """The size of each rank: declared, else written by the producer, else what all accesses agree on.

    einsums: those that access the tensor, in program order.
    """
    accesses = [(e.name, e.access(tensor)) for e in einsums if not e.access(tensor).view]
    if not accesses:
        if tensor not in shapes:
            raise SpecError(f"tensor {tensor} is read as {einsums[0].access(tensor)} alone; declare its shape")
        return tuple(_rank_size(tensor, (), sizes, size, None) for size in shapes[tensor])
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
    writers = [e for e in einsums if e.output.tensor == tensor]
    if initial or len(writers) > 1 or any(not index.simple for e in writers for index in e.output.indices):
        return _parted_shape(tensor, accesses, writers, sizes, declared, initial)
    writer = writers[0].name if writers else None
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


def _check_reads(view: TensorView, einsums: Sequence[Einsum], sizes: Mapping[str, int]) -> None:
    """Refuse reads of a view that do not fit its shape."""
    reads = [(e.name, e.access(view.tensor)) for e in einsums if e.access(view.tensor).view == view.name]
    for einsum, access in reads:
        if len(access.indices) != len(view.shape):
            message = f"the shape of {view.name} has {len(view.shape)} rank(s), but Einsum {einsum} reads {access}"
            raise SpecError(message, path=f"einsums.{einsum}")
    for rank, size in enumerate(view.shape):
        _rank_size(view.name, [(e, access, access.indices[rank]) for e, access in reads], sizes, size, None)


def _parted_shape(
    tensor: str,
    accesses: Sequence[tuple[str, Access]],
    writers: Sequence[Einsum],
    sizes: Mapping[str, int],
    declared: Sequence[int] | None,
    initial: bool,
) -> tuple[int, ...]:
    """The shape of a tensor that is written in parts: declared, else up to the last element that is written."""
    made = tuple(written_size(indices, sizes) for indices in zip(*(e.output.indices for e in writers), strict=True))
    shape = made if declared is None else tuple(declared)
    wrong = list(part_problems(tensor, shape, writers, sizes, initial))
    if wrong:
        raise combined(wrong)
    names = {einsum.name for einsum in writers}
    for rank, size in enumerate(shape):
        uses = [(einsum, access, access.indices[rank]) for einsum, access in accesses if einsum not in names]
        _rank_size(tensor, uses, sizes, None if declared is None else size, None, made=size)
    return shape


def _rank_size(
    tensor: str,
    uses: Sequence[tuple[str, Access, Index]],
    sizes: Mapping[str, int],
    declared: int | None,
    writer: str | None,
    made: int | None = None,
) -> int:
    """made: the size up to which several parts are written."""
    whole = [use for use in uses if use[2].constant == 0]
    fixing = [use for use in uses if use[0] == writer] or [use for use in whole if use[2].variables] or whole
    if declared is not None:
        size, origin = declared, f"size {declared} by its declared shape"
    elif made is not None:
        size, origin = made, f"size {made} by the Einsums that write it"
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
        if padded or index.constant != 0 or not index.variables:
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


def _unread(einsums: Sequence[Einsum]) -> list[str]:
    read = {access.tensor for einsum in einsums for access in einsum.inputs}
    return list(dict.fromkeys(einsum.output.tensor for einsum in einsums if einsum.output.tensor not in read))


def _outputs(einsums: Sequence[Einsum], stated: Sequence[str] | None) -> tuple[str, ...]:
    """The cascade's outputs in program order: those stated, else what is written and not read."""
    chosen = _unread(einsums) if stated is None else stated
    return tuple(dict.fromkeys(einsum.output.tensor for einsum in einsums if einsum.output.tensor in chosen))
