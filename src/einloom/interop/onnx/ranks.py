"""Ranks that split on demand, and views: how every ONNX value is some stored tensor under an affine index map.

A `Rank` is a size; ranks that an Einsum walks together are one class (union-find). Where a reshape needs 4096 as
32 x 128 the class splits, and everything that has it follows. A rank that a window or an uneven slice reads as a whole
is locked: then only the view splits (``128*a+b`` on that rank). If it was split before, `Locked` starts the pass again.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import islice, pairwise
from math import prod

from ...dataclass import dataclass


class Locked(Exception):
    """A rank must stay whole and was split already: the pass begins again with these keys locked."""

    def __init__(self, keys: Iterable[Hashable]) -> None:
        self.keys = frozenset(keys)
        super().__init__("a rank has to be locked")


class Uneven(Exception):
    """Two factorisations of a size have no common refinement, or an index map is not affine."""


class Rank:
    """One size class. keys: names that a later pass knows it by; parts: the ranks that it was split into."""

    __slots__ = ("hint", "keys", "locked", "parent", "parts", "size", "whole")

    def __init__(self, size: int, key: Hashable, locked: bool = False, hint: str = "") -> None:
        self.size = size
        self.keys = {key}
        self.locked = locked
        self.hint = hint
        self.parts: tuple[Rank, ...] = ()
        self.parent: Rank | None = None
        self.whole: Rank | None = None

    def root(self) -> Rank:
        """The representative of the class."""
        found = self
        while found.parent is not None:
            found = found.parent
        return found

    def leaves(self) -> tuple[Rank, ...]:
        """The classes that it consists of by now, most significant first."""
        root = self.root()
        return tuple(leaf for part in root.parts for leaf in part.leaves()) if root.parts else (root,)

    def lock(self) -> None:
        """Keep it whole. Raises Locked if it is split already."""
        root = self.root()
        if root.parts:
            raise Locked(root.keys)
        root.locked = True

    def split(self, sizes: Sequence[int], locked: frozenset[Hashable]) -> None:
        """Split a class that is whole and not locked. locked: keys of parts that must stay whole."""
        root = self.root()
        first = min(root.keys, key=str)
        keys = [(first, tuple(sizes), i) for i in range(len(sizes))]
        root.parts = tuple(Rank(size, key, key in locked, root.hint) for size, key in zip(sizes, keys, strict=True))
        for part in root.parts:
            part.whole = root


def keep_whole(axes: Sequence[Var]) -> None:
    """Raise Locked if these axes are all parts of one rank that was split."""
    if not axes:
        return
    whole = axes[0].rank.root().whole
    while whole is not None:
        if whole.root().size == prod(axis.size for axis in axes):
            raise Locked(whole.root().keys)
        whole = whole.root().whole


def unite(one: Rank, other: Rank, locked: frozenset[Hashable]) -> None:
    """Make two ranks of one size a single class; what one is split into, the other becomes."""
    a, b = one.root(), other.root()
    if a is b:
        return
    if a.parts and b.parts:
        sizes = refinement([[leaf.size for leaf in a.leaves()], [leaf.size for leaf in b.leaves()]])
        for rank in (a, b):
            for leaf, wanted in zip(rank.leaves(), aligned([leaf.size for leaf in rank.leaves()], sizes), strict=True):
                if len(wanted) > 1:
                    if leaf.locked:
                        raise Locked(a.keys | b.keys)
                    leaf.split(wanted, locked)
        for x, y in zip(a.leaves(), b.leaves(), strict=True):
            unite(x, y, locked)
    if b.parts:
        a, b = b, a
    if a.parts and b.locked:
        raise Locked(a.keys)
    b.parent = a
    a.keys |= b.keys
    a.locked |= b.locked
    a.hint = a.hint or b.hint


def refinement(factors: Sequence[Sequence[int]]) -> list[int]:
    """The coarsest factorisation that refines all given ones, most significant first. Raises Uneven."""
    strides = {1}
    for sizes in factors:
        stride = 1
        for size in reversed(sizes):
            stride *= size
            strides.add(stride)
    ordered = sorted(strides)
    found = []
    for low, high in pairwise(ordered):
        if high % low:
            raise Uneven(f"{' x '.join(map(str, factors[0]))} against {' x '.join(map(str, factors[-1]))}")
        found.append(high // low)
    return found[::-1]


def aligned(products: Sequence[int], sizes: Sequence[int]) -> list[list[int]]:
    """For each product the run of `sizes` that has it. Raises Uneven if they do not nest."""
    left = list(sizes)
    found: list[list[int]] = []
    for size in products:
        taken: list[int] = []
        while prod(taken) < size and left:
            taken.append(left.pop(0))
        if prod(taken) != size:
            raise Uneven(f"{size} against {' x '.join(map(str, sizes))}")
        found.append(taken)
    return found


class Var:
    """A rank variable of an Einsum, or an axis of a view. It splits as its rank does."""

    __slots__ = ("_children", "rank")

    def __init__(self, rank: Rank) -> None:
        self.rank = rank
        self._children: tuple[Var, ...] = ()

    @property
    def size(self) -> int:
        return self.rank.root().size

    def leaves(self) -> tuple[Var, ...]:
        """The variables that it consists of by now, most significant first."""
        parts = self.rank.root().parts
        if not parts:
            return (self,)
        if not self._children:
            self._children = tuple(Var(part) for part in parts)
        return tuple(leaf for child in self._children for leaf in child.leaves())


@dataclass(frozen=True)
class Affine:
    """The sum of ``coefficient * variable``, plus a constant."""

    terms: tuple[tuple[Var, int], ...] = ()
    constant: int = 0

    @property
    def bare(self) -> Var | None:
        """The variable, if the expression is nothing else."""
        one = len(self.terms) == 1 and self.terms[0][1] == 1 and not self.constant
        return self.terms[0][0] if one else None

    def put(self, table: Mapping[Var, Affine]) -> Affine:
        """With expressions in place of variables."""
        terms: dict[Var, int] = {}
        constant = self.constant
        for var, coefficient in self.terms:
            inner = table.get(var, Affine(((var, 1),)))
            constant += coefficient * inner.constant
            for v, c in inner.terms:
                terms[v] = terms.get(v, 0) + c * coefficient
        return Affine(tuple(terms.items()), constant)

    def leaves(self) -> Affine:
        """With every variable as the sum of its leaves."""
        table = {var: weighted(var.leaves()) for var, _ in self.terms if var.rank.root().parts}
        return self.put(table) if table else self


def weighted(digits: Sequence[Var]) -> Affine:
    """The number that the digits write, most significant first."""
    terms, weight = [], 1
    for digit in reversed(digits):
        terms.append((digit, weight))
        weight *= digit.size
    return Affine(tuple(reversed(terms)))


Place = tuple[Rank, Affine]


def expanded(places: Sequence[Place]) -> list[Place]:
    """Accesses rank by rank, with every split rank as its leaves. A rank that is read as a whole is locked."""
    found: list[Place] = []
    for rank, affine in places:
        leaves = rank.leaves()
        if len(leaves) == 1:
            found.append((leaves[0], affine.leaves()))
        elif not affine.terms:
            rest = affine.constant
            digits: list[Place] = []
            for leaf in reversed(leaves):
                rest, digit = divmod(rest, leaf.size)
                digits.append((leaf, Affine((), digit)))
            found += reversed(digits)
        else:
            var = affine.bare
            split = var.leaves() if var is not None else ()
            if [v.size for v in split] != [leaf.size for leaf in leaves]:
                raise Locked(rank.root().keys)
            found += [(leaf, Affine(((v, 1),))) for leaf, v in zip(leaves, split, strict=True)]
    return found


@dataclass(eq=False)
class Stored:
    """A tensor that is stored: its ranks in row-major order of the ONNX value `value` (sizes of 1 have none).

    constant: it follows from weights and integer inputs alone. data: its values, if they are made here. select: ranks
    of the value that this tensor holds at one position only: place, position, size. fill: what the elements hold that
    no Einsum writes, if there are such. of: the tensor that this one is under other ranks, with no storage of its own.
    """

    name: str
    ranks: tuple[Rank, ...]
    bits: int
    constant: bool = False
    value: str | None = None
    data: object = None
    select: tuple[tuple[int, int, int], ...] = ()
    fill: float | None = None
    of: Stored | None = None

    @property
    def base(self) -> Stored:
        """The tensor that is stored: itself, or the one that it is under other ranks."""
        return self if self.of is None else self.of

    @property
    def sizes(self) -> list[int]:
        """The sizes of its ranks."""
        return [rank.root().size for rank in self.ranks]


@dataclass(frozen=True)
class View:
    """A value: dims, each a list of axes (most significant first), and where in `tensor` an element stands."""

    tensor: Stored
    dims: tuple[tuple[Var, ...], ...]
    places: tuple[Place, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(prod(var.size for var in dim) for dim in self.dims)

    def normal(self) -> View:
        """The same with nothing but leaves."""
        dims = tuple(tuple(leaf for var in dim for leaf in var.leaves()) for dim in self.dims)
        return View(self.tensor, dims, tuple(expanded(self.places)))

    def put(self, table: Mapping[Var, Affine], dims: Sequence[Sequence[Var]]) -> View:
        """With expressions in place of axes. Ranks that are no longer read by a bare axis are locked."""
        places = []
        for rank, affine in self.normal().places:
            changed = affine.put(table)
            if changed.terms and changed.bare is None:
                rank.lock()
            places.append((rank, changed))
        return View(self.tensor, tuple(tuple(dim) for dim in dims), tuple(places))


def whole(tensor: Stored, dims: Sequence[Sequence[Var]]) -> View:
    """All of a tensor, with an axis of these dimensions for each of its ranks."""
    axes = zip(tensor.ranks, (axis for dim in dims for axis in dim), strict=True)
    return View(tensor, tuple(map(tuple, dims)), tuple((rank, Affine(((axis, 1),))) for rank, axis in axes))


@dataclass
class Splitter:
    """Splits axes of views. locked: keys of the ranks that stay whole in this pass."""

    locked: frozenset[Hashable] = frozenset()
    made: int = 0

    def rank(self, size: int, key: Hashable, hint: str = "") -> Rank:
        """A new size class."""
        return Rank(size, key, key in self.locked, hint)

    def grouped(
        self, view: View, dims: Sequence[int], sizes: Sequence[int]
    ) -> tuple[View, tuple[tuple[Var, ...], ...]]:
        """The view with the axes of these dimensions split so that each of `sizes` is a run of axes, and those runs.

        Raises Uneven if the sizes do not nest with the axes.
        """
        wanted = [size for size in sizes if size > 1]
        while True:
            view = view.normal()
            axes = [axis for dim in dims for axis in view.dims[dim]]
            target = refinement([[axis.size for axis in axes], wanted])
            if len(target) == len(axes):
                break
            view = self._split(view, axes, target)
        left = iter(axes)
        runs = aligned(sizes, [axis.size for axis in axes])
        return view, tuple(tuple(islice(left, len(run))) for run in runs)

    def _split(self, view: View, axes: Sequence[Var], target: Sequence[int]) -> View:
        """The view with these axes split; where a rank is locked, the view's axis alone."""
        alone: dict[Var, tuple[Var, ...]] = {}
        for axis, wanted in zip(axes, aligned([axis.size for axis in axes], target), strict=True):
            if len(wanted) == 1:
                continue
            if axis.rank.root().locked:
                self.made += 1
                ranks = [self.rank(size, ("view", self.made, i)) for i, size in enumerate(wanted)]
                alone[axis] = tuple(Var(rank) for rank in ranks)
            elif len(axis.leaves()) == 1:
                axis.rank.root().split(wanted, self.locked)
        if alone:
            table = {axis: weighted(parts) for axis, parts in alone.items()}
            view = view.put(table, [[v for axis in dim for v in alone.get(axis, (axis,))] for dim in view.dims])
        return view.normal()
