"""What a memory feeds to the edges of a fabric and reads from it, cycle by cycle, for one operation.

A `Job` is one operation in one configuration with its operands, one set per copy of the region. `stimuli` gives the
vectors of every cycle, `results` picks the answer out of what left the arrays, `expected` is what NumPy says it is.
Operands smaller than the region are filled up with zeros.

    hold    C = A B + P     A (m x k) stays, B flows in from above, sums leave on the right; with B held: B', A'
    os      C = A B         C (m x l) stays, A flows in from the left and B from above
    tile    E = q(A B) D    C (m x l) stays as sums, is quantised in place, and stays as the operand
    column  E = q(A B) D    A stays in one region, E in the next; every column of C crosses between them
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from ..dataclass import dataclass
from ..errors import SpecError
from .cycles import cycles
from .describe import Configuration, Fabric, Operation

Matrix = NDArray[np.int64]
Words = np.ndarray[tuple[int, int], np.dtype[np.uint32]]


@dataclass(frozen=True)
class Operands:
    """The operands of one region; `tiles` of ``hold`` are (A, B, partial sums) one after the other."""

    tiles: tuple[tuple[Matrix, Matrix, Matrix | None], ...]
    d: Matrix | None = None


@dataclass(frozen=True)
class Job:
    """One operation. operands: per copy of the region. shift: places by which sums are shifted when quantised."""

    fabric: Fabric
    operation: Operation
    configuration: Configuration
    operands: tuple[Operands, ...]
    shift: int = 0

    def __post_init__(self) -> None:
        refused = self.fabric.refuse(self.operation, self.configuration.name)
        if refused is not None:
            raise refused
        copies = self.configuration.copies(self.fabric)
        if len(self.operands) > copies:
            raise SpecError(f"{len(self.operands)} sets of operands; {self.configuration.name} has room for {copies}")
        for one in self.operands:
            self._fits(one)

    def _fits(self, one: Operands) -> None:
        rows, columns = self.configuration.extents(self.fabric)
        for a, b, _ in one.tiles:
            held = (a.shape[0], b.shape[1]) if self.operation in ("os", "tile") else a.shape
            if held[0] > rows or held[1] > columns:
                size = f"{held[0]} x {held[1]}"
                raise SpecError(f"a tile of {size} does not fit {self.configuration.name}: {rows} x {columns}")
        if one.d is not None and self.operation == "column" and one.d.shape[1] > columns:
            raise SpecError(f"{one.d.shape[1]} columns of D do not fit {self.configuration.name}: {columns}")

    @property
    def steps(self) -> int:
        """Steps of the first stream: the longest of all regions."""
        axis = 0 if self.operation in ("os", "tile") else 1
        return max(int(b.shape[axis]) for one in self.operands for _, b, _ in one.tiles)

    @property
    def more(self) -> int:
        """Steps of the second stream of ``tile``."""
        if self.operation != "tile":
            return 0
        return max(int(one.d.shape[1]) for one in self.operands if one.d is not None)

    @property
    def tiles(self) -> int:
        return max(len(one.tiles) for one in self.operands)

    @property
    def cycles(self) -> int:
        """What the cycle model says."""
        return cycles(self.fabric, self.operation, self.configuration, self.steps, self.more, self.tiles)


@dataclass(frozen=True)
class Stimuli:
    """Per cycle and array: left (rows), left_psum (rows) and top (columns) operands."""

    left: Matrix
    psum: Matrix
    top: Matrix


def stimuli(job: Job) -> Stimuli:
    """The vectors of every cycle, as arrays [cycle, array, row or column]."""
    fabric, n = job.fabric, job.cycles
    found = Stimuli(
        np.zeros((n, fabric.count, fabric.rows), np.int64),
        np.zeros((n, fabric.count, fabric.rows), np.int64),
        np.zeros((n, fabric.count, fabric.columns), np.int64),
    )
    for copy, one in enumerate(job.operands):
        {"hold": _hold, "os": _os, "tile": _tile, "column": _column}[job.operation](_Feeder(job, found, copy), one)
    return found


class _Feeder:
    """Writes matrices into the vectors of one region, skewed as the elements meet them."""

    def __init__(self, job: Job, out: Stimuli, copy: int) -> None:
        self.job, self.out = job, out
        self.region = copy * job.configuration.regions
        self.rows, self.columns = job.configuration.extents(job.fabric)
        self.swap = int(job.fabric.element.shadow)

    def load(self, start: int, held: Matrix) -> None:
        """A tile for the elements, its last column first, in the C cycles from `start`."""
        for r, c in np.ndindex(held.shape):
            self._row(self.out.left, start + self.columns - 1 - c, r, int(held[r, c]))

    def from_left(self, start: int, streamed: Matrix, out: Matrix) -> None:
        """Element (r, t) enters row r in cycle start + t + r, as an operand or a partial sum, whichever `out` is."""
        for r, t in np.ndindex(streamed.shape):
            self._row(out, start + t + r, r, int(streamed[r, t]))

    def from_top(self, start: int, streamed: Matrix, region: int = 0) -> None:
        """Element (t, c) enters column c in cycle start + t + c."""
        configuration, fabric = self.job.configuration, self.job.fabric
        for t, c in np.ndindex(streamed.shape):
            block, at = divmod(c, fabric.columns)
            self.out.top[start + t + c, configuration.array(self.region + region, 0, block), at] = streamed[t, c]

    def _row(self, out: Matrix, cycle: int, r: int, value: int) -> None:
        block, at = divmod(r, self.job.fabric.rows)
        out[cycle, self.job.configuration.array(self.region, block, 0), at] = value


def _hold(feeder: _Feeder, one: Operands) -> None:
    for i, (a, b, sums) in enumerate(one.tiles):
        start = _tile_start(feeder.job, i)
        feeder.load(start - feeder.swap - feeder.columns, a)
        feeder.from_top(start, b.T)
        if sums is not None:
            feeder.from_left(start + 1, sums, feeder.out.psum)  # a cycle behind the operands that they are added to


def _tile_start(job: Job, i: int) -> int:
    """The first cycle of the i-th run of ``hold``."""
    rows, columns = job.configuration.extents(job.fabric)
    flow = job.steps + rows + columns
    return columns + 1 + i * (flow + 1) if job.fabric.element.shadow else columns + i * (columns + flow)


def _os(feeder: _Feeder, one: Operands) -> None:
    (a, b, _), *_ = one.tiles
    feeder.from_left(0, a, feeder.out.left)
    feeder.from_top(0, b)


def _tile(feeder: _Feeder, one: Operands) -> None:
    _os(feeder, one)
    assert one.d is not None
    feeder.from_top(_again(feeder.job), one.d.T)


def _again(job: Job) -> int:
    """The first cycle of the second run of ``tile``."""
    rows, columns = job.configuration.extents(job.fabric)
    return job.steps + rows + columns - 1 + columns + int(job.fabric.element.shadow)


def _column(feeder: _Feeder, one: Operands) -> None:
    (a, b, _), *_ = one.tiles
    assert one.d is not None
    feeder.load(0, a)
    start = feeder.columns + feeder.swap
    feeder.from_top(start, b.T)
    feeder.from_top(start + feeder.columns + 1, one.d, region=1)


def results(job: Job, seen: Matrix) -> list[Matrix]:
    """The answers among the sums that left: `seen` is [cycle, array, row]; one matrix per tile and region."""
    found = []
    _, columns = job.configuration.extents(job.fabric)
    for copy, one in enumerate(job.operands):
        region = copy * job.configuration.regions + (job.configuration.regions - 1)
        out = _sums(job, seen, region)
        for i, (a, b, _) in enumerate(one.tiles):
            if job.operation == "hold":
                found.append(_flowing(out, _tile_start(job, i) + columns + 1, a.shape[0], b.shape[1]))
            elif job.operation == "tile":
                assert one.d is not None
                found.append(_flowing(out, _again(job) + columns + 1, a.shape[0], one.d.shape[1]))
            else:
                assert job.operation == "os" or one.d is not None
                wide = b.shape[1] if one.d is None else one.d.shape[1]
                last = out[job.cycles - columns : job.cycles]
                found.append(last[::-1][:wide, : a.shape[0]].T)
    return found


def _sums(job: Job, seen: Matrix, region: int) -> Matrix:
    """What leaves a region on its right edge: [cycle, row]."""
    c = job.configuration
    return np.concatenate([seen[:, c.array(region, r, c.columns - 1)] for r in range(c.rows)], axis=1)


def _flowing(out: Matrix, start: int, rows: int, steps: int) -> Matrix:
    r, t = np.meshgrid(np.arange(rows), np.arange(steps), indexing="ij")
    return np.asarray(out[start + r + t, r])


def packed(job: Job) -> list[Words]:
    """What `stimuli` feeds, left, left_psum and top, as words of 32 bits per cycle, the first value in the low bits."""
    vectors, element = stimuli(job), job.fabric.element
    wide, sums = element.operand_bits, element.sum_bits
    return [_packed(v, bits) for v, bits in ((vectors.left, wide), (vectors.psum, sums), (vectors.top, wide))]


def _packed(values: Matrix, bits: int) -> Words:
    flat = values.reshape(values.shape[0], -1)
    each = (flat[:, :, None] >> np.arange(bits)) & 1
    rows = each.reshape(flat.shape[0], -1).astype(np.uint8)
    padded = np.pad(rows, ((0, 0), (0, -rows.shape[1] % 32)))
    return np.packbits(padded, axis=1, bitorder="little").view("<u4")


def words_out(fabric: Fabric) -> int:
    """Words of 32 bits that hold the sums that leave all arrays in a cycle."""
    return -(-fabric.element.sum_bits * fabric.rows * fabric.count // 32)


def unpacked(words: Words, job: Job) -> Matrix:
    """The sums [cycle, array, row] of such words."""
    fabric, bits = job.fabric, job.fabric.element.sum_bits
    rows = np.unpackbits(np.ascontiguousarray(words).view(np.uint8), axis=1, bitorder="little")
    each = rows[:, : bits * fabric.rows * fabric.count].reshape(words.shape[0], fabric.count, fabric.rows, bits)
    values = (each.astype(np.int64) << np.arange(bits)).sum(axis=3)
    return np.asarray(np.where(each[..., -1] == 1, values - (1 << bits), values), np.int64)


def expected(job: Job) -> Iterator[Matrix]:
    """What NumPy says the answers are; sums wrap at their width."""
    element = job.fabric.element
    for one in job.operands:
        for a, b, sums in one.tiles:
            if job.operation in ("hold", "os"):
                yield wrapped(a @ b + (0 if sums is None else sums), element.sum_bits)
            else:
                assert one.d is not None
                held = quantised(wrapped(a @ b, element.sum_bits), job.shift, element.operand_bits)
                yield wrapped(held @ one.d, element.sum_bits)


def quantised(sums: Matrix, shift: int, bits: int) -> Matrix:
    """Sums shifted to the right and cut to the range of an operand."""
    return np.asarray(np.clip(sums >> shift, -(1 << (bits - 1)), (1 << (bits - 1)) - 1), np.int64)


def wrapped(values: Matrix, bits: int) -> Matrix:
    """Values as a register of so many bits keeps them."""
    half = 1 << (bits - 1)
    return (values + half) % (2 * half) - half
