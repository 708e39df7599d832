"""What the choices of stores of an Einsum cost at least, once the spatial loops on the first axes are known.

Comes in: instances on the outer axes, as `RankClasses.within` finds them axis by axis. Goes out: which of them may
begin a spatial choice that is of use. What the other axes take is not known: where few instances are dear they take as
many as there may be, where many are dear they take one. The argument: docs/model/pruning.md, "Spatial choices within a
limit".
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from itertools import pairwise
from math import prod

import numpy as np
from numpy.typing import NDArray

from ..einsums.classes import UnitOption
from ..einsums.holds import Chain, chains_of
from ..einsums.spatial import RankClasses
from ..model import Setting
from ..numerics.pareto import FloatArray, IntArray
from .points import ROUNDED, OnUnit

SAMPLED = 32  # beginnings that are gone on with, of many that are looked at together, where a few choices do
Useful = Callable[[FloatArray], NDArray[np.bool_]]
"""Least costs in the sums that make the objective [n, settled columns] -> which may be of use."""


def limit_of(most: float) -> Useful:
    """What is of use where one settled column alone may be so much."""
    return lambda cost: cost[:, 0] <= most


def anything(cost: FloatArray) -> NDArray[np.bool_]:
    """Every choice is of use."""
    return np.ones(len(cost), bool)


def _apart(tables: list[dict[Chain, FloatArray]]) -> FloatArray:
    """The least of each tensor by itself, added up."""
    return np.asarray(sum(np.min(list(table.values()), axis=0) for table in tables))


class Beginnings:
    """Least costs of one unit's choices of stores, by what is known of spatial loops.

    useful: of the settled columns of an Einsum.
    """

    def __init__(self, setting: Setting, classes: RankClasses, option: UnitOption, useful: Useful) -> None:
        self.setting, self.classes, self.option, self.useful = setting, classes, option, useful
        self.unit = OnUnit(setting.machine, classes.signature, option)

    def keep(self, rows: IntArray, left: IntArray) -> NDArray[np.bool_]:
        """Mask of the beginnings that some choice of stores may make useful. rows [n, axes, classes]: instances on the
        first axes; left [n, classes]: what is left of each class."""
        self.classes.checkpoint()
        found = np.zeros(len(rows), bool)
        if not self._stores:
            return found
        known = _Known(self, rows, left)
        bare, tables = known.operations(), [self._moves(known, t) for t in self._tensors]
        hoped = np.flatnonzero(self.useful(self._settled(bare + _apart(tables))))
        for chains in self._stores:
            hoped = hoped[~found[hoped]]
            if not len(hoped):
                break
            cost = bare[:, hoped]
            for table, chain in zip(tables, chains, strict=True):
                cost = cost + table[chain][:, hoped]
            found[hoped[self.useful(self._settled(cost))]] = True
        return found

    def sample(self, rows: IntArray, left: IntArray) -> NDArray[np.bool_]:
        """Mask of a few of the beginnings that promise most: choices to begin with."""
        self.classes.checkpoint()
        known = _Known(self, rows, left)
        cost = known.operations() + _apart([self._moves(known, t) for t in self._tensors])
        found, order = np.zeros(len(rows), bool), np.argsort(self._settled(cost).prod(axis=1), kind="stable")
        found[order[:SAMPLED]] = True
        return found

    def _moves(self, known: _Known, t: int) -> dict[Chain, FloatArray]:
        """Of choices of stores that may be useful."""
        return {chain: known.moves(t, chain) for chain in dict.fromkeys(chains[t] for chains in self._stores)}

    def _settled(self, cost: FloatArray) -> FloatArray:
        """Columns [columns, n] -> the sums that make the objective [n, settled columns], and no more than they are."""
        return self.setting.settled(cost.T * (1 - ROUNDED))

    @cached_property
    def _stores(self) -> list[tuple[Chain, ...]]:
        """The memories that hold each tensor, of each choice of stores that may be useful, the cheapest first."""
        every = chains_of(self.option.held, len(self._tensors))
        settled = self.setting.settled(self.unit.promised(self.setting.columns))
        order = np.argsort(settled.prod(axis=1), kind="stable")
        good = self.useful(settled)
        return list(dict.fromkeys(every[i] for i in order.tolist() if good[i]))

    @property
    def _tensors(self) -> range:
        return range(len(self.classes.signature.tensors))


class _Known:
    """Instances on the first axes of some spatial choices, and the most that there may be on the others.

    rows [axes, classes, n]: what is known; left [classes, n]: of each class, for all others.
    """

    def __init__(self, asked: Beginnings, rows: IntArray, left: IntArray) -> None:
        self.unit, self.option, self.setting, self.classes = asked.unit, asked.option, asked.setting, asked.classes
        self.rows = np.ascontiguousarray(rows.transpose(1, 2, 0), dtype=np.float64)
        self.left = np.ascontiguousarray(left.T, dtype=np.float64)
        self.axes = self.classes.signature.visible(self.option.fanouts)
        self._taken: dict[tuple[tuple[int, ...], tuple[int, ...]], tuple[FloatArray, FloatArray]] = {}

    def taken(
        self, dims: tuple[int, ...], top: int, bottom: int, tensor: int | None = None, joined: bool = True
    ) -> tuple[FloatArray, FloatArray]:
        """(instances known, most instances) along some classes on the axes of the fanouts `top` <= number < `bottom`.
        tensor: of those axes alone that join it, or do not."""
        wanted = tuple(
            i
            for i, axis in enumerate(self.axes)
            if top <= axis.fanout < bottom and (tensor is None or (tensor in axis.joined) == joined)
        )
        if (dims, wanted) not in self._taken:
            known, most, size = np.ones(self.left.shape[1]), np.ones(self.left.shape[1]), 1
            for i in wanted:
                if i >= len(self.rows):
                    size *= self.axes[i].size
                    continue
                for d in dims:
                    known = known * self.rows[i, d]
            if size > 1:
                for d in dims:
                    most = most * self.left[d]
                most = np.minimum(most, size)
            self._taken[dims, wanted] = known, known * most
        return self._taken[dims, wanted]

    def operations(self) -> FloatArray:
        """Least costs of the operations themselves [columns, n]."""
        found = np.zeros((len(self.setting.columns), self.left.shape[1]))
        if self.option.unit is None:
            return found
        unit, points = self.setting.machine.unit(self.option.unit), prod(self.classes.extents)
        for c, column in enumerate(self.setting.columns):
            if column.kind == "energy":
                found[c] = points * unit.energy
            elif column.port == "compute" and unit.throughput is not None:
                found[c] = points / self.taken(self._every, 0, self.option.fanouts)[1] / unit.throughput
        return found

    def moves(self, t: int, chain: Chain) -> FloatArray:
        """Least costs of what moves of a tensor that these memories hold [columns, n]: every element once from one to
        the next, and what the unit asks for."""
        cost = np.zeros((len(self.setting.columns), self.left.shape[1]))
        tensor, (elements, points) = self.classes.signature.tensors[t], self.unit.met(t)
        mine = tuple(d for d in self._every if self.classes.relevant(t, d))
        lacks = tuple(d for d in self._every if d not in mine)
        above, bottom = self.option.above, self.option.fanouts
        simple = all(map(tensor.simple, range(len(tensor.ranks))))
        for parent, child in pairwise(chain):
            if (simple or not tensor.output) and self.unit.filled(t, parent):
                apart = elements * self.taken(lacks, above[parent], above[child], t, joined=False)[0]
                for memory, moved, writes in ((parent, apart, tensor.output), (child, elements, not tensor.output)):
                    every = moved * self.taken(lacks, 0, above[memory])[0]
                    self._charge(cost, t, memory, writes, every, moved, mine)
        if not self.classes.signature.copy:
            inner = chain[-1]
            values = points / self.taken(lacks, above[inner], bottom, t)[1]
            self._charge(cost, t, inner, tensor.output, values, values, self._every)
            if tensor.output:
                outside = self.taken(lacks, 0, above[inner])[1]
                begun = outside * self.taken(lacks, above[inner], bottom, t, joined=False)[1]
                again = np.maximum(0.0, values - elements * np.minimum(begun, self.unit.lacking(t)))
                self._charge(cost, t, inner, False, again, again, self._every)
        return cost

    def _charge(
        self,
        cost: FloatArray,
        t: int,
        memory: int,
        writes: bool,
        every: FloatArray,
        moved: FloatArray | int,
        dims: tuple[int, ...],
    ) -> None:
        """Add what moves in or out of a memory: elements over all instances, and others that are divided among the most
        instances along some classes."""
        level, bits = self.setting.machine.memories[memory], self.classes.signature.tensors[t].bits[memory]
        energy = level.write_energy if writes else level.read_energy
        throughput = level.write_throughput if writes else level.read_throughput
        for c, column in enumerate(self.setting.columns):
            if column.kind == "energy":
                cost[c] += every * (bits * energy / level.bits_per_access)
            elif column.memory != memory:
                continue
            elif column.kind == "traffic":
                cost[c] += every * bits
            elif column.port in ("shared", "write" if writes else "read") and throughput is not None:
                cost[c] += moved * (bits / throughput) / self.taken(dims, 0, self.option.above[memory])[1]

    @property
    def _every(self) -> tuple[int, ...]:
        return tuple(range(len(self.classes.extents)))
